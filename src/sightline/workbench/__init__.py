"""The server side of the page: static files, the JSON API for traffic, requests, rules and replay, and live events.

It may import `gateway`, `exchange` and everything below. Everything except the health check requires the
token, and no gateway path leads here. It only reads the record; the exchange carries out the user's actions.
"""
