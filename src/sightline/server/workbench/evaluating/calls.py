"""The calls below `/api/evals`, each with who answers it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from sightline.engine.evaluating.evaluation import Evaluation, Shown
from sightline.errors import Code, Fault
from sightline.evals.statistics.bootstrap import Draw
from sightline.evals.summary import TargetSummary, summarized
from sightline.server.workbench.chatting.wanted import Nothing, Query, wanted
from sightline.server.workbench.evaluating.case_showing import CaseShowing
from sightline.server.workbench.evaluating.compared import compared, trend_of
from sightline.server.workbench.evaluating.figures import brief, whole
from sightline.server.workbench.evaluating.reruns import Reruns
from sightline.server.workbench.evaluating.shapes import CaseShown, CompareShown, EvalBrief, EvalShown, TrendPoint
from sightline.server.workbench.evaluating.suites import Suites
from sightline.server.workbench.evaluating.wanted import CaseSaveWanted, MakeWanted, RerunWanted, SaveWanted
from sightline.server.workbench.routes import Call, Calls, Handler
from sightline.store.store import Store

W = TypeVar("W", bound=msgspec.Struct)

MOST_RUNS = 500
_USUAL = 50
_MOST_KNOWN = 512


@dataclass(frozen=True, slots=True)
class EvalParts:
    """What the calls are made of. `folder` is that of the suites, below the evaluation's own; `drawing` makes chance
    that is the same each time; `environment` is what suites may name; `secrets` are values that no case may hold."""

    evaluation: Evaluation
    store: Store
    folder: str
    drawing: Callable[[], Draw]
    now: Callable[[], float]
    environment: Mapping[str, str]
    secrets: Sequence[str] = ()


class Evals:
    """Answers the calls."""

    def __init__(self, parts: EvalParts) -> None:
        self._evaluation = parts.evaluation
        self._drawing = parts.drawing
        self.reruns = Reruns(parts.evaluation, parts.environment)
        self.suites = Suites(
            parts.evaluation,
            parts.store,
            parts.folder,
            environment=parts.environment,
            secrets=parts.secrets,
            now=parts.now,
        )
        self._cases = CaseShowing(parts.evaluation, self.suites.source)
        self._known: dict[str, tuple[int, tuple[TargetSummary, ...]]] = {}

    async def listed(self, query: Query) -> list[EvalBrief]:
        """The newest runs."""
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return [brief(shown, self._summaries(shown)) for shown in await self._runs(limit, query.text("suite"))]

    async def shown(self, run: str) -> EvalShown:
        """One run."""
        shown = await self._evaluation.shown(run)
        return whole(shown, self._summaries(shown), is_here=self.reruns.is_here(run))

    async def case(self, run: str, query: Query) -> CaseShown:
        """One try of a case."""
        shown = await self._evaluation.shown(run)
        targets = [spec.name for spec in shown.standing.began.targets]
        target = query.text("target") or targets[0]
        return self._cases.shown(shown, (query.text("case"), target, query.number("trial", 0)))

    async def compare(self, query: Query) -> CompareShown:
        """Two runs, or two targets of one."""
        first, second = query.text("a"), query.text("b")
        if not first or not second:
            hint = "Name two runs: ?a=…&b=…"
            raise Fault(Code.INVALID_REQUEST, "two runs are compared", hint=hint, status=400)
        sides = await self._evaluation.shown(first), await self._evaluation.shown(second)
        return compared(*sides, (query.text("target_a"), query.text("target_b")), self._drawing())

    async def trend(self, query: Query) -> list[TrendPoint]:
        """A suite over its runs."""
        suite = query.text("suite")
        if not suite:
            hint = "Name it by its file or its name: ?suite=…"
            raise Fault(Code.INVALID_REQUEST, "no suite is named", hint=hint, status=400)
        limit = min(query.number("limit", _USUAL), MOST_RUNS)
        return trend_of(await self._runs(limit, suite), self._drawing())

    async def rerun(self, run: str, told: RerunWanted) -> EvalShown:
        """Run cases again."""
        return await self.shown(await self.reruns.again(run, told))

    async def stop(self, run: str, _told: Nothing) -> EvalShown:
        """Begin nothing more."""
        await self.reruns.stop(run)
        return await self.shown(run)

    async def close(self) -> None:
        """Leave what is under way, so that it can be gone on with."""
        await self.reruns.close()

    async def _runs(self, limit: int, suite: str) -> list[Shown]:
        return [await self._evaluation.shown(each.run) for each in await self._evaluation.listed(limit, suite)]

    def _summaries(self, shown: Shown) -> tuple[TargetSummary, ...]:
        known = self._known.pop(shown.run, None)
        if known is None or known[0] != shown.version:
            known = shown.version, summarized(shown.standing.results, self._drawing(), resamples=0)
        self._known[shown.run] = known
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known[1]


def eval_calls(evals: Evals) -> Calls:
    """All calls below `/api/evals`."""
    suites = evals.suites
    return {
        "evals": {"GET": lambda call: evals.listed(Query(call.query))},
        "evals/compare": {"GET": lambda call: evals.compare(Query(call.query))},
        "evals/trend": {"GET": lambda call: evals.trend(Query(call.query))},
        "evals/suites": {"GET": lambda _call: suites.listed()},
        "evals/make": {"POST": _told(MakeWanted, suites.make)},
        "evals/save": {"POST": _told(SaveWanted, suites.save)},
        "evals/*": {"GET": lambda call: evals.shown(_run(call))},
        "evals/*/case": {"GET": lambda call: evals.case(_run(call), Query(call.query))},
        "evals/*/case/save": {"POST": _ordered(CaseSaveWanted, suites.change)},
        "evals/*/rerun": {"POST": _ordered(RerunWanted, evals.rerun)},
        "evals/*/stop": {"POST": _ordered(Nothing, evals.stop)},
    }


def _run(call: Call) -> str:
    return unquote(call.name)


def _told(kind: type[W], does: Callable[[W], Awaitable[object]]) -> Handler:
    async def done(call: Call) -> object:
        return await does(await wanted(call.receive, kind))

    return done


def _ordered(kind: type[W], does: Callable[[str, W], Awaitable[object]]) -> Handler:
    async def done(call: Call) -> object:
        return await does(_run(call), await wanted(call.receive, kind))

    return done
