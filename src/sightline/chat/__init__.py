"""The chat: `core` is its pure part, `service` drives it with the engine and keeps its log, `api` has its HTTP calls.

It may import the agent, the exchange and everything below. What is visible is what is sent, and nothing is sent but
through the exchange.
"""
