"""Signatures and encrypted reasoning that pass through a client of another dialect.

A signature means something only to the provider that made it. In a reply to a client of another dialect it is put into
that dialect's own field, wrapped so that it names its maker; when the client sends it back it is unwrapped, and only
the maker's dialect gets it again. It is never sent to another provider as if it were that provider's own.
"""

import base64
import binascii
from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from sightline.dialects.fields import object_at, objects_in
from sightline.model.events import PartReceived, SignatureReceived, StreamEvent, ToolCallBegun
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Thinking
from sightline.model.report import Report
from sightline.model.request import Request, change_parts, parts_of
from sightline.wire.document import WireDocument
from sightline.wire.pointer import join

_PREFIX = "sightline:"
_CODED = "c2lnaHRsaW5lO"
_PREFIX_BYTES, _CODED_BYTES = _PREFIX.encode(), _CODED.encode()
"""How a wrapped signature begins, as text and in base64, the only form that Google's field takes."""

NEXT = "next"
"""Used instead of an item id: the signature is for the part that follows, which has no field for it in the dialect."""


def wrap(signature: str | None, signed_by: str, item: str | None = None) -> str:
    """Wrap a signature for transport in another dialect."""
    return f"{_PREFIX}{signed_by}:{item or ''}:{signature or ''}"


def unwrap(text: str, reader: str) -> tuple[str | None, str, str | None]:
    """Unwrap the content of a dialect's signature field: the signature, the dialect that made it, and the id of the
    item that it is bound to."""
    if not text.startswith(_PREFIX):
        return text, reader, None
    signed_by, _, tail = text[len(_PREFIX) :].partition(":")
    item, _, signature = tail.partition(":")
    return signature or None, signed_by, item or None


# --- which provider of a dialect ---


MARKED = frozenset({SignatureReceived, PartReceived})
"""The events that may carry a signature."""


class OriginMarker:
    """Adds the provider to the dialect in the signatures of a reply's reasoning: `anthropic@acme`.

    Several providers may speak one dialect, and none can read another's signatures. The signature of a call stays as it
    is: only Google makes those, and some dialects have a field for them.
    """

    def __init__(self, provider: str) -> None:
        self._provider = quote(provider, safe="")
        self._calls: set[tuple[int, int]] = set()

    def mark(self, event: StreamEvent) -> StreamEvent:
        """The event with the provider's name in its signature, for a client of another dialect to send back."""
        match event:
            case ToolCallBegun(part, choice=choice):
                self._calls.add((choice, part))
            case SignatureReceived(part, _, signed_by, choice) if signed_by and (choice, part) not in self._calls:
                return msgspec.structs.replace(event, signed_by=f"{signed_by}@{self._provider}")
            case PartReceived(value=Thinking(signed_by=str(signed_by)) as thought) if signed_by:
                marked = msgspec.structs.replace(thought, signed_by=f"{signed_by}@{self._provider}")
                return msgspec.structs.replace(event, value=marked)
            case _:
                pass
        return event


_THINKING: frozenset[type[Part]] = frozenset({Thinking})


def with_own_signatures(request: Request, provider: str) -> Request:
    """The request with the signatures of this provider marked with only its dialect; those of other providers stay
    foreign. Without a provider, all providers of a dialect count as one."""
    known = quote(provider, safe="")

    def own(part: Part) -> Part:
        if not isinstance(part, Thinking) or "@" not in (part.signed_by or ""):
            return part
        maker, _, origin = (part.signed_by or "").partition("@")
        return msgspec.structs.replace(part, signed_by=maker) if origin == known or not known else part

    if not [part for part in parts_of(request.messages) if type(part) is Thinking and "@" in (part.signed_by or "")]:
        return request
    messages = change_parts(request.messages, _THINKING, own)
    return msgspec.structs.replace(request, messages=messages)


