"""How the raw schema carries what it has no kind or field for, so that almost nothing is lost in it.

A part of a kind that the schema lacks travels whole in an opaque part, `{"type": "sightline", "part": …}`; what a known
kind has no field for (a signature, citations) travels in a member `sightline` beside the known ones. Both are read back
as what they were. Anything that is not exactly what we would have written is not ours and stays as it is.
"""

import msgspec

from sightline.dialects.fields import rest
from sightline.dialects.raw.names import NAME, OPAQUE, SIGHTLINE
from sightline.dialects.tool_names import BUILT_IN
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.message import Role
from sightline.model.parts import (
    Audio,
    Citation,
    Document,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolKind,
    ToolResult,
)
from sightline.wire.jsontext import decode, encode

_OPAQUE = frozenset({"type", "value"})
_NOT_OURS = (msgspec.ValidationError, UnicodeEncodeError)
"""What a value of another form raises; the second where a name or a tag has half a surrogate pair."""


class Beside(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The member `sightline` of a text, an image or a call: the fields that the schema has no place for."""

    signature: str | None = None
    signed_by: str | None = None
    citations: tuple[Citation, ...] = ()
    item: str | None = None
    media_type: str = ""
    kind: ToolKind = "function"


NOTHING = Beside()


def write_beside(beside: Beside) -> JsonObject:
    """The member itself, in an object to be merged; nothing where there is nothing to say."""
    return {} if beside == NOTHING else {SIGHTLINE: _plain(beside)}


def read_beside(holder: JsonObject) -> Beside | None:
    """What stands beside; None where the member is not one of ours."""
    value = holder.get(SIGHTLINE)
    if value is None:
        return NOTHING
    try:
        beside = msgspec.convert(value, Beside)
    except _NOT_OURS:
        return None
    return beside if _plain(beside) == value else None


def carrier_kind(kind: ToolKind) -> ToolKind:
    """The kind of a call or a result that is carried: free text is known by its tool, a built-in tool is not."""
    return kind if kind in BUILT_IN else "function"


def without_place(citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """The citations without their pointers, which mean nothing in another document."""
    return tuple(msgspec.structs.replace(citation, at="", extras={}) for citation in citations)


def is_native(part: Part, role: Role) -> bool:
    """Whether the schema has a way of its own to say this part in a message of this role."""
    match part:
        case Document() | Audio() | Refusal():
            return False
        case Image():
            return isinstance(part.source, (Inline, Link))
        case Opaque():
            return part.dialect == NAME
        case ToolCall():
            return role == "assistant"
        case ToolResult():
            return role != "assistant"
        case _:
            return True


def carry(part: Part) -> JsonObject:
    """The opaque part that carries one which the schema has no kind for."""
    return {"type": OPAQUE, "value": {"type": SIGHTLINE, "part": _plain(_bare(part))}}


def read_carried_part(holder: JsonObject, role: Role, at: str) -> Part | None:
    """The part that an opaque one carries; None if it is not one that we would have carried so."""
    part = _convert_part(holder.get("value"))
    if part is None or is_native(part, role):
        return None
    return msgspec.structs.replace(part, at=at, extras=rest(holder, _OPAQUE))


def carry_result(result: ToolResult) -> JsonObject | None:
    """What a tool message cannot say of its result, as its last part; None if it says everything."""
    kind = carrier_kind(result.kind)
    beyond = ToolResult(result.id, is_error=result.is_error, structured=result.structured, item=result.item, kind=kind)
    return None if beyond == ToolResult(result.id) else carry(beyond)


def read_carried_result(value: Json, call_id: str) -> ToolResult | None:
    """The result that the last part of a tool message carries, without its parts."""
    holder = value if isinstance(value, dict) else {}
    part = _convert_part(holder.get("value"))
    if not isinstance(part, ToolResult) or part.id != call_id or carry_result(part) != holder:
        return None
    return part


def _convert_part(value: Json) -> Part | None:
    if not isinstance(value, dict) or value.get("type") != SIGHTLINE:
        return None
    try:
        part: Part = msgspec.convert(value.get("part"), Part)
    except _NOT_OURS:
        return None
    return part if carry(part)["value"] == value else None


def _bare(part: Part) -> Part:
    """The part without its place and without what only its own dialect knows, which is reported elsewhere."""
    match part:
        case ToolResult():
            return msgspec.structs.replace(part, at="", extras={}, parts=tuple(_bare(inner) for inner in part.parts))
        case Text():
            return msgspec.structs.replace(part, at="", extras={}, citations=without_place(part.citations))
        case _:
            return msgspec.structs.replace(part, at="", extras={})


def _plain(value: msgspec.Struct) -> Json:
    """The value as JSON has it: lists for tuples, and nothing for defaults."""
    try:
        return decode(encode(msgspec.to_builtins(value)))
    except RecursionError:
        raise Fault(Code.INVALID_REQUEST, "a part is nested too deep to be carried") from None
