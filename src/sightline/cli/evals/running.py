"""`sightline eval run`: runs, resumes and reruns suites, and exports their results."""

import argparse
import asyncio
import hashlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sightline.app.configuration import Configuration, configuration
from sightline.app.evals import configuration_for, open_evaluation, random_draws, root_of, with_targets
from sightline.cli.evals.report import Exports, as_json, is_passed, report, resolve_run, resume_command
from sightline.cli.evals.suites import NamedSuite, find_suites, tell_problems
from sightline.cli.program import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PROVIDER
from sightline.cli.terminal import harmless, is_terminal, money, say, table, write, write_lines
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalState, RunOptions, budget_of, select_cases, targets_of, trials_of
from sightline.evals.core.suite import Case, Suite
from sightline.evals.service.eval_log import Progress, ProgressListener, State
from sightline.evals.service.evaluation import CasePreview, Evaluation, RunSnapshot
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.suite_targets import SuiteTargets
from sightline.model.json import JsonObject
from sightline.platform.processes import ENDING, handle_signals
from sightline.wire.jsontext import encode

_BAR = 20
_USUAL_COLUMNS = 80
_REFRESH_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A progress line, shown only on a terminal. It is written at most ten times a second, and at the end."""

    def __init__(self, elapsed: Callable[[], float], *, is_quiet: bool = False) -> None:
        self._elapsed = elapsed
        self._is_shown = not is_quiet and is_terminal(sys.stderr)
        self._last: float | None = None

    def update(self, progress: Progress) -> None:
        now = self._elapsed()
        is_due = self._last is None or now - self._last >= _REFRESH_SECONDS or progress.done == progress.of
        if self._is_shown and is_due:
            self._last = now
            width = max(1, _columns() - 1)
            line = line_of(progress)
            # On a narrow terminal, numbers are more useful than a bar.
            line = line if len(line) <= width else line.partition("] ")[2]
            say(line[:width], end="", style=_CLEAR)

    def close(self) -> None:
        if self._last is not None:
            self._last = None
            say("", end="", style=_CLEAR)


def _columns() -> int:
    """The width of the terminal on stderr; stdout may be redirected."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def line_of(progress: Progress) -> str:
    filled = round(_BAR * progress.done / progress.of) if progress.of else _BAR
    counts = [
        f"{count} {word}"
        for count, word in (
            (progress.passed, "passed"),
            (progress.failed, "failed"),
            (progress.errors, "errors" if progress.errors != 1 else "error"),
            (progress.not_graded, "not graded"),
            (progress.skipped, "skipped"),
        )
        if count
    ]
    spent = list(filter(None, [_cost_text(progress)]))
    pace = [f"{progress.rate:.1f}/s"] if progress.rate else []
    left = [f"{clock_time(progress.left_s)} left"] if progress.left_s and progress.done < progress.of else []
    summary = ", ".join(counts)
    parts = [f"{progress.done}/{progress.of}", *([summary] if summary else []), *pace, *spent, *left]
    return f"[{'#' * filled}{'-' * (_BAR - filled)}] {'  '.join(parts)}"


def _cost_text(progress: Progress) -> str:
    known = money(progress.cost) if progress.cost else ""
    if not progress.cost_unknown:
        return known
    return f"{known} + {progress.cost_unknown} unknown" if known else f"{progress.cost_unknown} of unknown cost"


