"""Paths that stay where they are put: what stands behind a provider's base URL must not lead out of it."""

import re
from urllib.parse import unquote

_SEPARATOR = re.compile(r"[/\\]")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
_DOTS = frozenset({".", ".."})
_MOST_CODINGS = 4
"""A path that is percent-encoded more often than this hides something."""


def can_stray(path: str) -> bool:
    """Whether a server could take this path for another one than it seems to be.

    That is so where it has a dot segment, a backslash or a control character, as it stands or percent-encoded, once or
    several times over: proxies and servers differ in how often they decode, and some take a backslash for a slash and
    pass over what follows a semicolon.
    """
    for _ in range(_MOST_CODINGS):
        if _UNSAFE.search(path) or any(part.partition(";")[0] in _DOTS for part in _SEPARATOR.split(path)):
            return True
        plain = unquote(path)
        if plain == path:
            return False
        path = plain
    return True
