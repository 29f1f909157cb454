"""How much a request is: token estimates with a band, what models and accounts allow, and what has been used.

It may import `catalog`, `wire`, `model` and `errors`. It never asks a provider, a clock or a file: times and counts are
handed in.
"""
