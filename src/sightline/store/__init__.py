"""The record: every exchange as facts, with its bodies stored by hash, searchable with filters.

It may import `platform` and every pure package. It stores no secrets, because the recorder removes them first, and it
never decides what happens to a request. SQLite and PostgreSQL implement the same interface, and one test suite checks
both.
"""
