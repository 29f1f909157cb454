"""Exchanges, runs and tool calls as spans, by OpenTelemetry's conventions for generative AI.

Each run is one trace, with its requests and tools below it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from sightline.agent.core.facts import RunBegan, RunEnded, RunFact
from sightline.agent.core.limits import total_usage, usage_of
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import Replied, RunnableCall
from sightline.agent.service.run_log import conversation_of
from sightline.catalog.provider import OPENTELEMETRY_NAMES
from sightline.dialects.registry import dialect, find_dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.exchange.client_request import SESSIONS
from sightline.model.exchange import (
    RAW_HTTP,
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
from sightline.wire.jsontext import decode, encode

_SYSTEM = ("system", "developer")
_FINISHES = {"tool_calls": "tool_call"}


def system_parts(request: Request) -> list[Json]:
    """The instructions."""
    return [part for message in request.messages if message.role in _SYSTEM for part in _parts(message.parts)]


def input_messages(request: Request) -> list[Json]:
    """The conversation without the instructions."""
    return [
        {"role": message.role, "parts": list(_parts(message.parts))}
        for message in request.messages
        if message.role not in _SYSTEM
    ]


def output_message(choice: Choice) -> JsonObject:
    """One answer."""
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


ENDS = (ExchangeFinished, ExchangeFailed, ExchangeCancelled, Dropped)
_CLIENT, _ERROR = 3, 2
_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}.*")
_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
_OPTIONS: Mapping[str, str] = {
    "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed",
    "stop": "stop_sequences", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
    "n": "choice.count",
}  # fmt: skip


def span(
    facts: Sequence[FactEntry],
    bodies: Mapping[str, bytes],
    place: tuple[str, str] | None = None,
    conversation: str = "",
) -> JsonObject:
    """The span of an exchange that has ended. With bodies it tells what was said, and with none it does not.

    `place` is the trace and the span that it is below, and `conversation` whose it is, where a run knows.
    """
    received = next(entry.fact for entry in facts if isinstance(entry.fact, Received))
    attempt = next((entry.fact for entry in reversed(facts) if isinstance(entry.fact, AttemptStarted)), None)
    end = facts[-1].fact
    trace, parent = place or _place(received, facts[0].exchange)
    values: dict[str, Json] = {
        **identity(facts),
        "gen_ai.conversation.id": received.conversation or conversation or received.session or _session_of(received),
        "user_agent.original": received.client,
        "sightline.exchange": facts[0].exchange,
        "sightline.dialect": received.dialect,
        "sightline.attempts": None if attempt is None else attempt.number,
        **_outcome(end),
    }
    if bodies:
        values |= _content(received, attempt, facts, bodies)
    name = f"{values['gen_ai.operation.name']} {values['gen_ai.request.model']}".strip() or received.method
    failure = end.message if isinstance(end, ExchangeFailed) else end.reason if isinstance(end, Dropped) else None
    times = facts[0].at, facts[-1].at
    return _span((trace, hash_of(facts[0].exchange)[32:48], parent), name, _CLIENT, times, values, failure)


def _span(
    place: tuple[str, str, str],
    name: str,
    kind: int,
    times: tuple[float, float],
    values: Mapping[str, Json],
    failure: str | None,
) -> JsonObject:
    """A span as OTLP writes it. `place` is its trace, its id and its parent, which may be empty."""
    trace, span_id, parent = place
    shown: JsonObject = {
        "traceId": trace,
        "spanId": span_id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(times[0]),
        "endTimeUnixNano": nanoseconds(times[1]),
        "attributes": attributes(values),
    }
    if parent:
        shown["parentSpanId"] = parent
    if failure is not None:
        shown["status"] = {"code": _ERROR, "message": failure}
    return shown


def identity(facts: Sequence[FactEntry]) -> dict[str, Json]:
    """What was done, and by whom: the attributes that spans and metrics share."""
    received = next(entry.fact for entry in facts if isinstance(entry.fact, Received))
    attempt = next((entry.fact for entry in reversed(facts) if isinstance(entry.fact, AttemptStarted)), None)
    url = urlsplit("" if attempt is None else attempt.url)  # empty where the address is not on record
    return {
        "gen_ai.operation.name": _operation((attempt or received).dialect),
        "gen_ai.provider.name": "" if attempt is None else provider_name(attempt.provider),
        "gen_ai.request.model": (attempt.model if attempt else "") or received.model,
        "server.address": url.hostname or "",
        "server.port": url.port or _PORTS.get(url.scheme),
    }


def _operation(name: str) -> str:
    """What is done in a dialect; what is passed on as it came is nothing that the conventions know."""
    spoken = find_dialect(name)
    return "" if name == RAW_HTTP else "chat" if spoken is None else spoken.operation


def provider_name(name: str) -> str:
    """A provider as the conventions call it."""
    return OPENTELEMETRY_NAMES.get(name, name)


def _session_of(received: Received) -> str:
    """The conversation as the client itself names it."""
    named = {name.lower(): value for name, value in received.headers}
    return next((named[name] for name in SESSIONS if named.get(name)), "")


def attributes(values: Mapping[str, Json]) -> list[Json]:
    """Names and values as OTLP writes them; what is not known is left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value not in (None, "", [])]


