"""`sightline eval show` lists runs, or shows one run or one of its cases; `sightline eval compare` compares two."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from difflib import unified_diff
from pathlib import Path

import msgspec

from sightline.app.configuration import configuration
from sightline.app.evals import open_evaluation, random_draws, root_of
from sightline.cli.evals.report import as_json, in_full, message_lines, report, resolve_run
from sightline.cli.terminal import harmless, money, read, say, table, write, write_lines
from sightline.errors import Code, Fault
from sightline.evals.core.comparison import CasePair, RunComparison, choose_target, compare, name_with_suite
from sightline.evals.core.exports import read_jsonl, to_line
from sightline.evals.core.result import CaseResult, CaseScore, Score
from sightline.evals.core.statistics.paired import Paired, describe_interval, number
from sightline.evals.core.suite import SuitePlace
from sightline.evals.service.eval_log import Brief
from sightline.evals.service.evaluation import RunSnapshot
from sightline.wire.jsontext import encode

_HEAD = ("TIME", "RUN", "STATE", "DONE", "TARGETS", "SUITE")


def show_runs(arguments: argparse.Namespace) -> int:
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
        write(encode(as_json(found.run, found.state, found.standing, random_draws())) + b"\n")
    else:
        write_lines(report(found.run, found.state, found.standing, random_draws()))
    return 0


def _show_runs(runs: Sequence[Brief], *, is_json: bool) -> None:
    if is_json:
        write(b"".join(encode(msgspec.to_builtins(each)) + b"\n" for each in runs))
    elif runs:
        write_lines(table([_HEAD, *(_row(each) for each in runs)]))
    else:
        say("no runs of suites are recorded")


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
    write_lines([harmless(line) for line in lines])


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


_PAIRS_HEAD = ("CASE", "A", "B", "DIFFERENCE", "", "REQUEST", "ANSWER")
_PAIRS_RIGHT = frozenset({1, 2, 3})


def compare_sides(arguments: argparse.Namespace) -> int:
    """Compare two sides. Each is a results file if one of this name exists, otherwise a run."""
    sides = dict.fromkeys((arguments.before, arguments.after))
    found = {side: _in_file(side) for side in sides if Path(side).is_file()}
    runs = [side for side in sides if side not in found]
    if runs:
        found |= asyncio.run(_load_results(arguments, runs))
    before, after = found[arguments.before], found[arguments.after]
    targets = (arguments.target_a or arguments.target, arguments.target_b or arguments.target)
    chosen = (
        choose_target(before, targets[0], "A", "--target-a"),
        choose_target(after, targets[1], "B", "--target-b"),
    )
    first, second = (Path(side).name if Path(side).is_file() else side for side in (arguments.before, arguments.after))
    names = chosen if arguments.before == arguments.after else (first, second)
    comparison = compare(before, after, random_draws(), targets=chosen, names=names, tolerance=arguments.tolerance)
    if arguments.json:
        write(encode(in_full(comparison)) + b"\n")
    elif arguments.case:
        lines = _differences(before, after, chosen, arguments.case)
        write_lines(map(harmless, lines))
    else:
        write_lines(map(harmless, _comparison_lines(comparison)))
    return 0


async def _load_results(arguments: argparse.Namespace, runs: Sequence[str]) -> dict[str, tuple[CaseResult, ...]]:
    loaded, root = configuration(arguments.config), root_of(Path("suite"))
    found: dict[str, tuple[CaseResult, ...]] = {}
    async with open_evaluation(loaded, arguments.data, root, store=arguments.store, apart=True) as evaluation:
        for run_id in runs:
            shown = await evaluation.show(await resolve_run(evaluation, run_id))
            found[run_id] = shown.standing.results
    return found


def _in_file(path: str) -> tuple[CaseResult, ...]:
    lines = read_jsonl(read(path))
    if lines.is_cut:
        say(f"note: the last line of {path} is incomplete, and left out")
    return lines.results


def _comparison_lines(comparison: RunComparison) -> Iterator[str]:
    first, second = comparison.targets
    yield f"A  {comparison.before} on {first}  {_mean(comparison.before_mean)}"
    yield f"B  {comparison.after} on {second}  {_mean(comparison.after_mean)}"
    yield ""
    yield from comparison.said
    if comparison.scores is not None:
        yield ""
        yield from _figures(comparison.scores, "scores ")
    if comparison.verdicts is not None:
        yield from _figures(comparison.verdicts, "passing")
    if comparison.gain is not None:
        yield f"gain     {number(comparison.gain)} of what was missing (Hake)"
    pairs = [pair for pair in comparison.pairs if pair.outcome != "tie" or pair.flip]
    if pairs:
        yield ""
        rows = sorted(pairs, key=lambda pair: (pair.difference, pair.case))
        yield from table([_PAIRS_HEAD, *map(_pair_row, rows)], right=_PAIRS_RIGHT)
    for each in comparison.unpaired:
        yield f"not graded on both sides: {each}"


def _figures(paired: Paired, what: str) -> Iterator[str]:
    difference = paired.difference
    line = f"{difference.value:+.3f}"
    if difference.error is not None:
        line += f" ± {number(difference.error)}"
    if difference.interval is not None:
        line += f", {describe_interval(difference.interval)}"
    yield f"{what}  {line}; {paired.wins} wins, {paired.losses} losses, {paired.ties} ties"
    how = paired.permutation.method.replace("_", " ")
    yield f"         permutation test p = {number(paired.permutation.p)} ({how}), sign test p = {number(paired.sign_p)}"


def _mean(value: float | None) -> str:
    return "no pairs" if value is None else f"mean {number(value)}"


def _pair_row(pair: CasePair) -> tuple[str, ...]:
    same = {True: "same", False: "differs", None: "?"}
    return (
        pair.case,
        number(pair.before.score),
        number(pair.after.score),
        f"{pair.difference:+.3f}",
        pair.flip.replace("_", " "),
        same[pair.is_same_request],
        same[pair.is_same_answer],
    )


def _differences(
    before: Sequence[CaseResult], after: Sequence[CaseResult], targets: tuple[str, str], case: str
) -> Iterator[str]:
    """One case on both sides: a diff of what was sent and answered, and all scores."""
    sides: list[list[CaseResult]] = []
    for results, target, side in ((before, targets[0], "A"), (after, targets[1], "B")):
        of_target = (each for each in results if each.target == target)
        found = [each for each in of_target if case in (each.case, name_with_suite(each))]
        if not found:
            raise Fault(Code.USAGE, f"{side} has no result of the case {case!r} on {target}", hint="Check the id.")
        sides.append(found)
    for first, second in zip(*sides, strict=False):
        yield f"trial {first.trial + 1}: {_verdict_text(first)} → {_verdict_text(second)}"
        one, two = _transcript(first), _transcript(second)
        names = (f"A {first.target}", f"B {second.target}")
        difference = list(unified_diff(one, two, *names, lineterm="", n=2))
        yield from difference or ["the same messages and the same answer"]
        given = {score.name: score for score in second.score.scores}
        for score in first.score.scores:
            other = given.get(score.name)
            yield f"{score.name}: {_score(score.score)} → {_score(None if other is None else other.score)}"


def _transcript(result: CaseResult) -> list[str]:
    last = result.turns[-1] if result.turns else result.observation
    return ["SENT", *message_lines(last.asked), "ANSWERED", *message_lines(last.messages)]


def _verdict_text(result: CaseResult) -> str:
    return f"{result.score.verdict.replace('_', ' ')} {_score(result.score.score)}"


def _score(score: float | None) -> str:
    return "–" if score is None else number(score)