def decode_signature(text: str) -> str:
    """Decode a field that may hold a wrapped signature in base64; any other text is returned unchanged."""
    if not text.startswith(_CODED):
        return text
    try:
        return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None).decode("utf-8")
    except (binascii.Error, ValueError):
        return text


# --- back to a provider of the client's own dialect ---

UNCHECKED = "skip_thought_signature_validator"
"""Sent instead of Google's signature on a call that another model made, or whose signature is lost."""

_OF_THOUGHTS = frozenset({"signature", "data", "encrypted_content"})
"""Fields without which the thought that holds them is worthless to its maker."""
_OF_GOOGLE = frozenset({"thoughtSignature", "thought_signature"})
_CALLS = ("functionCall", "function_call")
_FIELDS = _OF_THOUGHTS | _OF_GOOGLE | {"reasoning_opaque"}
_CONVERSATIONS = ("messages", "input", "contents")
_PARTS = ("content", "parts")


def may_hold_signatures(body: bytes, *, is_coded: bool) -> bool:
    """Whether a body may hold signatures that we have wrapped, in base64 too if `is_coded`. This is a plain search, but
    it scans the whole of a large body."""
    return _PREFIX_BYTES in body or (is_coded and _CODED_BYTES in body)


def without_foreign_signatures(wire: WireDocument, spoken: str, report: Report) -> WireDocument:
    """Remove foreign signatures from a request for a provider of its client's own dialect, if earlier turns were made
    by providers of other dialects.

    The provider would refuse a signature that is not its own. A thought that another provider signed is removed,
    together with its message if that holds nothing else; a call that another provider signed stays. The provider's own
    wrapped signatures are unwrapped.
    """
    gone: dict[str, list[int]] = {}
    for at, holder, key, wrapped in list(_find_signatures(wire.document)):
        signature, signed_by, item = unwrap(wrapped, spoken)
        if signed_by == spoken and signature is not None:
            wire = wire.set(join(at, key), signature)
            wire = wire.set(join(at, "id"), item) if item is not None and "id" in holder else wire
            continue
        maker = signed_by or "an unknown provider"
        report.lose(join(at, key), "a signature over reasoning", f"it is one of {maker}", "identity")
        if key in _OF_GOOGLE and any(holder.get(call) is not None for call in _CALLS):
            wire = wire.set(join(at, key), UNCHECKED)
        elif key in _OF_THOUGHTS or holder.get("thought") is True:
            place, _, number = at.rpartition("/")
            gone.setdefault(place, []).append(int(number))
            if holder.get("thinking") or holder.get("summary") or holder.get("text"):
                report.lose(at, "thinking", "only its own provider takes it", "content")
        else:
            wire = wire.remove(join(at, key))
    return _without_elements(wire, gone)


def _without_elements(wire: WireDocument, gone: dict[str, list[int]]) -> WireDocument:
    """The document without these list elements. They are removed from the end, so that positions stay valid."""
    for place, numbers in reversed(gone.items()):
        above, _, _ = place.rpartition("/")
        whole = wire.get(place)
        if above and isinstance(whole, list) and len(whole) == len(numbers):
            wire = wire.remove(above)
            continue
        for number in reversed(numbers):
            wire = wire.remove(f"{place}/{number}")
    return wire


def _find_signatures(document: Json) -> Iterator[tuple[str, JsonObject, str, str]]:
    """The items and parts of a conversation that hold a wrapped signature: place, object, field, signature."""
    for conversation in _CONVERSATIONS:
        for number, item in objects_in(object_at(document).get(conversation)):
            at = f"/{conversation}/{number}"
            parts = [(f"{at}/{key}/{index}", part) for key in _PARTS for index, part in objects_in(item.get(key))]
            for place, holder in ((at, item), *parts):
                for key, text in holder.items():
                    wrapped = decode_signature(text) if key in _FIELDS and isinstance(text, str) else ""
                    if wrapped.startswith(_PREFIX):
                        yield place, holder, key, wrapped
