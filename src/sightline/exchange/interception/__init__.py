"""Interception as values: which requests and replies are stopped for a person, and what a person makes of them then.

It may import `editing` and everything below. Rules, modes, held tool calls and hand-written replies are pure; who waits
for a person, and for how long, is the engine's. Nothing here reads a clock, a file or a socket, and nothing here sends.
"""
