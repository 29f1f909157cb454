"""Messages, parts and tools as HTML. Whatever they hold is shown as text; only pictures are shown as pictures."""

import json
import re
from collections.abc import Iterable
from html import escape
from typing import assert_never

from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, Tool
from sightline.wire.jsontext import decode

_LONG = 3000
"""Texts of more characters are folded away."""
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s_-]*")


def message_html(message: Message) -> str:
    """One message."""
    role = escape(message.role)
    name = f" · {escape(message.name)}" if message.name else ""
    return f'<article class="{role}"><h3>{role}{name}</h3>{parts_html(message.parts)}</article>'


def parts_html(parts: Iterable[Part]) -> str:
    """Parts, one below the other."""
    return "".join(map(_part, parts))


def tool_html(tool: Tool) -> str:
    """A tool that the model may call."""
    match tool:
        case FunctionTool(name=name, description=description, schema=schema):
            return details_of(name, words(description or "") + block(pretty(schema or {})))
        case CustomTool(name=name, description=description, grammar=grammar):
            return details_of(name, words(description or "") + (block(grammar.definition) if grammar else ""))
        case OpaqueTool(value=value):
            return details_of("a tool of the provider's", block(pretty(value)))
        case unreachable:
            assert_never(unreachable)


def words(text: str) -> str:
    """Words of a person or a model; where there are many, folded away."""
    shown = f'<div class="words">{escape(text)}</div>'
    if len(text) <= _LONG:
        return shown if text else ""
    return details_of(f"{' '.join(text[:120].split())} … ({len(text):,} characters)", shown)


def block(text: str) -> str:
    """Text for machines."""
    return f'<pre class="code">{escape(text)}</pre>'


def details_of(title: str, inner: str) -> str:
    """Something that is shown when it is asked for."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def pretty(value: Json) -> str:
    """JSON for a person."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return words(text)
        case Refusal(text=text):
            return f'<p class="bad">refused</p>{words(text)}'
        case Thinking(text=text, redacted=redacted):
            return details_of("thinking", words(text) or f'<p class="soft">{"withheld" if redacted else "sealed"}</p>')
        case ToolCall(name=name, arguments=arguments, id=call):
            return f"<h3>calls {escape(name)}{_call_label(call)}</h3>{block(_arguments(arguments))}"
        case ToolResult(parts=parts, structured=structured, id=call, is_error=is_error):
            told = parts_html(parts) + (block(pretty(structured)) if structured is not None else "")
            return f"<h3>{'error' if is_error else 'result'}{_call_label(call)}</h3>{told}"
        case Image(source=source):
            return _picture(source)
        case Document(source=source, title=title):
            return _file("document", title or "", source)
        case Audio(source=source, transcript=transcript):
            return _file("sound", "", source) + words(transcript or "")
        case Opaque(value=value):
            return block(pretty(value))
        case CacheBreakpoint():
            return '<p class="soft">cached up to here</p>'
        case unreachable:
            assert_never(unreachable)


def _call_label(call: str) -> str:
    return f' <span class="soft">{escape(call)}</span>' if call else ""


def _arguments(text: str) -> str:
    try:
        return pretty(decode(text))
    except Fault:
        return text


def _picture(source: Source) -> str:
    match source:
        case Inline(media_type=kind, data=data) if kind in _PICTURES and _BASE64.fullmatch(data):
            return f'<p><img alt="a picture of the request" src="data:{kind};base64,{escape(data)}"></p>'
        case _:
            return _file("picture", "", source)


def _file(what: str, title: str, source: Source | None) -> str:
    match source:
        case None:
            told, inner = "kept by the provider", ""
        case Inline(media_type=kind, data=data):
            told, inner = f"{kind}, {len(data) * 3 // 4:,} bytes", ""
        case Link(url=url):
            told, inner = url, ""
        case FileId(id=name):
            told, inner = name, ""
        case PlainText(text=text, media_type=kind):
            told, inner = kind, words(text)
        case unreachable:
            assert_never(unreachable)
    named = " · ".join(filter(None, (what, title, told)))
    return f'<p class="soft">{escape(named)}</p>{inner}'
