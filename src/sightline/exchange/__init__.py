"""Drives the pure cores with real time and real connections: compose, write, send, read, fold.

It may import everything below. Every caller of ours sends through it, so that what is shown, counted and recorded is
the same for all of them.
"""
