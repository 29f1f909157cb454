"""The parts of an exchange that are searched and linked: the new words of its request, its reply, and its conversation.

Clients send the whole conversation with every request, so its beginning identifies it. In one dialect they can name the
last reply instead and send only what is new. A fingerprint covers messages and tool calls. It leaves out what clients
change when they send messages again: ids, cache breakpoints, signatures, reasoning that is dropped from older turns,
and reminders that agents insert and remove.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import TypeAlias

import msgspec

from sightline.dialects.dialect import Dialect
from sightline.dialects.registry import find_dialect
from sightline.dialects.reply_decoder import ReplyDecoder, read_plain_reply
from sightline.errors import Fault
from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Fact, Received, Translated
from sightline.model.fold import fold
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.reply import Reply
from sightline.model.request import Message, Request, SchemaFormat
from sightline.store.entries import FactEntry
from sightline.wire.jsontext import decode, encode

SYSTEM_ROLES = frozenset({"system", "developer"})
_SIZE = 16
_REMINDER = re.compile(r"<(system-reminder|environment_context|env)>.*?</\1>", re.DOTALL)
_ERRAND = re.compile(
    r"\b(title|topic|route|router|routing|classif\w+|complexity|summar\w+|slug|branch name)\b", re.IGNORECASE
)
_MOST_WORDS = 400
_role = attrgetter("role")


def fingerprints(request: Request) -> list[bytes]:
    """The fingerprints of all beginnings of the conversation, the shortest first; the last one covers all of it."""
    return [mark[1] for mark in mark_messages(request.messages) if mark is not None]


_EMPTY_HASH = hashlib.blake2b(digest_size=_SIZE)
Mark: TypeAlias = "tuple[hashlib.blake2b, bytes] | None"
"""A hash state to continue from, and the fingerprint; None for a message that is not part of the fingerprint."""


def mark_messages(messages: Iterable[Message], before: Iterable[Mark] = ()) -> list[Mark]:
    """A mark for each message. The hash continues from the first mark in `before` that is not None."""
    latest = next((mark for mark in before if mark is not None), None)
    state = _EMPTY_HASH if latest is None else latest[0]
    found: list[Mark] = []
    for message in messages:
        if not _counts(message) or not (encoded := _message_bytes(message)):
            found.append(None)
            continue
        state = state.copy()
        state.update(b"%d\0%s" % (len(encoded), encoded))
        found.append((state, state.digest()))
    return found


def is_errand(request: Request) -> bool:
    """Whether this is a side request, which the client makes for itself: for the title of a conversation, or to choose
    a model.

    Such a request offers no tools and contains little besides the user's words. It either asks for output that follows
    a schema, or its instructions ask for a title.
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
    """The text without the reminders that an agent adds for the model."""
    return _REMINDER.sub("", text).strip() if "<" in text else text.strip()


def _names_errand(wanted: SchemaFormat) -> bool:
    """Whether the schema has at most two fields, and one is named like the answer of a title generator or a router."""
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


MOST_LETTERS = 200_000
"""How many characters of one request or reply can be searched."""
MOST_IN_TITLE = 120
_LOG = logging.getLogger(__name__)


class Digest(msgspec.Struct, frozen=True, gc=False):
    """What a request contains for search and linking. `new_text` is the text since the last turn of the model, `system`
    the instructions in pieces, `thread` the fingerprints of the conversation's beginnings, and `continues` the id of
    the reply that the request names as its predecessor. With `has_history`, there are turns before the new text."""

    title: str = ""
    new_text: str = ""
    system: tuple[str, ...] = ()
    thread: tuple[bytes, ...] = ()
    is_side: bool = False
    continues: str = ""
    has_history: bool = False


