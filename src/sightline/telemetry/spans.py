"""Spans of exchanges, runs, tool calls and eval runs, according to OpenTelemetry's conventions for generative AI.

A run is one trace, with its requests and tools below it.
An eval run is a workflow, each case a span below it, each score an event. Its exchanges are in its trace, too. If a
case runs an agent, that run has its own trace, to which the case links.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from sightline.agent.core.facts import RunBegan, RunEnded, RunFact
from sightline.agent.core.limits import total_usage, usage_of
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.service.run_log import conversation_of
from sightline.catalog.provider import OPENTELEMETRY_NAMES
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.evals.core.result import CaseResult, Score
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.eval_log import PREFIX
from sightline.exchange.client_request import SESSIONS
from sightline.model.exchange import (
    AttemptStarted,
    Dropped,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
)
from sightline.model.fold import fold
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.request import Request
from sightline.store.entries import FactEntry
from sightline.telemetry import otlp
from sightline.telemetry.metrics import identity_labels
from sightline.telemetry.otlp import SpanContext, span_of, trace_of, write_event, write_span
from sightline.wire.jsontext import decode, encode

_SYSTEM = ("system", "developer")
_FINISHES = {"tool_calls": "tool_call"}


def system_parts(request: Request) -> list[Json]:
    return [part for message in request.messages if message.role in _SYSTEM for part in _parts(message.parts)]


def input_messages(request: Request) -> list[Json]:
    return [
        {"role": message.role, "parts": list(_parts(message.parts))}
        for message in request.messages
        if message.role not in _SYSTEM
    ]


def output_message(choice: Choice) -> JsonObject:
    finish = choice.finish or "error"
    return {
        "role": "assistant",
        "parts": list(_parts(choice.parts)),
        "finish_reason": _FINISHES.get(finish, finish),
    }


def _parts(parts: Iterable[Part]) -> Iterator[Json]:
    for part in parts:
        match part:
            case Text(text=text) | Refusal(text=text):
                yield {"type": "text", "content": text}
            case Thinking(text=text) if text:
                yield {"type": "reasoning", "content": text}
            case ToolCall(id=name, name=tool, arguments=arguments):
                yield {"type": "tool_call", "id": name, "name": tool, "arguments": arguments}
            case ToolResult(id=name, parts=inner, structured=structured):
                words: Json = "".join(each.text for each in inner if isinstance(each, Text))
                yield {
                    "type": "tool_call_response",
                    "id": name,
                    "response": words if structured is None else dict(structured),
                }
            case _:
                yield {"type": type(part).__name__.lower()}


_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}.*")
_OPTIONS = {"max_tokens": "max_tokens", "seed": "seed", "stop": "stop_sequences", "n": "choice.count"}
_FLOAT_OPTIONS = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
"""Options that the conventions define as floating-point numbers, even if a client sent an integer."""
FAULT_EVENT = "gen_ai.client.operation.exception"


def span(
    facts: Sequence[FactEntry], bodies: Mapping[str, bytes], run: str = "", *, cost: float | None = None
) -> JsonObject:
    """The span of an exchange that has ended. It includes prompts and replies if there are bodies. `run` is the run
    that the exchange is part of; `cost` is its cost in dollars, if that is known."""
    received, attempt = find_received(facts), attempt_of(facts)
    end = facts[-1].fact
    model = (attempt.model if attempt else "") or received.model
    is_sent = attempt is not None
    provider, url = (attempt.provider, attempt.url) if attempt else ("", "")
    shared = dict(identity_labels(provider, model, attempt.dialect if attempt else received.dialect, url))
    values: dict[str, Json] = {
        **shared,
        "gen_ai.request.stream": received.is_stream or None,
        "gen_ai.conversation.id": received.conversation or run or received.session or _session_of(received),
        "user_agent.original": received.client,
        "sightline.exchange": facts[0].exchange,
        "sightline.dialect": received.dialect,
        "sightline.attempts": attempt.number if attempt else None,
        "sightline.cost.usd": cost,
        **_outcome(end, is_stream=received.is_stream and is_sent),
    }
    if bodies:
        values |= _content(received, attempt, facts, bodies)
    name = f"{shared.get('gen_ai.operation.name', '')} {model}".strip() or received.method
    failure = end.message if isinstance(end, ExchangeFailed) else end.reason if isinstance(end, Dropped) else None
    times = facts[0].at, facts[-1].at
    return write_span(exchange_place(facts, run), name, otlp.CLIENT, times, values, failure=failure)


def find_received(facts: Sequence[FactEntry]) -> Received:
    """The fact with the client's request."""
    return next(entry.fact for entry in facts if isinstance(entry.fact, Received))


