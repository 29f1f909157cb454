"""Searches for bytes in a long run of bytes, as fast as the system's C library."""

import sys
from collections.abc import Callable
from functools import cache


def contains(text: bytes, needle: bytes) -> bool:
    return _find_function()(text, needle)


@cache
def _find_function() -> Callable[[bytes, bytes], bool]:
    """`memmem` of Linux takes a third of the time of Python's own search (18 µs instead of 51 for six letters in 64
    KB), and other threads continue meanwhile."""
    if sys.platform == "linux":
        import ctypes

        memmem = ctypes.CDLL(None).memmem
        memmem.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        memmem.restype = ctypes.c_void_p
        return lambda text, needle: memmem(text, len(text), needle, len(needle)) is not None
    else:  # noqa: RET505 - a type checker must see that this is not reached on Linux
        return bytes.__contains__
