"""One filter language for the traffic list, interception rules and chat history.

A text is parsed into an expression, which becomes a predicate over anything that has the fields, and, where a store can
do the work, a condition in SQL. It may import the packages below it, of which it needs `errors`, `model` and how
`catalog` words a mistake. It knows nothing of stores, pages or chats, and reads neither clock nor file.
"""
