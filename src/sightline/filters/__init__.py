"""The filter language for the traffic list, interception rules and chat history.

A text is parsed into an expression. The expression becomes a predicate over anything that has the fields and, as far as
a store can evaluate it, a condition in SQL. The package may import those below it, of which it needs `errors`, `model`
and how `catalog` words a mistake. It knows nothing of stores, pages or chats, and reads neither clock nor file.
"""
