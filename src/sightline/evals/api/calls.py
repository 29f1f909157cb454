"""The calls below `/api/evals`, and the runs that they start."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from sightline.chat.api.files import media
from sightline.chat.service.blocks import Media
from sightline.errors import Code, Fault
from sightline.evals.api import shapes
from sightline.evals.api.showing import (
    answer_shown,
    brief,
    compare_runs,
    media_in,
    messages_shown,
    observation_of,
    show_trial,
    trend_of,
    whole,
)
from sightline.evals.api.suites import EvalParts, Suites, changes_of, find_edit, messages_before_edit
from sightline.evals.core.reading.files import files_of
from sightline.evals.core.result import SCHEME, media_url
from sightline.evals.core.run_state import EvalState, Key, RunOptions
from sightline.evals.core.suite import Suite
from sightline.evals.core.summary import TargetSummary, summarize
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.eval_log import Progress, ProgressListener
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.evals.service.suite_files import require_suite, suite_in
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.model.parts import Inline, Link
from sightline.model.request import Message
from sightline.transport.waiting import wait_started
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler
from sightline.wire.cache import BoundedCache


async def whole_media(parts: EvalParts, part: Media, exchanges: Sequence[str], files: Sequence[str]) -> Media:
    """The part with its bytes from these exchanges or files; unchanged if none has them."""
    source = part.source
    if not isinstance(source, Link) or not source.url.startswith(SCHEME):
        return part
    for each in reversed(exchanges):
        for other in await _media_of(parts, each):
            if isinstance(other.source, Inline) and media_url(other.source.data) == source.url:
                return other
    for path in files:
        coded = base64.b64encode(parts.evaluation.files.read(path) or b"").decode("ascii")
        if media_url(coded) == source.url:
            return msgspec.structs.replace(part, source=Inline(source.media_type or "", coded))
    return part


async def _media_of(parts: EvalParts, exchange: str) -> tuple[Media, ...]:
    """All media of an exchange; empty if the record no longer has it."""
    try:
        found = await load_exchange(parts.store, await find_exchange(parts.store, exchange, now=parts.now()))
        answer = (Message("assistant", found.reply().choice.parts),) if found.frames else ()
        return media_in(found.request().messages, answer)
    except Fault:
        return ()


_LOG = logging.getLogger("sightline.evals")


class BackgroundRuns:
    """Runs and reruns of this process. They continue in the background."""

    def __init__(self, parts: EvalParts) -> None:
        self._evaluation = parts.evaluation
        self._parts = parts
        self._tasks: dict[str, asyncio.Task[EvalState]] = {}

    @property
    def under_way(self) -> list["asyncio.Task[EvalState]"]:
        return list(self._tasks.values())

    def is_here(self, run: str) -> bool:
        """Whether this server drives the run."""
        return run in self._tasks

    async def again(self, run: str, body: shapes.RerunWanted) -> str:
        """Rerun cases, and return the run's id. If the suite's file has changed, a new run is started, because a run
        keeps the suite it was started with."""
        shown = await self._evaluation.show(run)
        keys = _keys_to_rerun(shown.standing, body)
        changed = await asyncio.to_thread(self._newer_suite, shown)
        if changed is not None:
            failed = shown.standing.failed if keys is None else keys
            names = body.cases or tuple(dict.fromkeys(key[0] for key in failed))
            return await self._start_new_run(shown, changed, names, body.target)
        evaluation = self._parts.grown(shown.standing.began)
        await self._start(run, lambda on_progress: evaluation.rerun(run, on_progress, keys=keys))
        return run

    async def begin(
        self,
        evaluation: Evaluation,
        suite: Suite,
        targets: Sequence[TargetSpec],
        judges: Sequence[TargetSpec],
        options: RunOptions,
    ) -> str:
        """Start a run, and return its id once its start is stored."""
        run = evaluation.make_id()
        await self._start(
            run,
            lambda on_progress: evaluation.run(suite, targets, options, on_progress, judges=judges, run=run),
        )
        return run

    async def close(self) -> None:
        """Interrupt all runs; they can be resumed."""
        tasks = self.under_way
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _newer_suite(self, shown: RunSnapshot) -> Suite | None:
        """The suite as its file is now; None if that is what the run was started with."""
        began = shown.standing.began.suite
        if not began.sha256 or self._evaluation.files.read(began.file) is None:
            return None
        now = suite_in(self._evaluation.files, began.file, self._parts.environment)
        return None if now.suite is not None and now.suite.sha256 == began.sha256 else require_suite(now, began.file)

    async def _start_new_run(self, shown: RunSnapshot, suite: Suite, names: Sequence[str], target: str) -> str:
        began = shown.standing.began
        known = {case.id for case in suite.cases}
        gone = [name for name in names if name not in known]
        if gone or not names:
            message = f"the suite no longer has {', '.join(gone)}" if gone else "there is nothing to run again"
            raise Fault(Code.USAGE, message, hint="Run the suite again: sightline eval run.", status=409)
        options = msgspec.structs.replace(began.options, cases=tuple(names), tags=(), exclude_tags=(), cache=False)
        targets = [spec for spec in began.targets if target in ("", spec.name)]
        return await self.begin(self._parts.grown(began), suite, targets, began.judges, options)

    async def _start(self, run: str, drive: Callable[[ProgressListener], Coroutine[object, object, EvalState]]) -> None:
        """Start driving a run, and wait until its start is stored or has failed."""
        if run in self._tasks:
            raise Fault(Code.USAGE, f"the run {run} is under way", hint="Wait for it, or stop it.", status=409)
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def confirm_start(_progress: Progress) -> None:
            if not begun.done():
                begun.set_result(None)

        task = self._tasks[run] = loop.create_task(drive(confirm_start))
        task.add_done_callback(lambda task: self._over(run, task))
        await wait_started(begun, task)

    def _over(self, run: str, task: "asyncio.Task[EvalState]") -> None:
        self._tasks.pop(run, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.warning("a run of a suite has stopped: %s", error)  # its log shows how far it got


def _keys_to_rerun(standing: EvalState, body: shapes.RerunWanted) -> tuple[Key, ...] | None:
    """The trials to rerun; None means everything that did not pass."""
    targets = [spec.name for spec in standing.began.targets]
    if body.target and body.target not in targets:
        hint = f"It has {', '.join(targets)}."
        raise Fault(Code.USAGE, f"the run has no target {body.target!r}", hint=hint, status=404)
    if body.cases is not None:
        return standing.keys_of(body.cases, body.target)
    return tuple(key for key in standing.failed if key[1] == body.target) if body.target else None


W = TypeVar("W", bound=msgspec.Struct)

MOST_RUNS = 500
MOST_BYTES = 4 << 20
"""The most bytes of a request body. A case is text, and parsing YAML is slow; images are in files beside the suite."""

_USUAL = 50
_MOST_KNOWN = 512


class EvalCalls:
    def __init__(self, parts: EvalParts) -> None:
        self._parts = parts
        self._evaluation = parts.evaluation
        self._drawing = parts.drawing
        self.reruns = BackgroundRuns(parts)
        self.suites = Suites(parts)
        self._known: BoundedCache[str, tuple[int, tuple[TargetSummary, ...]]] = BoundedCache(_MOST_KNOWN)

    async def list_runs(self, query: Query) -> list[shapes.EvalBrief]:
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        runs = await self._runs(limit, query.text("suite"))
        return [brief(shown, await self._summaries(shown)) for shown in runs]

    async def show_run(self, run: str) -> shapes.EvalShown:
        shown = await self._evaluation.show(run)
        return whole(shown, await self._summaries(shown), is_here=self.reruns.is_here(run))

    async def case(self, run: str, query: Query) -> shapes.CaseShown:
        """Show one trial of a case."""
        shown = await self._evaluation.show(run)
        targets = [spec.name for spec in shown.standing.began.targets]
        target = query.text("target") or targets[0]
        key = (query.text("case"), target, query.number("trial", 0))
        # It parses the suite's file, which may be slow.
        trial = await asyncio.to_thread(show_trial, self._evaluation, shown, key, self.suites.source)
        edited = await self._find_edit(trial.exchanges)
        if edited is None:
            return trial
        if trial.turns or trial.run:
            return msgspec.structs.replace(trial, is_edited=True)
        # The page says "as sent", which differs from the case after an edit.
        sent = edited.request().messages
        messages = observation_of(shown, key).messages
        answer = answer_shown(messages, len(media_in(sent, ())))
        return msgspec.structs.replace(trial, is_edited=True, messages=messages_shown(sent), answer=answer)

    async def media(self, run: str, number: str, query: Query) -> WebResponse:
        """The bytes of an image or file of one trial, by its number in the blocks; `turn` selects a turn."""
        shown = await self._evaluation.show(run)
        key = (query.text("case"), query.text("target"), query.number("trial", 0))
        turn = query.number("turn", 0) if query.text("turn") else None
        seen = observation_of(shown, key, turn)
        sent = seen.asked
        if turn is None and not seen.run:
            edited = await self._find_edit(seen.exchanges)
            sent = sent if edited is None else edited.request().messages
        parts = media_in(sent, seen.messages)
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
            hint = "GET /api/evals/{run}/case has all of them."
            raise Fault(Code.USAGE, f"this try has no file {number[:20]!r}", hint=hint, status=404)
        files = files_of(shown.standing.cases[key[0]])
        return media(await whole_media(self._parts, parts[int(number)], seen.exchanges, files))

    async def adopt(self, run: str, body: shapes.AdoptWanted) -> shapes.SavedShown:
        """Write a user's edit of a held request into its case."""
        shown = await self._evaluation.show(run)
        key = (body.case, body.target, body.trial)
        seen = observation_of(shown, key)
        edited = await self._find_edit(seen.exchanges)
        if edited is None:
            hint = "Edit and re-run it first, or change the value in the suite."
            raise Fault(Code.USAGE, "no request of this trial was edited", hint=hint, status=409)
        case = shown.standing.cases[body.case]
        _, source = await asyncio.to_thread(self.suites.source, case)
        changes = changes_of(source, messages_before_edit(edited, seen.asked), edited.request().messages)
        return await self.suites.write_values(shown.standing, case, changes, body.sha256, is_dry=body.dry)

    async def compare(self, query: Query) -> shapes.CompareShown:
        first, second = query.text("a"), query.text("b")
        if not first or not second:
            hint = "Name two runs: ?a=…&b=…"
            raise Fault(Code.INVALID_REQUEST, "two runs are compared", hint=hint, status=400)
        sides = await self._evaluation.show(first), await self._evaluation.show(second)
        targets = query.text("target_a"), query.text("target_b")
        # Resampling thousands of cases takes seconds, and this process also relays requests.
        return await asyncio.to_thread(compare_runs, *sides, targets, self._drawing())

    async def trend(self, query: Query) -> list[shapes.TrendPoint]:
        suite = query.text("suite")
        if not suite:
            hint = "Name it by its file or its name: ?suite=…"
            raise Fault(Code.INVALID_REQUEST, "no suite is named", hint=hint, status=400)
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return await asyncio.to_thread(trend_of, await self._runs(limit, suite), self._drawing())

    async def run_suite(self, body: shapes.RunWanted) -> shapes.EvalShown:
        evaluation, suite, answering, options = await self.suites.plan(body)
        run = await self.reruns.begin(evaluation, suite, answering.targets, answering.judges, options)
        return await self.show_run(run)

    async def rerun(self, run: str, body: shapes.RerunWanted) -> shapes.EvalShown:
        return await self.show_run(await self.reruns.again(run, body))

    async def stop(self, run: str, _body: Nothing) -> shapes.EvalShown:
        await self._evaluation.show(run)
        self._evaluation.stop(run)
        return await self.show_run(run)

    async def close(self) -> None:
        await self.reruns.close()

    async def _find_edit(self, exchanges: Sequence[str]) -> RecordedExchange | None:
        return await find_edit(self._parts.store, exchanges, self._parts.now())

    async def _runs(self, limit: int, suite: str) -> list[RunSnapshot]:
        return [await self._evaluation.show(each.run) for each in await self._evaluation.list_runs(limit, suite)]

    async def _summaries(self, shown: RunSnapshot) -> tuple[TargetSummary, ...]:
        known = self._known.get(shown.run)
        if known is None or known[0] != shown.version:
            results = shown.standing.results
            known = shown.version, await asyncio.to_thread(summarize, results, self._drawing(), resamples=0)
            self._known.put(shown.run, known)
        return known[1]


