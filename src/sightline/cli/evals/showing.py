"""`sightline eval show`: lists runs, or shows one run or one of its cases."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from sightline.app.configuration import configuration
from sightline.app.eval_targets import drawing, root_of
from sightline.app.evals import open_evaluation
from sightline.cli.evals.report import as_json, message_lines, report, resolve_run, table
from sightline.cli.terminal import harmless, say, write
from sightline.cli.traffic import money
from sightline.errors import Code, Fault
from sightline.evals.core.exports.jsonl import to_line
from sightline.evals.core.result import CaseResult, CaseScore, Score
from sightline.evals.core.statistics.sentences import number
from sightline.evals.core.suite import SuitePlace
from sightline.evals.service.evaluation import RunSnapshot
from sightline.evals.service.past_evals import Brief
from sightline.wire.jsontext import encode

_HEAD = ("TIME", "RUN", "STATE", "DONE", "TARGETS", "SUITE")


def run(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)
    root = root_of(Path("suite"))

    async def load_runs() -> list[Brief] | RunSnapshot:
        async with open_evaluation(loaded, arguments.data, root, store=arguments.store, apart=True) as evaluation:
            if not arguments.run_id:
                return await evaluation.list_runs(arguments.limit, arguments.suite)
            return await evaluation.show(await resolve_run(evaluation, arguments.run_id))

    found = asyncio.run(load_runs())
    if isinstance(found, list):
        _show_runs(found, is_json=arguments.json)
    elif arguments.case:
        _show_case(found, arguments)
    elif arguments.json:
        write(encode(as_json(found.run, found.state, found.standing, drawing())) + b"\n")
    else:
        _write_lines(report(found.run, found.state, found.standing, drawing()))
    return 0


def _show_runs(runs: Sequence[Brief], *, is_json: bool) -> None:
    if is_json:
        write(b"".join(encode(msgspec.to_builtins(each)) + b"\n" for each in runs))
    elif runs:
        _write_lines(table([_HEAD, *(_row(each) for each in runs)]))
    else:
        say("no runs of suites on record")


def _row(each: Brief) -> tuple[str, ...]:
    when = datetime.fromtimestamp(each.at).astimezone()
    done = f"{each.done}/{each.of}"
    return f"{when:%m-%d %H:%M:%S}", each.run, each.state, done, ", ".join(each.targets), each.suite or each.name


def _show_case(shown: RunSnapshot, arguments: argparse.Namespace) -> None:
    results = [
        result
        for result in shown.standing.results
        if result.case == arguments.case
        and arguments.target in ("", result.target)
        and arguments.trial in (None, result.trial + 1)
    ]
    if not results:
        known = ", ".join(list(shown.standing.cases)[:8])
        message = f"the run {shown.run} has no result of the case {arguments.case!r}"
        raise Fault(Code.USAGE, message, hint=f"Its cases are: {known}.")
    if arguments.json:
        write(b"".join(map(to_line, results)))
        return
    place = shown.standing.cases[arguments.case].place
    lines: list[str] = []
    for result in results:
        lines += [*([""] if lines else []), *_case_lines(result, place)]
    _write_lines([harmless(line) for line in lines])


def _case_lines(result: CaseResult, place: SuitePlace) -> Iterator[str]:
    seen = result.observation
    trial = f", trial {result.trial + 1}" if result.trial else ""
    yield f"case      {result.case} on {result.target}{trial}{' (cached)' if result.cached else ''}"
    yield f"verdict   {_verdict(result.score)}"
    if place.line:
        yield f"in {place}"
    if seen.error:
        yield f"error     {seen.error} [{seen.error_code}]"
    spent = [f"{seen.seconds:.2f} s"] if seen.seconds is not None else []
    if seen.usage is not None:
        counts = (seen.usage.input_tokens, seen.usage.output_tokens)
        spent.append(f"{' → '.join('?' if count is None else f'{count:,}' for count in counts)} tokens")
    spent += [money(seen.cost)] if seen.cost is not None else []
    if spent:
        yield f"spent     {', '.join(spent)}"
    for exchange in seen.exchanges:
        yield f"exchange  {exchange}"
    if seen.run:
        yield f"run       {seen.run}"
    yield ""
    last = result.turns[-1] if result.turns else seen
    yield "SENT"
    yield from message_lines(last.asked)
    yield ""
    yield "ANSWERED"
    yield from message_lines(last.messages)
    yield ""
    yield "GRADED"
    for score in result.score.scores:
        yield from _score_lines(score, "  ")
    for turn_number, turn in enumerate(result.score.turns, 1):
        yield f"  turn {turn_number}: {_verdict(turn)}"
        for score in turn.scores:
            yield from _score_lines(score, "    ")


def _verdict(score: CaseScore) -> str:
    line = score.verdict.replace("_", " ")
    line += "" if score.score is None else f", score {number(score.score)}"
    return f"{line}: {score.reason}" if score.reason else line


def _score_lines(score: Score, before: str) -> Iterator[str]:
    value = "" if score.score is None else f" {number(score.score)}"
    needed = "" if score.required is None else f", required {number(score.required)}"
    reason = f": {score.reason}" if score.reason else ""
    yield f"{before}{score.name} ({score.type}){value} {score.verdict.replace('_', ' ')}{needed}{reason}"
    for check in score.checks:
        evidence = f" ({check.evidence})" if check.evidence else ""
        yield f"{before}  {'yes' if check.passed else 'no '} {check.text}{evidence}"
    for exchange in score.exchanges:
        yield f"{before}  judged in {exchange}"
    for inner in score.scores:
        yield from _score_lines(inner, f"{before}  ")


def _write_lines(lines: Sequence[str]) -> None:
    write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
