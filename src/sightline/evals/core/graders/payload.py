"""The JSON object that a command or a function gets for a case, with the names that AgentV's graders read.

AgentV's SDK rejects the whole object if one value has an unexpected type: where it accepts no null, there is none, and
roles are the four that it knows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from sightline.errors import Fault
from sightline.evals.core.graders.expectation import compact, plain_text, words_of
from sightline.evals.core.graders.finding import GradingSubject
from sightline.evals.core.reading.messages import take_call
from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Image, Inline, Link, ToolCall, ToolResult
from sightline.model.request import Message, Role
from sightline.wire.jsontext import decode


def payload_of(subject: GradingSubject, config: JsonObject | None) -> JsonObject:
    """The complete payload. Unknown values are null."""
    observation, grading = subject.observation, subject.grading
    before = _before(subject)
    # A call in the history may have the same id as a later one, whose result is not its own.
    messages = [*_messages(before, ()), *_messages(observation.messages, observation.tools)]
    milliseconds = None if observation.seconds is None else observation.seconds * 1000
    trace: JsonObject = {"messages": messages, "events": _events(before, observation), **_counts(observation)}
    return {
        "criteria": grading.criteria,
        "expected_output": _reference_messages(subject),
        "output": subject.text,
        "messages": messages,
        "input": _messages(_messages_before(subject), ()),
        "input_files": list(grading.input_files),
        "metadata": grading.metadata or None,
        "question": grading.question or observation.question,
        "trace": trace,
        "trace_summary": _counts(observation),
        "token_usage": _tokens(observation),
        "cost_usd": observation.cost,
        "duration_ms": milliseconds,
        "start_time": None,
        "end_time": None,
        "file_changes": None,
        "workspace_path": None,
        "config": config,
    }


def _messages_before(subject: GradingSubject) -> tuple[Message, ...]:
    return subject.grading.messages or subject.observation.asked


def _before(subject: GradingSubject) -> tuple[Message, ...]:
    """The input that comes before the answer, as in AgentV; a whole conversation already begins with its input."""
    before = _messages_before(subject)
    return () if subject.observation.messages[: len(before)] == before else before


def payload_for_assertion(subject: GradingSubject, reference: str) -> JsonObject:
    """The shorter payload of an inline assertion."""
    grading = subject.grading
    return {
        "input": grading.question or subject.observation.question,
        "output": subject.text,
        "expected_output": reference or None,
        "criteria": grading.criteria,
        "metadata": grading.metadata or None,
    }


def _reference_messages(subject: GradingSubject) -> list[Json]:
    grading, value = subject.grading, subject.grading.expected_value
    if grading.expected:
        outputs = _outputs(grading.expected)
        return [_case_message(message, value, outputs) for message in grading.expected]
    if value is None:
        return []
    return [{"role": "assistant", "content": value if isinstance(value, dict) else compact(value)}]


def _outputs(messages: Iterable[CaseMessage]) -> dict[int, str]:
    """The result of each expected call, because graders look for it in the call."""
    outputs: dict[int, str] = {}
    waiting: list[CallSegment] = []
    for message in messages:
        if message.role != "tool":
            waiting += [segment for segment in message.segments if isinstance(segment, CallSegment)]
            continue
        call = take_call(message, waiting)
        if call is not None:
            outputs[id(call)] = plain_text(message)
    return outputs


def _case_message(message: CaseMessage, value: Json, outputs: Mapping[int, str]) -> JsonObject:
    calls: list[Json] = [
        {
            "tool": segment.name,
            "input": segment.arguments,
            **({"id": segment.id} if segment.id else {}),
            **({"output": _value(outputs[id(segment)])} if id(segment) in outputs else {}),
        }
        for segment in message.segments
        if isinstance(segment, CallSegment)
    ]
    blocks = [block for segment in message.segments if (block := _segment(segment))]
    plain = all(isinstance(segment, TextSegment | CallSegment) for segment in message.segments)
    content: Json = plain_text(message) if plain else list[Json](blocks)
    if isinstance(value, dict) and message.role == "assistant":
        content = value
    return {"role": _role(message.role), "content": content, **({"tool_calls": calls} if calls else {})}


def _value(text: str) -> Json:
    """A result as it is in the suite: a text that contains an object or a list is decoded."""
    try:
        value = decode(text)
    except Fault:
        return text
    return value if isinstance(value, dict | list) else text


def _segment(segment: Segment) -> JsonObject | None:
    match segment:
        case TextSegment(text=text):
            return {"type": "text", "text": text}
        case FileSegment(path=path):
            return {"type": "file", "path": path}
        case ImageSegment(path=path):
            return {"type": "image", "path": path}
        case CallSegment():
            return None
        case unreachable:
            assert_never(unreachable)


def _messages(messages: Iterable[Message], tools: Iterable[ToolUse]) -> list[Json]:
    uses = {use.id: use for use in tools if use.id}
    return [_message(message, uses) for message in messages]


def _message(message: Message, uses: Mapping[str, ToolUse]) -> JsonObject:
    calls: list[Json] = [_call(part, uses) for part in message.parts if isinstance(part, ToolCall)]
    images = [part for part in message.parts if isinstance(part, Image)]
    parts = [part for part in message.parts if not isinstance(part, ToolCall)]
    content: Json = "\n".join(
        (words_of(part.parts) if part.structured is None else compact(part.structured))
        if isinstance(part, ToolResult)
        else words_of([part])
        for part in parts
    )
    if images:
        content = [
            _block(part) if isinstance(part, Image) else ({"type": "text", "text": words_of([part])}) for part in parts
        ]
    return {"role": _role(message.role), "content": content, **({"tool_calls": calls} if calls else {})}


def _role(role: Role) -> str:
    return "system" if role == "developer" else role


def _block(image: Image) -> JsonObject:
    match image.source:
        case Inline(media_type=media_type, data=data):
            return {"type": "image", "media_type": media_type, "source": f"data:{media_type};base64,{data}"}
        case Link(url=url, media_type=media_type):
            return {"type": "image", "media_type": media_type, "source": url}
        case _:
            return {"type": "image", "media_type": "", "source": ""}


def _call(call: ToolCall, uses: Mapping[str, ToolUse]) -> JsonObject:
    use = uses.get(call.id)
    if use is None:
        return {"tool": call.name, "input": call.arguments, "id": call.id}
    return {
        "tool": use.name,
        "input": use.arguments,
        "output": use.result,
        "id": call.id,
        "status": "error" if use.is_error else "ok",
        **_duration(use),
    }


def _duration(use: ToolUse) -> JsonObject:
    return {} if use.seconds is None else {"duration_ms": use.seconds * 1000}


def _events(before: Sequence[Message], observation: CaseObservation) -> list[Json]:
    """Each message with the calls in it, then calls that are in no message, then the answer, with ordinals."""
    events: list[JsonObject] = []
    unseen = list(observation.tools)
    last: JsonObject | None = None
    for index, message in enumerate((*before, *observation.messages)):
        shown = _message(message, {})
        shown.pop("tool_calls", None)
        name = f"message-{index}"
        events.append({"event_id": name, "type": "message", "message": shown})
        if message.role == "assistant":
            last = {"event_id": "final-response", "parent_event_id": name, "type": "final_response", "message": shown}
        ids = {part.id for part in message.parts if isinstance(part, ToolCall)} if index >= len(before) else set()
        found = [use for use in unseen if use.id and use.id in ids]
        unseen = [use for use in unseen if use not in found]
        for number, use in enumerate(found):
            events.append({"event_id": f"{name}-tool-{number}", "parent_event_id": name, **_tool_event(use)})
    events += [{"event_id": f"tool-{number}", **_tool_event(use)} for number, use in enumerate(unseen)]
    events += [] if last is None else [last]
    return [{**event, "ordinal": number} for number, event in enumerate(events)]


def _tool_event(use: ToolUse) -> JsonObject:
    tool: JsonObject = {
        "name": use.name,
        "call_id": use.id,
        "input": use.arguments,
        "output": use.result,
        "status": "error" if use.is_error else "ok",
    }
    return {"type": "tool_call", "tool": tool, **_duration(use)}


def _counts(observation: CaseObservation) -> JsonObject:
    durations: dict[str, list[Json]] = {}
    for use in observation.tools:
        if use.seconds is not None:
            durations.setdefault(use.name, []).append(use.seconds * 1000)
    return {
        "event_count": len(observation.tools),
        "tool_calls": dict(Counter(use.name for use in observation.tools)),
        "error_count": sum(use.is_error for use in observation.tools),
        "tool_durations": dict(durations),
        "llm_call_count": observation.requests,
    }


def _tokens(observation: CaseObservation) -> Json:
    usage = observation.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached: JsonObject = {} if usage.cached_tokens is None else {"cached": usage.cached_tokens}
    return {"input": usage.input_tokens, "output": usage.output_tokens, **cached}
