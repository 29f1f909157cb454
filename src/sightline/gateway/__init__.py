"""The vendors' APIs, as clients speak them: paths, bodies, sockets and model lists go in, requests for the relay come
out.

It may import the engine and everything pure below. It reads of a request what is needed to pass it on and no more; what
it refuses is an error of the caller's own dialect, and nothing here knows the workbench.
"""
