"""Where a run stands, as a fold over its facts: the loop is sent again what it was sent, and nothing is done twice."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sightline.agent.core.facts import (
    Remarked,
    RequestStarted,
    RunBegan,
    RunEnded,
    RunFact,
    RunTaken,
    ToolFinished,
    ToolStarted,
)
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.run import Loop, ToolLoop
from sightline.agent.core.steps import Answer, RunnableCall, Step, Use
from sightline.errors import Code, Fault


@dataclass(slots=True)
class RunState:
    """A run that waits for the answer to `step`, or has `ended`. `loop` is to be sent that answer; `run` knows how far
    it has come.

    Of the calls in a `Use`, those in `finished` have their outcome, and in `contexts` the text that the model gets
    besides; those in `mid_flight` had been started and may have had effects, and only those in `untouched` can be run
    without asking a person. `exchange` is where a request that may have been answered is on record."""

    run: ToolLoop
    loop: Loop
    step: Step | None = None
    ended: FinishedRun | None = None
    finished: dict[str, ToolOutcome] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    exchange: str = ""

    @property
    def mid_flight(self) -> tuple[RunnableCall, ...]:
        """The calls that were running."""
        return tuple(call for call in self._calls if call.key in self.started and call.key not in self.finished)

    @property
    def untouched(self) -> tuple[RunnableCall, ...]:
        """The calls that had not been started."""
        return tuple(call for call in self._calls if call.key not in self.started)

    @property
    def _calls(self) -> tuple[RunnableCall, ...]:
        return self.step.calls if isinstance(self.step, Use) else ()

    def answer(self, answer: Answer) -> None:
        """Send the loop an answer, after which it stands elsewhere."""
        self.finished, self.contexts, self.started, self.exchange = {}, {}, set(), ""
        try:
            self.step = self.loop.send(answer)
        except StopIteration as stop:
            self.step, self.ended = None, stop.value

    def steps(self) -> Loop:
        """The steps from here on, for a driver. The state follows the answers that the driver sends."""
        while self.step is not None:
            self.answer((yield self.step))
        assert self.ended is not None  # there is either a step or an end
        return self.ended


def begin_run(fact: RunBegan) -> RunState:
    """A run at its first step."""
    run = ToolLoop(fact.request, fact.plan)
    standing = RunState(run, run.steps())
    try:
        standing.step = next(standing.loop)
    except StopIteration as stop:
        standing.ended = stop.value
    return standing


def stand(facts: Iterable[RunFact]) -> RunState:
    """Where the run of these facts stands."""
    standing: RunState | None = None
    for fact in facts:
        if standing is None:
            if not isinstance(fact, RunBegan):
                break
            standing = begin_run(fact)
        else:
            _add(standing, fact)
    if standing is None:
        raise Fault(
            Code.INVALID_REQUEST, "the facts of this run have no beginning", hint="Name a run that is on record whole."
        )
    return standing


def _add(standing: RunState, fact: RunFact) -> None:
    match fact:
        case RunBegan():
            raise Fault(Code.INVALID_REQUEST, "a run began twice", hint="Read the facts of one run only.")
        case RequestStarted(exchange=exchange):
            standing.exchange = exchange
        case ToolStarted(key):
            standing.started.add(key)
        case ToolFinished(key, outcome, context):
            standing.started.add(key)
            standing.finished[key] = outcome
            standing.contexts[key] = context
        case RunEnded() | RunTaken() | Remarked():
            pass
        case answer:
            standing.answer(answer)