def clock_time(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_HEAD = ("CASE", "TARGET", "TRIALS", "TURNS", "TOKENS", "REQUEST")
_RIGHT = frozenset({2, 3, 4})


def dry_run(plan: "_Plan", arguments: argparse.Namespace) -> bool:
    """Print the requests of a run. Returns whether every case can be sent; for one that cannot, the reason is shown in
    place of its hash."""
    rows = asyncio.run(_rows(plan, arguments))
    are_sendable = not any(row["error"] for row in rows)
    if arguments.json:
        write(b"".join(encode(row) + b"\n" for row in rows))
        return are_sendable
    cells = [[_cell(row, name) for name in _HEAD] for row in rows]
    summary = f"{len(rows)} rows, and nothing was sent. Judges and tools come on top of this."
    write_lines([*table([_HEAD, *cells], right=_RIGHT), "", summary])
    return are_sendable


def _cell(row: JsonObject, name: str) -> str:
    value = row["error"] if name == "REQUEST" and row["error"] else row[name.lower()]
    return "" if value is None else harmless(str(value))


async def _rows(plan: "_Plan", arguments: argparse.Namespace) -> list[JsonObject]:
    suite, options = plan.suite, plan.options
    specs = {spec.name: spec for spec in plan.answering.targets}
    loaded, root = with_targets(plan.named.loaded, plan.answering), plan.named.files.root
    rows: list[JsonObject] = []
    async with open_evaluation(loaded, arguments.data, root, store=arguments.store, apart=True) as evaluation:
        for case in select_cases(suite, options):
            for name in targets_of(case, tuple(specs), options):
                preview: CasePreview | Fault
                try:
                    preview = evaluation.preview(suite, case.id, specs[name], options)
                except Fault as fault:
                    preview = fault
                rows.append(_row(case, name, trials_of(case, suite, options), preview, evaluation))
    return rows


def _row(case: Case, target: str, trials: int, preview: CasePreview | Fault, evaluation: Evaluation) -> JsonObject:
    prepared = None if isinstance(preview, Fault) else preview.prepared
    return {
        "case": case.id,
        "target": target,
        "trials": trials,
        "turns": len(case.turns) or 1,
        "tokens": None if prepared is None else evaluation.engine.estimate(prepared).tokens,
        "request": "" if prepared is None else prepared.sha256[:16],
        "error": preview.message if isinstance(preview, Fault) else None,
    }


_KILLED = 128
"""The shell's offset for the exit code of a program killed by a signal."""


class Interrupts:
    """Cancels a command's work on a signal and lets it clean up; `is_cut` is set then. A second signal prints what is
    being waited for, a third ends the program at once."""

    def __init__(self) -> None:
        self.is_cut = False
        self._signals: list[signal.Signals] = []
        # Ignored signals stay ignored: under `nohup` a program outlives its terminal.
        self._ending = [each for each in ENDING if signal.getsignal(each) is not signal.SIG_IGN]

    async def run_work(self, work: Coroutine[object, object, int]) -> int:
        """Run the work. Returns its exit code, or that of the signal that interrupted it."""
        task = asyncio.get_running_loop().create_task(work)
        with handle_signals({each: partial(self._end, each, task) for each in self._ending}):
            try:
                return await task
            except asyncio.CancelledError:
                if not self._signals:
                    raise
                self.is_cut = True
                return _KILLED + self._signals[0]

    def _end(self, by: signal.Signals, task: "asyncio.Task[int]") -> None:
        self._signals.append(by)
        if len(self._signals) == 1:
            task.cancel()
            return
        # Cancelling again would interrupt the cleanup.
        say("ending what was started; press Ctrl-C once more to leave it running")
        for each in self._ending:
            signal.signal(each, signal.SIG_DFL)


def run(arguments: argparse.Namespace) -> int:
    """Run the suites one after the other. Returns the worst exit code."""
    loaded = configuration(arguments.config)
    if bool(arguments.suites) == bool(arguments.resume or arguments.rerun_failed):
        message = "a run knows its suite" if arguments.suites else "no suite is named"
        raise Fault(Code.USAGE, message, hint="Name suites, or --resume RUN, or --rerun-failed RUN.")
    command = _Command(arguments, Exports.from_arguments(arguments))
    if not arguments.suites:
        _check_kept(arguments)
        command.exports.check()
        return _run_interruptibly(command, command.continue_or_rerun(loaded))
    plans = _plan_runs([(each, each.require_suite()) for each in find_suites(arguments.suites, loaded)], arguments)
    if arguments.dry_run:
        are_sendable = [dry_run(plan, arguments) for plan in plans]
        return 0 if all(are_sendable) else EXIT_FAILED
    command.exports.check()
    return _run_interruptibly(command, command.start_runs(plans))


@dataclass(frozen=True, slots=True)
class _Plan:
    """One suite with its targets and options."""

    named: NamedSuite
    suite: Suite
    answering: SuiteTargets
    options: RunOptions


def _plan_runs(wanted: Sequence[tuple[NamedSuite, Suite]], arguments: argparse.Namespace) -> list[_Plan]:
    """Plan the runs of all suites. Problems are reported before any run starts. If there are several suites, not every
    one must contain the selected cases."""
    plans: list[_Plan] = []
    nothing: Fault | None = None
    for each, suite in wanted:
        judge = arguments.judge or each.loaded.settings.evals.judge
        answering = each.known.answering(suite, arguments.target, judge)
        tell_problems(answering.odd)
        options = options_of(arguments, answering, judge)
        try:
            select_cases(suite, options)
        except Fault as fault:
            nothing = nothing or fault
        else:
            if budget_of(suite, options) is not None:
                answering.check_prices()
                for name in (spec.name for spec in answering.targets if spec.kind == "cli"):
                    say(f"note: {name} is a program; the budget counts the costs that it reports, and no others")
            plans.append(_Plan(each, suite, answering, options))
    if nothing is not None and not plans:
        raise nothing
    return plans


def options_of(arguments: argparse.Namespace, answering: SuiteTargets, judge: str) -> RunOptions:
    return RunOptions(
        targets=answering.usual,
        trials=arguments.trials,
        threshold=arguments.threshold,
        budget_usd=arguments.budget_usd,
        workers=arguments.workers if isinstance(arguments.workers, int) else None,
        cache=arguments.cache,
        tags=tuple(arguments.tag),
        exclude_tags=tuple(arguments.exclude_tag),
        cases=tuple(arguments.case),
        file_form=arguments.file_form,
        judge=judge,
        approve=arguments.yes,
    )


@dataclass
class _Command:
    """One invocation of the command. `run` is the id of the run under way."""

    arguments: argparse.Namespace
    exports: Exports
    run: str = ""

    async def start_runs(self, plans: Sequence[_Plan]) -> int:
        worst = 0
        try:
            for plan in plans:
                worst = max(worst, await self._start_run(plan))
        finally:
            self._write_exports()
        return worst

    async def _start_run(self, plan: _Plan) -> int:
        answering = plan.answering
        async with self._open_evaluation(
            with_targets(plan.named.loaded, answering), plan.named.files.root
        ) as evaluation:
            self.run = evaluation.make_id()
            start = partial(evaluation.run, plan.suite, answering.targets, plan.options, judges=answering.judges)
            return await self._drive(evaluation, lambda on_progress: start(on_progress, run=self.run))

    async def continue_or_rerun(self, loaded: Configuration) -> int:
        """Resume a run, or rerun what did not pass."""
        root = root_of(Path("suite"))
        name = self.arguments.resume or self.arguments.rerun_failed
        async with self._open_evaluation(loaded, root) as evaluation:
            self.run = await resolve_run(evaluation, name)
            shown = await evaluation.show(self.run)
        grown = _with_targets(loaded, root, shown)
        given = self.arguments
        options = RunOptions(budget_usd=given.budget_usd, workers=given.workers, cache=given.cache, approve=given.yes)
        async with self._open_evaluation(grown, root) as evaluation:
            go_on = evaluation.resume if self.arguments.resume else evaluation.rerun
            try:
                return await self._drive(evaluation, partial(go_on, self.run, options=options))
            finally:
                self._write_exports()

    def _open_evaluation(self, loaded: Configuration, root: Path) -> AbstractAsyncContextManager[Evaluation]:
        workers = self.arguments.workers
        cluster = workers if isinstance(workers, str) else ""
        given = self.arguments
        return open_evaluation(
            loaded, given.data, root, store=given.store, cluster=cluster, apart=given.apart, notice=say
        )

    async def _drive(self, evaluation: Evaluation, drive: Callable[[ProgressListener], Awaitable[EvalState]]) -> int:
        line = ProgressLine(time.monotonic, is_quiet=self.arguments.json)
        try:
            standing = await drive(line.update)
        finally:
            line.close()
        shown = await evaluation.show(self.run)
        self.exports.add(standing)
        # stdout is closed, but the exit code still matters.
        with suppress(BrokenPipeError):
            self._report(shown.state, standing)
        return exit_code(standing)

    def _write_exports(self) -> None:
        """Write the results of complete runs, also if another could not be run or a report could not be printed."""
        if self.exports.has_results:
            self.exports.write()

    def _report(self, state: State, standing: EvalState) -> None:
        if self.arguments.json:
            write(encode(as_json(self.run, state, standing, random_draws())) + b"\n")
        else:
            write_lines(report(self.run, state, standing, random_draws()))


def exit_code(standing: EvalState) -> int:
    """The exit code: 0 if everything passed. If there was no answer at all, it is the provider's failure, unless the
    cases could not be sent."""
    if is_passed(standing):
        return 0
    results = standing.results
    own = (Code.USAGE.value, Code.CONFIG.value)
    is_mute = bool(results) and all(
        result.status == "execution_error" and result.observation.error_code not in own for result in results
    )
    return EXIT_PROVIDER if is_mute else EXIT_FAILED


def _with_targets(loaded: Configuration, root: Path, shown: RunSnapshot) -> Configuration:
    """The configuration, extended by the providers of AgentV's targets file beside the suite."""
    began = shown.standing.began
    if began.suite.file and not (root / began.suite.file).is_file():
        hint = "Go to the folder in which it was begun."
        raise Fault(Code.USAGE, f"the suite of the run, {began.suite.file}, is not below {root}", hint=hint)
    suite, now = began.suite, SuiteFiles(root).read(began.suite.file)
    if suite.sha256 and now is not None and hashlib.sha256(now).hexdigest() != suite.sha256:
        say(f"note: {suite.file} has changed; the run continues with its cases as they were")
    return configuration_for(loaded, root, began)


def _check_kept(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot change for an existing run."""
    given = {
        "--target": arguments.target,
        "--judge": arguments.judge,
        "--trials": arguments.trials is not None,
        "--threshold": arguments.threshold is not None,
        "--tag": arguments.tag,
        "--exclude-tag": arguments.exclude_tag,
        "--case": arguments.case,
        "--file-form": arguments.file_form,
    }
    if kept := ", ".join(name for name, is_given in given.items() if is_given):
        hint = "Leave it out, or begin another run. --budget-usd, --workers, --cache and --yes may be others now."
        raise Fault(Code.USAGE, f"a run keeps what it was begun with, and so its {kept}", hint=hint)


def _run_interruptibly(command: _Command, work: Coroutine[object, object, int]) -> int:
    """Run the work. If it is interrupted, print how to resume."""
    interrupts = Interrupts()
    try:
        code = asyncio.run(interrupts.run_work(work))
    except KeyboardInterrupt:
        code, interrupts.is_cut = EXIT_INTERRUPTED, True
    if interrupts.is_cut and command.run:
        say(f"interrupted; resume with: {resume_command(command.run)}")
    return code
