"""The HTTP server: it listens, speaks HTTP/1.1, and passes each request to the gateway or to the workbench.

It may import everything below the composition root. It handles connections and heads, and never looks into a body.
"""
