"""Reads a reply as events. A streamed frame has the form of a whole reply, so the same code reads both.

Text grows from frame to frame: consecutive text parts of one kind, thought or not, are one part, and a signature closes
it. Whole replies are folded the same way, so that a stream and the whole reply are equal.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from sightline.dialects.fields import as_list, as_object, opt_str, whole_number, wrong
from sightline.dialects.gemini.errors import read_error
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.dialects.gemini.parts import read_part
from sightline.dialects.gemini.reply_fields import (
    FAILURES,
    failure,
    read_citation,
    read_finish,
    read_grounding,
    read_logprobs,
    read_time,
    read_usage,
)
from sightline.dialects.streaming import Machine, finish_for_content, read_frames, truncation_fault
from sightline.errors import Code, Fault
from sightline.model.events import (
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    UsageReceived,
)
from sightline.model.fold import part_events
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, Thinking, ToolCall
from sightline.wire.pointer import join

_FRAME = both("candidates", "usageMetadata", "responseId", "modelVersion", "createTime")
_ORDINARY = frozenset({"candidates", "usageMetadata", "responseId", "modelVersion", "createTime"})
_REPLY = both("candidates", "usageMetadata", "promptFeedback", "error")
_QUIET = frozenset({"content", "index"})
_CONTENT = frozenset({"parts", "role"})
_CANDIDATE = _QUIET | both("finishReason", "finishMessage", "citationMetadata", "groundingMetadata", "logprobsResult")
_FEEDBACK = both("blockReason")
_ERROR = frozenset({"code", "message", "status"})
_MOST_CHOICES = 128
_CONTENT_EVENTS = (TextReceived, ThinkingReceived, ToolCallBegun, PartReceived)


def read_reply(body: Json) -> list[StreamEvent]:
    """The events of a whole reply, or of an error body."""
    at = ""
    if type(body) is list and len(body) == 1:
        body, at = body[0], "/0"
    document = as_object(body, at)
    if not document.keys() & _REPLY:
        raise wrong(None, f"{at}/candidates", "a list")
    events = ReplyMachine(is_stream=False).read_frame(document, at)
    for index, event in enumerate(events):
        if type(event) is Failed:
            return [*events[: index + 1], Ended()]
    begun = {event.choice for event in events if isinstance(event, _CONTENT_EVENTS)}
    finished = {event.choice for event in events if isinstance(event, Finished)}
    if not finished or not begun <= finished:
        events.append(Failed(truncation_fault() if document.get("candidates") else _empty()))
    return [*events, Ended()]


def _empty() -> Fault:
    return Fault(
        Code.UPSTREAM_ERROR, "the reply holds no candidate", hint="The model answered nothing; send the request again."
    )


@dataclass(slots=True)
class _Choice:
    """One candidate so far: its number, the kind of text that still grows, and the number of the last part."""

    number: int
    grows: str = ""
    part: int = -1
    has_calls: bool = False
    texts: list[tuple[int, list[str]]] = field(default_factory=list)
    citations: list[Json] = field(default_factory=list)

    def begin(self, grows: str = "") -> int:
        """Begin a new part. Returns its number."""
        self.grows = grows
        self.part += 1
        if grows == "text":
            self.texts.append((self.part, []))
        return self.part


class ReplyMachine(Machine):
    """Reads one frame after the other; a whole reply is a single frame. A stream has no end marker: after a finish the
    bytes may end, but candidates and counts may still follow."""

    def __init__(self, *, is_stream: bool) -> None:
        self._is_stream = is_stream
        self._choices: dict[int, _Choice] = {}
        self._started: tuple[Json, Json, Json] | None = None
        self._usage: Json = None
        self._searches: dict[str, None] = {}
        self._noted: set[tuple[int, str]] = set()

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame of a stream."""
        return self.read_frame(document, f"/{index}")

    def read_frame(self, document: JsonObject, at: str) -> list[StreamEvent]:
        """The events of the frame at this place."""
        events: list[StreamEvent] = []
        identity = (document.get("responseId"), document.get("modelVersion"), document.get("createTime"))
        if identity != self._started:
            self._started = identity
            started = _read_identity(document, ("responseId", "modelVersion", "createTime"), at)
            events.append(started)
            if started.created is None:
                self._report_unmodelled(0, f"{at}/createTime", document.get("createTime"), events)
        usage = document.get("usageMetadata")
        if usage != self._usage:
            self._count(usage, f"{at}/usageMetadata", events)
        if not document.keys() <= _ORDINARY:
            self._read_unusual_fields(document, at, events)
        candidates, searched = document.get("candidates"), len(self._searches)
        if type(candidates) is list:
            for position, candidate in enumerate(candidates):
                self._candidate(candidate, position, at, events)
            if len(self._searches) > searched and self._usage is not None:  # the counts arrived before the candidates
                self._count(self._usage, f"{at}/usageMetadata", events)
        elif candidates is not None:
            raise wrong(candidates, f"{at}/candidates", "a list")
        return events

    def _count(self, usage: Json, at: str, events: list[StreamEvent]) -> None:
        if usage is not None:
            self._usage = usage
            counts = read_usage(as_object(usage, at), at)
            if self._searches:
                # Gemini 3 charges for each query, earlier models for each grounded prompt: see the prices.
                calls = {"google_search": len(self._searches), "grounded_prompt": 1}
                counts = msgspec.structs.replace(counts, server_tools=calls)
            events.append(UsageReceived(counts))

    def _read_unusual_fields(self, document: JsonObject, at: str, events: list[StreamEvent]) -> None:
        """Read what an ordinary frame does not have: an error, a blocked prompt, unknown fields, the other spelling."""
        if document.get("error") is not None:
            # An error, preceded by its fields besides its type and its message.
            error = document["error"]
            self._unknown(document, _FRAME | {"error"}, 0, at, events)
            if type(error) is dict:
                known = _ERROR if type(error.get("message")) is str else _ERROR - {"message"}
                self._unknown(error, known, 0, f"{at}/error", events)
            events.append(Failed(read_error(0, document, {})))
            return
        counts = document.get("usage_metadata")
        if counts != self._usage:
            self._count(counts, f"{at}/usage_metadata", events)
        other = _read_identity(document, ("response_id", "model_version", "create_time"), at)
        if other.places:
            events.append(other)
        for key, value in document.items():
            if key in ("promptFeedback", "prompt_feedback") and type(value) is dict:
                self._feedback(value, f"{at}/{key}", events, is_alone=not document.get("candidates"))
            elif key not in _FRAME:
                self._report_unmodelled(0, join(at, key), value, events)

    def _feedback(self, feedback: JsonObject, at: str, events: list[StreamEvent], *, is_alone: bool) -> None:
        key = spelling_of(feedback, "blockReason")
        reason = opt_str(feedback, key, at)
        is_finish = is_alone and reason is not None
        for name, value in feedback.items():
            if name not in _FEEDBACK or not is_finish:
                self._report_unmodelled(0, join(at, name), value, events)
        if is_finish:
            events.append(Finished("content_filter", detail=reason, at=f"{at}/{key}"))

    def _candidate(self, candidate: Json, position: int, frame: str, events: list[StreamEvent]) -> None:
        # Pointers are built only where one is used: most frames of a stream just add to a text.
        if type(candidate) is not dict:
            raise wrong(candidate, f"{frame}/candidates/{position}", "an object")
        index = candidate.get("index")
        number = position if index is None else index if type(index) is int else whole_number(index)
        if number is None or not 0 <= number < _MOST_CHOICES:
            raise wrong(index, f"{frame}/candidates/{position}/index", f"a number below {_MOST_CHOICES}")
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(number)
        content = candidate.get("content")
        if content is not None:
            self._content(content, choice, frame, position, events)
        if not candidate.keys() <= _QUIET:
            self._read_candidate_fields(candidate, choice, f"{frame}/candidates/{position}", events)

    def _content(self, content: Json, choice: _Choice, frame: str, position: int, events: list[StreamEvent]) -> None:
        if type(content) is not dict:
            raise wrong(content, f"{frame}/candidates/{position}/content", "an object")
        parts = content.get("parts")
        if type(parts) is list:
            for index, part in enumerate(parts):
                if type(part) is dict and choice.grows and type(text := part.get("text")) is str and text:
                    if len(part) == 1 and choice.grows == "text":
                        choice.texts[-1][1].append(text)
                        events.append(TextReceived(choice.part, text, choice.number))
                        continue
                    if len(part) == 2 and choice.grows == "thought" and part.get("thought") is True:
                        events.append(ThinkingReceived(choice.part, text, choice.number))
                        continue
                place = f"{frame}/candidates/{position}/content/parts/{index}"
                self._part(read_part(part, place), choice, events)
        elif parts is not None:
            self._part(read_part(parts, f"{frame}/candidates/{position}/content/parts"), choice, events)
        if not content.keys() <= _CONTENT:
            self._unknown(content, _CONTENT, choice.number, f"{frame}/candidates/{position}/content", events)

    def _part(self, part: Part, choice: _Choice, events: list[StreamEvent]) -> None:
        match part:
            case Text() | Thinking(redacted=False):
                self._text(part, choice, events)
            case ToolCall():
                choice.has_calls = True
                events += part_events(part, choice.begin(), choice.number)
            case _:
                events += part_events(part, choice.begin(), choice.number)
                return
        for key, value in part.extras.items():
            nested = value if key in ("functionCall", "function_call") and type(value) is dict else {key: value}
            place = part.at if nested is not value else f"{part.at}/{key}"
            self._unknown(nested, frozenset(), choice.number, place, events)

    def _text(self, part: Text | Thinking, choice: _Choice, events: list[StreamEvent]) -> None:
        if not part.text and part.signed_by is None:
            return
        kind = "thought" if isinstance(part, Thinking) else "text"
        if choice.grows != kind:
            choice.begin(kind)
        if kind == "text":
            choice.texts[-1][1].append(part.text)
            events.append(TextReceived(choice.part, part.text, choice.number, at=part.at))
        else:
            events.append(ThinkingReceived(choice.part, part.text, choice.number, at=part.at))
        if part.signed_by is not None:
            item = part.id if isinstance(part, Thinking) else None
            events.append(SignatureReceived(choice.part, part.signature, part.signed_by, choice.number, item))
            choice.grows = ""

    def _read_candidate_fields(
        self, candidate: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]
    ) -> None:
        """Read the fields of a candidate besides its content: citations, probabilities, its finish."""
        self._read_citations(candidate, choice, at, events)
        self._read_grounding(candidate, choice, at, events)
        key = spelling_of(candidate, "logprobsResult")
        result = candidate.get(key)
        if result is not None:
            place = f"{at}/{key}"
            tokens, unknown = read_logprobs(as_object(result, place), place)
            events.append(LogprobsReceived(tokens, choice.number, at=place))
            for field_at, value in unknown:
                self._report_unmodelled(choice.number, field_at, value, events)
        self._unknown(candidate, _CANDIDATE, choice.number, at, events)
        self._finish(candidate, choice, at, events)

    def _read_citations(self, candidate: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        key = spelling_of(candidate, "citationMetadata")
        metadata = candidate.get(key)
        if metadata is None:
            return
        place = f"{at}/{key}"
        holder = as_object(metadata, place)
        name = "citationSources" if holder.get("citations") is None else "citations"
        texts = [(part, "".join(fragments)) for part, fragments in choice.texts]
        for index, value in enumerate(as_list(holder.get(name, []), f"{place}/{name}")):
            if value in choice.citations:  # a later frame may repeat the earlier ones
                continue
            choice.citations.append(value)
            part, citation = read_citation(value, f"{place}/{name}/{index}", texts)
            if part is None:
                self._report_unmodelled(choice.number, f"{place}/{name}/{index}", value, events)
            else:
                events.append(CitationReceived(part, citation, choice.number))
        self._unknown(holder, frozenset({name}), choice.number, place, events)

    def _read_grounding(self, candidate: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        """Read what a search found, as citations; later frames of a stream may repeat those of earlier ones."""
        key = spelling_of(candidate, "groundingMetadata")
        metadata = candidate.get(key)
        if not isinstance(metadata, dict):
            if metadata is not None:
                self._report_unmodelled(choice.number, f"{at}/{key}", metadata, events)
            return
        queries = either(metadata, "webSearchQueries")
        self._searches.update({query: None for query in queries if type(query) is str} if type(queries) is list else {})
        texts = [(part, "".join(fragments)) for part, fragments in choice.texts]
        found, left = read_grounding(metadata, f"{at}/{key}", texts)
        for part, citation in found:
            mark: Json = [citation.url, part, citation.start, citation.end]
            if mark not in choice.citations:
                choice.citations.append(mark)
                events.append(CitationReceived(part, citation, choice.number))
        for place, value in left:
            self._report_unmodelled(choice.number, place, value, events)

    def _finish(self, candidate: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        message_key, key = spelling_of(candidate, "finishMessage"), spelling_of(candidate, "finishReason")
        message = opt_str(candidate, message_key, at)
        word = opt_str(candidate, key, at)
        place = f"{at}/{key}"
        if word in FAILURES:
            events.append(Failed(failure(str(word), message, place)))
            return
        if message is not None:
            self._report_unmodelled(choice.number, f"{at}/{message_key}", message, events)
        if word is None:
            return
        finish, detail = read_finish(word)
        events.append(Finished(finish_for_content(finish, has_calls=choice.has_calls), choice.number, detail, at=place))

    def _unknown(
        self, holder: JsonObject, known: frozenset[str], number: int, at: str, events: list[StreamEvent]
    ) -> None:
        for key, value in holder.items():
            if key not in known:
                self._report_unmodelled(number, join(at, key), value, events)

    def _report_unmodelled(self, number: int, at: str, value: Json, events: list[StreamEvent]) -> None:
        """Report a field that is not modelled; in a stream once for each choice and name."""
        if value is None:
            return
        if self._is_stream:
            mark = (number, at.rpartition("/")[2])
            if mark in self._noted:
                return
            self._noted.add(mark)
        events.append(FieldReceived(at, value))


def _read_identity(document: JsonObject, names: tuple[str, str, str], at: str) -> Started:
    """The id, model and time of a reply, under the names of one spelling."""
    reply_id, model, time = (opt_str(document, name, at) for name in names)
    created = None if time is None else read_time(time)
    found = zip(("id", "model", "created"), (reply_id, model, created), names, strict=True)
    places = {field: f"{at}/{name}" for field, value, name in found if value is not None}
    return Started(reply_id, model, created, places)


# --- words alone ---


class _TextPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str
    thoughtSignature: str = ""  # noqa: N815 - so the API spells it


class _TextContent(msgspec.Struct, forbid_unknown_fields=True):
    parts: Annotated[list[_TextPart], msgspec.Meta(min_length=1, max_length=1)]
    role: Literal["model"] = "model"


class _TextCandidate(msgspec.Struct, forbid_unknown_fields=True):
    content: _TextContent
    index: Literal[0] = 0
    finishReason: Literal["STOP", "MAX_TOKENS"] | None = None  # noqa: N815
    avgLogprobs: float | None = None  # noqa: N815


class _TextFrame(msgspec.Struct, forbid_unknown_fields=True):
    candidates: Annotated[list[_TextCandidate], msgspec.Meta(min_length=1, max_length=1)]
    usageMetadata: dict[str, int | str | list[dict[str, str | int]]] | None = None  # noqa: N815
    modelVersion: str | None = None  # noqa: N815
    responseId: str | None = None  # noqa: N815
    createTime: str | None = None  # noqa: N815


_TEXT_FRAME, _TEXT_FRAMES = msgspec.json.Decoder(_TextFrame), msgspec.json.Decoder(list[_TextFrame])


def read_text(data: bytes) -> str | None:
    """The text of a reply, whole or streamed, that contains only text and is complete; None for any other."""
    try:
        frames = [_TEXT_FRAME.decode(data)] if data[:1] == b"{" else _decode_stream(data)
    except ValueError:
        return None
    said = [frame.candidates[0] for frame in frames]
    finishes = [each.finishReason for each in said]
    parts = [each.content.parts[0] for each in said]
    # A signature closes a part, so what follows is another part.
    if not finishes or finishes.pop() is None or any(finishes) or any(part.thoughtSignature for part in parts[:-1]):
        return None
    return "".join([part.text for part in parts]) or None


def _decode_stream(data: bytes) -> list[_TextFrame]:
    found = read_frames(data)
    if found is None or found[2]:
        return []
    frames = _TEXT_FRAMES.decode(found[0])
    return frames if len(frames) == found[1] else []
