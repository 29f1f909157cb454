"""The chat as a living service: the pure core of `chat` driven with the engine, a logbook and whoever watches.

It may import what the engine may. What happens is in the log before it is true here, and true here before anybody is
told. It knows no HTTP and no page, and never sends by another way than the engine's.
"""
