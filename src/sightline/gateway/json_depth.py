"""How deep a JSON text is nested, found without reading it: what is too deep must not reach a reader at all."""

import re

from sightline.wire.jsontext import MOST_LEVELS, may_be_deep

_SAME = bytes.maketrans(b"{}", b"[]")
_WORDS = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_STRING = re.compile(rb'"[^"]*+(?:"|\Z)')
_PASSES = 24
"""So deep are the deepest requests of real clients, and a few levels more."""


def is_too_deep(text: bytes) -> bool:
    """Whether the text holds more levels of lists and objects than any API means."""
    if not may_be_deep(text):
        return False  # nearly every text ends here: so few brackets cannot stand so deep
    # Without escapes and words a string is a pair of quotes around the brackets in it, and a list is like an object.
    marks = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_SAME, _WORDS)
    left = _STRING.sub(b"", marks.replace(b'""', b""))
    for _ in range(_PASSES):
        if not left:
            return False
        left = left.replace(b"[]", b"")  # one level of everything
    depth = _PASSES
    for mark in left:
        depth += 1 if mark == ord("[") else -1
        if depth > MOST_LEVELS:
            return True
    return False