def attempt_of(facts: Sequence[FactEntry]) -> AttemptStarted | None:
    """The last attempt to send the request; None if nothing was sent."""
    return next((entry.fact for entry in reversed(facts) if isinstance(entry.fact, AttemptStarted)), None)


def exchange_place(facts: Sequence[FactEntry], run: str = "") -> SpanContext:
    """The position of an exchange's span: below its run, otherwise below the client's own span, otherwise in the trace
    of its session, otherwise in a trace of its own."""
    received, own = find_received(facts), span_of(facts[0].exchange)
    if run:
        return SpanContext(trace_of(run), own, span_of(run))
    headers = (value for name, value in received.headers if name.lower() == "traceparent")
    found = _PARENT.fullmatch(next(headers, "").strip().lower())
    if found is not None and int(found[1], 16) and int(found[2], 16):
        return SpanContext(found[1], own, found[2])
    if received.session.startswith(PREFIX):
        return SpanContext(trace_of(received.session), own, span_of(received.session))
    if session := received.conversation or _session_of(received):
        return SpanContext(trace_of(session), own)
    if received.session:
        # A label may be in use for months, and no collector accepts a trace of that length: one trace for each day.
        day = datetime.fromtimestamp(facts[0].at, UTC).date().isoformat()
        return SpanContext(trace_of(f"{received.session} {day}"), own)
    return SpanContext(trace_of(facts[0].exchange), own)


def fault_events(facts: Sequence[FactEntry], run: str = "") -> list[JsonObject]:
    """A log record for each failed attempt of an exchange, and for the fault that ended it."""
    place = exchange_place(facts, run)
    model = (attempt.model if (attempt := attempt_of(facts)) else "") or find_received(facts).model
    events: list[JsonObject] = []
    for entry in facts:
        match entry.fact:
            case AttemptStarted(number=number, reason=kind, detail=message) if number > 1 and kind:
                hint = ""
            case ExchangeFailed(code=kind, message=message, hint=hint):
                pass
            case _:
                continue
        values: dict[str, Json] = {
            "exception.type": kind,
            "exception.message": message,
            "gen_ai.request.model": model,
            "sightline.exchange": entry.exchange,
            "sightline.hint": hint,
        }
        events.append(write_event(place, FAULT_EVENT, otlp.WARN, entry.at, values))
    return events


def _session_of(received: Received) -> str:
    """The conversation id that the client itself sends; empty if there is none."""
    named = {name.lower(): value for name, value in received.headers}
    return next((named[name] for name in SESSIONS if named.get(name)), "")


def _outcome(end: Fact, *, is_stream: bool) -> dict[str, Json]:
    values: dict[str, Json] = {}
    if isinstance(end, ExchangeFinished | ExchangeFailed | ExchangeCancelled) and (usage := end.usage) is not None:
        values |= {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            "gen_ai.usage.audio.input_tokens": usage.audio_input_tokens,
            "gen_ai.usage.audio.output_tokens": usage.audio_output_tokens,
            "sightline.usage.estimated": usage.is_estimated or None,
        }
    if isinstance(end, ExchangeFinished | ExchangeFailed):
        values["http.response.status_code"] = end.status or None
        values["gen_ai.response.time_to_first_chunk"] = end.first_byte or None if is_stream else None
        values["sightline.time_to_first_byte"] = end.first_byte or None
    match end:
        case ExchangeFinished(finish=finish, model=model):
            values |= {"gen_ai.response.model": model, "gen_ai.response.finish_reasons": [finish]}
        case ExchangeFailed(code=code):
            values["error.type"] = code
        case ExchangeCancelled(reason=reason):
            values |= {"error.type": "cancelled", "sightline.cancel_reason": reason}
        case Dropped():
            values["error.type"] = "dropped"
        case _:
            pass
    return values


