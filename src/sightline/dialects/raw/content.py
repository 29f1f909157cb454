"""Reads and writes the content, the calls and the reasoning of a raw message, in a request or in a reply.

Reasoning is an opaque part of the form `{"type": "thinking", "thinking": {id, text, encrypted}}`, that of the editor
which the schema comes from. `text` is a list if it holds the pieces of a summary; `summary` and `redacted` are members
of ours, for reasoning that has both a text and a summary, or no readable text.

What the schema has no kind or field for is carried in it, so that almost nothing is lost. A part of a kind that it
lacks is stored unchanged in an opaque part, `{"type": "sightline", "part": …}`; fields that a known kind lacks (a
signature, citations) are stored in a member `sightline` beside the known ones. Both are read back as what they were.
Anything that is not exactly what we would have written is not ours and stays as it is.
"""

from collections.abc import Callable

import msgspec

from sightline.dialects.fields import (
    as_list,
    as_object,
    as_str,
    compact,
    from_url,
    merge,
    nest_extras,
    opt_str,
    rest,
    str_of,
    to_url,
    unknown,
    whole_number,
    wrong,
)
from sightline.dialects.raw.names import CACHE, DETAILS, IMAGE, NAME, OPAQUE, SIGHTLINE, TEXT
from sightline.dialects.signatures import unwrap, wrap
from sightline.dialects.tool_names import BUILT_IN, as_function_arguments, flat_name
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolKind,
    ToolResult,
)
from sightline.model.report import Report, Severity
from sightline.model.request import Role
from sightline.wire.jsontext import decode, encode

_OPAQUE = frozenset({"type", "value"})
_NOT_OURS = (msgspec.ValidationError, UnicodeEncodeError)
"""What a value of another form raises; the second if a name or a tag has half a surrogate pair."""


