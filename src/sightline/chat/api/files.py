"""The calls that export and import chats as files."""

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.chat.api.filters import read_filter
from sightline.chat.api.requests import AttachmentWanted, OneChat
from sightline.chat.api.shapes import ImportShown
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import ChatImport
from sightline.chat.core.imports.formats import to_json, to_jsonl, to_markdown
from sightline.chat.core.imports.reading import read_chat
from sightline.chat.core.pair import MessagePair, attachment, name_of, text_in
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Part, PlainText, Text
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Query, read_bytes
from sightline.web.routes import ApiCall
from sightline.wire.media_type import BINARY, is_text, sniff

RASTER: Final[Mapping[str, str]] = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Image types that can be shown in the page, with their file suffix. None of them can contain a script."""

_ENDINGS: Final[Mapping[str, str]] = {**RASTER, "application/pdf": "pdf"}
_BINARY_KINDS: Final = ("image", "audio", "video")
_LONGEST_NAME: Final = 200


def parts_from_uploads(wanted: tuple[AttachmentWanted, ...]) -> tuple[Part, ...]:
    """A part for each file, in order."""
    return tuple(_part(number, each) for number, each in enumerate(wanted, 1))


def _part(number: int, wanted: AttachmentWanted) -> Part:
    name = "".join(character if character.isprintable() else "?" for character in wanted.name)[:_LONGEST_NAME].strip()
    name = name or f"file {number}"
    try:
        data = base64.b64decode(wanted.data, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(f"{name}: the data is not base64", "Send the bytes of the file in base64.") from None
    if not data:
        raise _wrong(f"{name}: the file is empty", "Leave it out, or check that it was saved.")
    claimed, real = wanted.media_type.partition(";")[0].strip().lower(), sniff(data, name)
    if _has_wrong_type(claimed, real):
        found = "text" if is_text(real) else real
        raise _wrong(
            f"{name}: it claims to be {quote_word(claimed)}, but its bytes are {found}",
            "Check that the file is whole, and attach it again under the right name.",
        )
    try:
        return attachment(data, name if "." in name or real not in _ENDINGS else f"{name}.{_ENDINGS[real]}")
    except Fault as fault:
        fault.status = 422
        raise


def _has_wrong_type(claimed: str, real: str) -> bool:
    """Whether a file is not of the type it claims to be. An image that claims another image type is accepted as what it
    is."""
    if claimed == "image/svg+xml":
        return not is_text(real)
    main = claimed.partition("/")[0]
    if main in _BINARY_KINDS:
        return not real.startswith(f"{main}/") or is_text(real)
    return claimed == "application/pdf" and real != claimed


def _wrong(message: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


_SANDBOX: Final = (b"content-security-policy", b"default-src 'none'; sandbox")


def media(part: Part) -> WebResponse:
    """The bytes of a part: shown if they are an image, regardless of the claimed type; otherwise a download."""
    data, name = _bytes(part), name_of(part)
    kind = sniff(data, name)
    if kind in RASTER:
        return WebResponse(200, data, [(b"content-type", kind.encode()), _SANDBOX, *replies.GUARDED])
    return download(data, name or "file")


def download(data: bytes, name: str, media_type: str = BINARY) -> WebResponse:
    plain = re.sub(r"[^A-Za-z0-9 ._-]", "_", name)
    disposition = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    )
    kept = (b"content-disposition", disposition.encode())
    return WebResponse(200, data, [(b"content-type", media_type.encode()), kept, _SANDBOX, *replies.GUARDED])


def size_of(part: Part) -> tuple[str, int]:
    """The media type of a part and its size in bytes; 0 if the bytes are not here."""
    match part:
        case Text(text=text):
            return "text/plain", len(text_in(text).encode("utf-8", "replace"))
        case Image(source=source) | Document(source=source) | Audio(source=Inline() as source):
            match source:
                case Inline(media_type=media_type, data=coded):
                    return media_type, len(coded) * 3 // 4 - coded[-2:].count("=")
                case PlainText(text=text, media_type=media_type):
                    return media_type, len(text.encode("utf-8", "replace"))
                case Link(media_type=media_type):
                    return media_type, 0
                case FileId():
                    return "", 0
        case _:
            return "", 0


def _bytes(part: Part) -> bytes:
    match part:
        case Text(text=text):
            return text_in(text).encode("utf-8", "replace")
        case Image(source=Inline(data=coded)) | Document(source=Inline(data=coded)) | Audio(source=Inline(data=coded)):
            try:
                return base64.b64decode(coded)
            except (binascii.Error, ValueError):
                raise _not_found("the data of this file is damaged", "Attach it again.") from None
        case Document(source=PlainText(text=text)):
            return text.encode("utf-8", "replace")
        case _:
            raise _not_found("this file is elsewhere", "Only what was attached here can be shown.")


def _not_found(message: str, hint: str) -> Fault:
    return Fault(Code.USAGE, message, hint=hint, status=404)


MOST_IMPORTED: Final = 200 * 1024 * 1024
"""The largest import. Larger exports must be split first."""

_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "markdown": ("chat.md", "text/markdown; charset=utf-8"),
    "json": ("chat.json", "application/json"),
    "jsonl": ("chat.jsonl", "application/x-ndjson"),
}


async def export(chat: OneChat, query: Query) -> WebResponse:
    """Export the pairs that match a filter, those that a view shows, or all of them. The file is written in a thread,
    so that the event loop stays free."""
    kind = query.text("as") or "json"
    if kind not in _KINDS:
        hint = nearest(kind, _KINDS)
        raise Fault(Code.INVALID_REQUEST, f"nothing is exported as {quote_word(kind[:40])}", hint=hint, status=400)
    name, media_type = _KINDS[kind]
    history = await chat.service.chat.load()
    pairs, filter_text = await _choose(chat, query, history)
    is_whole = query.is_set("whole_topics")
    # Pairs are immutable; of the rest of the history, only the topics are used.
    still = ChatHistory()
    still.topics = history.topics.copy()
    settings, now = chat.service.chat.settings, chat.service.chat.now()

    def write() -> bytes:
        if kind == "markdown":
            return to_markdown(still, pairs)
        if kind == "json":
            return to_json(still, pairs, now=now, filter_text=filter_text)
        return to_jsonl(still, pairs, settings, whole_topics=is_whole)

    return download(await asyncio.to_thread(write), query.text("name") or name, media_type)


async def bring_in(chat: OneChat, query: Query, call: ApiCall) -> ImportShown:
    """Import a file; with `dry_run`, only report what it contains."""
    is_dry = query.is_set("dry_run")
    data = await read_bytes(call.receive, MOST_IMPORTED)
    if not data.strip():
        hint = "Send the file as the body of the request."
        raise Fault(Code.INVALID_REQUEST, "the file is empty", hint=hint, status=422)
    try:
        gathered = await asyncio.to_thread(read_chat, data, query.text("name"))
    except Fault as fault:
        fault.status = 422
        raise
    history = await chat.service.chat.load()
    _check_topics(gathered, history)
    topics = _new_topics(gathered, history)
    fresh = {pair.id: pair for pair in gathered.fact.pairs if pair.id not in history}
    if fresh and not is_dry:
        await chat.service.chat.happen(msgspec.structs.replace(gathered.fact, pairs=tuple(fresh.values())))
    return ImportShown(
        pairs=len(fresh),
        topics=topics if fresh else 0,
        skipped=len(gathered.fact.pairs) - len(fresh),
        format=gathered.source,
        problems=gathered.notes,
    )


async def _choose(chat: OneChat, query: Query, history: ChatHistory) -> tuple[list[MessagePair], str]:
    if "view" not in query:
        if query.text("filter"):
            hint = "Give the view in which it is used."
            raise Fault(Code.INVALID_REQUEST, "the filter has no view", hint=hint, status=400)
        return list(history), ""
    looking = await chat.service.views.get(query.text("view"))
    if "filter" not in query:
        return list(looking.view.visible), looking.filter
    text = query.text("filter")
    return looking.view.match(read_filter(chat, text), chat.service.chat.now()), text


def _check_topics(gathered: ChatImport, history: ChatHistory) -> None:
    """Refuse an export whose pairs name topics that are neither in it nor in this chat."""
    known = {topic.id for topic in gathered.fact.topics}
    named = ((f"the topic {topic.name!r}", topic.parent) for topic in gathered.fact.topics)
    for what, topic in (*named, *((f"the pair {pair.id!r}", pair.topic) for pair in gathered.fact.pairs)):
        if topic not in known and topic not in history.topics:
            message = f"{what} is in the topic {topic[:80]!r}, which is neither in the file nor in this chat"
            hint = "Export it again with its topics, or correct the topic's id in the file. Nothing was imported."
            raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


def _new_topics(gathered: ChatImport, history: ChatHistory) -> int:
    """How many of its topics are new in this chat, by their paths."""
    paths: dict[str, tuple[str, ...]] = {}
    count = 0
    for topic in gathered.fact.topics:
        above = paths.get(topic.parent)
        if above is None:
            above = history.topics.path(topic.parent) if topic.parent in history.topics else ()
        paths[topic.id] = (*above, topic.name)
        count += history.topics.at(paths[topic.id]) is None and topic.id not in history.topics
    return count