def _content(
    received: Received, attempt: AttemptStarted | None, facts: Sequence[FactEntry], bodies: Mapping[str, bytes]
) -> dict[str, Json]:
    """The prompt and the reply, if they can be read."""
    values: dict[str, Json] = {}
    spoken = (attempt.dialect if attempt else "") or received.dialect
    request = _request(received.dialect, bodies.get(received.sha256, b""))
    if request is not None:
        values["gen_ai.system_instructions"] = _text(system_parts(request))
        values["gen_ai.input.messages"] = _text(input_messages(request))
        options: JsonObject = msgspec.to_builtins(request.options)
        values |= {f"gen_ai.request.{name}": options.get(ours) for ours, name in _OPTIONS.items()}
        for name in _FLOAT_OPTIONS:
            value = options.get(name)
            values[f"gen_ai.request.{name}"] = float(value) if isinstance(value, int | float) else None
    reply = _reply(spoken, (entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)))
    if reply is not None:
        values["gen_ai.response.id"] = reply.id
        values["gen_ai.output.messages"] = _text([output_message(choice) for choice in reply.choices])
    return values


def _request(spoken: str, body: bytes) -> Request | None:
    try:
        return dialect(spoken).read_request(decode(body))
    except (Fault, RecursionError, ValueError):
        return None  # it was sent unchanged; the other attributes are exported nevertheless


def _reply(spoken: str, frames: Iterable[bytes]) -> Reply | None:
    try:
        hearing = ReplyDecoder(dialect(spoken))
        reply = fold([*(event for data in frames for event in hearing.feed(data)), *hearing.close()], spoken)
    except (Fault, RecursionError, ValueError):
        return None
    return reply if any(choice.parts for choice in reply.choices) else None


def _text(value: list[Json]) -> str:
    return encode(value).decode() if value else ""


def place_of(name: str) -> SpanContext:
    """The position of the span of a run or a session, which is the root of its trace."""
    return SpanContext(trace_of(name), span_of(name))


def run_span(run: str, facts: Sequence[tuple[float, RunFact]]) -> JsonObject | None:
    """The span of a run that has ended, from all of its facts; None if it has not ended."""
    began, end = facts[0][1], facts[-1][1]
    if not isinstance(began, RunBegan) or not isinstance(end, RunEnded):
        return None
    replies = [fact for _, fact in facts if isinstance(fact, Replied)]
    usage = total_usage(usage_of(each.reply.usage, None) for each in replies)
    values: dict[str, Json] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": otlp.AGENT,
        "gen_ai.agent.id": run,
        "gen_ai.conversation.id": conversation_of(began, run),
        "gen_ai.provider.name": OPENTELEMETRY_NAMES.get(began.provider, began.provider),
        "gen_ai.request.model": began.request.model,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "sightline.run.rounds": len(replies),
        "sightline.run.end": end.why,
        "error.type": end.why if end.why in otlp.FAILED_RUNS else None,
    }
    failure = f"the run ended: {end.why}" if end.why in otlp.FAILED_RUNS else None
    times = facts[0][0], facts[-1][0]
    return write_span(place_of(run), f"invoke_agent {otlp.AGENT}", otlp.INTERNAL, times, values, failure=failure)


