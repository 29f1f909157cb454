"""The HTTP/1.1 client: sends requests and reads responses as they arrive, over TLS and through proxies.

It is deliberately small: llhttp parses, asyncio moves the bytes, and nothing that Sightline does not use is here. It
may import httptools, `platform`, `wire`, `model` and `errors`. It never retries, follows redirects, decompresses or
stores cookies, and it never puts a credential or a query string into a message.
"""
