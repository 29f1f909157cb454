"""`sightline traffic`, `sightline export` and `sightline import`: exchanges of the record as lines, written to a file
(with what should not leave replaced where the user says so), and read from one.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, has_colours, is_terminal, many, say, write
from sightline.errors import Code, Fault
from sightline.exchange.recording.formats import FORMS

if TYPE_CHECKING:
    from sightline.catalog.catalog import Catalog
    from sightline.exchange.recording.sharing import Redactor
    from sightline.filters.expression import Expression
    from sightline.plugins.loading import Plugins
    from sightline.store.store import Store
    from sightline.store.summary import Summary


_USUAL = 50
_PAGE = 500
_WIDEST = 28
_WIDTH_IN_A_PIPE = 160
_RED, _DIM, _PLAIN = "\x1b[31m", "\x1b[2m", "\x1b[0m"
_HEADINGS = ("TIME", "ID", "CLIENT", "MODEL", "STATE", "TOKENS", "COST", "TOOK", "TITLE")
_TO_THE_RIGHT = frozenset({"TOKENS", "COST", "TOOK"})
_LEFT_OUT = ("TOOK", "COST", "CLIENT", "TOKENS", "MODEL", "TIME")
"""What a narrow terminal goes without, the first of it first: 80 columns would else end before the state."""
_ROOM_FOR_TITLE = 16


def add_traffic(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "traffic",
        help="list recorded exchanges, newest first",
        description="List exchanges of the record, newest first. A filter such as `model:claude-* & status:error & "
        'age<7d` or `text:"dad joke"` says which; it works while a server runs and when none does.',
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per line")
    command.add_argument(
        "--limit", type=_count, metavar="N", help=f"the largest number to list (default: {_USUAL}; 0 is all)"
    )
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    command.set_defaults(run=run)


def _count(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """List them."""
    import asyncio

    from sightline.app.configuration import configuration

    loaded = configuration(arguments.config)  # first: plug-ins add fields to filters
    wanted = parse_filter(arguments.filter)
    limit = _USUAL if arguments.limit is None else arguments.limit

    async def list_exchanges() -> int:
        from sightline.app.engine import open_record
        from sightline.app.machine import SystemClock
        from sightline.wire.jsontext import encode
        from sightline.workbench.exchange_views import line

        columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        table = _Table(columns, has_colours=has_colours(sys.stdout))
        count = 0
        async with open_record(loaded, arguments.data, arguments.store) as store:
            before, now = "", SystemClock().now()
            while not limit or count < limit:
                size = min(_PAGE, limit - count) if limit else _PAGE
                page = await store.find(wanted, now=now, before=before, limit=size)
                if page:
                    if arguments.json:
                        write(b"".join(encode(line(summary)) + b"\n" for summary in page))
                    else:
                        write(table.page(page))
                    before = page[-1].id
                    count += len(page)
                if len(page) < size:
                    break
        if not count and not arguments.json:
            say("nothing on record" if not arguments.filter else "no recorded exchange matches")
        return 0

    return asyncio.run(list_exchanges())


def parse_filter(words: Sequence[str]) -> "Expression":
    """Parse a filter from the command line; its words need no quotes."""
    from datetime import datetime

    from sightline.filters.fields import FilterScope
    from sightline.filters.parsing import parse

    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return parse(" ".join(words), scope=FilterScope.TRAFFIC, zone=zone)


class _Table:
    """Columns sized by the first page, so that the rest can be printed as it is read. A terminal with fewer `columns`
    gets fewer of them; a pipe, for which they are None, gets all."""

    def __init__(self, columns: int | None, *, has_colours: bool) -> None:
        self._has_colours = has_colours
        self._columns = columns
        self._widths: dict[str, int] = {}

    def page(self, page: "Sequence[Summary]") -> bytes:
        rows = [_row(summary) for summary in page]
        out: list[str] = []
        if not self._widths:
            self._widths = {
                heading: max(len(heading), *(len(row[column]) for row in rows))
                for column, heading in enumerate(_HEADINGS)
            }
            self._leave_out()
            out.append(self._colour(self._line(_HEADINGS), _DIM))
        for summary, row in zip(page, rows, strict=True):
            has_failed = summary.state in ("failed", "dropped") or summary.status >= 400
            out.append(self._colour(self._line(row), _RED if has_failed else _DIM if summary.is_side else ""))
        return "".join(f"{line}\n" for line in out).encode("utf-8", "replace")

    def _leave_out(self) -> None:
        """Take away columns until a title has room."""
        for heading in _LEFT_OUT:
            rest = sum(self._widths.values()) - self._widths["TITLE"] + 2 * (len(self._widths) - 1)
            if self._columns is None or rest + min(self._widths["TITLE"], _ROOM_FOR_TITLE) <= self._columns:
                return
            del self._widths[heading]

    def _line(self, row: Sequence[str]) -> str:
        cells = [
            cell.rjust(self._widths[heading]) if heading in _TO_THE_RIGHT else cell.ljust(self._widths[heading])
            for heading, cell in zip(_HEADINGS, row, strict=True)
            if heading in self._widths
        ]
        line = "  ".join(cells).rstrip()
        width = self._columns or _WIDTH_IN_A_PIPE
        return line if len(line) <= width else f"{line[: width - 1]}…"

    def _colour(self, line: str, colour: str) -> str:
        return f"{colour}{line}{_PLAIN}" if self._has_colours and colour else line


def _row(summary: "Summary") -> tuple[str, ...]:
    from datetime import datetime

    where = f"{summary.model} → {summary.provider}" if summary.provider else summary.model
    when = datetime.fromtimestamp(summary.at).astimezone()
    return tuple(
        harmless(cell).replace("\n", " ")
        for cell in (
            f"{when:%m-%d %H:%M:%S}",
            summary.id,
            _clip(summary.client) + (f" ({summary.transport})" if summary.transport not in ("", "http") else ""),
            _clip(where, 2 * _WIDEST),
            outcome(summary),
            tokens(summary),
            money(summary.cost, is_estimated=summary.is_estimated),
            "" if summary.elapsed is None else f"{summary.elapsed:.1f} s",
            summary.title,
        )
    )


def outcome(summary: "Summary") -> str:
    """How it ended, or its current state, in a word or two."""
    if summary.state == "failed":
        return " ".join(filter(None, (str(summary.status or ""), summary.fault)))
    if summary.state == "finished":
        return " ".join(filter(None, (str(summary.status or ""), summary.finish)))
    return summary.state


def tokens(summary: "Summary") -> str:
    """Input and output tokens."""
    if summary.input_tokens is None and summary.output_tokens is None:
        return ""
    return f"{'~' if summary.is_estimated else ''}{_short(summary.input_tokens)}→{_short(summary.output_tokens)}"


def money(cost: float | None, *, is_estimated: bool = False) -> str:
    """US dollars, with a tilde where they are estimated."""
    about = "~" if is_estimated else ""
    if cost is None:
        return ""
    if 0 < cost < 0.0001:
        return f"{about}<$0.0001"
    return f"{about}${cost:.2f}" if cost >= 1 or cost == 0 else f"{about}${cost:.4f}"


def _short(count: int | None) -> str:
    if count is None:
        return "?"
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


def _clip(text: str, most: int = _WIDEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def add_import(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "import",
        help="read exchanges from files into the record",
        description="Read JSON lines archives of `sightline export`, and HTTP archives (HAR) of any tool, into the "
        "record. A file is read whole before anything is taken from it; what is here already is not taken twice.",
    )
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("files", nargs="+", metavar="FILE", help="the files")
    command.set_defaults(run=run_import)


def run_import(arguments: argparse.Namespace) -> int:
    """Read the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record

    loaded = configuration(arguments.config)

    async def import_files() -> None:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            for name in arguments.files:
                await _import_file(store, name, loaded.catalog, loaded.plugins)

    asyncio.run(import_files())
    return 0