class OwnFields(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The member `sightline` of a text, an image or a call: the fields that the schema has no place for."""

    signature: str | None = None
    signed_by: str | None = None
    citations: tuple[Citation, ...] = ()
    item: str | None = None
    media_type: str = ""
    kind: ToolKind = "function"


NOTHING = OwnFields()


def write_beside(beside: OwnFields) -> JsonObject:
    """The member itself, in an object to be merged; an empty object if there is nothing to store."""
    return {} if beside == NOTHING else {SIGHTLINE: _plain(beside)}


def read_beside(holder: JsonObject) -> OwnFields | None:
    """The content of the member `sightline`; None if the member is not one of ours."""
    value = holder.get(SIGHTLINE)
    if value is None:
        return NOTHING
    try:
        beside = msgspec.convert(value, OwnFields)
    except _NOT_OURS:
        return None
    return beside if _plain(beside) == value else None


def carrier_kind(kind: ToolKind) -> ToolKind:
    """The kind of a call or a result that is carried: free text is recognised by its tool, a built-in tool is not."""
    return kind if kind in BUILT_IN else "function"


def without_place(citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """The citations without their pointers, which mean nothing in another document."""
    return tuple(msgspec.structs.replace(citation, at="", extras={}) for citation in citations)


def is_native(part: Part, role: Role) -> bool:
    """Whether the schema has a form of its own for this part in a message of this role."""
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
    """The opaque part that carries a part which the schema has no kind for."""
    return {"type": OPAQUE, "value": {"type": SIGHTLINE, "part": _plain(_without_place(part))}}


def read_carried_part(holder: JsonObject, role: Role, at: str) -> Part | None:
    """The part that an opaque one carries; None if we would not have carried it so."""
    part = _convert_part(holder.get("value"))
    if part is None or is_native(part, role):
        return None
    return msgspec.structs.replace(part, at=at, extras=rest(holder, _OPAQUE))


def carry_result(result: ToolResult) -> JsonObject | None:
    """The fields of a result that a tool message lacks, as its last part; None if it lacks none."""
    kind = carrier_kind(result.kind)
    beyond = ToolResult(result.id, is_error=result.is_error, structured=result.structured, item=result.item, kind=kind)
    return None if beyond == ToolResult(result.id) else carry(beyond)


def read_carried_result(value: Json, call_id: str) -> ToolResult | None:
    """The result that the last part of a tool message carries, without its parts; None if it carries none."""
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


def _without_place(part: Part) -> Part:
    """The part without its place and without its dialect's own fields, which are reported elsewhere."""
    match part:
        case ToolResult():
            return msgspec.structs.replace(
                part, at="", extras={}, parts=tuple(_without_place(inner) for inner in part.parts)
            )
        case Text():
            return msgspec.structs.replace(part, at="", extras={}, citations=without_place(part.citations))
        case _:
            return msgspec.structs.replace(part, at="", extras={})


def _plain(value: msgspec.Struct) -> Json:
    """The value as JSON: lists for tuples, and without defaults."""
    try:
        return decode(encode(msgspec.to_builtins(value)))
    except RecursionError:
        raise Fault(Code.INVALID_REQUEST, "a part is nested too deep to be carried") from None


KIND = "thinking"
_THINKING = frozenset({"id", "text", "encrypted", "summary", "redacted"})


def write_thinking(part: Thinking) -> JsonObject:
    """The opaque part for this reasoning."""
    text: Json = part.text
    summary: Json = list(part.summary) or None
    if part.summary and part.text == "\n\n".join(part.summary):
        text, summary = summary, None
    thinking = compact(
        {
            "id": part.id,
            "text": text,
            "encrypted": write_signature(part.signature, part.signed_by),
            "summary": summary,
            "redacted": part.redacted or None,
        }
    )
    return {"type": OPAQUE, "value": {"type": KIND, KIND: thinking}}


def read_thinking(holder: JsonObject, at: str) -> Thinking | None:
    """The reasoning in an opaque part; None if it has another form."""
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
    signature, signed_by = read_signature(encrypted, item)
    # The unmodelled members, each below the object that holds it.
    beside = nest_extras(rest(value, frozenset({"type", KIND})), KIND, rest(inner, _THINKING))
    return Thinking(
        "\n\n".join(text),
        summary,
        item,
        signature,
        signed_by,
        bool(redacted),
        at=at,
        extras=nest_extras(rest(holder, frozenset({"type", "value"})), "value", beside),
    )


def write_signature(signature: str | None, signed_by: str | None) -> str | None:
    """The value of `encrypted`: our own signature unchanged, another dialect's wrapped with that dialect's name."""
    return signature if signed_by in (None, NAME) else wrap(signature, signed_by)


def read_signature(encrypted: str | None, item: str | None) -> tuple[str | None, str | None]:
    """The signature and its maker. Text that only looks like a wrapped signature is a signature of our own."""
    if encrypted is None:
        return None, None if item is None else NAME
    signature, signed_by, _ = unwrap(encrypted, NAME)
    if write_signature(signature, signed_by) != encrypted:
        return encrypted, NAME
    return signature, signed_by


def _pieces(value: Json) -> tuple[str, ...] | None:
    if value is None:
        return ()
    if not isinstance(value, list):
        return None
    pieces = tuple(piece for piece in value if isinstance(piece, str))
    return pieces if len(pieces) == len(value) else None


_KINDS = ("0 (image)", "1 (text)", "2 (opaque)", "3 (cache breakpoint)")
_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"type", "imageUrl"})
_URL = frozenset({"url", "detail"})
_CACHE = frozenset({"type", "cacheType"})
_CALL = frozenset({"id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})


def read_content(content: Json, role: Role, at: str) -> tuple[Part, ...]:
    """The parts of a message's `content`; a bare string is one text."""
    if type(content) is str:
        return (Text(content, at=at),)
    if type(content) is not list:
        raise wrong(content, at, "a list of parts")
    return tuple(read_part(value, role, f"{at}/{index}") for index, value in enumerate(content))


def read_part(value: Json, role: Role, at: str) -> Part:
    """One part of a message's content."""
    holder = as_object(value, at)
    kind = whole_number(holder.get("type"))
    if kind is None:
        raise wrong(holder.get("type"), f"{at}/type", "a number from 0 to 3")
    if kind == TEXT:
        beside, known = _beside(holder, _TEXT)
        return Text(
            str_of(holder, "text", at),
            place_citations(beside.citations, at),
            beside.signature,
            beside.signed_by,
            at=at,
            extras=rest(holder, known),
        )
    if kind == IMAGE:
        return _read_image(holder, at)
    if kind == CACHE:
        # A mark without a type is the usual one; the null records that the type was absent.
        word = opt_str(holder, "cacheType", at)
        unsaid: JsonObject = {"cacheType": None} if word is None else {}
        return CacheBreakpoint(kind=word or "ephemeral", at=at, extras={**rest(holder, _CACHE), **unsaid})
    if not 0 <= kind <= CACHE:
        raise unknown(str(kind), f"{at}/type", "kind of part", _KINDS)
    return read_thinking(holder, at) or read_carried_part(holder, role, at) or Opaque(NAME, value, at=at)


def _read_image(holder: JsonObject, at: str) -> Image:
    inner_at = f"{at}/imageUrl"
    inner = as_object(holder.get("imageUrl"), inner_at)
    source = from_url(str_of(inner, "url", inner_at))
    beside, known = _beside(holder, _IMAGE)
    if beside.media_type and isinstance(source, Link):
        source = Link(source.url, beside.media_type)
    return Image(
        source,
        opt_str(inner, "detail", inner_at),
        beside.signature,
        beside.signed_by,
        at=at,
        extras=nest_extras(rest(holder, known), "imageUrl", rest(inner, _URL)),
    )


def _beside(holder: JsonObject, known: frozenset[str]) -> tuple[OwnFields, frozenset[str]]:
    """Our own member beside the schema's fields, and the fields that are then known."""
    beside = read_beside(holder)
    return (NOTHING, known) if beside is None else (beside, known | {SIGHTLINE})


def place_citations(citations: tuple[Citation, ...], at: str) -> tuple[Citation, ...]:
    """The citations of a part with their places."""
    return tuple(
        msgspec.structs.replace(citation, at=f"{at}/{SIGHTLINE}/citations/{index}", extras={})
        for index, citation in enumerate(citations)
    )


def read_calls(holder: JsonObject, at: str) -> list[ToolCall | Opaque]:
    """The entries of an assistant message's `toolCalls`."""
    entries = as_list(holder.get("toolCalls") or [], f"{at}/toolCalls")
    return [_read_call(value, f"{at}/toolCalls/{index}") for index, value in enumerate(entries)]


def _read_call(value: Json, at: str) -> ToolCall | Opaque:
    holder = as_object(value, at)
    inner = holder.get("function")
    if holder.get("type", "function") != "function" or not isinstance(inner, dict):
        return Opaque(NAME, value, at=at)
    beside, known = _beside(holder, _CALL)
    return ToolCall(
        str_of(holder, "id", at),
        str_of(inner, "name", f"{at}/function"),
        as_str(inner.get("arguments", ""), f"{at}/function/arguments"),
        kind=beside.kind,
        item=beside.item,
        signature=beside.signature,
        signed_by=beside.signed_by,
        at=at,
        extras=nest_extras(rest(holder, known), "function", rest(inner, _FUNCTION)),
    )


_CALLS_LAST = f"{NAME} holds calls behind the content"


def lose_order(at: str, report: Report) -> None:
    """Report a part that came after a call."""
    report.lose(at, "order of words and calls", _CALLS_LAST, "content")


class ContentWriter:
    """Writes canonical parts as the parts of a message; the schema can express or carry them all."""

    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same

    def parts(self, parts: tuple[Part, ...]) -> list[Json]:
        """The content of a message."""
        return [self.part(part) for part in parts]

    def part(self, part: Part) -> Json:
        """One part, in the schema's own form or carried."""
        if isinstance(part, Opaque) and part.dialect == NAME:
            return part.value
        document = self._write_native(part) or carry(part)
        if not self._same:
            return document
        return merge(document, compact(part.extras) if isinstance(part, CacheBreakpoint) else part.extras)

    def _write_native(self, part: Part) -> JsonObject | None:
        match part:
            case Text(text):
                beside = OwnFields(part.signature, part.signed_by, without_place(part.citations))
                return {"type": TEXT, "text": text, **write_beside(beside)}
            case Image(source=Inline() | Link() as source):
                return self._image(part, source)
            case Thinking():
                return write_thinking(part)
            case CacheBreakpoint(kind, ttl):
                if ttl is not None:
                    self._report.lose(part.at, "life of a cache mark", f"{NAME} has no field for it", "option")
                is_unsaid = self._same and "cacheType" in part.extras
                return {"type": CACHE} if is_unsaid else {"type": CACHE, "cacheType": kind}
            case _:
                return None

    def _image(self, part: Image, source: Inline | Link) -> JsonObject:
        """An image that is sent inline or as a URL."""
        media_type = source.media_type if isinstance(source, Link) else ""
        detail = part.detail
        if detail is not None and detail not in DETAILS and not self._same:
            # An image without a detail gets `auto` anyway.
            severity: Severity = "identity" if detail == "auto" else "option"
            self._report.lose(part.at, f"detail {detail!r} of an image", f"{NAME} knows low and high only", severity)
            detail = None
        return {
            "type": IMAGE,
            "imageUrl": compact({"url": to_url(source), "detail": detail}),
            **write_beside(OwnFields(part.signature, part.signed_by, media_type=media_type)),
        }

    def split_calls(
        self, parts: tuple[Part, ...], call_id: Callable[[ToolCall, int], str]
    ) -> tuple[tuple[Part, ...], list[Json]]:
        """The parts of the content, and the entries of `toolCalls`. `call_id` is the id of a call with this number."""
        content: list[Part] = []
        calls: list[Json] = []
        for part in parts:
            if isinstance(part, ToolCall):
                calls.append(self.call(part, call_id(part, len(calls))))
            elif isinstance(part, Opaque) and part.dialect == NAME and "/toolCalls/" in part.at:
                calls.append(part.value)
            else:
                if calls and isinstance(part, CacheBreakpoint):
                    self._report.lose(part.at, "place of a cache mark", _CALLS_LAST, "option")
                elif calls:
                    lose_order(part.at, self._report)
                content.append(part)
        return tuple(content), calls

    def call(self, call: ToolCall, call_id: str) -> JsonObject:
        """An entry of `toolCalls`."""
        arguments = as_function_arguments(call)
        inner: JsonObject = {
            "name": flat_name(call.name, call.namespace),
            "arguments": arguments if self._same else arguments or "{}",
        }
        beside = OwnFields(call.signature, call.signed_by, item=call.item, kind=carrier_kind(call.kind))
        document: JsonObject = {"id": call_id, "type": "function", "function": inner, **write_beside(beside)}
        return merge(document, call.extras) if self._same else document
