"""Test doubles for a model and its tools, from a readable script: for demos, documents and tests.

It may import what the engine may, and sees neither the engine nor the server: its replies are read over a real
connection on loopback by the same code as a provider's. It never connects to anything outside of this machine.
"""
