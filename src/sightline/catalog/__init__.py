"""What is known about providers, model families and models: TOML tables as typed values, and what follows from them.

It may import `model` and `errors`. It never opens a file or looks at the environment: texts and variables are
handed in. Vendors differ here in data and named quirks, never in code.
"""
