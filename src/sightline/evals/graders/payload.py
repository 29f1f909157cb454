"""What a command or a function is told of a case: one object, with the names that AgentV's graders read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import assert_never

from sightline.evals.graders.expectation import plain_text
from sightline.evals.graders.subject import Subject
from sightline.evals.graders.wording import compact, words_of
from sightline.evals.observation import Observation, ToolUse
from sightline.evals.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Image, Inline, Link, ToolCall, ToolResult


def payload_of(subject: Subject, config: JsonObject | None) -> JsonObject:
    """All of it. What is not known is null."""
    observation, grading = subject.observation, subject.grading
    said = _messages(observation.messages, observation.tools)
    milliseconds = None if observation.seconds is None else observation.seconds * 1000
    trace: JsonObject = {"messages": said, **_counts(observation)}
    return {
        "criteria": grading.criteria,
        "expected_output": _expected(subject),
        "output": subject.text,
        "messages": said,
        "input": _messages(grading.messages or observation.asked, ()),
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
        "file_changes": grading.file_changes or None,
        "workspace_path": None,
        "config": config,
    }


def asserted_of(subject: Subject, reference: str) -> JsonObject:
    """The little that an inline assertion is told."""
    grading = subject.grading
    return {
        "input": grading.question or subject.observation.question,
        "output": subject.text,
        "expected_output": reference or None,
        "criteria": grading.criteria,
        "metadata": grading.metadata or None,
    }


def _expected(subject: Subject) -> list[Json]:
    grading = subject.grading
    if grading.expected:
        return [_case_message(message, grading.expected_value) for message in grading.expected]
    return [] if grading.expected_value is None else [{"role": "assistant", "content": grading.expected_value}]


def _case_message(message: CaseMessage, value: Json) -> JsonObject:
    calls: list[Json] = [
        {"tool": segment.name, "input": segment.arguments, **({"id": segment.id} if segment.id else {})}
        for segment in message.segments
        if isinstance(segment, CallSegment)
    ]
    blocks = [block for segment in message.segments if (block := _segment(segment))]
    plain = all(isinstance(segment, TextSegment | CallSegment) for segment in message.segments)
    content: Json = plain_text(message) if plain else list[Json](blocks)
    if isinstance(value, dict) and message.role == "assistant":
        content = value
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}


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
    content: Json = "\n".join(_text(part) if isinstance(part, ToolResult) else words_of([part]) for part in parts)
    if images:
        content = [_block(part) if isinstance(part, Image) else _text_block(words_of([part])) for part in parts]
    return {"role": message.role, "content": content, **({"tool_calls": calls} if calls else {})}


def _text(result: ToolResult) -> str:
    return words_of(result.parts) if result.structured is None else compact(result.structured)


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


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
        "duration_ms": None if use.seconds is None else use.seconds * 1000,
    }


def _counts(observation: Observation) -> JsonObject:
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


def _tokens(observation: Observation) -> Json:
    usage = observation.usage
    if usage is None:
        return None
    return {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
