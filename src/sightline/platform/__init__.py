"""What differs between Linux, macOS and Windows: files, locks, signals, processes, the terminal, and what is
unsupported.

It may import `errors` and the standard library. Each subject is in one module, with its Windows form beside the other
one. Decisions that do not need the system itself take the name of the platform, so that tests can try each one. No
other package checks which system it runs on, except where it reads the system's certificates.
"""
