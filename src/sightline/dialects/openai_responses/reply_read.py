"""Reading a whole Responses reply, item by item, into the events that its stream would have been.

`Hearing` is shared with the stream reader: it knows what of an answer has been told already, so that a snapshot of an
item adds only what its deltas left out.
"""

from collections.abc import Mapping

from sightline.dialects.fields import as_object, opt_list, opt_str, rest, str_of, wrong
from sightline.dialects.openai_chat.choices import read_token
from sightline.dialects.openai_responses.annotations import read_annotation
from sightline.dialects.openai_responses.errors import cancelled, read_error, read_failure
from sightline.dialects.openai_responses.names import CALLS, NAME, REDACTED, STRIDE
from sightline.dialects.openai_responses.reasoning import pieces_of, read_seal
from sightline.dialects.openai_responses.usage import read_usage
from sightline.dialects.streaming import settled
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
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
from sightline.model.parts import Opaque, Thinking
from sightline.model.reply import Finish
from sightline.wire.pointer import join

_RESPONSE = frozenset(
    {"id", "object", "model", "created_at", "status", "error", "incomplete_details", "output", "usage"}
)
_MESSAGE = frozenset({"type", "role", "content"})
_TEXT = frozenset({"type", "text", "annotations", "logprobs"})
_REFUSAL = frozenset({"type", "refusal"})
_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content"})
_PIECE = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "input"})

_DEFAULTS: Mapping[str, Json] = {"status": "completed", "truncation": "disabled", "background": False}
"""What these fields say where they say nothing in particular."""

_ENDINGS = ("incomplete", "failed", "cancelled")
"""What a snapshot may say against the event that brings it."""

_STATUSES = ("queued", "in_progress", "completed", *_ENDINGS)

