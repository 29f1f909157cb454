"""Chats from elsewhere as pairs and topics: ChatGPT's and Claude's exports, MaiChat's, our own, and plain Markdown.

Bytes in, values out. It may import what the chat may. Of what cannot be carried a note is left, never nothing; the
same export always gives the same ids, so that what is imported twice is there once.
"""
