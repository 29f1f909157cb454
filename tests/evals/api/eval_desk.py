"""The calls about suites on a stage: a folder of suites, a model that knows some capitals, and a real record."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sightline.errors import Fault
from sightline.evals.api.calls import EvalCalls, eval_calls
from sightline.evals.api.suites import EvalParts
from sightline.evals.core.run_state import EvalState, RunOptions
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.suite_files import require_suite, suite_in
from sightline.evals.service.suite_targets import KnownTargets
from sightline.settings import EvalsSettings, EvalTarget
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.routes import ApiCall, Routes
from tests.eval_stage import ACME, CAPITALS, EvalStage, Story, as_test, open_evals
from tests.evals.core.chance import drawing
from tests.upstream import Upstream

SUITE = "evals/capitals.yaml"
FIXED = TargetSpec(name="fixed", mock="Paris, Rome, Madrid.")


class EvalDesk:
    """The API of a stage."""

    def __init__(self, stage: EvalStage) -> None:
        self.stage = stage
        self.root = stage.root
        store = stage.stage.store
        now = stage.stage.engine.clock.now
        surroundings = stage.evaluation.surroundings
        self.parts = EvalParts(
            stage.evaluation,
            store,
            "evals",
            drawing,
            now,
            {"PLACE": "France"},
            ("sk-planted-123456",),
            targets=lambda file: KnownTargets(
                surroundings.catalog,
                EvalsSettings(targets={"fixed": EvalTarget(mock="Paris, Rome, Madrid.")}, target="acme/m"),
                {},
                stage.evaluation.files,
                file,
            ),
            grown=lambda _began: stage.evaluation,
            grown_for=lambda _answering: stage.evaluation,
        )
        self.evals = EvalCalls(self.parts)
        self._routes = Routes(eval_calls(self.evals))
        (stage.root / "evals").mkdir()
        self.file = stage.root / SUITE
        self.file.write_text(CAPITALS)

    async def call(self, path: str, body: Any = None, method: str = "") -> Any:
        """What the API answers, as JSON; a refusal is its status and message."""
        path, _, query = path.partition("?")
        methods, names = self._routes.find(path)  # type: ignore[misc]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

        try:
            handler = methods[method or ("GET" if body is None else "POST")]
            value = await handler(ApiCall(names, query, receive))  # type: ignore[arg-type]
            answer = value if isinstance(value, WebResponse) else replies.json(value)
        except Fault as fault:
            answer = replies.failure(fault)
        told = json.loads(answer.body)
        return told if answer.status == 200 else (answer.status, told["error"]["message"])

    async def run(self, run: str, *targets: TargetSpec, **options: Any) -> EvalState:
        """A run of the suite as its file has it."""
        files = self.stage.evaluation.files
        suite = require_suite(suite_in(files, SUITE, {}), SUITE)
        wanted = RunOptions(**options)
        return await self.stage.evaluation.run(suite, targets or (ACME,), wanted, self.stage.told.append, run=run)


@asynccontextmanager
async def open_desk(folder: Path, **more: Any) -> AsyncIterator[tuple[EvalDesk, Upstream]]:
    async with open_evals(folder, **more) as (stage, upstream):
        desk = EvalDesk(stage)
        try:
            yield desk, upstream
        finally:
            await desk.evals.close()


def at_desk(story: Story) -> Story:
    """A test at such a desk."""
    return as_test(story, open_desk)
