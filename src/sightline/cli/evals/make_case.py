"""`sightline eval make`: a case of exchanges on record, to look at or at the end of a suite."""

import argparse
import asyncio
from pathlib import Path

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_record
from sightline.app.eval_targets import root_of
from sightline.app.machine import SystemClock
from sightline.cli.evals.suites import one
from sightline.cli.terminal import say, write
from sightline.evals.core.making.case import MadeCase, RecordedExchange
from sightline.evals.service.case_making import conversation, make_masked_case
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.suite_writing import SuiteWriter
from sightline.exchange.outbound import secrets_of_provider


def run(arguments: argparse.Namespace) -> int:
    """Make it, and say what is not in it."""
    loaded = configuration(arguments.config)

    async def load_conversation() -> tuple[RecordedExchange, ...]:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            return await conversation(store, arguments.sources, now=SystemClock().now())

    told = asyncio.run(load_conversation())
    name = arguments.name or f"recorded-{arguments.sources[-1].removeprefix('x_')[:12]}"
    made = make_masked_case(told, name, secrets_of(loaded), arguments.from_turn)
    for each in made.left:
        say(f"note: not in the case: {each.what} ({each.why})")
    save(made, arguments.to, loaded)
    return 0


def secrets_of(loaded: Configuration) -> tuple[str, ...]:
    """The values that no case may hold."""
    providers = loaded.catalog.providers.values()
    return tuple(dict.fromkeys(key for each in providers for key in secrets_of_provider(each, loaded.environment)))


def save(made: MadeCase, to: str, loaded: Configuration) -> None:
    """At the end of a suite, else to stdout."""
    if not to:
        write(made.text.encode("utf-8", "surrogatepass"))
        for each in made.files:
            say(f"note: the case names {each.path} ({len(each.data):,} bytes); --to FILE writes it beside the suite")
        return
    append(made.text, to, loaded, made)


def append(text: str, to: str, loaded: Configuration, made: MadeCase | None = None) -> None:
    """Write the cases of a text to a suite, and what they name beside it."""
    path = Path(to).resolve()
    root = root_of(path)
    known = one(path, loaded, root).known
    writer = SuiteWriter(SuiteFiles(root), known.environment)
    written = writer.append(path.relative_to(root).as_posix(), text, () if made is None else made.files)
    say(f"{', '.join(written.cases)} in {written.file}")
