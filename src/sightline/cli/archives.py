"""`sightline export` and `sightline import`: move exchanges between records as files."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write
from sightline.cli.traffic import parse_filter
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.catalog.catalog import Catalog
    from sightline.filters.expression import Expression
    from sightline.store.entries import Entry
    from sightline.store.store import Store

FORMS = ("jsonl", "har")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `export` and `import`."""
    command = commands.add_parser(
        "export",
        help="write recorded exchanges to a file",
        description="Write recorded exchanges as a JSON lines archive that `sightline import` reads back as it "
        "was, or as an HTTP archive for other tools. A filter says which; credentials are in neither.",
    )
    command.add_argument("--as", dest="form", choices=FORMS, default="jsonl", help="the format (default: jsonl)")
    command.add_argument("-o", "--output", metavar="FILE", help="the output file (default: stdout)")
    _add_common(command)
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    command.set_defaults(run=run_export)
    command = commands.add_parser(
        "import",
        help="read exchanges from files into the record",
        description="Read JSON lines archives of `sightline export`, and HTTP archives (HAR) of any tool, into the "
        "record. A file is read whole before anything is taken from it; what is here already is not taken twice.",
    )
    _add_common(command)
    command.add_argument("files", nargs="+", metavar="FILE", help="the files")
    command.set_defaults(run=run_import)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record

    wanted = parse_filter(arguments.filter)
    loaded = configuration(arguments.config)

    async def export() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            pieces = _har(store, wanted, loaded.catalog) if arguments.form == "har" else _lines(store, wanted)
            if arguments.output is None:
                async for piece in pieces:
                    write(piece, ends_line=False)
            else:
                await _write_file(Path(arguments.output), pieces)

    asyncio.run(export())
    return 0


async def _lines(store: "Store", wanted: "Expression") -> AsyncIterator[bytes]:
    from sightline.app.machine import SystemClock
    from sightline.store.archive import write_archive

    async for line in write_archive(store.export(wanted, now=SystemClock().now())):
        yield line


async def _har(store: "Store", wanted: "Expression", catalog: "Catalog") -> AsyncIterator[bytes]:
    from importlib.metadata import version

    from sightline.app.machine import SystemClock
    from sightline.exchange.recording.exchange_record import load_exchange
    from sightline.exchange.recording.har import har
    from sightline.exchange.recording.replay_request import call_of

    now, before, found = SystemClock().now(), "", []
    while page := await store.find(wanted, now=now, before=before, limit=500):
        for summary in page:
            if summary.provider:
                exchange = await load_exchange(store, summary)
                found.append((exchange, call_of(exchange, catalog)))
            else:
                say(f"note: {summary.id} was not sent, and an HTTP archive has no place for it")
        before = page[-1].id
    yield har(found[::-1], version("sightline"))


async def _write_file(path: Path, pieces: AsyncIterator[bytes]) -> None:
    with _whole_file(path) as file:
        async for piece in pieces:
            file.write(piece)


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


def run_import(arguments: argparse.Namespace) -> int:
    """Read the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record

    loaded = configuration(arguments.config)

    async def import_files() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            for name in arguments.files:
                await _import_file(store, name, loaded.catalog)

    asyncio.run(import_files())
    return 0


async def _import_file(store: "Store", name: str, catalog: "Catalog") -> None:
    """Import a file. All of it is read before anything is stored, so that a broken file changes nothing."""
    from sightline.exchange.recording.har_import import is_har, read_har
    from sightline.store.archive import load, read
    from sightline.store.entries import FactEntry

    with _open_twice_readable(name) as file:
        try:
            if is_har(file.read(1024)):
                file.seek(0)
                found = read_har(file.read(), lambda url: _provider_at(url, catalog))
                ids, others = dict.fromkeys(found.ids), found.others
                batches: Sequence[Sequence[Entry]] | None = found.exchanges
            else:
                file.seek(0)
                ids = {entry.exchange: None for entry in read(file) if isinstance(entry, FactEntry)}
                batches, others = None, 0
        except Fault as fault:
            raise Fault(fault.code, f"{name}: {fault.message}", hint=fault.hint) from None
        known = sum([bool(await store.facts(exchange)) for exchange in ids])
        if batches is None:
            file.seek(0)
            load(store, file)
        for batch in batches or ():
            store.record(batch)
    await store.settle()
    new = len(ids) - known
    counts = [f"{new} exchange{'' if new == 1 else 's'} imported"]
    counts += [f"{known} already on record"] if known else []
    counts += [f"{others} other request{'' if others == 1 else 's'} left out"] if others else []
    say(f"{name}: {', '.join(counts)}")


@contextmanager
def _open_twice_readable(name: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice; a pipe is copied to a temporary file."""
    try:
        with Path(name).open("rb") if name != "-" else tempfile.TemporaryFile() as file:
            if name == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
                file.seek(0)
            yield file
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror or error}"
        raise Fault(Code.USAGE, message, hint="Name a file of `sightline export`, or a HAR file.") from None


def _provider_at(url: str, catalog: "Catalog") -> str:
    """The configured provider at this address, else its host."""
    from urllib.parse import urlsplit

    host = urlsplit(url).netloc.rpartition("@")[2].lower()
    for name, provider in catalog.providers.items():
        if urlsplit(provider.base_url).netloc.lower() == host:
            return name
    return host
