"""A run as it is shown, made from its facts: the same for one that runs here, one that ended, and one left behind."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.facts import (
    Remarked,
    RequestStarted,
    RunBegan,
    RunState,
    TimedFact,
    ToolFinished,
    ToolStarted,
)
from sightline.agent.core.rounds import CallRecord, Round
from sightline.agent.core.rounds import Pending as PendingOfLoop
from sightline.agent.core.steps import Approve, Confirm, Replied, RunnableCall
from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.service.approvers import Question
from sightline.agent.service.shapes import (
    ApprovePending,
    CallResult,
    CallShown,
    ConfirmPending,
    HoldPending,
    LimitsShown,
    MidFlightPending,
    Pending,
    PendingCall,
    RoundShown,
    RunBrief,
    RunFault,
    RunPaused,
    RunShown,
    SpentShown,
    State,
)
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Reply

_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a run beside its facts: how it stands, and what only the process knows that drives it.

    `undecided` are the keys of the calls in `question` that are still open.
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
    """When things happened, and under which name: exchanges and seconds by round, seconds and outcomes by call."""

    exchanges: dict[int, str]
    rounds: dict[int, float]
    calls: dict[str, float]
    outcomes: dict[str, ToolOutcome]
    running: frozenset[str]


def show_run(run: str, facts: Sequence[TimedFact], standing: RunState, looked: Looked) -> RunShown:
    began, ended = _began(facts), standing.ended
    rounds = ended.rounds if ended is not None else standing.run.rounds
    times = _times(facts)
    amendments = ended.amendments if ended is not None else tuple(each for done in rounds for each in done.amendments)
    whole = [_round(each, times) for each in rounds]
    replies = _replies(facts)
    if ended is None and len(replies) > len(rounds):
        calls = tuple(_open_call(each, times, looked) for each in standing.run.pending)
        shown = _show_reply(len(rounds) + 1, replies[len(rounds)], times)
        whole.append(msgspec.structs.replace(shown, calls=calls))
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
        spent=_show_usage(standing),
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
    """A run in one line."""
    began = _began(facts)
    return RunBrief(
        id=run,
        at=facts[0].at,
        title=_title(began),
        model=began.request.model,
        state=state,
        why="" if standing.ended is None else standing.ended.why,
        rounds=sum(isinstance(each.fact, Replied) for each in facts),
        spent=_show_usage(standing),
        origin=began.origin,
    )


def _began(facts: Sequence[TimedFact]) -> RunBegan:
    began = facts[0].fact
    assert isinstance(began, RunBegan)  # without it the run has no state
    return began


def _show_usage(standing: RunState) -> SpentShown:
    spent = standing.run.spent
    shown = {name: getattr(spent, name) for name in SpentShown.__struct_fields__}
    return SpentShown(**shown | {"cost": spent.known_cost})


def _title(began: RunBegan) -> str:
    """The last words of a person."""
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
    outcomes: dict[str, ToolOutcome] = {}
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
            case ToolFinished(key, outcome):
                calls[key], outcomes[key] = each.at - begun.pop(key, each.at), outcome
            case _:
                pass
    return _Times(exchanges, rounds, calls, outcomes, frozenset(begun))


def _round(done: Round, times: _Times) -> RoundShown:
    return msgspec.structs.replace(
        _show_reply(done.number, done.reply, times),
        calls=tuple(_call(each, times) for each in done.calls),
        usage=done.usage,
        cost=done.cost,
        context=done.context,
    )


def _show_reply(number: int, reply: Reply, times: _Times) -> RoundShown:
    parts, fault = reply.choice.parts, reply.fault
    return RoundShown(
        number=number,
        exchange=times.exchanges.get(number, ""),
        text="".join(part.text for part in parts if isinstance(part, Text)),
        thinking="".join(part.text for part in parts if isinstance(part, Thinking)),
        finish=reply.choice.finish,
        usage=reply.usage,
        seconds=times.rounds.get(number),
        fault=None if fault is None else RunFault(fault.code.value, fault.message, fault.hint),
    )


def _call(record: CallRecord, times: _Times) -> CallShown:
    return CallShown(
        key=record.key,
        id=record.id,
        name=record.name,
        arguments=record.arguments,
        ran=record.ran,
        fate=record.fate,
        result=_result(record.outcome),
        is_edited=record.is_edited,
        denied_by=record.denied_by,
        repairs=record.repairs,
        seconds=times.calls.get(record.key),
    )


def _result(outcome: ToolOutcome | None) -> CallResult | None:
    if outcome is None:
        return None
    media = sum(not isinstance(part, Text) for part in outcome.parts)
    return CallResult(text=words_of(outcome), is_error=outcome.is_error, structured=outcome.structured, media=media)


def _replies(facts: Sequence[TimedFact]) -> list[Reply]:
    """The replies so far. Where there is one more than rounds, its round is not over."""
    return [each.fact.reply for each in facts if isinstance(each.fact, Replied)]


def _open_call(pending: PendingOfLoop, times: _Times, looked: Looked) -> CallShown:
    key, outcome = pending.key, times.outcomes.get(pending.key)
    shown = _call(pending.record_as("ran", outcome or pending.outcome), times)
    return msgspec.structs.replace(
        shown,
        ran=shown.ran if outcome is not None or key in times.running else None,
        fate="ran" if outcome is not None else pending.fate,
        is_running=key in times.running and looked.state in ("running", "waiting"),
        progress=looked.progress.get(key, ""),
    )


def _pending(looked: Looked) -> Pending | None:
    match looked.question:
        case Approve(_, calls, objections):
            return ApprovePending(_calls(calls, looked), objections)
        case Confirm(_, reached):
            return ConfirmPending(reached, reached.words)
        case tuple() as calls:
            return MidFlightPending(_calls(calls, looked))
        case None:
            return HoldPending(looked.held) if looked.held else None


def _calls(calls: Sequence[RunnableCall], looked: Looked) -> tuple[PendingCall, ...]:
    return tuple(
        PendingCall(key=call.key, id=call.id, name=call.name, arguments=call.arguments, repairs=call.repairs)
        for call in calls
        if looked.undecided is None or call.key in looked.undecided
    )


def so_far(facts: Sequence[TimedFact], standing: RunState) -> tuple[Round, ...]:
    """The rounds of a run. Calls of the last one that have no outcome yet have none here either."""
    if standing.ended is not None:
        return standing.ended.rounds
    rounds, replies = standing.run.rounds, _replies(facts)
    if len(replies) <= len(rounds):
        return rounds
    outcomes = {each.fact.key: each.fact.outcome for each in facts if isinstance(each.fact, ToolFinished)}
    calls = tuple(
        each.record_as(
            "ran" if each.key in outcomes else each.fate or "cancelled", outcomes.get(each.key, each.outcome)
        )
        for each in standing.run.pending
    )
    return (*rounds, Round(number=len(rounds) + 1, reply=replies[len(rounds)], calls=calls))
