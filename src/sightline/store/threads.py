"""Which requests belong together: clients send the whole conversation again, so its beginning names it.

One dialect lets them name the last reply instead, and send what is new alone.

A fingerprint covers what was said and done. It leaves out what clients change in messages that they send again: ids,
cache marks, seals, reasoning that is dropped from older turns, and reminders that agents put in and take away.
"""

import hashlib
import re

import msgspec

from sightline.dialects.registry import dialect, find_dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.model.events import Started
from sightline.model.message import Message
from sightline.model.options import SchemaFormat
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Request
from sightline.wire.jsontext import encode

SYSTEM_ROLES = ("system", "developer")
_SIZE = 16
_REMINDER = re.compile(r"<(system-reminder|environment_context|env)>.*?</\1>", re.DOTALL)
_ERRAND = re.compile(
    r"\b(title|topic|route|router|routing|classif\w+|complexity|summar\w+|slug|branch name)\b", re.IGNORECASE
)
_MOST_WORDS = 400
_HEAD = 1 << 14


def fingerprints(request: Request) -> list[bytes]:
    """One for each beginning of the conversation, the shortest first; the last one is that of all of it."""
    state = hashlib.blake2b(digest_size=_SIZE)
    found: list[bytes] = []
    for message in request.messages:
        if message.role in SYSTEM_ROLES or not (said := _message_bytes(message)):
            continue
        state.update(b"%d\0%s" % (len(said), said))
        found.append(state.digest())
    return found


def names_replies(name: str) -> bool:
    """Whether a request of this dialect can name the last reply by its id."""
    spoken = find_dialect(name)
    return spoken is not None and spoken.rules.names_last_reply


def reply_id(name: str, data: bytes) -> str:
    """The id by which a later request can name this raw reply as its last; nothing in dialects that do not do so."""
    if not names_replies(name):
        return ""
    hearing = ReplyDecoder(dialect(name))
    for start in range(0, len(data), _HEAD):  # a stream tells it in its first frame
        for event in hearing.feed(data[start : start + _HEAD]):
            if isinstance(event, Started) and event.id:
                return event.id
    return next((event.id for event in hearing.close() if isinstance(event, Started) and event.id), "")


def is_errand(request: Request) -> bool:
    """Whether a client asks for itself: for the title of a conversation, or which model should answer.

    Such a request offers no tools, says little beyond the person's words, and either wants an answer of a schema or is
    told in so many words to make a title.
    """
    if request.tools or any(
        isinstance(part, ToolCall | ToolResult) for each in request.messages for part in each.parts
    ):
        return False
    instructions = " ".join(
        part.text
        for each in request.messages
        if each.role in SYSTEM_ROLES
        for part in each.parts
        if isinstance(part, Text)
    )
    beginning = instructions[:2000]
    if isinstance(request.options.format, SchemaFormat):
        return _ERRAND.search(beginning) is not None or _names_errand(request.options.format)
    return (
        "title" in beginning.lower()
        and sum(each.role == "user" for each in request.messages) <= 2
        and len(instructions.split()) <= _MOST_WORDS
        and _ERRAND.search(beginning) is not None
    )


def without_reminders(text: str) -> str:
    """The text without what an agent adds to it for the model alone."""
    return _REMINDER.sub("", text).strip() if "<" in text else text.strip()


def _names_errand(wanted: SchemaFormat) -> bool:
    """Whether the answer's few fields are those of a title or of a router."""
    properties = wanted.schema.get("properties")
    return isinstance(properties, dict) and len(properties) <= 2 and any(map(_ERRAND.search, properties))


def _message_bytes(message: Message) -> bytes:
    pieces = [piece for part in message.parts if (piece := _piece(part))]
    role = b"user" if message.role == "tool" else message.role.encode()
    return role + b"\0" + b"\0".join(pieces) if pieces else b""


def _piece(part: Part) -> bytes:
    match part:
        case Text(text=text) | Refusal(text=text):
            return without_reminders(text).encode("utf-8", "surrogatepass")
        case ToolCall(name=name, arguments=arguments):
            return f"{name}\0{arguments}".encode("utf-8", "surrogatepass")
        case ToolResult(parts=parts, structured=structured):
            nested = b"\0".join(_piece(each) for each in parts)
            return b"result\0" + (nested if structured is None else encode(structured))
        case Image(source=source) | Document(source=source) | Audio(source=source):
            return encode(msgspec.to_builtins(source))
        case Thinking() | CacheBreakpoint() | Opaque():
            return b""
