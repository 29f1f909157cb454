"""A run as it is shown, derived from its facts. It is the same for a run in progress, an ended run and an interrupted
one. The page and `--json` get these values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from sightline.agent.core.approval import DeniedBy
from sightline.agent.core.arguments import Repair
from sightline.agent.core.conversation import Amendment
from sightline.agent.core.facts import (
    Remarked,
    RequestStarted,
    RunBegan,
    RunState,
    TimedFact,
    ToolFinished,
    ToolStarted,
)
from sightline.agent.core.limits import LimitName, Reached, RunLimits, RunUsage
from sightline.agent.core.rounds import CallRecord, Fate, Round
from sightline.agent.core.rounds import Pending as PendingOfLoop
from sightline.agent.core.steps import Approve, Confirm, Replied, RunnableCall
from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.service.approvers import Question
from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Usage
from sightline.web.replies import FaultShown

State: TypeAlias = Literal["running", "waiting", "ended", "interrupted"]


class SpentShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has used. `unmeasured` names the counts that are unknown; an unknown `cost` is null, never 0. If
    `is_estimated`, a provider did not report usage, and tokens and cost are partly an estimate."""

    requests: int
    tool_calls: int
    tokens: int
    cost: float | None
    seconds: float
    unmeasured: tuple[LimitName, ...]
    is_estimated: bool = False


class LimitsShown(RunLimits, frozen=True, omit_defaults=False, kw_only=True):
    """The limits of a run; null means no limit."""


class RunBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A run in one line. `rounds` counts those that have a reply; `why` is how the run ended."""

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
    """The result of a call: its text, its JSON, and its number of images and other media."""

    text: str
    is_error: bool
    structured: dict[str, Json] | None
    media: int


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """A call. `arguments` are as the model wrote them; `ran` are those that the tool was given. A call without a `fate`
    is open; `is_running` then tells whether the tool is running, and `progress` is what it reports."""

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


class RoundShown(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its reply. `seconds` is how long the model took."""

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
    fault: FaultShown | None = None


class PendingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that needs a decision. `arguments` are those that the tool would get."""

    key: str
    id: str
    name: str
    arguments: dict[str, Json] | str
    repairs: tuple[Repair, ...] = ()


class ApprovePending(msgspec.Struct, frozen=True, tag_field="step", tag="approve"):
    """May these calls run? `objections` explains why edited arguments cannot be used."""

    calls: tuple[PendingCall, ...]
    objections: dict[str, str]


class ConfirmPending(msgspec.Struct, frozen=True, tag_field="step", tag="confirm"):
    """Should this limit be raised? `words` describes it for a person."""

    reached: Reached
    words: str


class MidFlightPending(msgspec.Struct, frozen=True, tag_field="step", tag="mid_flight"):
    """Should these interrupted calls run again?"""

    calls: tuple[PendingCall, ...]


class HoldPending(msgspec.Struct, frozen=True, tag_field="step", tag="hold"):
    """The request of a round is held. It is inspected, edited and released through its exchange."""

    exchange: str


Pending: TypeAlias = ApprovePending | ConfirmPending | MidFlightPending | HoldPending


class RunPaused(msgspec.Struct, frozen=True):
    """The provider's limit that the next request of a run waits for, and when the request is sent."""

    line: str
    can_go_at: float


