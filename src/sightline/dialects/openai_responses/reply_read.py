"""Reads a Responses reply, whole or as a stream, as events."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal, TypeVar, assert_never

import msgspec

from sightline.dialects.fields import as_object, opt_int, opt_str, rest, str_of, wrong
from sightline.dialects.openai_chat.errors import read_error
from sightline.dialects.openai_responses.client_tools import is_client_call
from sightline.dialects.openai_responses.content import read_annotation
from sightline.dialects.openai_responses.names import CALLS, STRIDE, read_failure
from sightline.dialects.openai_responses.snapshots import SnapshotReader, call_begun, client_call_begun, names_of
from sightline.dialects.streaming import Machine
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    RefusalReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.wire.pointer import join


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a whole reply, or of an error body in its place."""
    body = as_object(document, "")
    if "output" not in body and body.get("object") != "response" and body.get("error") is not None:
        return [Failed(read_error(0, body, {})), Ended()]
    if type(body.get("output")) is not list:
        raise wrong(body.get("output"), "/output", "a list")
    hearing = SnapshotReader()
    return [read_identity(body, ""), *hearing.outcome(body, ""), Ended()]


def read_identity(response: JsonObject, at: str) -> Started:
    """The identity of a reply: its id, model and time."""
    keys = {"id": "id", "model": "model", "created": "created_at"}
    created = response.get("created_at")
    return Started(
        opt_str(response, "id", at),
        opt_str(response, "model", at),
        int(created) if isinstance(created, (int, float)) else None,
        {name: f"{at}/{key}" for name, key in keys.items() if response.get(key) is not None},
        # A server that does not mention `store` may store nothing, whatever OpenAI's own default is.
        opt_str(response, "id", at) if response.get("store") is True else None,
    )


_TEXT_DELTA = "response.output_text.delta"
_SUMMARY_DELTA = "response.reasoning_summary_text.delta"
_PIECE_DELTAS = (_SUMMARY_DELTA, "response.reasoning_text.delta")
_ARGUMENTS_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")

