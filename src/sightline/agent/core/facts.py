"""A run as an append-only list of facts, their stored form, and the state of a run after them.

The answers that were sent to the loop are facts themselves. Other facts record what was in progress, because a process
can end between a step and its answer. A run is resumed by sending the loop the same answers again; nothing is done
twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from sightline.agent.core.rounds import FinishedRun, Why
from sightline.agent.core.run import Loop, RunPlan, ToolLoop
from sightline.agent.core.steps import (
    Answer,
    CallsDecided,
    Confirmed,
    Replied,
    Rested,
    RunnableCall,
    RunStopped,
    Step,
    Use,
    Used,
)
from sightline.agent.core.tool import ToolOutcome
from sightline.catalog.provider import Route
from sightline.errors import CancelReason, Code, Fault
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode

NO_PROCESS = ""
"""Stands for no process, in `RunTaken.by`."""


class RunBegan(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_began"):
    """The run began: its request and plan, and what its driver needs: the name of the provider, the session that labels
    its exchanges, where the run was started, and the route of its requests, if one was configured."""

    request: Request
    plan: RunPlan
    provider: str = ""
    session: str = ""
    origin: dict[str, Json] = {}
    route: Route | None = None


class RunTaken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_taken"):
    """A process drives the run from here on; any other process that drove it gives it up. `by` is `NO_PROCESS` once the
    run has been released."""

    by: str = NO_PROCESS


class RequestStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="request_started"):
    """The request of a round was sent. `exchange` is the id under which it is recorded."""

    round: int
    exchange: str = ""


class ToolStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="tool_started"):
    """A tool was about to run: from here on it may have had side effects."""

    key: str


class ToolFinished(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="tool_finished"):
    """A tool has finished. `context` is text from hooks that the model gets in addition to the result."""

    key: str
    outcome: ToolOutcome
    context: str = ""


class Remarked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="remarked"):
    """A note for a person that the model does not need, such as a hook that failed."""

    words: str


class RunEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_ended"):
    """The run is over. `reason` is set if it was cancelled."""

    why: Why
    reason: CancelReason | None = None


RunFact: TypeAlias = (
    RunBegan
    | RunTaken
    | RequestStarted
    | ToolStarted
    | ToolFinished
    | Remarked
    | RunEnded
    | Replied
    | CallsDecided
    | Used
    | Confirmed
    | Rested
    | RunStopped
)


class TimedFact(msgspec.Struct, frozen=True):
    """A fact and the time of day at which it was appended."""

    at: float
    fact: RunFact


def write(fact: RunFact) -> bytes:
    return encode(msgspec.to_builtins(fact, enc_hook=_fault_out))


def read(data: bytes) -> RunFact:
    """Decode a stored fact. Raises a fault if it is not a fact of this version."""
    try:
        fact: RunFact = msgspec.convert(decode(data), RunFact, dec_hook=_fault_in)
    except msgspec.ValidationError as error:
        raise Fault(
            Code.INVALID_REQUEST,
            f"not a fact of a run: {error}",
            hint="Another version wrote it; resume the run with the version that started it.",
        ) from None
    return fact


def _fault_out(value: Any) -> Any:
    """Encode a fault, the only value in a fact that is not plain data."""
    assert isinstance(value, Fault)
    plain = {"code": value.code.value, "message": value.message, "hint": value.hint}
    return plain if value.reason is None else {**plain, "reason": value.reason}


def _fault_in(kind: type, value: Any) -> Any:
    assert kind is Fault
    return Fault(Code(value["code"]), value["message"], hint=value["hint"], reason=value.get("reason"))


@dataclass(slots=True)
class RunState:
    """The state of a run that `began` with this fact, and waits for the answer to `step` or has `ended`. `loop` is the
    generator that is sent the answer; `run` knows how far it has come.

    Of the calls in a `Use`, those in `finished` have their outcome, and in `contexts` the additional text for the
    model. Those in `mid_flight` were started and may have had side effects, so a person is asked before they run again.
    `exchange` is the recorded request that may have been answered.
    """

    began: RunBegan
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
        calls = self.step.calls if isinstance(self.step, Use) else ()
        return tuple(call for call in calls if call.key in self.started and call.key not in self.finished)

    def answer(self, answer: Answer) -> None:
        """Send the loop an answer, which moves it to the next step or to its end."""
        self.finished, self.contexts, self.started, self.exchange = {}, {}, set(), ""
        try:
            self.step = self.loop.send(answer)
        except StopIteration as stop:
            self.step, self.ended = None, stop.value

    def steps(self) -> Loop:
        """Yield the steps from here on, for a driver. The state follows the answers that the driver sends."""
        while self.step is not None:
            self.answer((yield self.step))
        assert self.ended is not None  # there is either a step or an end
        return self.ended


def begin_run(fact: RunBegan) -> RunState:
    run = ToolLoop(fact.request, fact.plan)
    standing = RunState(fact, run, run.steps())
    try:
        standing.step = next(standing.loop)
    except StopIteration as stop:
        standing.ended = stop.value
    return standing


def run_state_of(facts: Iterable[RunFact]) -> RunState:
    """The state of the run after these facts. Raises a fault if they do not start with a `RunBegan`."""
    known = list(facts)
    if not known or not isinstance(first := known[0], RunBegan):
        hint = "Name a run that is on record whole."
        raise Fault(Code.INVALID_REQUEST, "the facts of this run have no beginning", hint=hint)
    standing = begin_run(first)
    for fact in known[1:]:
        _add(standing, fact)
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
