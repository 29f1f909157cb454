"""The size of requests: token estimates with a band, the limits of models and accounts, and what has been used.

It may import `dialects` and the packages below them. It never uses a provider, a clock or a file: times and counts are
passed in.
"""
