"""From what an engine or a run gives to what graders see."""

from collections.abc import Sequence

import msgspec

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.catalog.choose import ModelChoice
from sightline.chat.service.answerer import answer_result_of
from sightline.errors import Fault
from sightline.evals.core.observation import CaseObservation, ToolUse
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Part, Refusal, Text, ToolCall
from sightline.model.reply import Reply
from sightline.model.usage import Usage
from sightline.tokens.cost import cost_of
from sightline.wire.jsontext import decode, encode


def observe_reply(reply: Reply, choice: ModelChoice) -> CaseObservation:
    """One reply. An answer that broke off is no answer, and is kept with the reason."""
    parts = tuple(_placeless(part) for part in reply.choice.parts)
    cost = None if reply.usage is None else cost_of(reply.usage, choice.facts.prices)
    return CaseObservation(
        messages=(Message("assistant", parts),) if parts else (),
        text=text_of(parts),
        tools=tuple(
            ToolUse(name=part.name, arguments=arguments_of(part.arguments), id=part.id)
            for part in parts
            if isinstance(part, ToolCall)
        ),
        finish=reply.choice.finish or "",
        usage=_plain(reply.usage),
        cost=None if cost is None else cost.dollars,
        model=reply.model or choice.model,
        error=describe_fault(reply.fault),
        error_code="" if reply.fault is None else reply.fault.code.value,
    )


def observe_run(ended: FinishedRun, run: str, choice: ModelChoice, seconds: dict[str, float]) -> CaseObservation:
    """A run with tools. `seconds` is how long each call took, by its key. One that a limit has ended has no answer."""
    given = answer_result_of(ended, run)
    last = observe_reply(given.reply, choice)
    usages = [each.usage for each in ended.rounds]
    return msgspec.structs.replace(
        last,
        messages=(*given.rounds, *last.messages),
        tools=tuple(_use(call, seconds) for each in ended.rounds for call in each.calls),
        usage=_total(usages),
        cost=ended.spent.known_cost,
        seconds=ended.spent.seconds,
        requests=len(ended.rounds),
        run=run,
        finish=last.finish or _finish(ended.rounds),
    )


def text_of(parts: Sequence[Part]) -> str:
    """The words of an answer; of one that declines, the words with which it does."""
    return "".join(part.text for part in parts if isinstance(part, Text | Refusal))


def arguments_of(text: str) -> Json:
    """What a model's arguments hold; the text itself where that is no JSON."""
    try:
        return decode(text) if text else {}
    except Fault:
        return text


def describe_fault(fault: Fault | None) -> str:
    """A fault in one line."""
    if fault is None:
        return ""
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def _placeless(part: Part) -> Part:
    return msgspec.structs.replace(part, at="", extras={})


def _plain(usage: Usage | None) -> Usage | None:
    return None if usage is None else msgspec.structs.replace(usage, at="", extras={})


def _finish(rounds: Sequence[Round]) -> str:
    return (rounds[-1].finish or "") if rounds else ""


def _use(call: CallRecord, seconds: dict[str, float]) -> ToolUse:
    ran: Json = call.ran if call.ran is not None else arguments_of(call.arguments)
    return ToolUse(
        name=call.name,
        arguments=ran,
        result="" if call.outcome is None else _result(call.outcome),
        is_error=call.outcome is None or call.outcome.is_error,
        id=call.sent_id or call.id,
        seconds=seconds.get(call.key),
    )


def _result(outcome: ToolOutcome) -> str:
    text = "\n".join(part.text for part in outcome.parts if isinstance(part, Text))
    if not text and outcome.structured is not None:
        return encode(outcome.structured).decode()
    return text


def _total(usages: Sequence[Usage | None]) -> Usage | None:
    """The counts of all rounds; what one does not tell is not known of the run."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None

    def total(name: str, *, is_always_told: bool = False) -> int | None:
        counts = [getattr(usage, name) for usage in known]
        missing = counts.count(None)
        # A provider that says nothing of cached or reasoning tokens had none; what went in and out is never none.
        return None if missing == len(counts) or (is_always_told and missing) else sum(count or 0 for count in counts)

    return Usage(
        input_tokens=total("input_tokens", is_always_told=True),
        output_tokens=total("output_tokens", is_always_told=True),
        cached_tokens=total("cached_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        reasoning_tokens=total("reasoning_tokens"),
        cache_write_1h_tokens=total("cache_write_1h_tokens"),
    )
