"""Reading a Responses stream. Deltas are told as they come; snapshots only add what no delta has told."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from sightline.dialects.fields import as_object, rest, str_of, wrong
from sightline.dialects.openai_responses.annotations import read_annotation
from sightline.dialects.openai_responses.errors import read_failure
from sightline.dialects.openai_responses.names import CALLS, STRIDE
from sightline.dialects.openai_responses.reply_read import Hearing, call_begun, started
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Failed,
    FieldReceived,
    RefusalReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
)
from sightline.model.json import JsonObject
from sightline.wire.pointer import join

_TEXT_DELTA = "response.output_text.delta"

_FRAME = frozenset(
    {"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "annotation_index"}
    | {"delta", "logprobs", "obfuscation", "text", "refusal", "arguments", "input", "name", "part", "item", "response"}
    | {"annotation", "status", "code", "message", "param", "error", "headers"}
)

_TERMINALS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}

_QUIET = (
    "response.content_part.",
    "response.reasoning_summary_part.",
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.image_gen_call.",
    "response.mcp_call",
    "response.mcp_list_tools.",
    "response.shell_call_",
    "response.apply_patch_call",
    "response.computer_call",
    "response.compaction.",
    "response.steer",
    "steer.",
    "keepalive",
    "ping",
)
"""Frames about something that its item will tell whole, or that tell nothing of the answer."""

_Name = TypeVar("_Name")
_Reader = Callable[[JsonObject, int], list[StreamEvent]]


class ResponsesMachine:
    """One stream's state."""

    def __init__(self) -> None:
        self._hearing = Hearing()
        self._has_started = False
        self._is_over = False
        self._told: set[str] = set()
        self._readers: Mapping[str, _Reader] = {
            "response.created": self._begin,
            "response.in_progress": self._begin,
            "response.queued": self._begin,
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            _TEXT_DELTA: self._text,
            "response.output_text.done": self._text,
            "response.output_text.annotation.added": self._annotation,
            "response.refusal.delta": self._refusal,
            "response.refusal.done": self._refusal,
            "response.reasoning_text.delta": self._thinking,
            "response.reasoning_text.done": self._thinking,
            "response.reasoning_summary_text.delta": self._summary,
            "response.reasoning_summary_text.done": self._summary,
            "response.function_call_arguments.delta": self._arguments,
            "response.function_call_arguments.done": self._arguments,
            "response.custom_tool_call_input.delta": self._arguments,
            "response.custom_tool_call_input.done": self._arguments,
            "error": self._error,
            **dict.fromkeys(_TERMINALS, self._terminal),
        }

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame."""
        kind = document.get("type")
        if kind == _TEXT_DELTA:
            output, content, delta = document.get("output_index"), document.get("content_index"), document.get("delta")
            if type(output) is int and type(content) is int and type(delta) is str and document.keys() <= _FRAME:
                part = output * STRIDE + content
                if part in self._hearing.texts:
                    return [TextReceived(part, delta)]
                if delta:
                    self._hearing.texts.add(part)
                return [TextReceived(part, delta, 0, f"/{index}/delta")]
        return self._read(kind if isinstance(kind, str) else "", document, index)

    def done(self) -> list[StreamEvent]:
        """Some servers send the marker of Chat behind their last event; it says nothing here."""
        return []

    def is_over(self) -> bool:
        """Whether a terminal event has come."""
        return self._is_over

    def _read(self, kind: str, document: JsonObject, index: int) -> list[StreamEvent]:
        reader = self._readers.get(kind)
        if reader is None:
            if kind.startswith(_QUIET):
                return []
            if document.get("error") is not None:
                return self._error(document, index)
            return self._once(kind, [FieldReceived(f"/{index}", document)])
        events = reader(document, index)
        for key in rest(document, _FRAME):
            events = [*events, *self._once(f"/{key}", [FieldReceived(join(f"/{index}", key), document[key])])]
        return events

    def _once(self, name: str, events: list[StreamEvent]) -> list[StreamEvent]:
        if name in self._told:
            return []
        self._told.add(name)
        return events

    def _begin(self, document: JsonObject, index: int) -> list[StreamEvent]:
        if self._has_started:
            return []
        events = started(as_object(document.get("response"), f"/{index}/response"), f"/{index}/response")
        self._has_started = True
        return events

    def _added(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """A call is told as soon as it has a name."""
        item, at = document.get("item"), f"/{index}/item"
        if not isinstance(item, dict):
            return []
        part, kind = _number(document, "output_index", index) * STRIDE, item.get("type")
        if kind in (*CALLS,) and isinstance(item.get("name"), str) and part not in self._hearing.calls:
            begun = call_begun(item, part, at)
            self._hearing.calls.add(part)
            return [begun]
        return []

    def _done(self, document: JsonObject, index: int) -> list[StreamEvent]:
        item = as_object(document.get("item"), f"/{index}/item")
        return self._hearing.item(item, _number(document, "output_index", index), f"/{index}/item")

    def _text(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = self._content_part(document, index)
        text = _new_words(document, "text", index, part, self._hearing.texts)
        return [] if text is None else [TextReceived(part, text, at=f"/{index}")]

    def _refusal(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = self._content_part(document, index)
        text = _new_words(document, "refusal", index, part, self._hearing.texts)
        self._hearing.has_refusal = True
        return [] if text is None else [RefusalReceived(part, text, at=f"/{index}")]

    def _annotation(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = self._content_part(document, index)
        citation = read_annotation(document.get("annotation"), f"/{index}/annotation")
        self._hearing.citations[part] = self._hearing.citations.get(part, 0) + 1
        return [CitationReceived(part, citation)]

    def _thinking(self, document: JsonObject, index: int) -> list[StreamEvent]:
        return self._piece(document, index, "content_index", summary=False)

    def _summary(self, document: JsonObject, index: int) -> list[StreamEvent]:
        return self._piece(document, index, "summary_index", summary=True)

    def _piece(self, document: JsonObject, index: int, key: str, *, summary: bool) -> list[StreamEvent]:
        part, piece = _number(document, "output_index", index) * STRIDE, _number(document, key, index, 0)
        text = _new_words(document, "text", index, (part, summary, piece), self._hearing.pieces)
        return [] if text is None else [ThinkingReceived(part, text, piece=piece, summary=summary, at=f"/{index}")]

    def _arguments(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = _number(document, "output_index", index) * STRIDE
        if part not in self._hearing.calls:
            return []  # nobody has said what is called; the item's own snapshot will
        words = "input" if "input" in document else "arguments"
        text = _new_words(document, words, index, part, self._hearing.arguments)
        return [] if text is None else [ArgumentsReceived(part, text)]

    def _terminal(self, document: JsonObject, index: int) -> list[StreamEvent]:
        at = f"/{index}/response"
        response = as_object(document.get("response"), at)
        implied = _TERMINALS[str_of(document, "type", f"/{index}")]
        events = [*started(response, at), *self._hearing.outcome(response, at, implied)]
        self._is_over = True
        return events

    def _error(self, document: JsonObject, index: int) -> list[StreamEvent]:
        error = document.get("error")
        return [Failed(read_failure(document if error is None else error))]

    def _content_part(self, document: JsonObject, index: int) -> int:
        return _number(document, "output_index", index) * STRIDE + _number(document, "content_index", index, 0)


def _number(document: JsonObject, key: str, index: int, default: int | None = None) -> int:
    value = document.get(key)
    if value is None and default is not None:
        return default
    if type(value) is not int:
        raise wrong(value, f"/{index}/{key}", "a whole number")
    return value


def _new_words(document: JsonObject, whole: str, index: int, name: _Name, heard: set[_Name]) -> str | None:
    """The words that a delta adds, or those of a `.done` event if no delta came before it."""
    key = "delta" if "delta" in document else whole
    words = str_of(document, key, f"/{index}")
    if key == whole and name in heard:
        return None
    if words:
        heard.add(name)
    return words