def tool_span(
    run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome, *, with_content: bool
) -> JsonObject:
    """The span of a tool call; with content, it includes the arguments and the result."""
    above = place_of(run)
    values: dict[str, Json] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": otlp.AGENT,
        "error.type": "tool_error" if outcome.is_error else None,
    }
    if with_content:
        arguments = call.arguments
        values["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else encode(arguments).decode()
        values["gen_ai.tool.call.result"] = _result(outcome)
    place = SpanContext(above.trace, span_of(f"{run} {call.key} {began}"), above.span)
    failure = "the tool reports an error" if outcome.is_error else None
    return write_span(place, f"execute_tool {call.name}", otlp.INTERNAL, (began, ended), values, failure=failure)


def _result(outcome: ToolOutcome) -> str:
    if outcome.structured is not None:
        return encode(outcome.structured).decode()
    words = "".join(part.text for part in outcome.parts if isinstance(part, Text))
    return words or encode([{"type": each["type"]} for each in msgspec.to_builtins(outcome.parts)]).decode()


RESULT_EVENT = "gen_ai.evaluation.result"
_OPERATION = "evaluate"


def eval_span(run: str, state: EvalState) -> JsonObject:
    """The span of an eval run that has ended: from its beginning to the end of its last case."""
    suite, results = state.began.suite, state.results
    values: dict[str, Json] = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": suite.name,
        "sightline.eval.run": run,
        "sightline.eval.end": state.ended,
        "sightline.eval.cases": len(results),
        "sightline.eval.passed": sum(each.status == "ok" for each in results),
    }
    failure = None if state.ended == "finished" else f"the run ended: {state.ended}"
    times = state.began.at, max((each.at + each.seconds for each in results), default=state.began.at)
    # The session of its exchanges has the same name, so they are in the same trace.
    place, name = place_of(PREFIX + run), f"invoke_workflow {suite.name}"
    return write_span(place, name, otlp.INTERNAL, times, values, failure=failure)


def case_span(run: str, result: CaseResult) -> JsonObject:
    """The span of a case, with links to the spans of its requests or its run."""
    seen = result.observation
    links = [SpanContext(trace_of(PREFIX + run), span_of(each)) for each in seen.exchanges]
    if seen.run:
        links = [place_of(seen.run)]
    values: dict[str, Json] = {
        "gen_ai.operation.name": _OPERATION,
        "gen_ai.request.model": seen.model,
        "sightline.eval.run": run,
        "sightline.eval.case": result.case,
        "sightline.eval.target": result.target,
        "sightline.eval.trial": result.trial,
        "sightline.eval.status": result.status,
        "error.type": (seen.error_code or result.status) if result.status == "execution_error" else None,
    }
    failure = (
        (seen.error or result.score.reason or "the case has no result") if result.status == "execution_error" else None
    )
    times = result.at, result.at + result.seconds
    return write_span(
        _case_place(run, result), f"{_OPERATION} {result.suite or run}", otlp.INTERNAL, times, values,
        failure=failure, links=links,
    )  # fmt: skip


def result_events(run: str, result: CaseResult, *, with_content: bool) -> list[JsonObject]:
    """An event for each score of a case. A grader's explanation counts as content."""
    place, ended = _case_place(run, result), result.at + result.seconds
    return [
        write_event(
            place,
            RESULT_EVENT,
            otlp.WARN if each.verdict == "not_graded" else otlp.INFO,
            ended,
            _score_values(each, with_content=with_content),
        )
        for each in result.score.scores
    ]


def _score_values(score: Score, *, with_content: bool) -> dict[str, Json]:
    return {
        "gen_ai.evaluation.name": score.name or score.type,
        "gen_ai.evaluation.score.value": None if score.score is None else float(score.score),
        "gen_ai.evaluation.score.label": score.verdict,
        "gen_ai.evaluation.explanation": score.reason if with_content else None,
        "error.type": "not_graded" if score.verdict == "not_graded" else None,
    }


def _case_place(run: str, result: CaseResult) -> SpanContext:
    above = place_of(PREFIX + run)
    return SpanContext(above.trace, span_of(f"{run} {result.target} {result.case} {result.trial}"), above.span)
