"""A run as facts that are only ever added, and their form in a store.

The answers that the loop was sent are facts themselves; others say what was under way, because
a process can end between a step and its answer.
"""

from typing import Any, TypeAlias

import msgspec

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.rounds import Why
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import CallsDecided, Confirmed, Replied, Rested, RunStopped, Used
from sightline.catalog.provider import Route
from sightline.errors import CancelReason, Code, Fault
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode

NO_PROCESS = ""
"""The name of no process."""


class RunBegan(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_began"):
    """All that the run knows, and what its driver needs besides: the name of the provider, how its
    exchanges are labelled, where the run was wanted, and the route that its requests take, if one was configured."""

    request: Request
    plan: RunPlan
    provider: str = ""
    session: str = ""
    origin: dict[str, Json] = {}
    route: Route | None = None


class RunTaken(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_taken"):
    """A process drives the run from here on; any other that did gives it up. It is `NO_PROCESS` once the run was
    left."""

    by: str = NO_PROCESS


class RequestStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="request_started"):
    """The request of a round was sent; `exchange` is where it is on record."""

    round: int
    exchange: str = ""


class ToolStarted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="tool_started"):
    """A tool was about to be run: from here on it may have had effects."""

    key: str


class ToolFinished(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="tool_finished"):
    """A tool has come to its end; `context` is the text of hooks for the model besides the result."""

    key: str
    outcome: ToolOutcome
    context: str = ""


class Remarked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="remarked"):
    """Something that a person should know of and the model need not, such as a hook that failed."""

    words: str


class RunEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_ended"):
    """Nothing more happens in this run. One that was cancelled has its reason."""

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
    """A fact as JSON."""
    return encode(msgspec.to_builtins(fact, enc_hook=_fault_out))


def read(data: bytes) -> RunFact:
    """The fact that such JSON holds."""
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
    """A fault is the only thing in a fact that is no plain value."""
    assert isinstance(value, Fault)
    plain = {"code": value.code.value, "message": value.message, "hint": value.hint}
    return plain if value.reason is None else {**plain, "reason": value.reason}


def _fault_in(kind: type, value: Any) -> Any:
    assert kind is Fault
    return Fault(Code(value["code"]), value["message"], hint=value["hint"], reason=value.get("reason"))
