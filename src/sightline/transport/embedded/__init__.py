"""The embedded model `local`: a small, real language model in a child process, used like any provider.

`child` is the program of that process and the only module that loads the engine; `process` is our side of it: the
process starts on first use, is restarted if it dies, and ends with us. `diagnosis` finds out why it cannot run on a
machine. It may import `platform` and every pure package. It never sends a request itself, never downloads anything and
never logs its key.
"""
