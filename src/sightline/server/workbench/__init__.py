"""What a person sees of a running Sightline: the page, and the API of JSON and events behind it.

It may import the store, the engine's hub and everything pure. All of it but the health check wants the token; nothing
here is reachable through a gateway path, and it reads the record without ever changing it.
"""
