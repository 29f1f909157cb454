"""The chat as a running service: drives the pure core of `chat` with the engine, a logbook and watchers.

It may import `chat.core`, `agent`, `exchange` and everything below. A fact is in the log before it is applied here, and
applied before it is announced. It knows nothing about HTTP or pages, and sends requests only through the engine.
"""
