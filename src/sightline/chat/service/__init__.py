"""The chat as a living service: the pure core of `chat` driven with the engine, a logbook and watchers.

It may import what the engine may. A fact is in the log before it is applied here, and applied before it is
announced. It knows no HTTP and no page, and never sends by another way than the engine's.
"""
