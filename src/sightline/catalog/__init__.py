"""What is known about providers, model families and models: TOML tables as typed values, and what follows from them.

It may import `model` and `errors`. It never opens a file or reads the environment: texts and variables are passed in.
Vendors differ here in data and named quirks, never in code.
"""
