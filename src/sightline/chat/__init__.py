"""The chat: `core` is its pure part, `service` drives it with the engine and keeps its log, `api` has its HTTP calls.

It may import the agent, the exchange and everything below. What is visible is what is sent, and requests are sent only
through the exchange.
"""
