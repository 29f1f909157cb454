"""The steps that the loop yields, and the answers that it is sent."""

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

    `objections` explains, by key, why the arguments that were edited last time cannot be used. `allowed` has the keys
    of calls that a rule allows; they are included only if hooks see every call.
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
    """Ask whether to raise a limit. Answered by `Confirmed`."""

    round: int
    reached: Reached


class Rest(msgspec.Struct, frozen=True):
    """The model has answered; ask whether the run may end. Answered by `Rested`."""

    round: int


Step: TypeAlias = AskModel | Approve | Use | Confirm | Rest


class Replied(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="replied"):
    """The model's reply. `elapsed` is the number of seconds since the run began, as counted by its driver.

    `sent` is the request that was sent in place of the one asked for; the following rounds build on it. `estimate`
    replaces the usage if the provider reports none. `cost` is in US dollars, and set if the reply came from another
    model than the one whose prices the plan has.
    """

    reply: Reply
    elapsed: float = 0.0
    sent: Request | None = None
    estimate: Usage | None = None
    cost: float | None = None


class CallsDecided(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="decided"):
    """The decisions, by the key of the call. A call without a decision is not run. The model also gets `context`, with
    the results of the round."""

    decisions: dict[str, Decision] = {}
    elapsed: float = 0.0
    context: str = ""


class Used(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="used"):
    """The outcomes of the calls, by key. A missing call was cancelled. The model also gets `context`."""

    outcomes: dict[str, ToolOutcome] = {}
    elapsed: float = 0.0
    context: str = ""


class Confirmed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="confirmed"):
    """Whether the limit is raised."""

    goes_on: bool
    elapsed: float = 0.0


class Rested(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="rested"):
    """The run may end. If `words` are given it may not, and the model gets them. With `failure` it ends as a failure,
    because a hook that had to agree to the end could not be asked."""

    words: str = ""
    elapsed: float = 0.0
    failure: str = ""


class RunStopped(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="stopped"):
    """The run is stopped. This can answer any step. `outcomes` has the calls that were complete by then."""

    elapsed: float = 0.0
    outcomes: dict[str, ToolOutcome] = {}
    reason: CancelReason = "user"


Answer: TypeAlias = Replied | CallsDecided | Used | Confirmed | Rested | RunStopped


def batches(calls: tuple[RunnableCall, ...]) -> tuple[tuple[RunnableCall, ...], ...]:
    """Split the calls into batches: the calls of a batch may run concurrently, the batches run one after the other."""
    groups: list[list[RunnableCall]] = []
    for call in calls:
        if call.is_parallel and groups and groups[-1][-1].is_parallel:
            groups[-1].append(call)
        else:
            groups.append([call])
    return tuple(tuple(group) for group in groups)
