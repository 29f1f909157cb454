"""The vendors' APIs as clients use them: turns paths, bodies, sockets and model lists into requests for the relay.

It may import the engine and everything pure below. It parses only as much of a request as is needed to pass it on.
Refusals are errors in the caller's own dialect, and nothing here depends on the workbench.
"""
