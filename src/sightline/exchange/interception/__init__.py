"""Interception: which exchanges are held for a user, what the user can do to them, and which edits are kept.

`core` is the pure part: rules, held tool calls, handwritten replies. Beside it are the holds, the edits that are kept
as masks for later requests, and the file that stores rules and masks across restarts. It may import `exchange` and
everything below; only `exchange.run` and the HTTP fronts call it. It never sends anything.
"""
