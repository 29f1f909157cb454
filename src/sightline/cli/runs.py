"""`sightline runs`: list the recorded runs with tools, or show one round by round."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared, count
from sightline.cli.terminal import harmless, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.service.runner import Runner
    from sightline.agent.service.shapes import CallShown, RoundShown, RunBrief, RunShown

_USUAL = 50
_HEADINGS = ("TIME", "RUN", "STATE", "ROUNDS", "CALLS", "TOKENS", "COST", "MODEL", "TITLE")
_LONGEST_TEXT = 2000


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `runs`."""
    command = commands.add_parser(
        "runs",
        help="list runs with tools, or show one",
        description="List the runs with tools that are on record, newest first, or show one of them round by round.",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per line")
    command.add_argument(
        "--limit", type=count, default=_USUAL, metavar="N", help=f"the largest number to list (default: {_USUAL})"
    )
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", nargs="?", default="", metavar="RUN", help="one run: its id, or how it begins")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List or show."""
    import asyncio

    import msgspec

    from sightline.app.configuration import configuration
    from sightline.app.tools import open_runner
    from sightline.wire.jsontext import encode

    loaded = configuration(arguments.config)

    async def look() -> "list[RunBrief] | RunShown":
        async with open_runner(loaded, arguments.data, store=arguments.store, apart=True) as runner:
            if arguments.id:
                return await runner.show(await find_run(runner, arguments.id))
            return await runner.list_runs(arguments.limit)

    found = asyncio.run(look())
    if arguments.json:
        each = found if isinstance(found, list) else [found]
        write(b"".join(encode(msgspec.to_builtins(one)) + b"\n" for one in each))
    elif not isinstance(found, list):
        write("".join(f"{harmless(line)}\n" for line in _run_lines(found)).encode("utf-8", "replace"))
    elif found:
        write(_table(found).encode("utf-8", "replace"))
    else:
        say("no runs on record")
    return 0


async def find_run(runner: "Runner", text: str) -> str:
    """The run whose id begins with this text. Raises a Fault if none does, or several do."""
    from sightline.agent.service.run_log import PREFIX

    found = [log.name.removeprefix(PREFIX) for log in await runner.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r}"
    raise Fault(Code.USAGE, what, hint="`sightline runs` lists them.")


def _table(runs: "Sequence[RunBrief]") -> str:
    rows = [_HEADINGS, *(_row(each) for each in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def _row(each: "RunBrief") -> tuple[str, ...]:
    from datetime import datetime

    from sightline.cli.traffic import money

    when, spent = datetime.fromtimestamp(each.at).astimezone(), each.spent
    return tuple(
        harmless(cell).replace("\n", " ")
        for cell in (
            f"{when:%m-%d %H:%M:%S}",
            each.id,
            each.why or each.state,
            str(each.rounds),
            str(spent.tool_calls),
            f"{spent.tokens:,}",
            "unknown" if spent.cost is None else money(spent.cost),
            each.model,
            each.title,
        )
    )


def _run_lines(run: "RunShown") -> Iterator[str]:
    from sightline.cli.traffic import money

    yield f"run       {run.id}"
    yield f"asked     {run.title}"
    yield f"model     {run.provider}/{run.model}"
    yield f"state     {' '.join(filter(None, (run.state, run.why)))}"
    cost = "cost unknown" if run.spent.cost is None else money(run.spent.cost)
    yield f"spent     {run.spent.tokens:,} tokens, {cost}, {run.spent.seconds:.2f} s"
    for each in run.rounds:
        yield ""
        yield from _round(each)
    for note in run.notes:
        yield f"note: {note}"


def _round(each: "RoundShown") -> Iterator[str]:
    from sightline.cli.run_control import call_line, clip

    yield f"round {each.number}" + (f" (exchange {each.exchange})" if each.exchange else "")
    if each.text:
        yield clip(each.text, _LONGEST_TEXT)
    for call in each.calls:
        yield call_line(call.name, call.arguments if call.ran is None else call.ran)
        yield _result(call)
    if each.fault is not None:
        yield f"error[{each.fault.code}]: {each.fault.message}"


def _result(call: "CallShown") -> str:
    from sightline.cli.run_control import fold

    if call.result is None:
        return f"← {call.name} (no result)"
    how = "error" if call.fate == "ran" and call.result.is_error else "" if call.fate in ("ran", None) else call.fate
    body = fold(call.result.text)
    return f"← {call.name}{f' ({how})' if how else ''}: {body}"
