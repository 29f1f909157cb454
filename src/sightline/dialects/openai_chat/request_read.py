"""Reads a Chat Completions request: one canonical message per message, each part with its place."""

import re

from msgspec.structs import replace

from sightline.dialects.fields import (
    as_list,
    as_object,
    from_url,
    nest_extras,
    opt_bool,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
    wrong,
)
from sightline.dialects.openai_chat.choices import read_reasoning_signature
from sightline.dialects.openai_chat.names import (
    GEMINI,
    NAME,
    REDACTED,
    SIGNATURE,
    SIGNATURE_ID,
    THINKING,
    THINKING_TEXT,
)
from sightline.dialects.openai_chat.settings import (
    OPTION_KEYS,
    OTHER_NAMES,
    READ_TABLE,
    read_format,
    read_tool_choice,
    read_tools,
)
from sightline.dialects.option_table import options_of, read_options
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    Document,
    FileId,
    Image,
    Inline,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message, Reasoning, Request, Role
from sightline.wire.jsontext import encode

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_REQUEST = OPTION_KEYS | {
    *("model", "messages", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"),
    *("response_format", "reasoning_effort", "stream_options"),
}
_MESSAGE = frozenset({"role", "content", "name"})
_ASSISTANT = _MESSAGE | THINKING | {"refusal", "tool_calls", "function_call", "audio"}
_USUAL = frozenset({"role", "content", "tool_calls", "reasoning_content"})
"""The fields of most assistant messages that call tools."""
_TOOL = _MESSAGE | {"tool_call_id"}
_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"url", "detail"})
_FILE = frozenset({"file_data", "file_id", "filename"})
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
MEDIA_TYPES = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
}
"""The media type of a file by the end of its name."""
_CALL = frozenset({"id", "type", "function", "custom", "extra_content"})
FUNCTION = frozenset({"name", "arguments"})
CUSTOM = frozenset({"name", "input"})


def read_request(document: Json) -> Request:
    """Read a request body."""
    body = as_object(document, "")
    found, places = read_options(body, READ_TABLE)
    effort = opt_str(body, "reasoning_effort", "")
    if effort is not None:
        found["reasoning"] = Reasoning(effort=effort, at="/reasoning_effort", places={"effort": "/reasoning_effort"})
    output, unread = read_format(body.get("response_format"), "/response_format")
    if output is not None:
        found["format"] = output
    messages = as_list(body.get("messages"), "/messages")
    # Unmodelled fields, and of two spellings of one option the one that was not used.
    extras = rest(body, _REQUEST)
    for option, key in OTHER_NAMES:
        if body.get(key) is not None and places.get(option) != f"/{key}":
            extras = {**extras, key: body[key]}
    if body.get("tool_choice") is not None and body.get("function_call") is not None:
        extras = {**extras, "function_call": body["function_call"]}
    stream_options = opt_object(body, "stream_options", "")
    if stream_options is not None:
        extras = nest_extras(extras, "stream_options", rest(stream_options, frozenset({"include_usage"})))
    return Request(
        model=opt_str(body, "model", "") or "",
        messages=tuple([_read_message(value, f"/messages/{index}") for index, value in enumerate(messages)]),
        tools=read_tools(body),
        tool_choice=read_tool_choice(body),
        parallel_tool_calls=opt_bool(body, "parallel_tool_calls", ""),
        options=options_of(found, places),
        dialect=NAME,
        extras=nest_extras(extras, "response_format", unread),
    )


def _read_message(value: Json, at: str) -> Message:
    holder = as_object(value, at)
    word = str_of(holder, "role", at)
    role = _ROLES.get(word)
    if role is None:
        raise unknown(word, f"{at}/role", "role", _ROLES)
    content = holder.get("content")
    bare = type(content) is not list
    parts = (Text(content, at=f"{at}/content"),) if type(content) is str else _read_content(content, f"{at}/content")
    if role == "assistant":
        parts = _assistant_parts(holder, parts, at)
        if holder.keys() <= _USUAL:
            return Message(role, parts, bare=bare, at=at)
        name = opt_str(holder, "name", at)
        return Message(role, parts, name, bare=bare, at=at, extras=rest(holder, _ASSISTANT))
    if word == "tool" and len(holder) == 3 and "content" in holder:
        known = str_of(holder, "tool_call_id", at)
        if known:  # the case for nearly all of them
            return Message(role, (ToolResult(known, parts, bare=bare, at=at),), at=at)
    name = opt_str(holder, "name", at)
    if role == "tool":
        call_id = opt_str(holder, "tool_call_id", at) if word == "function" else str_of(holder, "tool_call_id", at)
        result = ToolResult(call_id or "", parts, name, bare=bare, at=at)
        return Message(role, (result,), at=at, extras=rest(holder, _TOOL if call_id else _MESSAGE))
    return Message(role, parts, name, bare=bare, at=at, extras=rest(holder, _MESSAGE))


