"""The interface of targets: questions, answers and costs, and how replies and runs become observations for graders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from sightline.agent.core.limits import total_usage
from sightline.agent.core.rounds import CallRecord, FinishedRun, answer_of
from sightline.agent.core.tool import words_of
from sightline.catalog.choose import ModelChoice
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.evals.core.target import TargetSpec
from sightline.exchange.interception.holds import Changes
from sightline.model.json import Json
from sightline.model.parts import Part, Refusal, Text, ToolCall
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message, Tool
from sightline.tokens.cost import cost_of
from sightline.wire.jsontext import decode


class Spending:
    """Dollars spent at known prices; `unknown` counts requests whose price is not known. A budget can only limit known
    costs; the report says how many requests that leaves out."""

    def __init__(self, costs: Iterable[float | None] = ()) -> None:
        self.spent = 0.0
        self.unknown = 0
        for cost in costs:
            self.spend(cost)

    def spend(self, cost: float | None) -> None:
        """Add a cost; None if it is not known."""
        if cost is None:
            self.unknown += 1
        else:
            self.spent += cost


def check_priced(choice: ModelChoice) -> None:
    """Raise a fault if a run has a budget and the model's prices are not known."""
    prices = choice.facts.prices
    if prices is None or None in (prices.input, prices.output):
        message = f"there is a budget, and the prices of {choice.model} are not known"
        raise Fault(Code.USAGE, message, hint=f'Tell them in [models."{choice.model}"], or leave the budget out.')


@dataclass(frozen=True, slots=True)
class CaseQuestion:
    """One question: its messages, and the same as one text. `files` are the case's files, below the suites' folder.
    `trial` distinguishes repeated questions. `tools` are declared to the model and never run; a target that cannot
    declare them refuses the question."""

    case: str
    messages: tuple[Message, ...]
    question: str = ""
    trial: int = 0
    files: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """An answer. `is_cached` means that nothing was sent. `changes` are a user's edits of the held question."""

    observation: CaseObservation
    is_cached: bool = False
    changes: Changes = ()


class CaseTarget(Protocol):
    """Answers questions. Failures are reported in the answer and not raised."""

    @property
    def spec(self) -> TargetSpec: ...

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """Answer a question. Cancelling ends everything that was started for it."""

    async def close(self) -> None: ...


def no_answer(wanted: CaseQuestion, fault: Fault, cost: float | None = None) -> TargetAnswer:
    """An answer that reports a fault. `cost` is 0 if nothing was sent, None if it is unknown."""
    observation = CaseObservation(
        asked=wanted.messages,
        question=wanted.question,
        error=describe_fault(fault),
        error_code=fault.code.value,
        requests=0,
        cost=cost,
    )
    return TargetAnswer(observation)


def refuse_tools(wanted: CaseQuestion, target: str, why: str) -> TargetAnswer | None:
    """The answer of a target that cannot declare tools to a case that does; None if the case declares none."""
    if not wanted.tools:
        return None
    names = ", ".join(getattr(each, "name", "a server's") for each in wanted.tools[:8])
    hint = "Ask a model without toolsets, or take `tools` out of the case."
    message = f"the case declares tools ({names}), and {target} {why}"
    return no_answer(wanted, Fault(Code.USAGE, message, hint=hint), cost=0.0)


def observe_reply(reply: Reply, choice: ModelChoice) -> CaseObservation:
    """The observation of one reply. An interrupted reply is kept, with its error."""
    parts = tuple((msgspec.structs.replace(part, at="", extras={})) for part in reply.choice.parts)
    cost = None if reply.usage is None else cost_of(reply.usage, choice.prices_for(reply.model or ""))
    return CaseObservation(
        messages=(Message("assistant", parts),) if parts else (),
        text=text_of(parts),
        tools=tuple(
            ToolUse(name=part.name, arguments=arguments_of(part.arguments), id=part.id)
            for part in parts
            if isinstance(part, ToolCall)
        ),
        finish=reply.choice.finish or "",
        usage=None if reply.usage is None else msgspec.structs.replace(reply.usage, at="", extras={}),
        cost=None if cost is None else cost.dollars,
        model=reply.model or choice.model,
        error=describe_fault(reply.fault),
        error_code="" if reply.fault is None else reply.fault.code.value,
    )


def observe_run(ended: FinishedRun, run: str, choice: ModelChoice, seconds: dict[str, float]) -> CaseObservation:
    """The observation of a run with tools. `seconds` is the duration of each call by its key. A run that hit a limit
    has no answer."""
    given = answer_of(ended)
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
        finish=last.finish or (ended.rounds[-1].finish or "" if ended.rounds else ""),
    )


def text_of(parts: Sequence[Part]) -> str:
    """The text of an answer, including a refusal's text."""
    return "".join(part.text for part in parts if isinstance(part, Text | Refusal))


def arguments_of(text: str) -> Json:
    """Decode a tool call's arguments; the text itself if it is not JSON."""
    try:
        return decode(text) if text else {}
    except Fault:
        return text


def describe_fault(fault: Fault | None) -> str:
    """A fault's message and hint in one line; empty for None."""
    if fault is None:
        return ""
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def _use(call: CallRecord, seconds: dict[str, float]) -> ToolUse:
    ran: Json = call.ran if call.ran is not None else arguments_of(call.arguments)
    return ToolUse(
        name=call.name,
        arguments=ran,
        result="" if call.outcome is None else words_of(call.outcome),
        is_error=call.outcome is None or call.outcome.is_error,
        id=call.sent_id or call.id,
        seconds=seconds.get(call.key),
    )


def _total(usages: Sequence[Usage | None]) -> Usage | None:
    """The usage of all rounds together; None if one round has none."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    total = total_usage(known)
    # A missing count of cached or reasoning tokens means zero; input and output counts are never zero.
    return msgspec.structs.replace(
        total,
        input_tokens=None if any(usage.input_tokens is None for usage in known) else total.input_tokens,
        output_tokens=None if any(usage.output_tokens is None for usage in known) else total.output_tokens,
    )
