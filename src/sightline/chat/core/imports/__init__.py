"""Imports: ChatGPT's and Claude's exports, MaiChat's, our own, and plain Markdown, read into pairs and topics.

Bytes in, values out. It may import what the chat's core may. What cannot be imported is reported; the same export
always gives the same ids, so that importing it twice adds it once.
"""