class RunShown(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run. `reason` is why it was cancelled. `version` grows with each fact. `notes` are for a person, for
    example about a hook that failed."""

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


_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is known of a run in addition to its facts: its state, and what only the process that drives it knows.

    `undecided` has the keys of the calls in `question` that are still open.
    """

    state: State
    question: Question | None = None
    undecided: frozenset[str] | None = None
    held: str = ""
    progress: dict[str, str] = field(default_factory=dict)
    is_stepping: bool = False
    paused: RunPaused | None = None


@dataclass(frozen=True, slots=True)
class _Times:
    """Exchanges and seconds by round, and seconds by call. `running` has the calls that have not finished."""

    exchanges: dict[int, str]
    rounds: dict[int, float]
    calls: dict[str, float]
    running: frozenset[str]


def show_run(run: str, facts: Sequence[TimedFact], standing: RunState, looked: LiveState) -> RunShown:
    began, ended = standing.began, standing.ended
    rounds, times = so_far(facts, standing), _times(facts)
    amendments = ended.amendments if ended is not None else tuple(each for done in rounds for each in done.amendments)
    whole = [_round(each, times) for each in rounds]
    if ended is None and len(rounds) > len(standing.run.rounds):
        open_calls = zip(whole[-1].calls, standing.run.pending, strict=True)
        calls = tuple(_open_call(shown, pending, times, looked) for shown, pending in open_calls)
        whole[-1] = msgspec.structs.replace(whole[-1], calls=calls)
    return RunShown(
        id=run,
        version=len(facts),
        at=facts[0].at,
        title=_title(began),
        state=looked.state,
        why="" if ended is None else ended.why,
        reason=None if ended is None else ended.reason,
        provider=began.provider,
        model=began.request.model,
        spent=show_usage(standing.run.spent),
        limits=LimitsShown(**msgspec.structs.asdict(standing.run.limits)),
        reached=None if ended is None else ended.reached,
        rounds=tuple(whole),
        pending=None if ended is not None else _pending(looked),
        paused=looked.paused,
        is_stepping=looked.is_stepping,
        origin=began.origin,
        amendments=amendments,
        notes=tuple(each.fact.words for each in facts if isinstance(each.fact, Remarked)),
    )


def brief(run: str, facts: Sequence[TimedFact], standing: RunState, state: State) -> RunBrief:
    began = standing.began
    return RunBrief(
        id=run,
        at=facts[0].at,
        title=_title(began),
        model=began.request.model,
        state=state,
        why="" if standing.ended is None else standing.ended.why,
        rounds=sum(isinstance(each.fact, Replied) for each in facts),
        spent=show_usage(standing.run.spent),
        origin=began.origin,
    )


def show_usage(spent: RunUsage) -> SpentShown:
    return msgspec.structs.replace(msgspec.convert(spent, SpentShown, from_attributes=True), cost=spent.known_cost)


def _title(began: RunBegan) -> str:
    """The last text of the user, shortened."""
    for message in reversed(began.request.messages):
        words = " ".join(part.text for part in message.parts if isinstance(part, Text)).split()
        if message.role == "user" and words:
            line = " ".join(words)
            return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"
    return ""


def _times(facts: Sequence[TimedFact]) -> _Times:
    exchanges: dict[int, str] = {}
    rounds: dict[int, float] = {}
    calls: dict[str, float] = {}
    begun: dict[str, float] = {}
    requested_at = facts[0].at
    number = 0
    for each in facts:
        match each.fact:
            case RequestStarted(number, exchange):
                exchanges[number], requested_at = exchange, each.at
            case Replied():
                number = len(rounds) + 1
                rounds[number] = each.at - requested_at
            case ToolStarted(key):
                begun[key] = each.at
            case ToolFinished(key):
                calls[key] = each.at - begun.pop(key, each.at)
            case _:
                pass
    return _Times(exchanges, rounds, calls, frozenset(begun))


def _round(done: Round, times: _Times) -> RoundShown:
    parts, fault = done.reply.choice.parts, done.reply.fault
    return RoundShown(
        number=done.number,
        exchange=times.exchanges.get(done.number, ""),
        text=done.text,
        thinking="".join(part.text for part in parts if isinstance(part, Thinking)),
        calls=tuple(_call(each, times) for each in done.calls),
        finish=done.finish,
        usage=done.usage,
        cost=done.cost,
        seconds=times.rounds.get(done.number),
        context=done.context,
        fault=None if fault is None else FaultShown(fault.code.value, fault.message, fault.hint),
    )


def _call(record: CallRecord, times: _Times) -> CallShown:
    shown = msgspec.convert(record, CallShown, from_attributes=True)
    return msgspec.structs.replace(shown, result=_result(record.outcome), seconds=times.calls.get(record.key))


def _result(outcome: ToolOutcome | None) -> CallResult | None:
    if outcome is None:
        return None
    media = sum(not isinstance(part, Text) for part in outcome.parts)
    return CallResult(text=words_of(outcome), is_error=outcome.is_error, structured=outcome.structured, media=media)


def _open_call(shown: CallShown, pending: PendingOfLoop, times: _Times, looked: LiveState) -> CallShown:
    has_run, is_begun = shown.fate == "ran", shown.key in times.running
    return msgspec.structs.replace(
        shown,
        ran=shown.ran if has_run or is_begun else None,
        fate="ran" if has_run else pending.fate,
        is_running=is_begun and looked.state in ("running", "waiting"),
        progress=looked.progress.get(shown.key, ""),
    )


def _pending(looked: LiveState) -> Pending | None:
    match looked.question:
        case Approve(_, calls, objections):
            return ApprovePending(_calls(calls, looked), objections)
        case Confirm(_, reached):
            return ConfirmPending(reached, reached.words)
        case tuple() as calls:
            return MidFlightPending(_calls(calls, looked))
        case None:
            return HoldPending(looked.held) if looked.held else None


def _calls(calls: Sequence[RunnableCall], looked: LiveState) -> tuple[PendingCall, ...]:
    return tuple(
        msgspec.convert(call, PendingCall, from_attributes=True)
        for call in calls
        if looked.undecided is None or call.key in looked.undecided
    )


def so_far(facts: Sequence[TimedFact], standing: RunState) -> tuple[Round, ...]:
    """The rounds of a run, including the current one. Its calls without an outcome have none here either."""
    if standing.ended is not None:
        return standing.ended.rounds
    rounds = standing.run.rounds
    replies = [each.fact.reply for each in facts if isinstance(each.fact, Replied)]
    if len(replies) <= len(rounds):
        return rounds
    reply = replies[len(rounds)]  # its round is not over
    outcomes = {each.fact.key: each.fact.outcome for each in facts if isinstance(each.fact, ToolFinished)}
    calls = tuple(
        each.record_as(
            "ran" if each.key in outcomes else each.fate or "cancelled", outcomes.get(each.key, each.outcome)
        )
        for each in standing.run.pending
    )
    return (*rounds, Round(number=len(rounds) + 1, reply=reply, calls=calls, usage=reply.usage))
