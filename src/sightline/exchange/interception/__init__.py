"""Interception: which exchanges are held for a user, what the user can do to them, and which edits are kept.

`core` has the pure part: rules, held tool calls, replies by hand. Beside it are the holds, the edits that are kept as
masks for later requests, and the file that keeps rules and masks over restarts. It may import `exchange` and
everything below; only `exchange.run` and the fronts call it. It never sends anything.
"""
