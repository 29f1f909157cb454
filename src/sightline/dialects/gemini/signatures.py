"""`thoughtSignature` in both directions. The field holds base64, and the vendor's own SDK insists on it, so the seal of
another provider travels wrapped and coded once more."""

import base64
import binascii

from sightline.dialects import seals
from sightline.dialects.fields import opt_str
from sightline.dialects.gemini.spelling import NAME, spelled
from sightline.model.json import JsonObject

Seal = tuple[str | None, str | None, str | None]
"""A signature, the dialect that made it, and the item that it is bound to."""

REDACTED = "redacted"
"""In place of an id: the seal is a block of reasoning whose text the provider withholds."""

_WRAPPED = "c2lnaHRsaW5lO"
"""How base64 of a wrapped seal begins."""
_NOTHING: Seal = (None, None, None)


def read_signature(part: JsonObject, at: str) -> Seal:
    """The seal on a part."""
    text = opt_str(part, spelled(part, "thoughtSignature"), at)
    if text is None:
        return _NOTHING
    if text.startswith(_WRAPPED):
        text = _decoded(text)
    return seals.unwrap(text, NAME)


def for_client(signature: str | None, signed_by: str | None, item: str | None = None) -> str | None:
    """The seal as a reply carries it: our own exactly, another provider's wrapped, None if there is none."""
    if signed_by is None or signed_by == NAME:
        return signature
    if signature is None and item is None:
        return None
    return base64.b64encode(seals.wrap(signature, signed_by, item).encode("utf-8", "surrogatepass")).decode()


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None).decode("utf-8")
    except (binascii.Error, ValueError):
        return text
