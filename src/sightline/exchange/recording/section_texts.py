"""The sections of recorded exchanges that can be left out of an archive: by kind, or one by one.

A section is something that a user would point at: a text of a message, a thought, a call, its result, a tool, a file.
The same section in another request of the conversation has the same id.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from sightline.editing.section import call_words
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, read_request
from sightline.model.exchange import FrameArrived
from sightline.model.json import Json
from sightline.model.parts import Audio, Document, Image, Inline, Part, PlainText, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.summary import Summary

SectionKind: TypeAlias = Literal["system", "user", "assistant", "thinking", "calls", "results", "tools", "attachments"]
SECTIONS: Final[tuple[SectionKind, ...]] = get_args(SectionKind)
"""The kinds of sections."""
_LABEL = 120


class ArchiveSection(NamedTuple):
    """A section: its texts, and a label that distinguishes it from others."""

    kind: SectionKind
    label: str
    texts: tuple[str, ...]

    @property
    def id(self) -> str:
        """The same id for the same texts of the same kind."""
        text = "\0".join((self.kind, *self.texts))
        return f"section-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def sections_of(entries: Sequence[Entry], summary: Summary) -> Iterator[ArchiveSection]:
    """The sections of an exchange, those of its requests first."""
    for request in _requests(entries, summary):
        calls = {
            part.id: call_words(part.name, part.arguments)
            for message in request.messages
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        for message in request.messages:
            role: SectionKind = message.role if message.role in ("user", "assistant") else "system"
            yield from _part_sections(role, message.parts, calls)
        for tool in request.tools:
            yield from _section("tools", getattr(tool, "name", ""), tuple(_descriptions(msgspec.to_builtins(tool))))
    reply = read_reply(with_frames(entries, summary))
    for choice in () if reply is None else reply.choices:
        yield from _part_sections("assistant", choice.parts, {})


def _part_sections(role: SectionKind, parts: Iterable[Part], calls: Mapping[str, str]) -> Iterator[ArchiveSection]:
    for part in parts:
        match part:
            case Text(text=text):
                yield from _section(role, "", (text,))
            case Thinking(text=text, summary=summary):
                yield from _section("thinking", "", (text, *summary))
            case ToolCall(name=name, arguments=arguments):
                yield from _section("calls", call_words(name, arguments), tuple(_argument_texts(arguments)))
            case ToolResult(id=call, parts=inner, structured=structured):
                said = [each.text for each in inner if isinstance(each, Text)]
                yield from _section("results", calls.get(call, ""), (*said, *_texts_in(structured)))
                yield from _part_sections("results", [each for each in inner if not isinstance(each, Text)], calls)
            case Image(source=source) | Document(source=source) | Audio(source=source):
                if isinstance(source, Inline | PlainText):
                    data = source.data if isinstance(source, Inline) else source.text
                    yield from _section("attachments", source.media_type, (data,))
            case _:
                pass


def _section(kind: SectionKind, label: str, texts: tuple[str, ...]) -> Iterator[ArchiveSection]:
    """A section, unless it has no text."""
    texts = tuple(filter(None, texts))
    if texts:
        words = label or " ".join(texts[0][: 4 * _LABEL].split())
        yield ArchiveSection(kind, words if len(words) <= _LABEL else f"{words[: _LABEL - 1]}…", texts)


def _argument_texts(arguments: str) -> Iterator[str]:
    """The texts in the arguments of a call; the whole string if it is not JSON."""
    try:
        given: Json = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):  # a lone surrogate is not valid UTF-8
        yield arguments
    else:
        yield from _texts_in(given)


def _texts_in(value: Json) -> Iterator[str]:
    """The texts in a value, without the names of its fields."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts_in(each)
        case dict():
            for each in value.values():
                yield from _texts_in(each)
        case _:
            return


def _requests(entries: Sequence[Entry], summary: Summary) -> Iterator[Request]:
    """The requests of an exchange, parsed: what the client sent, what was sent to the provider, and any edits in
    between."""
    recorded = with_frames(entries, summary)
    for entry in entries:
        if not isinstance(entry, BodyEntry):
            continue
        for spoken in dict.fromkeys((recorded.received.dialect, recorded.spoken)):
            try:
                yield read_request(spoken, entry.data, recorded.model)
            except (Fault, ValueError, KeyError):
                continue  # it is in the other dialect, or in none: then it has no sections


def _descriptions(value: Json) -> Iterator[str]:
    """The descriptions of a tool and its arguments."""
    match value:
        case list() | tuple():
            for each in value:
                yield from _descriptions(each)
        case dict():
            for name, each in value.items():
                if name == "description" and isinstance(each, str):
                    yield each
                else:
                    yield from _descriptions(each)
        case _:
            return


def with_frames(entries: Iterable[Entry], summary: Summary, frames: Iterable[bytes] | None = None) -> RecordedExchange:
    """The exchange with only its facts, without bodies, so that its reply can be read; with `frames` in place of its
    own, if given."""
    facts = tuple(entry for entry in entries if isinstance(entry, FactEntry))
    if frames is not None:
        given = iter(frames)
        facts = tuple(
            msgspec.structs.replace(entry, fact=FrameArrived(next(given), entry.fact.after))
            if isinstance(entry.fact, FrameArrived)
            else entry
            for entry in facts
        )
    return RecordedExchange(summary, facts, b"", b"")


def read_reply(recorded: RecordedExchange) -> Reply | None:
    """The reply; None if there is none, or it cannot be parsed: then it is searched as text."""
    if not any(isinstance(entry.fact, FrameArrived) for entry in recorded.facts):
        return None
    try:
        return recorded.reply()
    except (Fault, ValueError, KeyError):
        return None
