"""Stand-ins for a model and its tools, by a script that people can read: for demos, documents and tests.

It may import what the engine may, and sees neither the engine nor the server: what it plays is heard over a real
connection on loopback by the same code that hears a provider. It never speaks to anything outside of this machine.
"""
