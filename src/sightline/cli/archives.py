"""`sightline export` and `sightline import`: writes exchanges of the record to a file, redacted if the user asks for
it, and reads them from one."""

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sightline.app.configuration import configuration
from sightline.app.engine import open_record
from sightline.app.machine import SystemClock
from sightline.catalog.catalog import Catalog
from sightline.cli.options import parse_filter
from sightline.cli.terminal import harmless, many, open_input, say, write
from sightline.errors import Code, Fault
from sightline.exchange.recording.archives import ExchangeExport, import_archive
from sightline.exchange.recording.formats import FORMS
from sightline.exchange.recording.section_texts import SECTIONS
from sightline.exchange.recording.sharing import Redactor
from sightline.platform.files import replacing
from sightline.plugins.loading import Plugins
from sightline.store.store import Store


def run_import(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)

    async def import_files() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            for name in arguments.files:
                await _import_file(store, name, loaded.catalog, loaded.plugins)

    asyncio.run(import_files())
    return 0


async def _import_file(store: Store, name: str, catalog: Catalog, plugins: Plugins | None) -> None:
    """Import a file, and report what was imported."""
    with _open_seekable(name) as file:
        try:
            found = await import_archive(store, file, catalog, None if plugins is None else plugins.read_foreign)
        except Fault as fault:
            raise Fault(fault.code, f"{name}: {fault.message}", hint=fault.hint) from None
    counts = [f"{many(found.exchanges, 'exchange')} imported"]
    counts += [f"{found.known} already on record"] if found.known else []
    counts += [f"{many(found.others, 'other request')} left out"] if found.others else []
    say(f"{name}: {', '.join(counts)}")


@contextmanager
def _open_seekable(name: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice; a pipe is copied to a temporary file."""
    try:
        with Path(name).open("rb") if name != "-" else tempfile.TemporaryFile() as file:
            if name == "-":
                with open_input(name) as stream:
                    shutil.copyfileobj(stream, file)
                file.seek(0)
            yield file
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        raise Fault(Code.USAGE, message, hint="Name a file of `sightline export`, or a HAR file.") from None


_SHOWN = 60


def run_export(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)  # first, because plug-ins add fields to filters
    wanted = parse_filter(arguments.filter)
    plugins = loaded.plugins or Plugins()
    formats = plugins.exporters()
    if arguments.form not in (*FORMS, *formats):
        hint = f"Formats are {', '.join((*FORMS, *formats))}. See `sightline export --help`."
        raise Fault(Code.USAGE, f"there is no format {arguments.form!r}", hint=hint)
    redactor = None
    if arguments.redact or arguments.preview or arguments.pattern or arguments.without or arguments.sections:
        patterns = (*loaded.settings.export.patterns, *arguments.pattern)
        without = [name.strip() for each in arguments.without for name in each.split(",") if name.strip()]
        redactor = Redactor(
            patterns, plugins.redactors(), sections=without, kept=arguments.keep, lists_sections=arguments.sections
        )

    async def export() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            exporting = ExchangeExport(store, wanted, SystemClock().now(), loaded.catalog, redactor, formats)
            if redactor is not None:
                await exporting.look_through()
                if arguments.sections:
                    _list_sections(redactor)
                _list_found(redactor)
            if arguments.preview or arguments.sections:
                return
            pieces = exporting.write(arguments.form)
            if arguments.output is None:
                async for piece in pieces:
                    write(piece, ends_line=False)
            else:
                with _atomic_file(Path(arguments.output)) as file:
                    async for piece in pieces:
                        file.write(piece)
            for note in exporting.notes:
                say(f"note: {note}")

    asyncio.run(export())
    return 0


def _list_sections(redactor: Redactor) -> None:
    """List the sections that can be left out, grouped by kind."""
    for each in sorted(redactor.sections_listed.values(), key=lambda each: SECTIONS.index(each.kind)):
        left_out = ", left out" if each.is_left_out else ""
        say(f"{each.id} {each.kind}: {harmless(each.label)} ({many(each.characters, 'character')}{left_out})")


def _list_found(redactor: Redactor) -> None:
    """List what will be replaced, and by what."""
    for each in redactor.found.values():
        value = each.value if len(each.value) <= _SHOWN else f"{each.value[: _SHOWN - 1]}…"
        say(f"{each.kind}: {harmless(value)} → {each.stand_in} ({many(each.places, 'place')})")
    if not redactor.found:
        say("nothing to redact was found")


@contextmanager
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically, readable only by its owner. A link stays a link. A device or a pipe is written to
    directly: a new file in its place would have replaced /dev/null."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path = path.resolve()
        with replacing(path) as file:
            yield file
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise Fault(Code.USAGE, message, hint="Name a file in a folder that you can write to.") from None
