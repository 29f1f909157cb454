"""A stage for evals: suites as people write them, a model that answers over HTTP, and a real store."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from sightline.evals.core.reading.suites import read_suite
from sightline.evals.core.run_state import EvalBegan, EvalState, RunOptions
from sightline.evals.core.suite import Suite
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.context import EvalContext, EvalRun
from sightline.evals.service.eval_log import Progress
from sightline.evals.service.evaluation import Evaluation
from sightline.evals.service.suite_files import SuiteFiles, run_reader
from sightline.evals.service.target import Spending
from sightline.model.reply import Reply
from tests.loop_stage import says
from tests.running_stage import RunStage, opened, plays
from tests.store.traffic import prices
from tests.upstream import Play, Talk, Upstream

ACME = TargetSpec(name="acme", model="acme/m")

CAPITALS = """
name: capitals
tests:
  - id: france
    input: What is the capital of France?
    assertions: [{type: contains, value: Paris}]
  - id: italy
    input: What is the capital of Italy?
    assertions: [{type: contains, value: Rome}]
  - id: spain
    input: What is the capital of Spain?
    assertions: [{type: contains, value: Madrid}]
"""
KNOWN = {"France": "Paris", "Italy": "Rome", "Spain": "Toledo"}


def suite_of(text: str, root: Path, file: str = "capitals.yaml") -> Suite:
    """The suite in a text, which must be sound."""
    read = run_reader(read_suite(text.encode(), file), SuiteFiles(root))
    assert read.suite is not None, read.problems
    return read.suite


def asked(upstream: Upstream) -> str:
    """The words of the last message of the last request."""
    return words_in(upstream.seen[-1].json())


def words_in(body: Any) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def knows(upstream: Upstream, answers: dict[str, str]) -> Play:
    """A model that answers by a word of the question, wholly or as a stream, as it was asked."""

    async def model(talk: Talk) -> None:
        body = upstream.seen[-1].json()
        words = words_in(body)
        text = next((answer for word, answer in answers.items() if word in words), "I do not know.")
        await plays(says(text), stream=bool(body.get("stream")))(talk)

    return model


def replies(upstream: Upstream, reply: Callable[[Any], Reply]) -> Play:
    """A model whose reply is made of the body that it was sent."""

    async def model(talk: Talk) -> None:
        body = upstream.seen[-1].json()
        await plays(reply(body), stream=bool(body.get("stream")))(talk)

    return model


class EvalStage:
    """An evaluation on a stage for runs. `told` is the progress so far."""

    def __init__(self, stage: RunStage, root: Path, **more: Any) -> None:
        self.stage = stage
        self.root = root
        self.told: list[Progress] = []
        around: dict[str, Any] = {
            "catalog": stage.catalog,
            "has_key": lambda _: True,
            "make_id": stage.make_id,
            "root": root,
            "environment": {"PATH": "/usr/bin:/bin"},
            "process": "here",
            "store": stage.store,
            "prices": prices,
            "hub": stage.hub,
            "runner": stage.runner,
            **more,
        }
        self.evaluation = Evaluation(stage.engine, stage.store.logbook, EvalContext(**around))

    def suite(self, text: str = CAPITALS) -> Suite:
        return suite_of(text, self.root)

    def driven(self, began: EvalBegan | None = None) -> EvalRun:
        """What a run that began so is driven with."""
        began = began or EvalBegan(suite=self.suite(), targets=(ACME,))
        run = self.stage
        return EvalRun("e_1", began, run.engine, run.store.logbook, self.evaluation.surroundings, Spending())

    async def run(
        self,
        text: str = CAPITALS,
        targets: Sequence[TargetSpec] = (ACME,),
        *,
        run: str = "e_1",
        judges: Sequence[TargetSpec] = (),
        **options: Any,
    ) -> EvalState:
        return await self.evaluation.run(
            self.suite(text), targets, RunOptions(**options), self.told.append, judges=judges, run=run
        )

    async def resume(self, run: str = "e_1") -> EvalState:
        return await self.evaluation.resume(run, self.told.append)


def table(standing: EvalState) -> list[tuple[str, str, int, str, str, float | None]]:
    """The rows of a run, as far as they do not depend on time."""
    return [
        (each.case, each.target, each.trial, each.status, each.score.verdict, each.score.score)
        for each in standing.results
    ]


def verdicts(standing: EvalState) -> dict[str, str]:
    """The verdict of each case, where there is one target and one trial."""
    return {each.case: each.score.verdict for each in standing.results}


@asynccontextmanager
async def open_evals(folder: Path, **more: Any) -> AsyncIterator[tuple[EvalStage, Upstream]]:
    """A stage whose model knows some capitals."""
    async with Upstream() as upstream:
        upstream.script = [knows(upstream, KNOWN)]
        root = folder / "suites"
        root.mkdir(exist_ok=True)
        stage = await opened(folder / "data", upstream.url, more.pop("spoken", "openai-chat"), **_of_stage(more))
        try:
            yield EvalStage(stage, root, **more), upstream
        finally:
            await stage.close()


Story: TypeAlias = Callable[..., Awaitable[None]]


def as_test(story: Story, opener: Callable[[Path], AbstractAsyncContextManager[tuple[Any, Upstream]]]) -> Story:
    """A test that tells a story. Parameters of the story that are called `stage`, `desk` or `upstream` are what the
    opener gives; all others are fixtures or parametrised."""
    names = list(inspect.signature(story).parameters)
    own = [name for name in names if name in ("stage", "desk", "upstream")]
    fixtures = [name for name in names if name not in own]

    @functools.wraps(story)
    async def test(**given: Any) -> None:
        async with opener(given["tmp_path"]) as (stage, upstream):
            by_name = {"stage": stage, "desk": stage, "upstream": upstream}
            await story(**{name: by_name[name] for name in own}, **{name: given[name] for name in fixtures})

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in dict.fromkeys((*fixtures, "tmp_path"))
    ]
    test.__signature__ = inspect.Signature(parameters)  # read by pytest
    return test


def on_stage(story: Story) -> Story:
    """A test on a stage whose model knows some capitals."""
    return as_test(story, open_evals)


def _of_stage(more: dict[str, Any]) -> dict[str, Any]:
    return {name: more.pop(name) for name in ("clock",) if name in more}
