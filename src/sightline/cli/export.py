"""`sightline export`: write recorded exchanges to a file, with what should not leave replaced if told so."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, many, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.exchange.recording.sharing import Redactor

_SHOWN = 60


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `export`."""
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
        help="jsonl, har, html, markdown, curl, python, or the format of a plug-in (default: jsonl)",
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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the exchanges."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.cli.traffic import parse_filter
    from sightline.exchange.recording.archives import FORMS, ExchangeExport
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