_INCOMPLETE: Mapping[Json, Finish] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "steered": "pause",
}


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a whole reply, or of an error body in its place."""
    body = as_object(document, "")
    if "output" not in body and body.get("object") != "response" and body.get("error") is not None:
        return [Failed(read_error(0, body, {})), Ended()]
    if type(body.get("output")) is not list:
        raise wrong(body.get("output"), "/output", "a list")
    hearing = Hearing()
    return [*started(body, ""), *hearing.outcome(body, ""), Ended()]


def started(response: JsonObject, at: str) -> list[StreamEvent]:
    """The identity of a reply."""
    keys = {"id": "id", "model": "model", "created": "created_at"}
    created = response.get("created_at")
    return [
        Started(
            opt_str(response, "id", at),
            opt_str(response, "model", at),
            int(created) if isinstance(created, (int, float)) else None,
            {name: f"{at}/{key}" for name, key in keys.items() if response.get(key) is not None},
        )
    ]


def unread(holder: JsonObject, known: frozenset[str], at: str) -> list[StreamEvent]:
    """The fields of an object that are not modelled, unless they say nothing."""
    return [
        FieldReceived(join(at, key), value)
        for key, value in rest(holder, known).items()
        if value is not None and (key not in _DEFAULTS or value != _DEFAULTS[key])
    ]


def call_begun(item: JsonObject, part: int, at: str) -> ToolCallBegun:
    """The beginning of a call for the client."""
    return ToolCallBegun(
        part,
        opt_str(item, "call_id", at) or opt_str(item, "id", at) or "",
        str_of(item, "name", at),
        kind="custom" if item["type"] == "custom_tool_call" else "function",
        namespace=opt_str(item, "namespace", at),
        item=opt_str(item, "id", at),
        at=at,
    )


def _unread_pieces(item: JsonObject, key: str, at: str) -> list[StreamEvent]:
    """What the pieces of a reasoning item hold besides their text."""
    usual = "summary_text" if key == "summary" else "reasoning_text"
    events: list[StreamEvent] = []
    for index, value in enumerate(opt_list(item, key, at)):
        piece, where = as_object(value, f"{at}/{key}/{index}"), f"{at}/{key}/{index}"
        events += unread(piece, _PIECE if piece.get("type") == usual else _PIECE - {"type"}, where)
    return events


def _names(item: JsonObject) -> list[str]:
    """The ids of an item, by which a snapshot knows it again wherever it stands."""
    return [name for key in ("id", "call_id") if isinstance(name := item.get(key), str) and name]


class Hearing:
    """What has been heard of an answer so far. Each method gives the events for what is new in a snapshot."""

    def __init__(self) -> None:
        self.texts: set[int] = set()
        self.pieces: set[tuple[int, bool, int]] = set()
        self.citations: dict[int, int] = {}
        self.calls: set[int] = set()
        self.arguments: set[int] = set()
        self.has_refusal = False
        self._places: set[int] = set()
        self._names: set[str] = set()

    def outcome(self, response: JsonObject, at: str, implied: str | None = None) -> list[StreamEvent]:
        """Everything that a final snapshot adds: items, usage, fields, and how it ended; `implied` by its event."""
        events: list[StreamEvent] = []
        streamed = frozenset(self._names)
        for index, value in enumerate(opt_list(response, "output", at)):
            item = as_object(value, f"{at}/output/{index}")
            if streamed.isdisjoint(_names(item)):
                events += self.item(item, index, f"{at}/output/{index}")
        if response.get("usage") is not None:
            events.append(UsageReceived(read_usage(response["usage"], f"{at}/usage")))
        status = response.get("status")
        events += unread(response, _RESPONSE if status in _STATUSES else _RESPONSE - {"status"}, at)
        events.append(self._ending(response, at, implied))
        return events

    def item(self, item: JsonObject, index: int, at: str) -> list[StreamEvent]:
        """What a finished item adds to what was heard of it."""
        if index in self._places:
            return []
        self._places.add(index)
        self._names.update(_names(item))
        kind, part = str_of(item, "type", at), index * STRIDE
        if kind == "message":
            return self._message(item, part, at)
        if kind == "reasoning":
            return self._reasoning(item, part, at)
        if kind in CALLS:
            return self._call(item, CALLS[kind][1], part, at)
        return [PartReceived(part, Opaque(NAME, item, at=at))]

    def _message(self, item: JsonObject, first: int, at: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for index, value in enumerate(opt_list(item, "content", at)):
            where = f"{at}/content/{index}"
            events += self._content(as_object(value, where), first + index, where)
        return events + unread(item, _MESSAGE, at)

    def _content(self, content: JsonObject, part: int, at: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        is_new = part not in self.texts
        self.texts.add(part)
        match content.get("type"):
            case "output_text":
                if is_new:
                    events.append(TextReceived(part, str_of(content, "text", at), at=at))
                return [*events, *self._beside(content, part, at), *unread(content, _TEXT, at)]
            case "refusal":
                self.has_refusal = True
                if is_new:
                    events.append(RefusalReceived(part, str_of(content, "refusal", at), at=at))
                return events + unread(content, _REFUSAL, at)
            case _:
                return [PartReceived(part, Opaque(NAME, content, at=at))] if is_new else []

    def _beside(self, content: JsonObject, part: int, at: str) -> list[StreamEvent]:
        """Citations and logprobs of a text."""
        heard = self.citations.get(part, 0)
        annotations = opt_list(content, "annotations", at)
        self.citations[part] = max(heard, len(annotations))
        events: list[StreamEvent] = [
            CitationReceived(part, read_annotation(value, f"{at}/annotations/{heard + index}"))
            for index, value in enumerate(annotations[heard:])
        ]
        tokens = opt_list(content, "logprobs", at)
        if tokens:
            where = f"{at}/logprobs"
            read = tuple(read_token(token, f"{where}/{index}") for index, token in enumerate(tokens))
            events.append(LogprobsReceived(read, at=where))
        return events

    def _reasoning(self, item: JsonObject, part: int, at: str) -> list[StreamEvent]:
        signature, signed_by, bound = read_seal(item, at)
        if bound == REDACTED:
            sealed = Thinking(signature=signature, signed_by=signed_by, redacted=True, at=at)
            return [PartReceived(part, sealed), *unread(item, _REASONING, at)]
        events: list[StreamEvent] = []
        for key, is_summary in (("summary", True), ("content", False)):
            events += _unread_pieces(item, key, at)
            for index, text in enumerate(pieces_of(item, key, at)):
                if (part, is_summary, index) not in self.pieces:
                    self.pieces.add((part, is_summary, index))
                    events.append(ThinkingReceived(part, text, piece=index, summary=is_summary, at=at))
        events.append(SignatureReceived(part, signature, signed_by, id=bound))
        return events + unread(item, _REASONING, at)

    def _call(self, item: JsonObject, words: str, part: int, at: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if part not in self.calls:
            self.calls.add(part)
            events.append(call_begun(item, part, at))
        arguments = opt_str(item, words, at)
        if arguments and part not in self.arguments:
            self.arguments.add(part)
            events.append(ArgumentsReceived(part, arguments))
        return [*events, ToolCallCompleted(part), *unread(item, _CALL, at)]

    def _ending(self, response: JsonObject, at: str, implied: str | None) -> StreamEvent:
        status = opt_str(response, "status", at)
        if implied is None or status in _ENDINGS:
            implied = status or "completed"
        if response.get("error") is not None or implied == "failed":
            return Failed(read_failure(response.get("error")))
        if implied == "cancelled":
            return Failed(cancelled())
        if implied == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            word = reason if isinstance(reason, str) else None
            finish = _INCOMPLETE.get(word, "length")
            detail = None if word in ("max_output_tokens", "content_filter") else word
            return Finished(finish, detail=detail, at=f"{at}/incomplete_details")
        if implied != "completed":
            return Failed(
                Fault(
                    Code.UPSTREAM_PROTOCOL,
                    f"the reply is not complete: its status is {implied!r}",
                    hint="It runs in the background; ask for it again by its id.",
                    pointer=f"{at}/status",
                )
            )
        finish = settled("stop", has_calls=bool(self.calls))
        return Finished("refusal" if self.has_refusal and finish == "stop" else finish, at=f"{at}/status")
