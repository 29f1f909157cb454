"""Tracks what of an answer has been read, so that a snapshot adds only what its deltas left out; and reads its token
counts, which cover the whole prompt and the whole output.

Both whole replies and streams are read with it: a whole reply is a snapshot before which nothing was read. If a
snapshot continues the streamed text, the rest becomes events; if it contradicts the streamed text, that stays, and the
other text becomes a field that is not modelled.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from sightline.dialects.fields import as_object, opt_list, opt_str, rest, str_of
from sightline.dialects.openai_chat.choices import read_token
from sightline.dialects.openai_chat.usage import read_counts, with_tier
from sightline.dialects.openai_responses.client_tools import BY_CALL, call_id_of, is_client_call, read_action
from sightline.dialects.openai_responses.content import pieces_of, read_annotation, read_signature
from sightline.dialects.openai_responses.names import CALLS, NAME, REDACTED, STRIDE, cancellation_fault, read_failure
from sightline.dialects.streaming import fields_of, finish_for_content
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Failed,
    FieldReceived,
    Finished,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque, Thinking
from sightline.model.reply import Finish, Usage
from sightline.model.report import Report
from sightline.wire.pointer import join

_INPUT, _OUTPUT = "input_tokens_details", "output_tokens_details"


def read_usage(value: Json, at: str) -> Usage:
    """The counts of a `usage` object."""
    return read_counts(as_object(value, at), at, "input_tokens", "output_tokens")


# What OpenAI charges per call. A `web_search_call` that only opens a page, or searches a page that was found, is not a
# search.
_CHARGED = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
}


def _count_tools(items: Iterable[JsonObject]) -> dict[str, int]:
    """The calls of the provider's own tools, by tool."""
    calls: dict[str, int] = {}
    for item in items:
        name, action = _CHARGED.get(str(item.get("type"))), item.get("action")
        if name is not None and not (isinstance(action, dict) and action.get("type") in ("open_page", "find_in_page")):
            calls[name] = calls.get(name, 0) + 1
    return calls


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The counts as a `usage` object, in which every count is required; unknown ones are reported."""

    def count(name: str, path: str = "") -> int:
        value: int | None = getattr(usage, name)
        if value is None:
            report.add(f"/usage{path}/{name}", f"{name}: 0", f"{NAME} demands the count", "identity")
        return value or 0

    prompt, output = count("input_tokens"), count("output_tokens")
    return {
        "input_tokens": prompt,
        _INPUT: {name: count(name, f"/{_INPUT}") for name in ("cached_tokens", "cache_write_tokens")},
        "output_tokens": output,
        _OUTPUT: {"reasoning_tokens": count("reasoning_tokens", f"/{_OUTPUT}")},
        "total_tokens": prompt + output,
    }


_RESPONSE = frozenset(
    {"id", "object", "model", "created_at", "status", "error", "incomplete_details", "output", "usage"}
)
_MESSAGE = frozenset({"type", "role", "content"})
_TEXT = frozenset({"type", "text", "annotations", "logprobs"})
_REFUSAL = frozenset({"type", "refusal"})
_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content"})
_PIECE = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "input"})

_STATUS = frozenset({"status"})

_DEFAULTS: Mapping[str, Json] = {"status": "completed", "truncation": "disabled", "background": False}
"""The default values of these fields, which carry no information."""

_ENDINGS = ("incomplete", "failed", "cancelled")
"""The statuses by which a snapshot overrides the event that contains it."""

_STATUSES = ("queued", "in_progress", "completed", *_ENDINGS)

_INCOMPLETE: Mapping[Json, Finish] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "steered": "pause",
}

_Key = TypeVar("_Key")


class SnapshotReader:
    """What has been read of an answer so far. Each method returns the events for what is new in a snapshot.

    `texts`, `pieces` and `arguments` hold the fragments of each part, piece of reasoning and call.
    """

    def __init__(self) -> None:
        self.texts: dict[int, list[str]] = {}
        self.pieces: dict[tuple[int, bool, int], list[str]] = {}
        self.arguments: dict[int, list[str]] = {}
        self.citations: dict[int, int] = {}
        self.calls: set[int] = set()
        self.has_refusal = False
        self._whole: set[int] = set()
        self._signatures: dict[int, str | None] = {}
        self._parts_with_logprobs: set[int] = set()
        self._contradictions: set[str] = set()
        self._fields: set[tuple[int, str]] = set()
        self._kinds: dict[int, str] = {}
        self._charged: dict[int, JsonObject] = {}
        self._places: dict[str, set[int]] = {}

    def place(self, item: JsonObject, index: int) -> None:
        """Record that an item was seen at this place of the output."""
        for name in names_of(item):
            self._places.setdefault(name, set()).add(index)

    @property
    def silent_calls(self) -> int:
        """How many calls have begun and have no arguments yet."""
        return len(self.calls - self._whole - self.arguments.keys())

    def place_of(self, names: list[str]) -> int | None:
        """The place at which the item with these ids was seen, None if it was not."""
        places = [min(self._places[name]) for name in names if name in self._places]
        return places[0] if places else None

    def news(
        self, received: dict[_Key, list[str]], key: _Key, whole: str, at: str, tell: Callable[[str], StreamEvent]
    ) -> list[StreamEvent]:
        """The events for what a complete text adds to what was read of it."""
        fragments = received.get(key)
        if fragments is None:
            received[key] = [whole]
            return [tell(whole)]
        known = "".join(fragments)
        if len(whole) > len(known) and whole.startswith(known):
            fragments.append(whole[len(known) :])
            return [tell(fragments[-1])]
        return self._contradiction(known, whole, at)

    def _contradiction(self, known: str, whole: str, at: str) -> list[StreamEvent]:
        """Text that differs from what was streamed, reported once; a shorter snapshot contradicts nothing."""
        if known.startswith(whole) or whole in self._contradictions:
            return []
        self._contradictions.add(whole)
        return [FieldReceived(at, whole)]

    def outcome(self, response: JsonObject, at: str, implied: str | None = None) -> list[StreamEvent]:
        """Everything that a final snapshot adds: items, usage, fields, and its end; `implied` is its event's status."""
        events: list[StreamEvent] = []
        output = opt_list(response, "output", at)
        items = [as_object(value, f"{at}/output/{position}") for position, value in enumerate(output)]
        for position, index in enumerate(self._indexes(items)):
            events += self.item(items[position], index, f"{at}/output/{position}")
        if response.get("usage") is not None:
            usage = with_tier(read_usage(response["usage"], f"{at}/usage"), response)
            events.append(
                UsageReceived(msgspec.structs.replace(usage, server_tools=_count_tools(self._charged.values())))
            )
        events += _unread_response(response, at)
        events.append(self._ending(response, at, implied))
        return events

    def _indexes(self, items: list[JsonObject]) -> list[int]:
        """The index at which each item was read: found by its ids, or by its place if no other item is known there."""
        known = [self._index(item, position) for position, item in enumerate(items)]
        taken = {index for index in known if index is not None}
        free = max((len(items), *self._kinds, *taken)) + 1
        places = [position if index is None else index for position, index in enumerate(known)]
        return [
            free + position if known[position] is None and place in taken else place
            for position, place in enumerate(places)
        ]

    def _index(self, item: JsonObject, position: int) -> int | None:
        for name in names_of(item):
            places = self._places.get(name)
            if places is not None:
                return position if position in places else min(places)
        return None

    def item(self, item: JsonObject, index: int, at: str) -> list[StreamEvent]:
        """The events for what a finished item adds to what was read of it."""
        kind, part = str_of(item, "type", at), index * STRIDE
        if self._kinds.setdefault(index, kind) != kind:
            return [FieldReceived(at, item)]
        self.place(item, index)
        if kind in _CHARGED:
            self._charged[index] = item
        if kind == "message":
            events = self._message(item, part, at)
        elif kind == "reasoning":
            events = self._reasoning(item, part, at)
        elif kind in CALLS:
            events = self._call(item, CALLS[kind][1], part, at)
        elif kind in BY_CALL and (part in self.calls or is_client_call(item)):
            events = self._client_call(item, part, at)
        elif part in self.calls:  # it was another call when it began
            events = [FieldReceived(at, item)]
        else:
            events = self._once(PartReceived(part, Opaque(NAME, item, at=at)))
        return [event for event in events if not isinstance(event, FieldReceived) or self._is_news(event, index, at)]

    def _is_news(self, field: FieldReceived, index: int, at: str) -> bool:
        """Whether no earlier snapshot of the item had this field."""
        name = index, field.at[len(at) :]
        is_news = name not in self._fields
        self._fields.add(name)
        return is_news

    def _once(self, event: PartReceived | ToolCallCompleted) -> list[StreamEvent]:
        """The event, only once: for parts that arrive as a whole, and for the end of a part."""
        if event.part in self._whole:
            return []
        self._whole.add(event.part)
        return [event]

    def _message(self, item: JsonObject, first: int, at: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for index, value in enumerate(opt_list(item, "content", at)):
            where = f"{at}/content/{index}"
            events += self._content(as_object(value, where), first + index, where)
        return events + unread(item, _MESSAGE, at)

    def _content(self, content: JsonObject, part: int, at: str) -> list[StreamEvent]:
        match content.get("type"):
            case "output_text":
                words = str_of(content, "text", at)
                events = self.news(self.texts, part, words, f"{at}/text", lambda text: TextReceived(part, text, at=at))
                return [*events, *self._citations_and_logprobs(content, part, at), *unread(content, _TEXT, at)]
            case "refusal":
                self.has_refusal = True
                words = str_of(content, "refusal", at)
                events = self.news(
                    self.texts, part, words, f"{at}/refusal", lambda text: RefusalReceived(part, text, at=at)
                )
                return events + unread(content, _REFUSAL, at)
            case _:
                return self._once(PartReceived(part, Opaque(NAME, content, at=at)))

    def _citations_and_logprobs(self, content: JsonObject, part: int, at: str) -> list[StreamEvent]:
        """Citations and logprobs of a text."""
        received = self.citations.get(part, 0)
        annotations = opt_list(content, "annotations", at)
        self.citations[part] = max(received, len(annotations))
        events: list[StreamEvent] = [
            CitationReceived(part, read_annotation(value, f"{at}/annotations/{received + index}"))
            for index, value in enumerate(annotations[received:])
        ]
        tokens = opt_list(content, "logprobs", at)
        if tokens and part not in self._parts_with_logprobs:
            self._parts_with_logprobs.add(part)
            where = f"{at}/logprobs"
            read = tuple(read_token(token, f"{where}/{index}") for index, token in enumerate(tokens))
            events.append(LogprobsReceived(read, at=where))
        return events

    def _reasoning(self, item: JsonObject, part: int, at: str) -> list[StreamEvent]:
        signature, signed_by, bound = read_signature(item, at)
        if bound == REDACTED:
            signed = Thinking(signature=signature, signed_by=signed_by, redacted=True, at=at)
            return [*self._once(PartReceived(part, signed)), *unread(item, _REASONING, at)]
        events: list[StreamEvent] = []
        for key, is_summary in (("summary", True), ("content", False)):
            events += _unread_pieces(item, key, at)
            for index, text in enumerate(pieces_of(item, key, at)):
                events += self._piece((part, is_summary, index), text, f"{at}/{key}/{index}/text", at)
        if part not in self._signatures or (self._signatures[part] is None and signature is not None):
            self._signatures[part] = signature
            events.append(SignatureReceived(part, signature, signed_by, id=bound))
        return events + unread(item, _REASONING, at)

    def _piece(self, name: tuple[int, bool, int], whole: str, at: str, holder: str) -> list[StreamEvent]:
        part, is_summary, index = name

        def tell(text: str) -> ThinkingReceived:
            return ThinkingReceived(part, text, piece=index, summary=is_summary, at=holder)

        return self.news(self.pieces, name, whole, at, tell)

    def _call(self, item: JsonObject, words: str, part: int, at: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if part not in self.calls:
            self.calls.add(part)
            events.append(call_begun(item, part, at))
        arguments = opt_str(item, words, at) or ""
        if part in self._whole:  # nothing is added to a call that is complete
            events += self._contradiction("".join(self.arguments.get(part, ())), arguments, f"{at}/{words}")
        elif arguments:
            events += self.news(
                self.arguments, part, arguments, f"{at}/{words}", lambda text: ArgumentsReceived(part, text)
            )
        return [*events, *self._once(ToolCallCompleted(part)), *unread(item, _CALL, at)]

    def _client_call(self, item: JsonObject, part: int, at: str) -> list[StreamEvent]:
        """A call of a built-in tool: its action arrives as a whole."""
        events: list[StreamEvent] = []
        if part not in self.calls:
            self.calls.add(part)
            events.append(client_call_begun(item, part, at))
        arguments, others = read_action(item)
        known = self.arguments.get(part)
        if known is not None:
            events += self._contradiction("".join(known), arguments or "", at)
        elif arguments is not None:
            self.arguments[part] = [arguments]
            events.append(ArgumentsReceived(part, arguments))
        extras = rest(others, _STATUS)
        fields = fields_of(extras, frozenset(), at)
        status = {key: item[key] for key in _STATUS if key in item}
        return [*events, *self._once(ToolCallCompleted(part, extras=extras)), *fields, *unread(status, frozenset(), at)]

    def _ending(self, response: JsonObject, at: str, implied: str | None) -> StreamEvent:
        status = opt_str(response, "status", at)
        if implied is None or status in _ENDINGS:
            implied = status or "completed"
        if response.get("error") is not None or implied == "failed":
            return Failed(read_failure(response.get("error")))
        if implied == "cancelled":
            return Failed(cancellation_fault())
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
        finish = finish_for_content("stop", has_calls=bool(self.calls))
        return Finished("refusal" if self.has_refusal and finish == "stop" else finish, at=f"{at}/status")


def unread(holder: JsonObject, known: frozenset[str], at: str) -> list[StreamEvent]:
    """The fields of an object that are not modelled, unless they carry no information."""
    return [
        FieldReceived(join(at, key), value)
        for key, value in rest(holder, known).items()
        if value is not None and (key not in _DEFAULTS or value != _DEFAULTS[key])
    ]


def _unread_response(response: JsonObject, at: str) -> list[StreamEvent]:
    """The unmodelled fields around the output. `text`, an echo of the request, is reported by its members, because
    elsewhere `text` is the name of a text."""
    known = _RESPONSE if response.get("status") in _STATUSES else _RESPONSE - {"status"}
    echo = response.get("text")
    if not isinstance(echo, dict):
        return unread(response, known, at)
    return [*unread(response, known | {"text"}, at), *unread(echo, frozenset(), f"{at}/text")]


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


def client_call_begun(item: JsonObject, part: int, at: str) -> ToolCallBegun:
    """The beginning of a call of a built-in tool that the client runs."""
    kind = BY_CALL[str(item["type"])].kind
    return ToolCallBegun(part, str(call_id_of(item)), kind, kind=kind, item=opt_str(item, "id", at), at=at)


def _unread_pieces(item: JsonObject, key: str, at: str) -> list[StreamEvent]:
    """The fields of the pieces of a reasoning item besides their text."""
    usual = "summary_text" if key == "summary" else "reasoning_text"
    events: list[StreamEvent] = []
    for index, value in enumerate(opt_list(item, key, at)):
        piece, where = as_object(value, f"{at}/{key}/{index}"), f"{at}/{key}/{index}"
        events += unread(piece, _PIECE if piece.get("type") == usual else _PIECE - {"type"}, where)
    return events


def names_of(item: JsonObject) -> list[str]:
    """The ids of an item, by which a snapshot recognises it wherever it is."""
    return [name for key in ("id", "call_id") if isinstance(name := item.get(key), str) and name]
