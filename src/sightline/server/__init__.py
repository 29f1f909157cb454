"""The HTTP server: it listens, speaks HTTP/1.1, and hands each request to the gateway or to the workbench.

It may import everything below the composition root. It understands connections and heads; it never looks into a body.
"""
