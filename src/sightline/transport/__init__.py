"""Dialling out: the HTTP client, WebSockets, retries within one budget, and the embedded model's process.

It may import everything pure. It knows no vendor: what to send where is handed in as a `RequestTemplate`, and what an
answer means comes from its dialect. Time, randomness and the environment are passed in too.
"""
