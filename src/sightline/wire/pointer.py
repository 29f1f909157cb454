"""JSON pointers (RFC 6901): parsing, building and resolving them.

A pointer is a plain string everywhere in Sightline; only this module takes one apart.
"""

import re

from sightline.errors import Code, Fault
from sightline.model.json import Json

_BAD_ESCAPE = re.compile("~(?![01])")
# Eighteen digits are more than any array needs, and few enough to parse at once.
_INDEX = re.compile("0|[1-9][0-9]{0,17}")


def join(at: str, *tokens: str | int) -> str:
    """The pointer to the place below `at` that the tokens name, one per level."""
    for token in tokens:
        text = str(token)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        at = f"{at}/{text}"
    return at


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """The unescaped tokens of a pointer; empty for the whole document."""
    if not pointer:
        return ()
    if pointer[0] != "/":
        raise refusal(pointer, "a pointer is empty or begins with a slash")
    tokens = pointer[1:].split("/")
    if "~" in pointer:
        if _BAD_ESCAPE.search(pointer):
            raise refusal(pointer, "a tilde is written ~0 and a slash within a key ~1")
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in tokens]
    return tuple(tokens)


def resolve(document: Json, pointer: str) -> Json:
    """The value at a pointer. Raises a Fault if there is none."""
    value = document
    for token in parse_pointer(pointer):
        if isinstance(value, dict):
            if token not in value:
                raise refusal(pointer, f"there is no key {token!r}")
            value = value[token]
        elif isinstance(value, list):
            value = value[index(token, len(value), pointer)]
        else:
            raise refusal(pointer, f"{token!r} is looked up in a value that is neither an object nor an array")
    return value


def covers(outer: str, inner: str) -> bool:
    """Whether `inner` is the place `outer` or inside it."""
    return inner.startswith(outer) and (len(inner) == len(outer) or inner[len(outer)] == "/")


def index(token: str, length: int, pointer: str) -> int:
    """The position that a token names among `length` elements."""
    if not _INDEX.fullmatch(token):
        raise refusal(pointer, f"{token!r} is not a position in an array")
    position = int(token)
    if position >= length:
        raise refusal(pointer, f"position {position} is past the end of the array")
    return position


def refusal(
    pointer: str, reason: str, hint: str = "Look at the document as it stands and name a place in it."
) -> Fault:
    """The fault for a pointer that cannot be followed or used."""
    return Fault(Code.INVALID_REQUEST, f"{pointer!r}: {reason}", hint=hint, pointer=pointer)
