"""Interception as values: rules and modes, the tool calls of a reply under edit, and replies that a user writes.

It may import `editing` and everything below. It is pure: it reads no clock, no file and no socket, and sends nothing.
"""