_FRAME = frozenset(
    {"type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "annotation_index"}
    | {"delta", "logprobs", "obfuscation", "text", "refusal", "arguments", "input", "name", "part", "item", "response"}
    | {"annotation", "status", "code", "message", "param", "error", "headers"}
)

_CALL = "function_call"
_NOWHERE: tuple[int, str] = (-1, "")

_TERMINALS = {f"response.{status}": status for status in ("completed", "incomplete", "failed", "cancelled")}

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
"""Frames about something that its item will contain as a whole, or that are not about the answer."""

_Name = TypeVar("_Name")
_Reader = Callable[[JsonObject, int], list[StreamEvent]]


class ResponsesMachine(Machine):
    """The state of one stream."""

    def __init__(self) -> None:
        self._snapshots = SnapshotReader()
        self._texts = self._snapshots.texts
        self._has_started = False
        self._next = 0
        self._last = _NOWHERE
        self._latest: dict[str, int] = {}
        self._places_without_id: dict[str, int] = {}
        self._reported: set[str] = set()
        thinking = partial(self._piece, key="content_index", summary=False)
        summary = partial(self._piece, key="summary_index", summary=True)
        self._readers: Mapping[str, _Reader] = {
            "response.created": self._begin,
            "response.in_progress": self._begin,
            "response.queued": self._begin,
            "response.output_item.added": self._on_item_added,
            "response.output_item.done": self._on_item_done,
            _TEXT_DELTA: self._text,
            "response.output_text.done": self._text,
            "response.output_text.annotation.added": self._annotation,
            "response.refusal.delta": self._refusal,
            "response.refusal.done": self._refusal,
            "response.reasoning_text.done": thinking,
            "response.reasoning_summary_text.done": summary,
            "response.function_call_arguments.done": self._arguments,
            "response.custom_tool_call_input.done": self._arguments,
            "error": self._error,
            **dict(zip(_PIECE_DELTAS, (summary, thinking), strict=True)),
            **dict.fromkeys(_ARGUMENTS_DELTAS, self._arguments),
            **dict.fromkeys(_TERMINALS, self._terminal),
        }

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame. Nearly all frames are deltas of something that has begun, without unknown fields."""
        kind, output, delta = document.get("type"), document.get("output_index"), document.get("delta")
        if type(delta) is str and type(output) is int and document.keys() <= _FRAME:
            part = output * STRIDE
            if kind == _TEXT_DELTA:
                content = document.get("content_index")
                if type(content) is int and (received := self._texts.get(part := part + content)) is not None:
                    received.append(delta)
                    return [TextReceived(part, delta)]
            elif kind in _ARGUMENTS_DELTAS:
                if (received := self._snapshots.arguments.get(part)) is not None:
                    received.append(delta)
                    return [ArgumentsReceived(part, delta)]
            elif kind in _PIECE_DELTAS:
                is_summary = kind == _SUMMARY_DELTA
                piece = document.get("summary_index" if is_summary else "content_index")
                if (
                    type(piece) is int
                    and (received := self._snapshots.pieces.get((part, is_summary, piece))) is not None
                ):
                    received.append(delta)
                    return [ThinkingReceived(part, delta, 0, piece, is_summary)]
        return self._read(kind if isinstance(kind, str) else "", document, index)

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
        if name in self._reported:
            return []
        self._reported.add(name)
        return events

    def _begin(self, document: JsonObject, index: int) -> list[StreamEvent]:
        if self._has_started:
            return []
        at = f"/{index}/response"
        started = read_identity(as_object(document.get("response"), at), at)
        self._has_started = True
        return [started]

    def _on_item_added(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """A call begins as soon as it has a name."""
        item, at = document.get("item"), f"/{index}/item"
        if not isinstance(item, dict):
            return []
        place, kind = self._item_place(document, item, index, is_new=True), item.get("type")
        part = place * STRIDE
        self._snapshots.place(item, place)
        if part in self._snapshots.calls:
            return []
        if kind in (*CALLS,) and isinstance(item.get("name"), str):
            begun = call_begun(item, part, at)
        elif is_client_call(item):
            begun = client_call_begun(item, part, at)
        else:
            return []
        self._snapshots.calls.add(part)
        return [begun]

    def _on_item_done(self, document: JsonObject, index: int) -> list[StreamEvent]:
        item = as_object(document.get("item"), f"/{index}/item")
        place = self._item_place(document, item, index, is_new=False)
        self._last = _NOWHERE
        return self._snapshots.item(item, place, f"/{index}/item")

    def _text(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part, at = self._content_part(document, index), f"/{index}/{_key(document, 'text')}"
        return self._words(document, at, self._snapshots.texts, part, lambda words: TextReceived(part, words, at=at))

    def _refusal(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part, at = self._content_part(document, index), f"/{index}/{_key(document, 'refusal')}"
        self._snapshots.has_refusal = True
        return self._words(document, at, self._snapshots.texts, part, lambda words: RefusalReceived(part, words, at=at))

    def _words(
        self,
        document: JsonObject,
        at: str,
        received: dict[_Name, list[str]],
        name: _Name,
        tell: Callable[[str], StreamEvent],
    ) -> list[StreamEvent]:
        """The text that a delta adds, or that the text of a `.done` event adds to the deltas before it."""
        frame, _, key = at.rpartition("/")
        words = str_of(document, key, frame)
        if key != "delta":
            return self._snapshots.news(received, name, words, at, tell)
        received.setdefault(name, []).append(words)
        return [tell(words)]

    def _annotation(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = self._content_part(document, index)
        citation = read_annotation(document.get("annotation"), f"/{index}/annotation")
        self._snapshots.citations[part] = self._snapshots.citations.get(part, 0) + 1
        return [CitationReceived(part, citation)]

    def _piece(self, document: JsonObject, index: int, *, key: str, summary: bool) -> list[StreamEvent]:
        part, piece = self._place(document, "reasoning", index) * STRIDE, opt_int(document, key, f"/{index}") or 0
        at = f"/{index}/{_key(document, 'text')}"

        def tell(words: str) -> ThinkingReceived:
            return ThinkingReceived(part, words, piece=piece, summary=summary, at=at)

        return self._words(document, at, self._snapshots.pieces, (part, summary, piece), tell)

    def _arguments(self, document: JsonObject, index: int) -> list[StreamEvent]:
        part = self._place(document, _CALL, index) * STRIDE
        if part not in self._snapshots.calls:
            return []  # the name is not known yet; the item's own snapshot has it
        at = f"/{index}/{_key(document, 'input' if 'input' in document else 'arguments')}"
        received = self._snapshots.arguments
        return self._words(document, at, received, part, lambda words: ArgumentsReceived(part, words))

    def _terminal(self, document: JsonObject, index: int) -> list[StreamEvent]:
        at = f"/{index}/response"
        response = as_object(document.get("response"), at)
        implied = _TERMINALS[str_of(document, "type", f"/{index}")]
        events = [read_identity(response, at), *self._snapshots.outcome(response, at, implied)]
        self.is_over = True
        return events

    def _error(self, document: JsonObject, index: int) -> list[StreamEvent]:
        error = document.get("error")
        return [Failed(read_failure(document if error is None else error))]

    def _content_part(self, document: JsonObject, index: int) -> int:
        return self._place(document, "message", index) * STRIDE + (opt_int(document, "content_index", f"/{index}") or 0)

    # Servers that follow the API loosely leave the place of an item out of some frames (llama.cpp out of all). Then the
    # ids identify the item. Frames without an id continue the item of the latest frame, if it is of the same kind and
    # not done; a frame that repeats text refers to the last item of its kind.

    def _item_place(self, document: JsonObject, item: JsonObject, index: int, *, is_new: bool) -> int:
        """The place in the output of an item that begins, or that arrives as a whole."""
        kind, names = str(item.get("type")), names_of(item)
        family = _CALL if kind in CALLS else kind  # by which a frame without any id is matched with earlier frames
        place = opt_int(document, "output_index", f"/{index}")
        if place is None:
            place = self._snapshots.place_of(names)
        if place is None and not is_new:
            place = self._places_without_id.pop(family, None)
        if place is None:
            place = self._next
            if not names:
                self._places_without_id[family] = place
        return self._remember(place, family)

    def _place(self, document: JsonObject, family: str, index: int) -> int:
        """The place in the output of the item that a frame is about."""
        place, name = opt_int(document, "output_index", f"/{index}"), document.get("item_id")
        if place is None and isinstance(name, str) and name:
            place = self._snapshots.place_of([name])
            if place is None:
                place = self._next
                self._snapshots.place({"id": name}, place)
        if place is None and family == _CALL and self._snapshots.silent_calls > 1:
            raise wrong(
                None, f"/{index}/output_index", "the place of the call, because several wait for their arguments"
            )
        if place is None and self._last[1] == family:
            place = self._last[0]
        if place is None and "delta" not in document:
            place = self._latest.get(family)
        if place is None:
            place = self._places_without_id[family] = self._next
        return self._remember(place, family)

    def _remember(self, place: int, family: str) -> int:
        self._last = place, family
        self._latest[family] = place
        self._next = max(self._next, place + 1)
        return place


def _key(document: JsonObject, whole: str) -> str:
    """The field that holds the text of an event: the new text only, or all of it."""
    return "delta" if "delta" in document else whole


# --- words alone ---


class _Text(msgspec.Struct, tag_field="type", tag="output_text", gc=False):
    text: str


class _Message(msgspec.Struct, tag_field="type", tag="message"):
    content: list[_Text]


class _Call(msgspec.Struct, tag_field="type", tag="function_call", gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: Annotated[str, msgspec.Meta(min_length=1)]


class _Summary(msgspec.Struct, tag_field="type", tag="summary_text", gc=False):
    text: str


class _Reasoning(msgspec.Struct, tag_field="type", tag="reasoning"):
    summary: list[_Summary]
    content: tuple[()] | None = None


class _Completed(msgspec.Struct):
    output: list[_Message | _Call | _Reasoning]
    status: Literal["completed"]
    id: str | None = None
    error: None = None
    incomplete_details: None = None


class _LastFrame(msgspec.Struct, tag_field="type", tag="response.completed"):
    response: _Completed


_COMPLETED, _LAST_FRAME = msgspec.json.Decoder(_Completed), msgspec.json.Decoder(_LastFrame)
_LAST, _ITEM_DONE = b'data: {"type":"response.completed"', b'"type":"response.output_item.done"'
_FAILURES = (b'"type":"error"', b'"type":"response.failed"')


def read_words(data: bytes) -> tuple[str, str] | None:
    """The text and the id of a complete reply that contains texts, function calls, and summaries of reasoning; None for
    any other reply. Of a stream only the last frame is decoded: it repeats all items before it."""
    try:
        if data[:1] == b"{":
            reply = _COMPLETED.decode(data)
        else:
            start = data.rfind(_LAST)
            last, _, behind = data[start:].partition(b"\n\n")
            if start < 0 or behind not in (b"", b"data: [DONE]\n\n") or any(each in data for each in _FAILURES):
                return None
            reply = _LAST_FRAME.decode(last[len(b"data: ") :]).response
            if data.count(_ITEM_DONE) != len(reply.output):
                return None  # it leaves some out
    except (ValueError, RecursionError):
        return None
    words: list[str] = []
    for item in reply.output:
        match item:
            case _Message(content=content):
                words += [each.text for each in content]
            case _Call(name=name, arguments=arguments):
                words += name, arguments
            case _Reasoning(summary=summary):
                words.append("\n\n".join([each.text for each in summary]))
            case unreachable:
                assert_never(unreachable)
    said = "\n".join(filter(None, words))
    return (said, reply.id or "") if said else None
