"""`thoughtSignature` in both directions. The field holds base64, and the vendor's own SDK insists on it, so the seal of
another provider travels wrapped and coded once more."""

import base64
import binascii

from sightline.dialects import signatures as seals
from sightline.dialects.fields import object_at, objects_in, opt_str
from sightline.dialects.gemini.field_names import NAME, spelling_of
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report

Seal = tuple[str | None, str | None, str | None]
"""A signature, the dialect that made it, and the item that it is bound to."""

REDACTED = "redacted"
"""In place of an id: the seal is a block of reasoning whose text the provider withholds."""

_WRAPPED = "c2lnaHRsaW5lO"
"""How base64 of a wrapped seal begins."""
UNCHECKED = "skip_thought_signature_validator"
"""In place of a signature: the call was made by another model, or its signature is lost."""
_CALL, _RESULT = "functionCall", "functionResponse"
_NOTHING: Seal = (None, None, None)


def read_signature(part: JsonObject, at: str) -> Seal:
    """The seal on a part."""
    text = opt_str(part, spelling_of(part, "thoughtSignature"), at)
    if text is None:
        return _NOTHING
    if text.startswith(_WRAPPED):
        text = _decode_base64(text)
    return seals.unwrap(text, NAME)


def for_client(signature: str | None, signed_by: str | None, item: str | None = None) -> str | None:
    """The seal as a reply carries it: our own exactly, another provider's wrapped, None if there is none."""
    if signed_by is None or signed_by == NAME:
        return signature
    if signature is None and item is None:
        return None
    return base64.b64encode(seals.wrap(signature, signed_by, item).encode("utf-8", "surrogatepass")).decode()


def sign_calls(contents: list[Json], report: Report) -> None:
    """Put a signature on the calls of the current turn that have none, for models which refuse them without.

    Only the first call of each step is checked. Google documents the value for conversations that another model began
    (ai.google.dev/gemini-api/docs/thought-signatures, "FAQs", 2026-11).
    """
    turns = list(enumerate(map(object_at, contents)))
    first = next((at for at, each in reversed(turns) if each.get("role") == "user" and not _holds(each, _RESULT)), -1)
    for index, content in turns[first + 1 :]:
        for number, part in objects_in(content.get("parts")):
            if _CALL not in part:
                continue
            if "thoughtSignature" not in part:
                part["thoughtSignature"] = UNCHECKED
                place = f"/contents/{index}/parts/{number}/thoughtSignature"
                report.add(place, "signature of a call", "the model refuses a call without one", "identity")
            break


def _holds(content: JsonObject, kind: str) -> bool:
    return any(kind in part for _, part in objects_in(content.get("parts")))


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None).decode("utf-8")
    except (binascii.Error, ValueError):
        return text