def storable(text: str) -> str:
    """The text in a form that every database accepts: without lone surrogates and without NUL, at which some end a
    text."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


OWN_DIGEST_COLUMNS = {"title": "text", "thread": "bytea"}
SHARED_DIGEST_COLUMNS = {"is_side": "boolean", "continues": "text"}
DIGEST_COLUMNS = OWN_DIGEST_COLUMNS | SHARED_DIGEST_COLUMNS
"""The columns of an exchange that come from its digest, and their types in PostgreSQL. Both databases build their
statements from them. Whole exchanges of one head usually have the same values in the shared columns; SQLite groups its
rows by these values, so they are never bytes. A column that `Summary` also has is named like its field of `Digest`."""
DigestValues: TypeAlias = tuple[tuple[str | float | bytearray, ...], tuple[str | float, ...]]


def columns_of_digest(digest: Digest) -> DigestValues:
    """The values of `OWN_DIGEST_COLUMNS` and of `SHARED_DIGEST_COLUMNS`, in their order, in the form that `sqlite3`
    binds fastest (see `row_of_whole`): True is 1, bytes are a `bytearray`, a missing number is NaN, and missing bytes
    are an empty text. Written out, because a function for each column takes twice as long."""
    thread = bytearray(digest.thread[-1]) if digest.thread and not digest.is_side else ""
    return (storable(digest.title), thread), (+digest.is_side, storable(digest.continues))


def read_whole(spoken: Dialect, body: bytes) -> Digest:
    """The digest of a request in this dialect. Raises a Fault if the body is not valid in it."""
    return digest_request(request := spoken.read_request(decode(body)), fingerprints(request))


def digest_of(name: str, body: bytes, read: "Callable[[Dialect, bytes], Digest]" = read_whole) -> Digest:
    """The digest of the request with this body. A body that is not valid in its dialect is treated as text. Requests
    that contain more than texts are passed to `read`, which may reuse what it knows from an earlier request."""
    spoken = find_dialect(name)
    if spoken is None:
        return _digest_as_text(body)
    try:
        plain = spoken.plain_texts
        texts = None if plain is None else plain.request(body)
        return (texts and _read_texts(texts)) or read(spoken, body)
    except Fault:
        return _digest_as_text(body)
    except Exception:  # noqa: BLE001 - a bug in reading one body must not stop all recording
        _LOG.exception("a request could not be read for search; it is on record all the same")
        return _digest_as_text(body)


@lru_cache(maxsize=32)
def _may_want_title(instructions: str) -> bool:
    """Whether the instructions mention a title. Cached because clients send the same long instructions with every
    request, and reading 10 KB takes 10 µs each time."""
    return "title" in instructions.lower()


def _read_texts(messages: Sequence[tuple[str, Sequence[str]]]) -> Digest | None:
    """The result of `digest_request` for a request of these texts, without tools and options; None if it may be a
    side request (see `is_errand`)."""
    system: list[str] = []
    new: list[str] = []
    thread: list[bytes] = []
    title, has_history = "", False
    state = _EMPTY_HASH.copy()
    for role, texts in messages:
        if role in SYSTEM_ROLES:
            system += texts
            continue
        if len(texts) == 1:  # as in most messages
            text = texts[0]
            # Most texts have no reminder, and a call for each text takes as long as everything else here.
            piece = first = without_reminders(text) if "<" in text else text.strip()
        else:
            pieces = list(filter(None, map(without_reminders, texts)))
            piece, first = "\0".join(pieces), pieces[0] if pieces else ""
        if role == "assistant":
            new.clear()
            has_history = True
        else:
            new += texts
            title = first or title
        if piece:
            encoded = f"{role}\0{piece}".encode("utf-8", "surrogatepass")
            state.update(b"%d\0%b" % (len(encoded), encoded))
            thread.append(state.digest())
    if system and any(map(_may_want_title, system)):
        return None
    words = _clip("\n".join(filter(None, new)) if len(new) > 1 else new[0] if new else "")
    has_history = has_history and len(thread) > 1
    return Digest(_shorten(title or words), words, tuple(filter(None, system)), tuple(thread), False, "", has_history)


def digest_request(request: Request, thread: Sequence[bytes], system: tuple[str, ...] | None = None) -> Digest:
    """The digest of a request whose conversation has these fingerprints. `system` is its instructions, if the caller
    knows them."""
    messages = request.messages
    start = _new_messages_start(messages)
    new_words = _words([part for message in messages[start:] if _counts(message) for part in message.parts])
    return Digest(
        title=_title(message for message in reversed(messages) if message.role == "user") or _shorten(new_words),
        new_text=new_words,
        system=read_system(messages) if system is None else system,
        thread=tuple(thread),
        is_side=is_errand(request),
        continues=request.options.previous_response_id or "",
        has_history=len(thread) > 1 and start > 0,
    )


def read_system(messages: Sequence[Message]) -> tuple[str, ...]:
    """The instructions among these messages, in pieces."""
    roles = map(_role, messages)  # a conversation may be long, and a Python loop is ten times as slow
    return tuple(
        part.text
        for message in compress(messages, map(SYSTEM_ROLES.__contains__, roles))
        for part in message.parts
        if isinstance(part, Text) and part.text
    )


def read_history(name: str, body: bytes) -> list[str]:
    """The words of each message before the new ones. They are searched if the request continues no recorded exchange: a
    session that was moved from elsewhere, or a request with examples."""
    spoken = find_dialect(name)
    if spoken is None:
        return []
    try:
        messages = spoken.read_request(decode(body)).messages
    except Fault:
        return []
    old = filter(_counts, messages[: _new_messages_start(messages)])
    return [words for message in old if (words := _words(message.parts))]


def read_reply(name: str, data: bytes) -> tuple[str, str]:
    """The words of a raw reply, and the id by which a later request can name it as its predecessor, in dialects that
    have this. A reply that cannot be read is treated as text."""
    spoken = find_dialect(name)
    if spoken is None:
        return _clip(data.decode("utf-8", "replace")), ""
    plain = spoken.plain_texts
    if plain is not None and plain.named_reply is not None:
        if (found := plain.named_reply(data)) is not None:
            return _clip(found[0]), found[1]
    elif plain is not None and (text := plain.reply(data)) is not None:
        return _clip(text), ""
    try:
        reply = read_plain_reply(spoken, data) or fold(ReplyDecoder(spoken, joins=True).whole(data))
    except Exception:  # noqa: BLE001 - as above
        _LOG.exception("a reply could not be read for search; it is on record all the same")
        return _clip(data.decode("utf-8", "replace")), ""
    words = words_of(reply)
    if reply.fault is not None:
        words = _clip(f"{words}\n{reply.fault.message}")
    return words, (reply.id or "") if spoken.rules.names_last_reply else ""


def words_of(reply: Reply) -> str:
    """The words of a parsed reply."""
    return _words(part for choice in reply.choices for part in choice.parts)


def _new_messages_start(messages: tuple[Message, ...]) -> int:
    """The index of the first message after the model's last turn; 0 if there is no such turn."""
    start = len(messages)
    while start and messages[start - 1].role != "assistant":
        start -= 1
    return start