def eval_calls(evals: EvalCalls) -> Calls:
    suites = evals.suites
    return {
        "evals": {
            "GET": lambda call: evals.list_runs(Query(call.query)),
            "POST": _with_body(shapes.RunWanted, evals.run_suite),
        },
        "evals/compare": {"GET": lambda call: evals.compare(Query(call.query))},
        "evals/trend": {"GET": lambda call: evals.trend(Query(call.query))},
        "evals/suites": {"GET": lambda _call: suites.list_suites()},
        "evals/suite": {
            "GET": lambda call: suites.open(Query(call.query)),
            "PUT": _with_body(shapes.SuiteWanted, suites.write),
        },
        "evals/make": {"POST": _with_body(shapes.MakeWanted, suites.make)},
        "evals/save": {"POST": _with_body(shapes.SaveWanted, suites.save)},
        "evals/*": {"GET": lambda call: evals.show_run(_run(call))},
        "evals/*/case": {"GET": lambda call: evals.case(_run(call), Query(call.query))},
        "evals/*/case/media/*": {"GET": lambda call: evals.media(_run(call), call.names[1], Query(call.query))},
        "evals/*/case/save": {"POST": _with_body(shapes.CaseSaveWanted, suites.change)},
        "evals/*/case/adopt": {"POST": _with_body(shapes.AdoptWanted, evals.adopt)},
        "evals/*/case/undo": {"POST": _with_body(shapes.CaseUndoWanted, suites.undo)},
        "evals/*/rerun": {"POST": _with_body(shapes.RerunWanted, evals.rerun)},
        "evals/*/stop": {"POST": _with_body(Nothing, evals.stop)},
    }


def _run(call: ApiCall) -> str:
    return unquote(call.name)


def _with_body(kind: type[W], does: Callable[..., Awaitable[object]]) -> Handler:
    """A handler that calls `does` with the run, if the path contains one, and the body."""

    async def handle(call: ApiCall) -> object:
        return await does(*map(unquote, call.names), await read_body(call.receive, kind, MOST_BYTES))

    return handle
