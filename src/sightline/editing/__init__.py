"""The document under edit: a wire document viewed as sections and changed by operations that touch nothing else, with
undo.

It may import everything up to `dialects`, `filters` and `tokens`. The user edits exactly the JSON that will be sent, so
nothing here rebuilds a body from a canonical request, and nothing here reads a clock or a file.
"""
