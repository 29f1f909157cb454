"""What is shown of a run, as the page and `--json` get it."""

from typing import Literal, TypeAlias

import msgspec

from sightline.agent.core.approval import DeniedBy
from sightline.agent.core.arguments import Repair
from sightline.agent.core.conversation import Amendment
from sightline.agent.core.limits import Behaviour, LimitName, Reached
from sightline.agent.core.rounds import Fate
from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.reply import Usage

State: TypeAlias = Literal["running", "waiting", "ended", "interrupted"]


class SpentShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has used. `unmeasured` are the counts that are not known; an unknown `cost` is null, and never 0. With
    `is_estimated` a provider did not count, and tokens and cost are partly an estimate."""

    requests: int
    tool_calls: int
    tokens: int
    cost: float | None
    seconds: float
    unmeasured: tuple[LimitName, ...]
    is_estimated: bool = False


class LimitsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The most of each; null means no limit."""

    requests: int | None
    tool_calls: int | None
    tokens: int | None
    cost: float | None
    seconds: float | None
    repeats: int | None
    mistakes: int | None
    behaviour: Behaviour


class RunBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A run in one line. `rounds` are those that have a reply; `why` is how it ended."""

    id: str
    at: float
    title: str
    model: str
    state: State
    why: str
    rounds: int
    spent: SpentShown
    origin: dict[str, Json]


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call: its words, its JSON, and how many pictures and other media it has."""

    text: str
    is_error: bool
    structured: dict[str, Json] | None
    media: int


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """A call. `arguments` are as the model wrote them, `ran` what the tool was given. Without a `fate` it is open yet;
    `is_running` then says that the tool runs, and `progress` what it reports."""

    key: str
    id: str
    name: str
    arguments: str
    ran: dict[str, Json] | str | None = None
    fate: Fate | None = None
    result: CallResult | None = None
    is_edited: bool = False
    denied_by: DeniedBy | None = None
    is_running: bool = False
    progress: str = ""
    repairs: tuple[Repair, ...] = ()
    seconds: float | None = None


class RunFault(msgspec.Struct, frozen=True):
    """What a round ended with."""

    code: str
    message: str
    hint: str


class RoundShown(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what came of it. `seconds` is how long the model took."""

    number: int
    exchange: str
    text: str = ""
    thinking: str = ""
    calls: tuple[CallShown, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    context: str = ""
    fault: RunFault | None = None


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that needs a decision; `arguments` are what the tool would get."""

    key: str
    id: str
    name: str
    arguments: dict[str, Json] | str
    repairs: tuple[Repair, ...] = ()


class ApprovePending(msgspec.Struct, frozen=True, tag_field="step", tag="approve"):
    """May these calls run? `objections` say why arguments that were edited cannot be used."""

    calls: tuple[PendingCall, ...]
    objections: dict[str, str]


class ConfirmPending(msgspec.Struct, frozen=True, tag_field="step", tag="confirm"):
    """Is this limit to be raised? `words` say it for a person."""

    reached: Reached
    words: str


class MidFlightPending(msgspec.Struct, frozen=True, tag_field="step", tag="mid_flight"):
    """Are these calls to run again, which were interrupted?"""

    calls: tuple[PendingCall, ...]


class HoldPending(msgspec.Struct, frozen=True, tag_field="step", tag="hold"):
    """The request of a round is held: it is looked at, edited and released as the exchange that it is."""

    exchange: str


Pending: TypeAlias = ApprovePending | ConfirmPending | MidFlightPending | HoldPending


class RunPaused(msgspec.Struct, frozen=True):
    """What the next request of a run waits for, which is the provider's limits, and when it goes."""

    line: str
    can_go_at: float


class RunShown(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run. `reason` is why it was cancelled; `version` grows with each fact; `notes` are for a person, such as
    that a hook failed."""

    id: str
    version: int
    at: float
    title: str
    state: State
    why: str
    reason: CancelReason | None
    provider: str
    model: str
    spent: SpentShown
    limits: LimitsShown
    reached: Reached | None
    rounds: tuple[RoundShown, ...]
    pending: Pending | None
    is_stepping: bool
    origin: dict[str, Json]
    amendments: tuple[Amendment, ...]
    notes: tuple[str, ...]
    paused: RunPaused | None = None
