"""Reasoning in the raw schema: an opaque part of the form `{"type": "thinking", "thinking": {id, text, encrypted}}`.

That is the form of the editor which the schema comes from. `text` is a list where it holds the pieces of a summary;
`summary` and `redacted` are members of ours, for reasoning that has both a text and a summary, or no readable text.
"""

from sightline.dialects.fields import compact, rest
from sightline.dialects.raw.names import NAME, OPAQUE
from sightline.dialects.signatures import unwrap, wrap
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Thinking

KIND = "thinking"
_THINKING = frozenset({"id", "text", "encrypted", "summary", "redacted"})


def write_thinking(part: Thinking) -> JsonObject:
    """The opaque part that says this reasoning."""
    text: Json = part.text
    summary: Json = list(part.summary) or None
    if part.summary and part.text == "\n\n".join(part.summary):
        text, summary = summary, None
    thinking = compact(
        {
            "id": part.id,
            "text": text,
            "encrypted": write_seal(part.signature, part.signed_by),
            "summary": summary,
            "redacted": part.redacted or None,
        }
    )
    return {"type": OPAQUE, "value": {"type": KIND, KIND: thinking}}


def read_thinking(holder: JsonObject, at: str) -> Thinking | None:
    """The reasoning that an opaque part holds; None if it is of another form."""
    value = holder.get("value")
    inner = value.get(KIND) if isinstance(value, dict) and value.get("type") == KIND else None
    if not isinstance(inner, dict) or not isinstance(value, dict):
        return None
    words = inner.get("text")
    text, summary = (words,) if isinstance(words, str) else _pieces(words), _pieces(inner.get("summary"))
    item, encrypted, redacted = inner.get("id"), inner.get("encrypted"), inner.get("redacted")
    if (
        text is None
        or summary is None
        or not isinstance(item, str | None)
        or not isinstance(encrypted, str | None)
        or not isinstance(redacted, bool | None)
    ):
        return None
    if isinstance(words, list):
        summary = text
    signature, signed_by = read_seal(encrypted, item)
    return Thinking(
        "\n\n".join(text),
        summary,
        item,
        signature,
        signed_by,
        bool(redacted),
        at=at,
        extras=_unread(holder, value, inner),
    )


def write_seal(signature: str | None, signed_by: str | None) -> str | None:
    """The value of `encrypted`: our own signature as it is, another dialect's under that dialect's name."""
    return signature if signed_by in (None, NAME) else wrap(signature, signed_by)


def read_seal(encrypted: str | None, item: str | None) -> tuple[str | None, str | None]:
    """The seal and who made it. Text that only looks like a wrapped seal is a seal of our own."""
    if encrypted is None:
        return None, None if item is None else NAME
    signature, signed_by, _ = unwrap(encrypted, NAME)
    if write_seal(signature, signed_by) != encrypted:
        return encrypted, NAME
    return signature, signed_by


def _pieces(value: Json) -> tuple[str, ...] | None:
    if value is None:
        return ()
    if not isinstance(value, list):
        return None
    pieces = tuple(piece for piece in value if isinstance(piece, str))
    return pieces if len(pieces) == len(value) else None


def _unread(holder: JsonObject, value: JsonObject, inner: JsonObject) -> JsonObject:
    """The members that are not modelled, each below the object that holds it."""
    extras = rest(holder, frozenset({"type", "value"}))
    beside = rest(value, frozenset({"type", KIND}))
    within = rest(inner, _THINKING)
    if within:
        beside = {**beside, KIND: within}
    return {**extras, "value": beside} if beside else extras
