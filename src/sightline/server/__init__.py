"""The fronts of a running Sightline: `gateway/` speaks the vendors' APIs to clients, `workbench/` serves people.

It may import everything below, and reaches providers and the record through the engine and the store alone. It decides
who may ask and understands what is asked; it never decides where a request goes, and it never changes a body.
"""
