"""The filter language for the traffic list, interception rules and chat history.

A text is parsed into an expression. The expression becomes a predicate over anything that has the fields and, as far as
a store can evaluate it, a condition in SQL. It may import `dialects` and the packages below them. It knows nothing of
stores, pages or chats, and reads neither clock nor file.
"""
