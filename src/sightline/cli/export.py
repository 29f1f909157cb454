"""`sightline export`: write recorded exchanges to a file, with what should not leave replaced if told so."""

import argparse
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, many, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.catalog.catalog import Catalog
    from sightline.exchange.recording.exchange_record import RecordedExchange
    from sightline.exchange.recording.sharing import Redactor
    from sightline.filters.expression import Expression
    from sightline.plugins.plugin import ExportFormat
    from sightline.store.entries import Entry
    from sightline.store.store import Store
    from sightline.store.summary import Summary

_MARKUP = re.compile(r"<style>.*?</style>|<[^>]*>", re.DOTALL)
_SHOWN = 60
_FORMS = ("jsonl", "har", "html", "markdown")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    command = commands.add_parser(
        "export",
        help="write recorded exchanges to a file",
        description="Write recorded exchanges as a JSON lines archive that `sightline import` reads back as it was, as "
        "an HTTP archive for other tools, or as one page or Markdown for people. A filter says which; credentials are "
        "in none of them. With --redact, keys, addresses, numbers and names in the texts are replaced, too.",
    )
    command.add_argument(
        "--as",
        dest="form",
        default="jsonl",
        metavar="FORMAT",
        help=f"{', '.join(_FORMS)}, or the format of a plug-in (default: jsonl)",
    )
    command.add_argument("--redact", action="store_true", help="replace keys, addresses, numbers, names and hosts")
    command.add_argument("--preview", action="store_true", help="only list what --redact would replace, and by what")
    command.add_argument("-o", "--output", metavar="FILE", help="the output file (default: stdout)")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.cli.traffic import parse_filter
    from sightline.exchange.recording.sharing import Redactor
    from sightline.store.archive import write_archive

    loaded = configuration(arguments.config)  # first: plug-ins add fields to filters
    wanted = parse_filter(arguments.filter)
    formats = {} if loaded.plugins is None else loaded.plugins.exporters()
    if arguments.form not in (*_FORMS, *formats):
        hint = f"Formats are {', '.join((*_FORMS, *formats))}. See `sightline export --help`."
        raise Fault(Code.USAGE, f"there is no format {arguments.form!r}", hint=hint)
    finders = {} if loaded.plugins is None else loaded.plugins.redactors()
    redactor = Redactor(loaded.settings.export.patterns, finders) if arguments.redact or arguments.preview else None

    async def export() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            now = SystemClock().now()
            if redactor is None and arguments.form == "jsonl":
                pieces = write_archive(store.export(wanted, now=now))
            else:
                exchanges = Exchanges(store, wanted, now)
                if redactor is not None:
                    await _learn(redactor, exchanges)
                if arguments.preview:
                    return
                own = formats.get(arguments.form)
                pieces = _render(exchanges, redactor, "har" if own else arguments.form, loaded.catalog)
                pieces = pieces if own is None else _in_format(own, pieces)
            if arguments.output is None:
                async for piece in pieces:
                    write(piece, ends_line=False)
            else:
                with _whole_file(Path(arguments.output)) as file:
                    async for piece in pieces:
                        file.write(piece)

    asyncio.run(export())
    return 0


async def _in_format(write_format: "ExportFormat", archive: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What a plug-in makes of an HTTP archive."""
    from sightline.wire.jsontext import decode

    document = decode(b"".join([piece async for piece in archive]))
    assert isinstance(document, dict)  # an HTTP archive is an object
    yield write_format(document)


class Exchanges:
    """The exchanges that a filter takes, oldest first, each with its entries and its line."""

    def __init__(self, store: "Store", wanted: "Expression", now: float) -> None:
        self._store = store
        self._wanted = wanted
        self._now = now

    async def __aiter__(self) -> "AsyncIterator[tuple[list[Entry], Summary]]":
        from sightline.filters.expression import TextTerm
        from sightline.filters.predicate import literal

        before, found = "", list["Summary"]()
        while page := await self._store.find(self._wanted, now=self._now, before=before, limit=500):
            found += page
            before = page[-1].id
        for summary in reversed(found):
            own = TextTerm("id", literal(summary.id))
            yield [entry async for entry in self._store.export(own, now=self._now)], summary


async def _learn(redactor: "Redactor", exchanges: Exchanges) -> None:
    """Look through everything, and list what was found."""
    async for entries, summary in exchanges:
        redactor.learn(entries, summary)
    for each in redactor.found.values():
        value = each.value if len(each.value) <= _SHOWN else f"{each.value[: _SHOWN - 1]}…"
        say(f"{each.kind}: {harmless(value)} → {each.stand_in} ({many(each.places, 'place')})")
    if not redactor.found:
        say("nothing to redact was found")


async def _render(
    exchanges: Exchanges, redactor: "Redactor | None", form: str, catalog: "Catalog"
) -> AsyncIterator[bytes]:
    from sightline.exchange.recording.sharing import exchange_of
    from sightline.store.archive import write_archive

    async def prepared() -> "AsyncIterator[tuple[list[Entry], Summary]]":
        async for entries, summary in exchanges:
            if redactor is None:
                yield entries, summary
            else:
                yield redactor.redact(entries, summary), redactor.summary(summary)

    if form == "jsonl":
        assert redactor is not None
        data = b"".join([piece async for piece in write_archive(_checked(prepared(), redactor))])
        yield data
        return
    recorded: list[RecordedExchange] = []
    async for entries, summary in prepared():
        if (found := exchange_of(entries, summary)) is None:
            say(f"note: {summary.id} is left out, because the record no longer holds its body")
        else:
            recorded.append(found)
    data = _document(recorded, form, catalog)
    if redactor is not None:
        redactor.check(_texts_of(data, form))
    yield data


async def _checked(
    prepared: "AsyncIterator[tuple[list[Entry], Summary]]", redactor: "Redactor"
) -> "AsyncIterator[Entry]":
    """The entries, each exchange searched once more as it will be read back."""
    from sightline.exchange.recording.sharing import texts_of

    async for entries, summary in prepared:
        redactor.check(texts_of(entries, summary))
        for entry in entries:
            yield entry


def _document(recorded: "Sequence[RecordedExchange]", form: str, catalog: "Catalog") -> bytes:
    if form == "html":
        from sightline.exchange.recording.page import page

        return page(*recorded)
    if form == "markdown":
        from sightline.exchange.recording.markdown import markdown

        return markdown(recorded)
    from importlib.metadata import version

    from sightline.exchange.recording.har import har
    from sightline.exchange.recording.replay_request import call_of

    for each in recorded:
        if not each.summary.provider:
            say(f"note: {each.id} was not sent, and an HTTP archive has no place for it")
    return har([(each, call_of(each, catalog)) for each in recorded if each.summary.provider], version("sightline"))


def _texts_of(data: bytes, form: str) -> Iterator[str]:
    """What a document says, without what is its format."""
    text = data.decode()
    if form == "har":
        for entry in json.loads(text)["log"]["entries"]:
            yield entry["request"].get("postData", {}).get("text", "")
            yield entry["response"]["content"].get("text", "")
            yield entry["request"]["url"]
    elif form == "html":
        yield unescape(_MARKUP.sub(" ", text))
    else:
        yield text


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically, readable by its owner only."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            made = Path(file.name)
            try:
                yield file
                file.flush()
                made.replace(path)
            except BaseException:
                made.unlink(missing_ok=True)
                raise
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise Fault(Code.USAGE, message, hint="Name a file in a folder that you can write to.") from None
