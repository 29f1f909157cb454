"""What the loop asks for, one step at a time, and what it is sent in answer."""

from typing import TypeAlias

import msgspec

from sightline.agent.core.approval import Decision
from sightline.agent.core.arguments import Repair
from sightline.agent.core.limits import Reached
from sightline.agent.core.tool import ToolOutcome
from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.reply import Reply, Usage
from sightline.model.request import Request


class RunnableCall(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call that can be run. `key` is the loop's own name for it and unique in the run; `id` is the model's.

    `arguments` are what the tool gets: an object, or the text of a tool for free text.
    """

    key: str
    id: str
    name: str
    arguments: dict[str, Json] | str
    repairs: tuple[Repair, ...] = ()
    is_parallel: bool = False


class AskModel(msgspec.Struct, frozen=True):
    """Send this request. Answered by `Replied`."""

    round: int
    request: Request


class Approve(msgspec.Struct, frozen=True, omit_defaults=True):
    """Let a person decide about these calls. Answered by `CallsDecided`.

    `objections` say, by key, why arguments that were edited the last time cannot be used. `allowed` are the keys of
    calls that a rule allows; they are here where hooks look at every call.
    """

    round: int
    calls: tuple[RunnableCall, ...]
    objections: dict[str, str] = {}
    allowed: tuple[str, ...] = ()


class Use(msgspec.Struct, frozen=True):
    """Run these calls. Answered by `Used`."""

    round: int
    calls: tuple[RunnableCall, ...]


class Confirm(msgspec.Struct, frozen=True):
    """Ask whether a limit is to be raised. Answered by `Confirmed`."""

    round: int
    reached: Reached


class Rest(msgspec.Struct, frozen=True):
    """The model has answered: may the run end? Answered by `Rested`."""

    round: int


Step: TypeAlias = AskModel | Approve | Use | Confirm | Rest


class Replied(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="replied"):
    """What the model answered. `elapsed` is the seconds since the run began, as its driver counts them.

    `sent` is the request that was sent in place of the one asked for, and goes into the rounds that follow. `estimate`
    replaces the usage if the provider reports none. `cost` is in US dollars, set where another model answered than the
    plan has the prices of.
    """

    reply: Reply
    elapsed: float = 0.0
    sent: Request | None = None
    estimate: Usage | None = None
    cost: float | None = None


class CallsDecided(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="decided"):
    """What was decided, by the key of the call. A call about which nothing was decided is not run."""

    decisions: dict[str, Decision] = {}
    elapsed: float = 0.0


class Used(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="used"):
    """What came of the calls, by key; one that is missing was cancelled. The model gets `context` as well."""

    outcomes: dict[str, ToolOutcome] = {}
    elapsed: float = 0.0
    context: str = ""


class Confirmed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="confirmed"):
    """Whether the limit is raised."""

    goes_on: bool
    elapsed: float = 0.0


class Rested(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="rested"):
    """The run may end; with `words` it may not, and the model gets them. With `failure` it ends as a failure,
    because what had to agree to its end could not be asked."""

    words: str = ""
    elapsed: float = 0.0
    failure: str = ""


class RunStopped(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="stopped"):
    """The run is stopped. It can answer any step; `outcomes` are those of the calls that were complete by then."""

    elapsed: float = 0.0
    outcomes: dict[str, ToolOutcome] = {}
    reason: CancelReason = "user"


Answer: TypeAlias = Replied | CallsDecided | Used | Confirmed | Rested | RunStopped


def batches(calls: tuple[RunnableCall, ...]) -> tuple[tuple[RunnableCall, ...], ...]:
    """The calls in the order in which they may run: those of one batch beside each other, the batches in turn."""
    groups: list[list[RunnableCall]] = []
    for call in calls:
        if call.is_parallel and groups and groups[-1][-1].is_parallel:
            groups[-1].append(call)
        else:
            groups.append([call])
    return tuple(tuple(group) for group in groups)
