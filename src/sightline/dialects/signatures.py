"""Signatures and encrypted reasoning on their way through a client that speaks another dialect.

A signature means something only to the provider that made it. In a reply to a client of another dialect it
travels in that dialect's own field, wrapped so that it names its maker; when the client sends it back it is unwrapped,
and only the maker's dialect gets it again. It is never offered to another provider as if it were that provider's own.
"""

_PREFIX = "sightline:"

NEXT = "next"
"""In place of an id: the seal belongs to the part that follows, because the dialect has no field for it there."""


def wrap(signature: str | None, signed_by: str, item: str | None = None) -> str:
    """A seal as a foreign dialect carries it."""
    return f"{_PREFIX}{signed_by}:{item or ''}:{signature or ''}"


def unwrap(text: str, reader: str) -> tuple[str | None, str, str | None]:
    """What a dialect's signature field holds: the seal, the dialect that made it, and the item it is bound to."""
    if not text.startswith(_PREFIX):
        return text, reader, None
    signed_by, _, tail = text[len(_PREFIX) :].partition(":")
    item, _, signature = tail.partition(":")
    return signature or None, signed_by, item or None
