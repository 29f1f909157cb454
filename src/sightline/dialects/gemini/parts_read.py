"""One part of a content as a canonical part: the same in requests and in replies."""

from sightline.dialects.fields import as_list, as_object, as_str, opt_bool, opt_object, opt_str, rest, str_of
from sightline.dialects.gemini.field_names import NAME, both, either, spelling_of
from sightline.dialects.gemini.signatures import REDACTED, read_signature
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    Document,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.wire.jsontext import encode

_TEXT = both("text", "thoughtSignature")
_THOUGHT = _TEXT | {"thought"}
_CALL = both("functionCall", "thoughtSignature")
_RESPONSE = both("functionResponse")
_MEDIA = both("inlineData", "fileData")
_SIGNED_MEDIA = _MEDIA | both("thoughtSignature")
_BLOB = both("data", "mimeType")
_FILE = both("fileUri", "mimeType")
_DATA = ("inlineData", "fileData", "functionCall", "functionResponse")


def read_part(value: Json, at: str) -> Part:
    """A part, whichever kind it is; what we do not know, or what says two things at once, stays opaque."""
    part = as_object(value, at)
    text = part.get("text")
    if len(part) == 1 and type(text) is str:
        return Text(text, at=at)
    if type(text) is str and part.keys() <= _THOUGHT:
        return _text(part, text, at)
    kinds = [name for name in _DATA if either(part, name) is not None]
    if len(kinds) + (text is not None) != 1:
        return Opaque(NAME, part, at=at)
    if text is not None:
        return _text(part, as_str(text, f"{at}/text"), at)
    if kinds[0] == "functionCall":
        return _call(part, at)
    if kinds[0] == "functionResponse":
        return _response(part, at)
    return _media(part, kinds[0], at)


def _text(part: JsonObject, text: str, at: str) -> Part:
    signature, signed_by, item = read_signature(part, at)
    if opt_bool(part, "thought", at):
        is_redacted = item == REDACTED
        return Thinking(
            text,
            id=None if is_redacted else item,
            signature=signature,
            signed_by=signed_by,
            redacted=is_redacted,
            at=at,
            extras=rest(part, _THOUGHT),
        )
    return Text(text, signature=signature, signed_by=signed_by, at=at, extras=rest(part, _TEXT))


def _call(part: JsonObject, at: str) -> ToolCall:
    key = spelling_of(part, "functionCall")
    place = f"{at}/{key}"
    call = as_object(part[key], place)
    args = opt_object(call, "args", place)
    nested = rest(call, frozenset({"id", "name", "args"}))
    if args is None:
        nested = {**nested, "args": None}
    signature, signed_by, _ = read_signature(part, at)
    return ToolCall(
        opt_str(call, "id", place) or "",
        str_of(call, "name", place),
        "{}" if args is None else encode(args).decode(),
        signature=signature,
        signed_by=signed_by,
        at=at,
        extras=_with(rest(part, _CALL), key, nested),
    )


def _response(part: JsonObject, at: str) -> ToolResult:
    key = spelling_of(part, "functionResponse")
    place = f"{at}/{key}"
    holder = as_object(part[key], place)
    response = opt_object(holder, "response", place)
    nested = rest(holder, frozenset({"id", "name", "response", "parts"}))
    parts: list[Part] = []
    is_error: bool | None = None
    if response is None:
        nested = {**nested, "response": None}
    elif len(response) == 1 and type(text := response.get("output", response.get("error"))) is str:
        word = next(iter(response))
        is_error = True if word == "error" else None
        parts.append(Text(text, at=f"{place}/response/{word}"))
        response = None
    media = holder.get("parts")
    if media is not None:
        parts.extend(
            read_part(item, f"{place}/parts/{index}") for index, item in enumerate(as_list(media, f"{place}/parts"))
        )
    return ToolResult(
        opt_str(holder, "id", place) or "",
        tuple(parts),
        name=opt_str(holder, "name", place),
        is_error=is_error,
        structured=response,
        at=at,
        extras=_with(rest(part, _RESPONSE), key, nested),
    )


def _media(part: JsonObject, kind: str, at: str) -> Part:
    key = spelling_of(part, kind)
    place = f"{at}/{key}"
    holder = as_object(part[key], place)
    media_type = opt_str(holder, spelling_of(holder, "mimeType"), place) or ""
    source: Inline | Link
    if kind == "inlineData":
        source, nested = Inline(media_type, str_of(holder, "data", place)), rest(holder, _BLOB)
    else:
        uri = str_of(holder, spelling_of(holder, "fileUri"), place)
        source, nested = Link(uri, media_type), rest(holder, _FILE)
    if media_type.startswith("image/"):
        signature, signed_by, _ = read_signature(part, at)
        extras = _with(rest(part, _SIGNED_MEDIA), key, nested)
        return Image(source, signature=signature, signed_by=signed_by, at=at, extras=extras)
    extras = _with(rest(part, _MEDIA), key, nested)
    if media_type.startswith("audio/"):
        return Audio(source, at=at, extras=extras)
    return Document(source, at=at, extras=extras)


def _with(extras: JsonObject, key: str, nested: JsonObject) -> JsonObject:
    return {**extras, key: nested} if nested else extras
