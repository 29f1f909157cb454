"""The record: every exchange as facts, its bodies under their hashes, found again by filters.

It may import everything pure. It holds no secrets, because the recorder has removed them before; it never decides
what happens to a request. SQLite and PostgreSQL keep one promise, which one suite of tests holds them to.
"""
