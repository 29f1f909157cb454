"""The HTTP/1.1 client: requests out, answers in as they come, over TLS and through proxies.

It is small on purpose: llhttp parses, asyncio moves the bytes, and nothing that Sightline does not use is here. It
imports the standard library, httptools, `errors` and `wire.call`. It never retries, follows a redirect, decompresses or
keeps a cookie, and it never puts a credential or a query string into a message.
"""
