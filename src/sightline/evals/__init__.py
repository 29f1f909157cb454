"""Evals: `core` reads suites, grades and counts, `service` runs the cases, `api` has the HTTP calls.

It may import the chat, the agent, the exchange and everything below. Requests of cases go through the exchange like any
other, so that they can be held, recorded and replayed.
"""
