"""Imports: exports of ChatGPT, Claude, MaiChat and Sightline, and plain Markdown, read into pairs and topics.

Bytes go in and values come out. It may import what the chat's core may. What cannot be imported is reported. The same
export always gives the same ids, so that importing it twice adds it once.
"""
