"""The server side of the page: static files, the JSON API for traffic, requests, rules and replay, and live events.

The package may import the store, the exchange and every pure package. Everything except the health check requires the
token, and no gateway path leads here. It only reads the record; the exchange carries out the user's actions.
"""
