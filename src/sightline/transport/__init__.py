"""Outgoing connections: the HTTP client, WebSockets, retries within one budget, and the embedded model's process.

It may import `platform` and every pure package. It does not depend on any vendor: what to send where is passed in as a
`RequestTemplate`, and the meaning of a response comes from its dialect. Time, randomness and the environment are passed
in too.
"""
