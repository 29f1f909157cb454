"""The document under edit: a wire document seen as sections, changed by operations that touch nothing else, with undo.

It may import everything up to `dialects`, `filters` and `tokens`. What a person edits is the very JSON that will be
sent; so nothing here ever writes a body anew from a canonical request, and nothing here reads a clock or a file.
"""
