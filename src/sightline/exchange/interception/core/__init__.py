"""Interception as values: rules and modes, the tool calls of a reply under edit, and replies that a user writes.

It may import `editing` and everything below. It is pure: it uses no clock, no files and no sockets, and sends nothing.
"""
