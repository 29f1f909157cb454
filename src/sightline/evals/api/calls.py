"""The calls below `/api/evals`, each with who answers it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from sightline.chat.api.downloads import media
from sightline.errors import Code, Fault
from sightline.evals.api.bodies import AdoptWanted, CaseSaveWanted, CaseUndoWanted, MakeWanted, RerunWanted, SaveWanted
from sightline.evals.api.case_showing import CaseShowing, answer_shown, media_in, messages_shown
from sightline.evals.api.comparison import compare_runs, trend_of
from sightline.evals.api.figures import brief, whole
from sightline.evals.api.request_edits import SentBack, changes_of, messages_before_edit
from sightline.evals.api.reruns import Reruns
from sightline.evals.api.shapes import CaseShown, CompareShown, EvalBrief, EvalShown, SavedShown, TrendPoint
from sightline.evals.api.suites import Suites
from sightline.evals.api.whole_media import WholeMedia
from sightline.evals.core.facts import EvalBegan
from sightline.evals.core.reading.file_search import files_of
from sightline.evals.core.statistics.bootstrap import Draw
from sightline.evals.core.summary import TargetSummary, summarize
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.store.store import Store
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler

W = TypeVar("W", bound=msgspec.Struct)

MOST_RUNS = 500
MOST_BYTES = 4 << 20
"""Of what a call is told: a case is text, and reading YAML takes its time. Pictures are in files beside a suite."""

_USUAL = 50
_MOST_KNOWN = 512


@dataclass(frozen=True, slots=True)
class EvalParts:
    """What the calls are made of. `folder` is that of the suites, below the evaluation's own; `drawing` makes chance
    that is the same each time; `environment` is what suites may name; `secrets` are values that no case may hold.
    `grown` is who runs something again that began so: its targets may have providers that others do not know."""

    evaluation: Evaluation
    store: Store
    folder: str
    drawing: Callable[[], Draw]
    now: Callable[[], float]
    environment: Mapping[str, str]
    secrets: Sequence[str] = ()
    grown: Callable[[EvalBegan], Evaluation] | None = None


class EvalCalls:
    """Answers the calls."""

    def __init__(self, parts: EvalParts) -> None:
        self._evaluation = parts.evaluation
        self._drawing = parts.drawing
        self.reruns = Reruns(parts.evaluation, parts.environment, parts.grown)
        self.suites = Suites(
            parts.evaluation,
            parts.store,
            parts.folder,
            environment=parts.environment,
            secrets=parts.secrets,
            now=parts.now,
        )
        self._cases = CaseShowing(parts.evaluation, self.suites.source)
        self._back = SentBack(parts.store, parts.now)
        self._media = WholeMedia(parts.store, parts.evaluation.files.read, parts.now)
        self._known: dict[str, tuple[int, tuple[TargetSummary, ...]]] = {}

    async def list_runs(self, query: Query) -> list[EvalBrief]:
        """The newest runs."""
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        runs = await self._runs(limit, query.text("suite"))
        return [brief(shown, await self._summaries(shown)) for shown in runs]

    async def show_run(self, run: str) -> EvalShown:
        """One run."""
        shown = await self._evaluation.show(run)
        return whole(shown, await self._summaries(shown), is_here=self.reruns.is_here(run))

    async def case(self, run: str, query: Query) -> CaseShown:
        """One try of a case."""
        shown = await self._evaluation.show(run)
        targets = [spec.name for spec in shown.standing.began.targets]
        target = query.text("target") or targets[0]
        key = (query.text("case"), target, query.number("trial", 0))
        # A suite's file is read for it, which may take a while.
        told = await asyncio.to_thread(self._cases.show_try, shown, key)
        edited = await self._back.find_edit(told.exchanges)
        if edited is None:
            return told
        if told.turns or told.run:
            return msgspec.structs.replace(told, is_edited=True)
        # What was asked for is not what was sent, and the page says "as sent".
        sent = edited.request().messages
        said = self._cases.observation(shown, key).messages
        answer = answer_shown(said, len(media_in(sent, ())))
        return msgspec.structs.replace(told, is_edited=True, messages=messages_shown(sent), answer=answer)

    async def media(self, run: str, number: str, query: Query) -> WebResponse:
        """The bytes of a picture or a file of one try, by its number in the blocks; with `turn` of that turn."""
        shown = await self._evaluation.show(run)
        key = (query.text("case"), query.text("target"), query.number("trial", 0))
        turn = query.number("turn", 0) if query.text("turn") else None
        seen = self._cases.observation(shown, key, turn)
        asked = seen.asked
        if turn is None and not seen.run:
            edited = await self._back.find_edit(seen.exchanges)
            asked = asked if edited is None else edited.request().messages
        parts = media_in(asked, seen.messages)
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
            hint = "GET /api/evals/{run}/case has all of them."
            raise Fault(Code.USAGE, f"this try has no file {number[:20]!r}", hint=hint, status=404)
        files = files_of(shown.standing.cases[key[0]])
        return media(await self._media.of(parts[int(number)], seen.exchanges, files))

    async def adopt(self, run: str, body: AdoptWanted) -> SavedShown:
        """Write what a person changed in a request into its case."""
        shown = await self._evaluation.show(run)
        key = (body.case, body.target, body.trial)
        seen = self._cases.observation(shown, key)
        edited = await self._back.find_edit(seen.exchanges)
        if edited is None:
            hint = "Edit and re-run it first, or change the value in the suite."
            raise Fault(Code.USAGE, "nobody changed a request of this try", hint=hint, status=409)
        case = shown.standing.cases[body.case]
        _, source = await asyncio.to_thread(self.suites.source, case)
        changes = changes_of(source, messages_before_edit(edited, seen.asked), edited.request().messages)
        return await self.suites.write_values(shown.standing, case, changes, body.sha256, is_dry=body.dry)

    async def compare(self, query: Query) -> CompareShown:
        """Two runs, or two targets of one."""
        first, second = query.text("a"), query.text("b")
        if not first or not second:
            hint = "Name two runs: ?a=…&b=…"
            raise Fault(Code.INVALID_REQUEST, "two runs are compared", hint=hint, status=400)
        sides = await self._evaluation.show(first), await self._evaluation.show(second)
        targets = query.text("target_a"), query.text("target_b")
        # Thousands of cases take seconds to be drawn from, and requests go through this process meanwhile.
        return await asyncio.to_thread(compare_runs, *sides, targets, self._drawing())

    async def trend(self, query: Query) -> list[TrendPoint]:
        """A suite over its runs."""
        suite = query.text("suite")
        if not suite:
            hint = "Name it by its file or its name: ?suite=…"
            raise Fault(Code.INVALID_REQUEST, "no suite is named", hint=hint, status=400)
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return await asyncio.to_thread(trend_of, await self._runs(limit, suite), self._drawing())

    async def rerun(self, run: str, body: RerunWanted) -> EvalShown:
        """Run cases again."""
        return await self.show_run(await self.reruns.again(run, body))

    async def stop(self, run: str, _told: Nothing) -> EvalShown:
        """Begin nothing more."""
        await self.reruns.stop(run)
        return await self.show_run(run)

    async def close(self) -> None:
        """Leave what is under way, so that it can be gone on with."""
        await self.reruns.close()

    async def _runs(self, limit: int, suite: str) -> list[RunSnapshot]:
        return [await self._evaluation.show(each.run) for each in await self._evaluation.list_runs(limit, suite)]

    async def _summaries(self, shown: RunSnapshot) -> tuple[TargetSummary, ...]:
        known = self._known.pop(shown.run, None)
        if known is None or known[0] != shown.version:
            results = shown.standing.results
            known = shown.version, await asyncio.to_thread(summarize, results, self._drawing(), resamples=0)
        self._known[shown.run] = known
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known[1]


def eval_calls(evals: EvalCalls) -> Calls:
    """All calls below `/api/evals`."""
    suites = evals.suites
    return {
        "evals": {"GET": lambda call: evals.list_runs(Query(call.query))},
        "evals/compare": {"GET": lambda call: evals.compare(Query(call.query))},
        "evals/trend": {"GET": lambda call: evals.trend(Query(call.query))},
        "evals/suites": {"GET": lambda _call: suites.list_suites()},
        "evals/make": {"POST": _with_body(MakeWanted, suites.make)},
        "evals/save": {"POST": _with_body(SaveWanted, suites.save)},
        "evals/*": {"GET": lambda call: evals.show_run(_run(call))},
        "evals/*/case": {"GET": lambda call: evals.case(_run(call), Query(call.query))},
        "evals/*/case/media/*": {"GET": lambda call: evals.media(_run(call), call.names[1], Query(call.query))},
        "evals/*/case/save": {"POST": _with_run_and_body(CaseSaveWanted, suites.change)},
        "evals/*/case/adopt": {"POST": _with_run_and_body(AdoptWanted, evals.adopt)},
        "evals/*/case/undo": {"POST": _with_run_and_body(CaseUndoWanted, suites.undo)},
        "evals/*/rerun": {"POST": _with_run_and_body(RerunWanted, evals.rerun)},
        "evals/*/stop": {"POST": _with_run_and_body(Nothing, evals.stop)},
    }


def _run(call: ApiCall) -> str:
    return unquote(call.name)


def _with_body(kind: type[W], does: Callable[[W], Awaitable[object]]) -> Handler:
    async def handle(call: ApiCall) -> object:
        return await does(await read_body(call.receive, kind, MOST_BYTES))

    return handle


def _with_run_and_body(kind: type[W], does: Callable[[str, W], Awaitable[object]]) -> Handler:
    async def handle(call: ApiCall) -> object:
        return await does(_run(call), await read_body(call.receive, kind, MOST_BYTES))

    return handle