def _counts(message: Message) -> bool:
    return message.role not in SYSTEM_ROLES


def _title(messages: Iterable[Message]) -> str:
    texts = (without_reminders(part.text) for each in messages for part in each.parts if isinstance(part, Text))
    return _shorten(next((text for text in texts if text), ""))


def _shorten(text: str) -> str:
    line = text[: MOST_IN_TITLE + 1]
    if len(line) > MOST_IN_TITLE and line[0] != " " != line[-1] and line.isprintable() and "  " not in line:
        return f"{line[:-2]}…"  # the usual case; splitting takes four times as long
    line = " ".join(text[: 2 * MOST_IN_TITLE].split())  # enough, unless there are many spaces
    if len(line) <= MOST_IN_TITLE and len(text) > 2 * MOST_IN_TITLE:
        line = " ".join(text[: 4 * MOST_IN_TITLE].split())
    return line if len(line) <= MOST_IN_TITLE else line[: MOST_IN_TITLE - 1] + "…"


def _words(parts: Iterable[Part]) -> str:
    return _clip("\n".join([word for part in parts for word in _words_of(part) if word]))


def _words_of(part: Part) -> list[str]:
    match part:
        case Text(text=text) | Refusal(text=text) | Thinking(text=text):
            return [text]
        case ToolCall(name=name, arguments=arguments):
            return [name, arguments]
        case ToolResult(parts=parts, structured=structured):
            words = [word for each in parts for word in _words_of(each)]
            return words if structured is None else [*words, encode(structured).decode()]
        case Document(source=PlainText(text=text)):
            return [text]
        case _:
            return []


def _digest_as_text(body: bytes) -> Digest:
    text = _clip(body.decode("utf-8", "replace"))
    return Digest(title=_shorten(text), new_text=text)


def _clip(text: str) -> str:
    """The part of the text that is searched, without characters that UTF-8 cannot encode."""
    text = text[:MOST_LETTERS]
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


REQUEST, REPLY = 1, 2
"""Bits of the number that tells what is still to be read of an exchange."""


def to_read(facts: Iterable[FactEntry]) -> int:
    """What these facts require to be read, as bits."""
    todo = 0
    for entry in facts:
        if isinstance(entry.fact, Received):
            todo |= REQUEST
        elif isinstance(entry.fact, ExchangeFinished | ExchangeFailed):
            todo |= REPLY
    return todo


def reply_dialect(facts: Sequence[Fact]) -> str:
    """The dialect of the reply: that of the last attempt that names one, otherwise that of the request after
    translation."""
    name, sent = "", ""
    for fact in facts:
        if isinstance(fact, AttemptStarted):
            sent = fact.dialect or sent
        elif isinstance(fact, Received | Translated):
            name = fact.dialect
    return sent or name
