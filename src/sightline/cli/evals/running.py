"""`sightline eval run`: suites run, gone on with, run again in part, or only looked at."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from sightline.build.configured import Configuration, configuration
from sightline.build.eval_targets import Answering, KnownTargets, drawing, root_of
from sightline.build.evaluating import open_evaluation
from sightline.cli.evals.dry_run import dry_run
from sightline.cli.evals.exporting import Exports
from sightline.cli.evals.progress import ProgressLine
from sightline.cli.evals.report import as_json, is_passed, report, resume_command
from sightline.cli.evals.runs import resolved
from sightline.cli.evals.suites import Named, named, tell_problems
from sightline.cli.program import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PROVIDER
from sightline.cli.terminal import say, write
from sightline.engine.evaluating.evaluation import Evaluation, Shown
from sightline.engine.evaluating.progress import Telling
from sightline.engine.evaluating.suite_files import SuiteFiles
from sightline.errors import Code, Fault
from sightline.evals.options import Options
from sightline.evals.standing import Standing
from sightline.evals.suite import Suite
from sightline.wire.jsontext import encode


def run(arguments: argparse.Namespace) -> int:
    """Run them, one after the other; the exit code is that of the worst."""
    loaded = configuration(arguments.config)
    if bool(arguments.suites) == bool(arguments.resume or arguments.rerun_failed):
        message = "a run knows its suite" if arguments.suites else "no suite is named"
        raise Fault(Code.USAGE, message, hint="Name suites, or --resume RUN, or --rerun-failed RUN.")
    if arguments.resume or arguments.rerun_failed:
        exports = Exports(arguments.output, arguments.jsonl, arguments.junit)
        exports.check()
        return _guarded(_Command(arguments, exports), lambda command: command.again(loaded))
    wanted = [(each, each.sound()) for each in named(arguments.suites, loaded)]
    if arguments.dry_run:
        for each, suite in wanted:
            answering = _answering(each, suite, arguments)
            dry_run(each, suite, answering, options_of(arguments, answering), arguments)
        return 0
    exports = Exports(arguments.output, arguments.jsonl, arguments.junit)
    exports.check()
    return _guarded(_Command(arguments, exports), lambda command: command.anew(wanted))


def options_of(arguments: argparse.Namespace, answering: Answering) -> Options:
    """What the command says of how the run is wanted."""
    return Options(
        targets=answering.usual,
        trials=arguments.trials,
        threshold=arguments.threshold,
        budget_usd=arguments.budget_usd,
        workers=arguments.workers if isinstance(arguments.workers, int) else None,
        cache=arguments.cache,
        tags=tuple(arguments.tag),
        exclude_tags=tuple(arguments.exclude_tag),
        cases=tuple(arguments.case),
        judge=arguments.judge or answering.loaded.settings.evals.judge,
        approve=arguments.yes,
    )


def _answering(each: Named, suite: Suite, arguments: argparse.Namespace) -> Answering:
    judge = arguments.judge or each.known.loaded.settings.evals.judge
    answering = each.known.answering(suite, arguments.target, judge)
    tell_problems(answering.odd)
    return answering


@dataclass
class _Command:
    """One command. `run` is the run that is under way."""

    arguments: argparse.Namespace
    exports: Exports = field(default_factory=Exports)
    run: str = ""

    async def anew(self, wanted: Sequence[tuple[Named, Suite]]) -> int:
        """Begin a run for each suite."""
        codes = [await self._begun(each, suite) for each, suite in wanted]
        self.exports.write()
        return max(codes)

    async def _begun(self, each: Named, suite: Suite) -> int:
        answering = _answering(each, suite, self.arguments)
        options = options_of(self.arguments, answering)
        async with self._opened(answering.loaded, each.root) as evaluation:
            self.run = evaluation.make_id()

            async def driven(told: Telling) -> Standing:
                targets, judges = answering.targets, answering.judges
                return await evaluation.run(suite, targets, options, told, judges=judges, run=self.run)

            return await self._driven(evaluation, driven)

    async def again(self, loaded: Configuration) -> int:
        """Go on with a run, or run again what did not pass."""
        root = root_of(Path("suite"))
        name = self.arguments.resume or self.arguments.rerun_failed
        async with self._opened(loaded, root) as evaluation:
            self.run = await resolved(evaluation, name)
            shown = await evaluation.shown(self.run)
        grown = _with_targets(loaded, root, shown)
        async with self._opened(grown, root) as evaluation:

            async def taken_up(told: Telling) -> Standing:
                if self.arguments.resume:
                    return await evaluation.resume(self.run, told)
                return await evaluation.rerun(self.run, told)

            code = await self._driven(evaluation, taken_up)
        self.exports.write()
        return code

    def _opened(self, loaded: Configuration, root: Path) -> AbstractAsyncContextManager[Evaluation]:
        workers = self.arguments.workers
        cluster = workers if isinstance(workers, str) else ""
        return open_evaluation(loaded, self.arguments.data, root, store=self.arguments.store, cluster=cluster)

    async def _driven(self, evaluation: Evaluation, drive: Callable[[Telling], Awaitable[Standing]]) -> int:
        line = ProgressLine(time.monotonic, is_quiet=self.arguments.json)
        try:
            standing = await drive(line.told)
        finally:
            line.close()
        shown = await evaluation.shown(self.run)
        if self.arguments.json:
            write(encode(as_json(self.run, shown.state, standing, drawing())) + b"\n")
        else:
            lines = report(self.run, shown.state, standing, drawing())
            write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
        self.exports.add(standing)
        return exit_code(standing)


def exit_code(standing: Standing) -> int:
    """0 where everything passed. Where nobody answered anything, that is the provider's failure and not the suite's."""
    if is_passed(standing):
        return 0
    results = standing.results
    is_mute = bool(results) and all(result.status == "execution_error" for result in results)
    return EXIT_PROVIDER if is_mute else EXIT_FAILED


def _with_targets(loaded: Configuration, root: Path, shown: Shown) -> Configuration:
    """The configuration with the providers that AgentV's file describes, beside the suite of a run."""
    began = shown.standing.began
    if began.suite.file and not (root / began.suite.file).is_file():
        hint = "Go to the folder in which it was begun."
        raise Fault(Code.USAGE, f"the suite of the run, {began.suite.file}, is not below {root}", hint=hint)
    known = KnownTargets(loaded, SuiteFiles(root), began.suite.file)
    for spec in (*began.targets, *began.judges):
        if spec.name in known.names:
            known.spec(spec.name)
    return known.loaded


def _guarded(command: _Command, work: Callable[[_Command], Awaitable[int]]) -> int:
    """Do it; who interrupts is told how to go on."""

    async def done() -> int:
        return await work(command)

    try:
        return asyncio.run(done())
    except KeyboardInterrupt:
        if command.run:
            say(f"interrupted; go on with: {resume_command(command.run)}")
        return EXIT_INTERRUPTED
