"""What the page connects to: static files, the JSON API of traffic, requests, rules and replay, and live events.

It may import the store, the exchange and everything pure. Everything except the health check needs the token, and no
gateway path leads here. It only reads the record; what the user does is carried out by the exchange.
"""
