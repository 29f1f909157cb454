"""Runs and the tools that they use as spans: one trace for each run, whose requests and tools are below it."""

from collections.abc import Sequence

import msgspec

from sightline.agent.core.account import total_usage, usage_of
from sightline.agent.core.facts import RunBegan, RunEnded, RunFact
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.agent.service.run_log import conversation_of
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.telemetry.spans import attributes, hash_of, nanoseconds, provider_name
from sightline.wire.jsontext import encode

AGENT = "sightline"
_INTERNAL, _ERROR = 1, 2
_FAILED = frozenset({"failed", "cancelled", "limit"})


def place_of(run: str) -> tuple[str, str]:
    """The trace of a run, and the run's own span in it."""
    return hash_of(run)[:32], hash_of(run)[32:48]


def run_span(run: str, facts: Sequence[tuple[float, RunFact]]) -> JsonObject | None:
    """The span of a run that has ended, from all of its facts; None where it has not."""
    began, end = facts[0][1], facts[-1][1]
    if not isinstance(began, RunBegan) or not isinstance(end, RunEnded):
        return None
    replies = [fact for _, fact in facts if isinstance(fact, Replied)]
    usage = total_usage(usage_of(each.reply.usage, None) for each in replies)
    told: dict[str, Json] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.id": run,
        "gen_ai.conversation.id": conversation_of(began, run),
        "gen_ai.provider.name": provider_name(began.provider),
        "gen_ai.request.model": began.request.model,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "sightline.run.rounds": len(replies),
        "sightline.run.end": end.why,
        "error.type": end.why if end.why in _FAILED else None,
    }
    trace, span = place_of(run)
    shown: JsonObject = {
        "traceId": trace,
        "spanId": span,
        "name": f"invoke_agent {AGENT}",
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(facts[0][0]),
        "endTimeUnixNano": nanoseconds(facts[-1][0]),
        "attributes": attributes(told),
    }
    if end.why in _FAILED:
        shown["status"] = {"code": _ERROR, "message": f"the run ended: {end.why}"}
    return shown


def tool_span(
    run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome, *, with_content: bool
) -> JsonObject:
    """The span of a tool that was run; with content it tells the arguments and the result."""
    trace, parent = place_of(run)
    told: dict[str, Json] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": AGENT,
        "error.type": "tool_error" if outcome.is_error else None,
    }
    if with_content:
        arguments = call.arguments
        told["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else encode(arguments).decode()
        told["gen_ai.tool.call.result"] = _result(outcome)
    shown: JsonObject = {
        "traceId": trace,
        "spanId": hash_of(f"{run} {call.key} {began}")[32:48],
        "parentSpanId": parent,
        "name": f"execute_tool {call.name}",
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(began),
        "endTimeUnixNano": nanoseconds(ended),
        "attributes": attributes(told),
    }
    if outcome.is_error:
        shown["status"] = {"code": _ERROR, "message": "the tool reports an error"}
    return shown


def _result(outcome: ToolOutcome) -> str:
    if outcome.structured is not None:
        return encode(outcome.structured).decode()
    words = "".join(part.text for part in outcome.parts if isinstance(part, Text))
    return words or encode([{"type": each["type"]} for each in msgspec.to_builtins(outcome.parts)]).decode()
