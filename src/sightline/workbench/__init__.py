"""What a person sees of a running Sightline and does with it: the page, and the API of JSON and events behind it.

It may import the store, the exchange and everything pure. All of it but the health check wants the token, and nothing
here is reachable through a gateway path. It only reads the record: what a person does, the engine does.
"""
