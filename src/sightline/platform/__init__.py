"""What differs between Linux, macOS and Windows: files, locks, signals, processes, the terminal, what is not supported.

It may import `errors` and the standard library. Each subject is in one module with its Windows form beside the other
one; where a decision can be made without the system, it takes the name of the platform, so that tests can try each. No
other package asks which system it runs on, except where it reads the system's certificates.
"""