def _read_content(content: Json, at: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if type(content) is not list:
        raise wrong(content, at, "a string or a list of parts")
    return tuple([_read_part(value, f"{at}/{index}") for index, value in enumerate(content)])


def _read_part(value: Json, at: str) -> Part:
    holder = as_object(value, at)
    kind = holder.get("type")
    if kind == "text":
        return Text(str_of(holder, "text", at), at=at, extras=rest(holder, _TEXT))
    if kind == "refusal":
        return Refusal(str_of(holder, "refusal", at), at=at, extras=rest(holder, frozenset({"type", "refusal"})))
    inner = holder.get(kind) if type(kind) is str else None
    if not isinstance(inner, dict):
        return Opaque(NAME, value, at=at)
    inner_at = f"{at}/{kind}"
    if kind == "image_url":
        extras = nest_extras(rest(holder, frozenset({"type", kind})), kind, rest(inner, _IMAGE))
        detail = opt_str(inner, "detail", inner_at)
        return Image(from_url(str_of(inner, "url", inner_at)), detail, at=at, extras=extras)
    if kind == "input_audio":
        extras = nest_extras(rest(holder, frozenset({"type", kind})), kind, rest(inner, frozenset({"data", "format"})))
        source = Inline(f"audio/{str_of(inner, 'format', inner_at)}", str_of(inner, "data", inner_at))
        return Audio(source, at=at, extras=extras)
    if kind == "file":
        return _read_file(holder, inner, at) or Opaque(NAME, value, at=at)
    return Opaque(NAME, value, at=at)


def _read_file(holder: JsonObject, inner: JsonObject, at: str) -> Document | None:
    extras = nest_extras(rest(holder, frozenset({"type", "file"})), "file", rest(inner, _FILE))
    title = opt_str(inner, "filename", f"{at}/file")
    data, file_id = opt_str(inner, "file_data", f"{at}/file"), opt_str(inner, "file_id", f"{at}/file")
    if data is not None and file_id is None:
        if _SCHEME.match(data):
            return Document(from_url(data), title, at=at, extras=extras)
        # Bytes that are not a data URL; the null records that, and is ignored everywhere else.
        inner = {**rest(inner, _FILE), "file_data": None}
        media_type = MEDIA_TYPES.get((title or "").rpartition(".")[2].lower(), "application/octet-stream")
        return Document(Inline(media_type, data), title, at=at, extras={**extras, "file": inner})
    if file_id is not None and data is None:
        return Document(FileId(file_id), title, at=at, extras=extras)
    return None


def _assistant_parts(holder: JsonObject, content: tuple[Part, ...], at: str) -> tuple[Part, ...]:
    """Reasoning first, then the text, then the calls: the order in which the model produced them."""
    if holder.keys() <= _MESSAGE:
        return content
    parts = [] if holder.keys().isdisjoint(THINKING) else _read_thinking(holder, at)
    parts.extend(content)
    if holder.keys() <= _USUAL:
        calls = as_list(holder.get("tool_calls") or [], f"{at}/tool_calls")
        return (*parts, *[read_call(value, f"{at}/tool_calls/{index}") for index, value in enumerate(calls)])
    refusal = opt_str(holder, "refusal", at)
    if refusal is not None:
        parts.append(Refusal(refusal, at=f"{at}/refusal"))
    audio = opt_object(holder, "audio", at)
    if audio is not None:
        extras = rest(audio, frozenset({"id"}))
        parts.append(Audio(id=str_of(audio, "id", f"{at}/audio"), at=f"{at}/audio", extras=extras))
    for index, value in enumerate(as_list(holder.get("tool_calls") or [], f"{at}/tool_calls")):
        parts.append(read_call(value, f"{at}/tool_calls/{index}"))
    legacy = opt_object(holder, "function_call", at)
    if legacy is not None:
        place = f"{at}/function_call"
        arguments = read_arguments(legacy, "arguments", place)
        name = str_of(legacy, "name", place)
        parts.append(ToolCall("", name, arguments, at=place, extras=rest(legacy, FUNCTION)))
    return tuple(parts)


def _read_thinking(holder: JsonObject, at: str) -> list[Part]:
    """Read reasoning under its various names; text that occurs twice is read once.

    A signature of this dialect is a part by itself, at its own place. Another dialect's signature, which the client has
    sent back here, belongs to its text, because the two form the block that its maker expects.
    """
    present = holder.keys() & THINKING
    if len(present) == 1 and type(only := holder[key := present.pop()]) is str and key in THINKING_TEXT:
        return [Thinking(only, at=f"{at}/{key}")]
    parts: list[Part] = []
    seen: set[str] = set()
    signature, signed_by, item = read_reasoning_signature(holder, at) or (None, NAME, None)
    for key in THINKING_TEXT:
        text, place = holder.get(key), f"{at}/{key}"
        if isinstance(text, str) and text not in seen:
            seen.add(text)
            parts.append(Thinking(text, at=place))
        elif text is not None:
            parts.append(Opaque(NAME, {key: text}, mirrored=isinstance(text, str), at=place))
    if signed_by != NAME:
        first = parts[0] if parts and isinstance(parts[0], Thinking) else Thinking(at=f"{at}/{SIGNATURE}")
        is_redacted = item == REDACTED
        signed = {"id": None if is_redacted else item, "signature": signature, "signed_by": signed_by}
        return [replace(first, **signed, redacted=is_redacted and not first.text), *parts[1:]]
    if signature is not None:
        parts.append(Thinking(signature=signature, signed_by=NAME, at=f"{at}/{SIGNATURE}"))
    if item is not None:
        parts.append(Thinking(id=item, signed_by=NAME, at=f"{at}/{SIGNATURE_ID}"))
    return parts


def read_call(value: Json, at: str, fallback_id: str | None = None) -> ToolCall | Opaque:
    """Read one entry of `tool_calls`, of a request or of a reply."""
    holder = as_object(value, at)
    kind = holder.get("type", "function")
    inner = holder.get(kind) if kind in ("function", "custom") else None
    if not isinstance(inner, dict):
        return Opaque(NAME, value, at=at)
    if len(holder) == 3 and kind == "function" and inner.keys() == FUNCTION:  # the case for most calls
        call_id, name, arguments = holder.get("id"), inner["name"], inner["arguments"]
        if call_id and type(call_id) is type(name) is type(arguments) is str and "type" in holder:
            return ToolCall(call_id, name, arguments, at=at)
    words, known = ("arguments", FUNCTION) if kind == "function" else ("input", CUSTOM)
    signature, extras = read_signature(holder)
    call_id = opt_str(holder, "id", at) or fallback_id
    return ToolCall(
        call_id if call_id is not None else str_of(holder, "id", at),
        str_of(inner, "name", f"{at}/{kind}"),
        read_arguments(inner, words, f"{at}/{kind}"),
        kind="function" if kind == "function" else "custom",
        signature=signature,
        signed_by=GEMINI if signature is not None else None,
        at=at,
        extras=nest_extras(rest(holder, _CALL) | extras, str(kind), rest(inner, known)),
    )


def read_arguments(holder: JsonObject, key: str, at: str) -> str:
    """The arguments as they were written; some servers send them as an object."""
    value = holder.get(key)
    if type(value) is dict:
        return encode(value).decode()
    return opt_str(holder, key, at) or ""


def read_signature(holder: JsonObject) -> tuple[str | None, JsonObject]:
    """Google's signature beside a call; if `extra_content` holds anything else, None and that content."""
    content = holder.get("extra_content")
    if content is None:
        return None, {}
    google = content.get("google") if isinstance(content, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    if isinstance(signature, str) and content == {"google": {"thought_signature": signature}}:
        return signature, {}
    return None, {"extra_content": content}
