"""What a run has come to while it is not over: its rounds, and of the last one as much as is known."""

from collections.abc import Mapping, Sequence

from sightline.agent.core.facts import ToolFinished
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.pending import Pending
from sightline.agent.core.rounds import CallRecord, Round
from sightline.agent.core.run_state import RunState
from sightline.agent.core.steps import Replied
from sightline.agent.service.run_log import TimedFact


def so_far(facts: Sequence[TimedFact], standing: RunState) -> tuple[Round, ...]:
    """The rounds of a run. Calls of the last one that have no outcome yet have none here either."""
    if standing.ended is not None:
        return standing.ended.rounds
    rounds = standing.run.rounds
    replies = [each.fact.reply for each in facts if isinstance(each.fact, Replied)]
    if len(replies) <= len(rounds):
        return rounds
    outcomes = {each.fact.key: each.fact.outcome for each in facts if isinstance(each.fact, ToolFinished)}
    calls = tuple(_record(each, outcomes) for each in standing.run.pending)
    return (*rounds, Round(number=len(rounds) + 1, reply=replies[len(rounds)], calls=calls))


def _record(pending: Pending, outcomes: Mapping[str, ToolOutcome]) -> CallRecord:
    ready, outcome = pending.ready, outcomes.get(pending.key, pending.outcome)
    has_run = pending.key in outcomes
    return CallRecord(
        key=pending.key,
        id=pending.call.id,
        name=pending.call.name,
        arguments=pending.call.arguments,
        fate="ran" if has_run else pending.fate or "cancelled",
        outcome=outcome,
        ran=ready.arguments if ready is not None and pending.fate is None else None,
        sent_id=pending.sent_id if pending.sent_id != pending.call.id else None,
        is_edited=pending.is_edited,
        repairs=() if ready is None else ready.repairs,
    )