def _outcome(end: Fact) -> dict[str, Json]:
    values: dict[str, Json] = {}
    if isinstance(end, ExchangeFinished | ExchangeFailed):
        usage = end.usage
        values["http.response.status_code"] = end.status or None
        if usage is not None:
            values |= {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            }
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
    """What was said, as far as it can be read."""
    values: dict[str, Json] = {}
    spoken = (attempt.dialect if attempt else "") or received.dialect
    request = _request(received.dialect, bodies.get(received.sha256, b""))
    if request is not None:
        values["gen_ai.system_instructions"] = _text(system_parts(request))
        values["gen_ai.input.messages"] = _text(input_messages(request))
        options: JsonObject = msgspec.to_builtins(request.options)
        values |= {f"gen_ai.request.{name}": options.get(ours) for ours, name in _OPTIONS.items()}
    reply = _reply(spoken, (entry.fact.data for entry in facts if isinstance(entry.fact, FrameArrived)))
    if reply is not None:
        values["gen_ai.response.id"] = reply.id
        values["gen_ai.output.messages"] = _text([output_message(choice) for choice in reply.choices])
    return values


def _request(spoken: str, body: bytes) -> Request | None:
    try:
        return dialect(spoken).read_request(decode(body))
    except (Fault, RecursionError, ValueError):
        return None  # it was sent as it is; that it is odd is no reason to tell nothing of it


def _reply(spoken: str, frames: Iterable[bytes]) -> Reply | None:
    try:
        hearing = ReplyDecoder(dialect(spoken))
        reply = fold([*(event for data in frames for event in hearing.feed(data)), *hearing.close()], spoken)
    except (Fault, RecursionError, ValueError):
        return None
    return reply if any(choice.parts for choice in reply.choices) else None


def _text(value: list[Json]) -> str:
    return encode(value).decode() if value else ""


def _place(received: Received, exchange: str) -> tuple[str, str]:
    """The trace that the client is in, and its span there; a trace of its own where it is in none."""
    headers = (value for name, value in received.headers if name.lower() == "traceparent")
    found = _PARENT.fullmatch(next(headers, "").strip().lower())
    if found is not None and int(found[1], 16) and int(found[2], 16):
        return found[1], found[2]
    return hash_of(exchange)[:32], ""


def hash_of(exchange: str) -> str:
    """Where the ids of spans and traces come from: the same name gives the same ones in every process."""
    return hashlib.sha256(exchange.encode()).hexdigest()


def nanoseconds(at: float) -> str:
    """A time of day as OTLP writes it."""
    return str(int(at * 1_000_000) * 1000)


def _value(value: Json) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}


AGENT = "sightline"
_INTERNAL = 1
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
    values: dict[str, Json] = {
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
    failure = f"the run ended: {end.why}" if end.why in _FAILED else None
    times = facts[0][0], facts[-1][0]
    return _span((*place_of(run), ""), f"invoke_agent {AGENT}", _INTERNAL, times, values, failure)


def tool_span(
    run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome, *, with_content: bool
) -> JsonObject:
    """The span of a tool that was run; with content it tells the arguments and the result."""
    trace, parent = place_of(run)
    values: dict[str, Json] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": AGENT,
        "error.type": "tool_error" if outcome.is_error else None,
    }
    if with_content:
        arguments = call.arguments
        values["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else encode(arguments).decode()
        values["gen_ai.tool.call.result"] = _result(outcome)
    place = trace, hash_of(f"{run} {call.key} {began}")[32:48], parent
    failure = "the tool reports an error" if outcome.is_error else None
    return _span(place, f"execute_tool {call.name}", _INTERNAL, (began, ended), values, failure)


def _result(outcome: ToolOutcome) -> str:
    if outcome.structured is not None:
        return encode(outcome.structured).decode()
    words = "".join(part.text for part in outcome.parts if isinstance(part, Text))
    return words or encode([{"type": each["type"]} for each in msgspec.to_builtins(outcome.parts)]).decode()
