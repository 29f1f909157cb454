"""The vendors' APIs as clients use them: turns paths, bodies and sockets into requests for the relay, and lists models.

It may import `exchange` and everything below. It parses only as much of a request as is needed to pass it on.
Refusals are errors in the caller's own dialect, and nothing here depends on the workbench.
"""
