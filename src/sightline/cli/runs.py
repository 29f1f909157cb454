"""`sightline runs`: runs with tools that are on record."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from sightline.agent.service.run_log import PREFIX
from sightline.agent.service.run_view import RunBrief, RunShown
from sightline.agent.service.runner import Runner
from sightline.app.configuration import configuration
from sightline.app.tools import open_runner
from sightline.cli.run_control import call_line, clip, fold
from sightline.cli.terminal import harmless, money, say, table, write, write_lines
from sightline.errors import Code, Fault
from sightline.wire.jsontext import encode


def run(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)

    async def look() -> list[RunBrief] | RunShown:
        async with open_runner(loaded, arguments.data, store=arguments.store, apart=True) as runner:
            if arguments.id:
                return await runner.show(await find_run(runner, arguments.id))
            return await runner.list_runs(arguments.limit)

    found = asyncio.run(look())
    if arguments.json:
        each = found if isinstance(found, list) else [found]
        write(b"".join(encode(msgspec.to_builtins(one)) + b"\n" for one in each))
    elif not isinstance(found, list):
        write_lines(map(harmless, _run_lines(found)))
    elif found:
        write_lines(_table(found))
    else:
        say("no runs on record")
    return 0


async def find_run(runner: Runner, text: str) -> str:
    """The run whose id begins with this text. Raises a Fault if none does, or several do."""
    found = [log.name.removeprefix(PREFIX) for log in await runner.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r}"
    raise Fault(Code.USAGE, what, hint="`sightline runs` lists them.")


def _table(runs: Sequence[RunBrief]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("TIME", "RUN", "STATE", "ROUNDS", "CALLS", "TOKENS", "COST", "MODEL", "TITLE"),
        *(
            (
                f"{datetime.fromtimestamp(each.at).astimezone():%m-%d %H:%M:%S}",
                each.id,
                each.why or each.state,
                str(each.rounds),
                str(each.spent.tool_calls),
                f"{'~' if each.spent.is_estimated else ''}{each.spent.tokens:,}",
                money(each.spent.cost, is_estimated=each.spent.is_estimated) or "unknown",
                each.model,
                each.title,
            )
            for each in runs
        ),
    ]
    return table(rows)


def _run_lines(run: RunShown) -> Iterator[str]:
    yield f"run       {run.id}"
    yield f"asked     {run.title}"
    yield f"model     {run.provider}/{run.model}"
    yield f"state     {' '.join(filter(None, (run.state, run.why)))}"
    cost = money(run.spent.cost, is_estimated=run.spent.is_estimated) or "cost unknown"
    about = "about " if run.spent.is_estimated else ""
    yield f"spent     {about}{run.spent.tokens:,} tokens, {cost}, {run.spent.seconds:.2f} s"
    for each in run.rounds:
        yield f"\nround {each.number}" + (f" (exchange {each.exchange})" if each.exchange else "")
        if each.text:
            yield clip(each.text, 2000)
        for call in each.calls:
            yield call_line(call.name, call.arguments if call.ran is None else call.ran)
            if call.result is None:
                yield f"← {call.name} (no result)"
                continue
            failed = "error" if call.result.is_error else ""
            how = failed if call.fate == "ran" else call.fate
            yield f"← {call.name}{f' ({how})' if how else ''}: {fold(call.result.text)}"
        if each.fault is not None:
            yield f"error[{each.fault.code}]: {each.fault.message}"
    for note in run.notes:
        yield f"note: {note}"
