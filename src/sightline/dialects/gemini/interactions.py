"""Interactions, Google's API beside `generateContent`: reads its responses, whole or as a stream.

Requests are passed through unchanged; only their responses are read, to be shown and counted. An interaction has steps
(thoughts, outputs of the model, function calls); before 2026 it had outputs, and content events in place of steps.
Unknown fields stay in the raw response. https://ai.google.dev/api/interactions-api
"""

import re
from collections.abc import Iterator
from typing import Final

from sightline.dialects.fields import object_at, objects_in, whole_number, word_of
from sightline.dialects.gemini.errors import read_error
from sightline.dialects.gemini.field_names import NAME
from sightline.dialects.gemini.reply_fields import add_counts, read_time
from sightline.errors import Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    Finished,
    PartReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque
from sightline.model.reply import Finish, Usage
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import SseDecoder

_PATH: Final = re.compile(r"(?:.*/)?interactions(?:/[^/?]+(?:/cancel)?)?/*(?:\?.*)?")
_ENDS: Final[dict[Json, Finish]] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "cancelled",
}
_CLIENT_STEPS: Final = frozenset({"user_input", "function_result"})
"""Steps that the client made itself."""


def is_interaction(path: str) -> bool:
    """Whether a response at this path is an interaction."""
    return _PATH.fullmatch(path) is not None


def read_interaction(data: bytes) -> list[StreamEvent]:
    """The events of a response, as far as it has arrived; empty if it is not an interaction."""
    try:
        if data.lstrip().startswith(b"{"):
            return _InteractionReader().read_whole(object_at(decode(data)))
        decoder, reading = SseDecoder(), _InteractionReader()
        frames = [*decoder.feed(data), *decoder.close()]
        events = [event for frame in frames for event in reading.read_frame(object_at(_document(frame.data)))]
    except Fault:
        return []
    return events


def _document(data: bytes) -> Json:
    return decode(data) if data.startswith(b"{") else None  # the last frame is [DONE]


class _InteractionReader:
    """Assigns each piece of content its part. `_open` is the part that grows, by the step and the kind of content."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[tuple[Json, str], int] = {}
        self._calls: set[int] = set()

    def read_whole(self, document: JsonObject) -> list[StreamEvent]:
        """The events of a whole interaction, or of an error in its place."""
        if "error" in document and "status" not in document:
            return [Failed(read_error(0, document, {})), Ended()]
        if not document.keys() & {"steps", "outputs", "status"}:
            return []
        events: list[StreamEvent] = [_read_identity(document)]
        for index, step in objects_in(document.get("steps")) or objects_in(document.get("outputs")):
            events += self._step(index, step)
            events += self._close(index)
        return [*events, *_read_end(document), Ended()]

    def read_frame(self, event: JsonObject) -> list[StreamEvent]:
        index = event.get("index")
        match event.get("event_type"):
            case "interaction.created" | "interaction.start":
                return [_read_identity(object_at(event, "interaction"))]
            case "step.start" | "content.start":
                return list(self._step(index, object_at(event.get("step") or event.get("content"))))
            case "step.delta" | "content.delta":
                return list(self._delta(index, object_at(event, "delta")))
            case "step.stop" | "content.stop":
                return list(self._close(index))
            case "interaction.completed" | "interaction.complete":
                return [*_read_end(object_at(event, "interaction")), Ended()]
            case "error":
                return [Failed(read_error(0, event, {})), Ended()]
            case _:
                return []

    def _part(self, index: Json, kind: str) -> int:
        """The part of this content: the one that has begun, or a new one."""
        if (index, kind) not in self._open:
            self._open[index, kind] = self._count
            self._count += 1
        return self._open[index, kind]

    def _close(self, index: Json) -> Iterator[StreamEvent]:
        """The events at the end of a step: a call in it is complete."""
        part = self._open.get((index, "call"))
        if part is not None and part in self._calls:
            self._calls.discard(part)
            yield ToolCallCompleted(part)

    def _step(self, index: Json, step: JsonObject) -> Iterator[StreamEvent]:
        """The events of a step, or of a content of the older form, as far as it has arrived."""
        kind = step.get("type")
        if kind == "model_output":
            for _, content in objects_in(step.get("content")):
                yield from self._delta(index, content)
        elif kind == "thought":
            for _, content in objects_in(step.get("summary")):
                yield from self._delta(index, {"type": "thought_summary", "content": content})
            yield from self._delta(index, {"type": "thought_signature", "signature": step.get("signature")})
        elif kind is not None and kind not in _CLIENT_STEPS:
            yield from self._delta(index, step)

    def _delta(self, index: Json, delta: JsonObject) -> Iterator[StreamEvent]:
        """The events of a piece of content."""
        kind = delta.get("type")
        match kind:
            case "text":
                if text := word_of(delta, "text"):
                    yield TextReceived(self._part(index, "text"), text)
            case "thought_summary":
                if text := word_of(object_at(delta, "content"), "text"):
                    yield ThinkingReceived(self._part(index, "thought"), text, summary=True)
            case "thought_signature":
                if signature := word_of(delta, "signature"):
                    yield SignatureReceived(self._part(index, "thought"), signature, NAME)
            case "function_call":
                yield from self._call(index, delta)
            case "arguments_delta":
                yield ArgumentsReceived(self._part(index, "call"), word_of(delta, "arguments"))
            case _:
                yield PartReceived(self._part(index, f"{kind} {self._count}"), Opaque(NAME, delta))

    def _call(self, index: Json, call: JsonObject) -> Iterator[StreamEvent]:
        part, arguments = self._part(index, "call"), call.get("arguments")
        if part not in self._calls:
            self._calls.add(part)
            yield ToolCallBegun(part, word_of(call, "id"), word_of(call, "name"))
        if arguments:  # a stream begins without arguments, and sends them in pieces
            yield ArgumentsReceived(part, arguments if isinstance(arguments, str) else encode(arguments).decode())


def _read_identity(interaction: JsonObject) -> Started:
    named = [word_of(interaction, key) or None for key in ("id", "model", "agent")]
    return Started(named[0], named[1] or named[2], read_time(word_of(interaction, "created")))


def _read_end(interaction: JsonObject) -> Iterator[StreamEvent]:
    """The counts and the end that an interaction reports; no end while it is in progress."""
    counts = object_at(interaction, "usage")
    if counts:
        thoughts = whole_number(counts.get("total_thought_tokens"))
        asked = [whole_number(counts.get(key)) for key in ("total_input_tokens", "total_tool_use_tokens")]
        yield UsageReceived(
            Usage(
                input_tokens=add_counts(*asked),
                output_tokens=add_counts(whole_number(counts.get("total_output_tokens")), thoughts),
                cached_tokens=whole_number(counts.get("total_cached_tokens")),
                reasoning_tokens=thoughts,
            )
        )
    finish = _ENDS.get(interaction.get("status"))
    if finish is not None:
        yield Finished(finish)
