"""Archives: recorded exchanges written for others, in every format (Markdown is here) and redacted if wanted, and read
back.

The command `export`, the page and `import` use the same steps: everything that a filter matches is searched, the
findings are listed, the archive is written with stand-ins, and searched once more before it is released.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import unescape
from importlib.metadata import version
from typing import IO, TypeAlias
from urllib.parse import urlsplit

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.har import har, is_har, read_har
from sightline.exchange.recording.page import cost_words, page, pretty
from sightline.exchange.recording.records import Selection, read_summaries
from sightline.exchange.recording.sharing import Redactor, exchange_of, texts_of
from sightline.exchange.resend import call_of
from sightline.model.json import JsonObject
from sightline.model.parts import CacheBreakpoint, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.store.archive import load, read, write_archive
from sightline.store.entries import Entry, FactEntry, join_frames
from sightline.store.store import Store
from sightline.store.summary import Summary
from sightline.wire import snippet
from sightline.wire.call import RequestTemplate
from sightline.wire.jsontext import encode

_FENCES = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def markdown(exchanges: Sequence[RecordedExchange]) -> bytes:
    """These exchanges as Markdown, one after the other."""
    return "\n\n".join(map(_exchange, exchanges)).encode("utf-8", "replace") + b"\n"


def _exchange(recorded: RecordedExchange) -> str:
    summary = recorded.summary
    when, about = datetime.fromtimestamp(summary.at, UTC), "~" if summary.is_estimated else ""
    facts = [
        f"{when:%Y-%m-%d %H:%M:%S} UTC",
        summary.model + (f" → {summary.provider}" if summary.provider else ""),
        summary.session and f"session {summary.session}",
        " ".join(filter(None, (summary.state, str(summary.status or ""), summary.finish, summary.fault))),
        ""
        if summary.input_tokens is None
        else f"{about}{summary.input_tokens:,} → {about}{summary.output_tokens or 0:,} tokens",
        cost_words(summary),
        recorded.id,
    ]
    lines = [f"# {_one_line(summary.title) or recorded.id}", " · ".join(filter(None, facts)), *_request(recorded)]
    return "\n\n".join([*lines, *_reply(recorded)])


def _request(recorded: RecordedExchange) -> list[str]:
    try:
        request = recorded.request()
    except Fault as fault:
        return ["## Request", f"It cannot be read: {fault.message}", fence(recorded.sent.decode("utf-8", "replace"))]
    found = [piece for message in request.messages for piece in (f"## {message.role}", *_parts(message.parts))]
    if request.tools:
        tools = [str(getattr(tool, "name", "a tool of the provider's")) for tool in request.tools]
        found.append(f"Tools: {', '.join(f'`{name}`' for name in tools)}")
    return found


def _reply(recorded: RecordedExchange) -> list[str]:
    reply = recorded.reply()
    found = []
    for choice in reply.choices:
        if choice.parts or choice.finish:
            found += [f"## reply{f' ({choice.finish})' if choice.finish else ''}", *_parts(choice.parts)]
    if reply.fault is not None:
        found.append(f"**{reply.fault.code}**: {reply.fault.message}")
    return found


def _parts(parts: Iterable[Part]) -> list[str]:
    return [text for text in map(_part, parts) if text]


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Refusal(text=text):
            return f"*refused:* {text}"
        case Thinking(text=text):
            return "\n".join(f"> {line}" for line in text.splitlines())
        case ToolCall(name=name, arguments=arguments):
            return f"**calls `{name}`**\n\n{fence(str(arguments))}"
        case ToolResult(parts=parts, structured=structured, is_error=is_error):
            said = "\n\n".join(_parts(parts)) or (pretty(structured) if structured is not None else "")
            return f"**{'error' if is_error else 'result'}**\n\n{fence(said)}"
        case CacheBreakpoint():
            return ""
        case _:
            kind = type(part).__name__.lower()
            return f"*{kind}*" if kind != "opaque" else fence(pretty(msgspec.to_builtins(part)))


def fence(text: str) -> str:
    """Text as it is, in a fence that it cannot end."""
    longest = max((len(each) for each in _FENCES.findall(text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}\n{text}\n{marks}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


WriteFormat: TypeAlias = Callable[[JsonObject], bytes]
"""Writes a custom format from an HTTP archive."""
_MARKUP = re.compile(r"<style>.*?</style>|<[^>]*>", re.DOTALL)


@dataclass(slots=True)
class ExchangeExport:
    """Exchanges to be written. `redactor` is None if they are written as they are. `formats` are formats of plug-ins,
    by name. After writing, `notes` says what was left out."""

    store: Store
    wanted: Selection
    now: float
    catalog: Catalog
    redactor: Redactor | None = None
    formats: Mapping[str, WriteFormat] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    async def exchanges(self) -> AsyncIterator[tuple[list[Entry], Summary]]:
        """The exchanges, oldest first, each with its entries and its summary."""
        found = [summary async for summary in read_summaries(self.store, self.wanted, self.now)]
        for summary in reversed(found):
            yield await self.store.entries(summary.id), summary

    async def look_through(self) -> int:
        """Let the redactor find what should not be shared; returns the number of exchanges."""
        count = 0
        async for entries, summary in self.exchanges():
            count += 1
            if self.redactor is not None:
                await asyncio.to_thread(self.redactor.learn, entries, summary)
        if self.redactor is not None:
            self.redactor.check_sections()
        return count

    async def write(self, form: str) -> AsyncIterator[bytes]:
        """The archive in a format of `FORMS` or `formats`. With a redactor, which must have searched everything before,
        raises a fault if something that it found would still be in the archive."""
        if form == "jsonl":
            if self.redactor is None and not isinstance(self.wanted, frozenset):
                pieces = write_archive(self.store.export(self.wanted, now=self.now))
            else:
                pieces = write_archive(self._search_again())
            if self.redactor is None:
                async for piece in pieces:
                    yield piece
            else:
                # Complete before any of it is released: a later exchange may still be refused.
                yield b"".join([piece async for piece in pieces])
            return
        recorded: list[RecordedExchange] = []
        async for entries, summary in self._entries():
            if (found := exchange_of(entries, summary)) is None:
                self.notes.append(f"{summary.id} is left out, because the record no longer holds its body")
            else:
                recorded.append(found)
        write = self.formats.get(form)
        data = await asyncio.to_thread(_WRITERS["har" if write else form], self, recorded)
        if write is not None:
            data = await asyncio.to_thread(write, json.loads(data))
        if self.redactor is not None:
            await asyncio.to_thread(self.redactor.check, _texts_of(data, form))
        yield data

    async def _entries(self) -> AsyncIterator[tuple[list[Entry], Summary]]:
        async for entries, summary in self.exchanges():
            if self.redactor is None:
                yield entries, summary
            else:
                redacted = await asyncio.to_thread(self.redactor.redact, entries, summary)
                yield redacted, self.redactor.summary(summary)

    async def _search_again(self) -> AsyncIterator[Entry]:
        """The entries; each redacted exchange is searched once more as it will be read back."""
        async for entries, summary in self._entries():
            if self.redactor is not None:
                await asyncio.to_thread(self.redactor.check, list(texts_of(entries, summary)))
            for entry in entries:
                yield entry

    def keep_sent(self, recorded: Sequence[RecordedExchange]) -> list[RecordedExchange]:
        """The exchanges that were sent; the others get a note."""
        for each in recorded:
            if not each.summary.provider:
                self.notes.append(f"{each.id} was not sent, and this format has no place for it")
        return [each for each in recorded if each.summary.provider]


def _write_har(export: ExchangeExport, recorded: Sequence[RecordedExchange]) -> bytes:
    sent = export.keep_sent(recorded)
    return har([(each, call_of(each, export.catalog)) for each in sent], version("sightline"))


def _write_calls(
    write: Callable[[RequestTemplate], str], export: ExchangeExport, recorded: Sequence[RecordedExchange]
) -> bytes:
    sent, pieces = export.keep_sent(recorded), []
    for each in sent:
        try:
            each.need_whole_request()
            call = write(call_of(each, export.catalog))
        except Fault as fault:
            export.notes.append(f"{each.id} is left out: {fault.message}")
            continue
        title = " ".join(each.summary.title.split())
        pieces.append(call if len(sent) == 1 else f"# {each.id}  {title}\n{call}")
    return "\n".join(pieces).encode()


_WRITERS: Mapping[str, Callable[[ExchangeExport, Sequence[RecordedExchange]], bytes]] = {
    "html": lambda _export, recorded: page(*recorded),
    "markdown": lambda _export, recorded: markdown(recorded),
    "har": _write_har,
    "curl": partial(_write_calls, snippet.curl),
    "python": partial(_write_calls, snippet.python),
}
"""The functions that write each format of `FORMS`, except for `jsonl`, which is written in pieces."""


def _texts_of(data: bytes, form: str) -> Iterator[str]:
    """The contents of a document, without its markup."""
    text = data.decode("utf-8", "replace")
    if form == "har":
        for entry in json.loads(text)["log"]["entries"]:
            yield entry["request"].get("postData", {}).get("text", "")
            yield entry["response"]["content"].get("text", "")
            yield entry["request"]["url"]
    elif form == "html":
        yield unescape(_MARKUP.sub(" ", text))
    else:
        yield text


class Imported(msgspec.Struct, frozen=True):
    """What was read from a file: new exchanges, those that were recorded already, and requests of an HTTP archive that
    are not for a model."""

    exchanges: int
    known: int
    others: int


ReadForeign: TypeAlias = Callable[[bytes], JsonObject | None]
"""Makes an HTTP archive from a file in a format that it knows; returns None for others."""


async def import_archive(
    store: Store, file: IO[bytes], catalog: Catalog, read_foreign: ReadForeign | None = None
) -> Imported:
    """Read an archive into the record. All of it is read before anything is stored, so that a broken file changes
    nothing."""

    def host_of(url: str) -> str:
        return urlsplit(url).netloc.rpartition("@")[2].lower()

    batches: Iterable[Sequence[Entry]] | None = None
    others = 0
    foreign = None if read_foreign is None else await asyncio.to_thread(read_foreign, file.read())
    file.seek(0)
    if foreign is not None or is_har(file.read(1024)):
        file.seek(0)
        hosts = {host_of(each.base_url): name for name, each in reversed(catalog.providers.items())}
        found = await asyncio.to_thread(
            read_har,
            file.read() if foreign is None else encode(foreign),
            lambda url: hosts.get(host_of(url), host_of(url)),
        )
        ids, others, batches = dict.fromkeys(found.ids), found.others, found.exchanges
    else:
        file.seek(0)
        ids = {entry.exchange: None for entry in read(file) if isinstance(entry, FactEntry)}
    known = sum([bool(await store.facts(exchange)) for exchange in ids])
    if batches is None:
        file.seek(0)
        load(store, file)
    for batch in batches or ():
        store.record(join_frames(batch))
    await store.settle()
    return Imported(len(ids) - known, known, others)