async def _import_file(store: "Store", name: str, catalog: "Catalog", plugins: "Plugins | None") -> None:
    """Import a file, and say what was taken from it."""
    from sightline.exchange.recording.archives import import_archive

    with _open_twice_readable(name) as file:
        try:
            found = await import_archive(store, file, catalog, None if plugins is None else plugins.read_foreign)
        except Fault as fault:
            raise Fault(fault.code, f"{name}: {fault.message}", hint=fault.hint) from None
    counts = [f"{many(found.exchanges, 'exchange')} imported"]
    counts += [f"{found.known} already on record"] if found.known else []
    counts += [f"{many(found.others, 'other request')} left out"] if found.others else []
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


_SHOWN = 60


def add_export(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "export",
        help="write recorded exchanges to a file",
        description="Write recorded exchanges as a JSON lines archive that `sightline import` reads back as it was, as "
        "an HTTP archive for other tools, as one page or Markdown for people, or as commands that send the requests "
        "again. A filter says which; credentials are in none of them. With --redact, keys, addresses, numbers and "
        "names in the texts are replaced, too, and what was written is searched once more.",
    )
    command.add_argument(
        "--as",
        dest="form",
        default="jsonl",
        metavar="FORMAT",
        help=f"{', '.join(FORMS)}, or the format of a plug-in (default: %(default)s)",
    )
    command.add_argument("--redact", action="store_true", help="replace keys, addresses, numbers, names and hosts")
    command.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KIND|ID",
        help="with --redact, also leave out sections: system, user, assistant, thinking, calls, results, tools, "
        "attachments, or the id of one, as --sections lists it",
    )
    command.add_argument(
        "--pattern", action="append", default=[], metavar="REGEX", help="with --redact, also replace what matches"
    )
    command.add_argument(
        "--keep", action="append", default=[], metavar="VALUE|ID", help="do not replace this value, or this section"
    )
    command.add_argument(
        "--preview", action="store_true", help="only list what --redact would replace, and the replacements"
    )
    command.add_argument(
        "--sections", action="store_true", help="only list the sections, with the ids that --without and --keep take"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="the output file (default: stdout)")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("filter", nargs="*", metavar="FILTER", help="a filter; without one, all")
    command.set_defaults(run=run_export)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.exchange.recording.archives import ExchangeExport
    from sightline.exchange.recording.sharing import Redactor

    loaded = configuration(arguments.config)  # first: plug-ins add fields to filters
    wanted = parse_filter(arguments.filter)
    formats = {} if loaded.plugins is None else loaded.plugins.exporters()
    if arguments.form not in (*FORMS, *formats):
        hint = f"Formats are {', '.join((*FORMS, *formats))}. See `sightline export --help`."
        raise Fault(Code.USAGE, f"there is no format {arguments.form!r}", hint=hint)
    redactor = None
    if arguments.redact or arguments.preview or arguments.pattern or arguments.without or arguments.sections:
        patterns = (*loaded.settings.export.patterns, *arguments.pattern)
        finders = {} if loaded.plugins is None else loaded.plugins.redactors()
        without = [name.strip() for each in arguments.without for name in each.split(",") if name.strip()]
        redactor = Redactor(patterns, finders, sections=without, kept=arguments.keep, lists_sections=arguments.sections)

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
                with _whole_file(Path(arguments.output)) as file:
                    async for piece in pieces:
                        file.write(piece)
            for note in exporting.notes:
                say(f"note: {note}")

    asyncio.run(export())
    return 0


def _list_sections(redactor: "Redactor") -> None:
    """List the sections that can be left out, those of a kind together."""
    from sightline.exchange.recording.section_texts import SECTIONS

    for each in sorted(redactor.sections_listed.values(), key=lambda each: SECTIONS.index(each.kind)):
        left_out = ", left out" if each.is_left_out else ""
        say(f"{each.id} {each.kind}: {harmless(each.label)} ({many(each.characters, 'character')}{left_out})")


def _list_found(redactor: "Redactor") -> None:
    """List what will be replaced, and by what."""
    for each in redactor.found.values():
        value = each.value if len(each.value) <= _SHOWN else f"{each.value[: _SHOWN - 1]}…"
        say(f"{each.kind}: {harmless(value)} → {each.stand_in} ({many(each.places, 'place')})")
    if not redactor.found:
        say("nothing to redact was found")


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically, readable by its owner only. A link stays a link. A device or a pipe is written to as it
    is: a new file in its place would have replaced /dev/null."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path = path.resolve()
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
