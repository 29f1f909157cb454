"""What whole replies and stream chunks of Chat Completions share: text, reasoning, logprobs, finishes, and which tool
call a streamed fragment belongs to.

Providers agree on neither ids nor indexes: some repeat the id, some send it once, some number every call 0, some send
no ids at all. The code here trusts an id over an index and never joins two calls by the index alone.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sightline.dialects.fields import as_list, as_object, nest_extras, opt_int, opt_str, rest, word_of, wrong
from sightline.dialects.openai_chat.names import (
    FIRST_CALL,
    GEMINI,
    NAME,
    REDACTED,
    SIGNATURE,
    SIGNATURE_ID,
    TEXT_PART,
    THINKING,
    THINKING_PART,
    THINKING_TEXT,
)
from sightline.dialects.signatures import unwrap
from sightline.dialects.streaming import fields_of, unread_fields
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    FieldReceived,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Thinking, ToolKind
from sightline.model.reply import Finish, TokenLogprob
from sightline.model.report import Report
from sightline.wire.partial_json import PartialJson


@dataclass(slots=True, eq=False)
class _Call:
    """A call so far. `id` is the one that the provider gave, if any; `signature` may come before `name`."""

    part: int
    index: int | None
    kind: ToolKind
    id: str = ""
    name: str = ""
    signature: str | None = None
    pieces: list[str] = field(default_factory=list)
    scanned: int = 0
    scan: PartialJson = field(default_factory=PartialJson)
    has_begun: bool = False
    is_completed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are one complete JSON value; free text is never known to be complete."""
        if self.kind == "custom":
            return False
        for piece in self.pieces[self.scanned :]:
            self.scan.feed(piece)
        self.scanned = len(self.pieces)
        return self.scan.is_complete


class Fragment(msgspec.Struct, frozen=True):
    """One entry of a delta's `tool_calls`."""

    index: int | None
    id: str
    name: str
    arguments: str
    kind: ToolKind
    at: str
    signature: str | None = None


class CallAssembly:
    """The calls of one choice."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._calls: list[_Call] = []  # the call that the latest fragment belonged to is last

    @property
    def has_calls(self) -> bool:
        """Whether there is a call to answer."""
        return bool(self._calls)

    def grow(self, index: object, arguments: str) -> ArgumentsReceived | None:
        """The event of a fragment that holds only arguments and continues the last call; None for any other."""
        call = self._calls[-1] if self._calls else None
        if call is None or call.index != index or not call.has_begun or call.is_completed:
            return None
        call.pieces.append(arguments)
        return ArgumentsReceived(call.part, arguments, self._choice)

    def add(self, fragment: Fragment) -> list[StreamEvent]:
        """The events of the next fragment."""
        call = self._call_of(fragment)
        events: list[StreamEvent] = []
        if call is None:
            events += self._complete_whole_ones()
            call = _Call(FIRST_CALL + len(self._calls), fragment.index, fragment.kind)
        else:
            self._calls.remove(call)
        self._calls.append(call)
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        is_late = call.has_begun and fragment.signature is not None
        call.signature = fragment.signature or call.signature
        if call.name and not call.has_begun:
            events += self._begin(call, fragment.at)
        if fragment.arguments and not _is_repeated(call, fragment):
            events += self._add_arguments(call, fragment)
        return [*events, SignatureReceived(call.part, fragment.signature, GEMINI, self._choice)] if is_late else events

    def finish(self) -> list[StreamEvent]:
        """The events at the end of the choice: every call is as complete as it will be."""
        events: list[StreamEvent] = []
        for call in sorted(self._calls, key=lambda call: call.part):
            if not call.has_begun:
                events += self._begin(call, "")
            if not call.is_completed:
                call.is_completed = True
                events.append(ToolCallCompleted(call.part, self._choice))
        return events

    def _begin(self, call: _Call, at: str) -> list[StreamEvent]:
        call.has_begun = True
        events: list[StreamEvent] = [ToolCallBegun(call.part, call.id, call.name, self._choice, call.kind, at=at)]
        if call.signature is not None:
            # Directly after the beginning, as in a whole reply: some writers must write the signature before the call.
            events.append(SignatureReceived(call.part, call.signature, GEMINI, self._choice))
        events += [ArgumentsReceived(call.part, text, self._choice) for text in call.pieces]
        return events

    def _add_arguments(self, call: _Call, fragment: Fragment) -> list[StreamEvent]:
        if call.is_completed:
            if not fragment.arguments.strip():
                return []
            raise Fault(Code.UPSTREAM_PROTOCOL, "arguments come for a tool call that was complete", pointer=fragment.at)
        call.pieces.append(fragment.arguments)
        return [ArgumentsReceived(call.part, fragment.arguments, self._choice)] if call.has_begun else []

    def _call_of(self, fragment: Fragment) -> _Call | None:
        """The call that the fragment continues, or None if it begins a new one."""
        under_index = [call for call in self._calls if call.index == fragment.index]
        if fragment.id:
            known = [call for call in self._calls if call.id == fragment.id]
            if known and not all(_begins_new_call(call, fragment) for call in known):
                return next((call for call in reversed(known) if call.index == fragment.index), known[0])
            # An id that arrives late belongs to a call that began without a name, or the fragment has no name.
            waiting = [
                call
                for call in under_index
                if not call.id and (not call.name or (not fragment.name and not call.is_whole))
            ]
            return waiting[-1] if waiting else None
        if under_index:
            call = under_index[-1]
        elif self._calls and (fragment.index is None or not fragment.name):
            call = self._calls[-1]
        else:
            return None
        if fragment.name and call.name and (fragment.name != call.name or call.is_whole):
            return None
        return call

    def _complete_whole_ones(self) -> list[StreamEvent]:
        """Complete the calls whose JSON is closed when the next call begins, so that writers need not wait for them."""
        events: list[StreamEvent] = []
        for call in self._calls:
            if call.has_begun and not call.is_completed and call.is_whole:
                call.is_completed = True
                events.append(ToolCallCompleted(call.part, self._choice))
        return events


def _begins_new_call(call: _Call, fragment: Fragment) -> bool:
    """Whether a fragment with the id of a call begins another one: some models give all their calls the same id."""
    is_elsewhere = fragment.index is not None and fragment.index != call.index
    return is_elsewhere and bool(fragment.name) and call.is_whole and not _is_repeated(call, fragment)


def _is_repeated(call: _Call, fragment: Fragment) -> bool:
    """Whether the fragment repeats a whole call: some servers send a call again when it is complete."""
    is_suspect = bool(fragment.id and fragment.name == call.name and call.pieces) and call.is_whole
    return is_suspect and "".join(call.pieces) == fragment.arguments


_FITS = re.compile(r"[a-zA-Z0-9_-]{1,24}")


class CallIds:
    """The ids of one choice's calls. Generated ids are derived from the reply's id, so that no two turns share one."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._taken: set[str] = set()

    def of(self, given: str, number: int, reply_id: str | None) -> str:
        """The id of the call with this number: the given one if there is one, otherwise a generated one."""
        call_id = given or self._make_id(number, reply_id or "")
        self._taken.add(call_id)
        return call_id

    def _make_id(self, number: int, reply_id: str) -> str:
        mark = reply_id if _FITS.fullmatch(reply_id) or not reply_id else _digest(reply_id)
        words = ("call", mark, str(self._choice or ""), str(number))
        made = "_".join(word for word in words if word)
        while made in self._taken:
            made += "_"
        return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "max_tokens": "length",
    "model_length": "length",
    "sensitive": "content_filter",
}

FAILURES = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Finish words by which some servers report that an answer is incomplete."""

_HUGE = 1e300
_LOGPROBS = ("content", "refusal")

MOST_CHOICES = 128
"""The API allows no more; a greater number is not a choice but a mistake."""


def read_index(holder: JsonObject, position: int, at: str) -> int:
    """The number of a choice; its position if it has none."""
    index = opt_int(holder, "index", at)
    if index is None:
        index = position
    if not 0 <= index < MOST_CHOICES:
        raise wrong(index, f"{at}/index", f"a whole number below {MOST_CHOICES}")
    return index


def read_finish(word: str, *, has_calls: bool, has_refusal: bool) -> Finish:
    """The finish of a choice. An unknown word counts as a stop: the provider declares the answer complete."""
    finish = FINISHES.get(word, "stop")
    if finish in ("stop", "tool_calls"):
        return "tool_calls" if has_calls else "refusal" if has_refusal else "stop"
    return finish


def finish_detail(word: str) -> str | None:
    """The provider's own word if ours is coarser; otherwise None."""
    return None if FINISHES.get(word) == word else word


def write_finish(finish: Finish | None, *, has_refusal: bool) -> str:
    """The word for a finish. A refusal with a text of its own is a stop; one without is what a filter does."""
    if finish == "refusal":
        return "stop" if has_refusal else "content_filter"
    return finish if finish in ("length", "tool_calls", "content_filter") else "stop"


PART_KEYS = frozenset({"type", "text", "thinking"})


def read_content(content: Json, choice: int, at: str, known: set[str]) -> list[StreamEvent]:
    """The content of a message or of a delta: a string, or with some servers a list of text and reasoning. `known` are
    the fields of such parts that were reported before, and `PART_KEYS`."""
    if content is None or content == "":
        return []
    if type(content) is str:
        return [TextReceived(TEXT_PART, content, choice, at=at)]
    if type(content) is not list:
        raise wrong(content, at, "a string or a list of parts")
    events: list[StreamEvent] = []
    for index, value in enumerate(content):
        place = f"{at}/{index}"
        part = as_object(value, place)
        kind = part.get("type")
        if kind == "text":
            events += read_content(opt_str(part, "text", place), choice, f"{place}/text", known)
            events += unread_fields(part, known, place)
        elif kind == "thinking" and (thought := _plain(part.get("thinking"))) is not None:
            events.append(ThinkingReceived(THINKING_PART, thought, choice, at=place))
            events += unread_fields(part, known, place)
        else:
            events.append(FieldReceived(place, value))
    return events


def _plain(pieces: Json) -> str | None:
    """The text of a list of text parts, None if it is anything else."""
    texts: list[str] = []
    for piece in pieces if isinstance(pieces, list) else [None]:
        text = piece.get("text") if isinstance(piece, dict) and piece.get("type") == "text" else None
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "".join(texts)


def read_role(holder: JsonObject, at: str) -> list[StreamEvent]:
    """Report an unexpected role: replies are the assistant's, but some servers send their own tools' output too."""
    role = holder.get("role")
    return [] if role is None or role == "assistant" else [FieldReceived(f"{at}/role", role)]


def read_thinking(holder: JsonObject, choice: int, at: str, *, has_words: bool = False) -> list[StreamEvent]:
    """Reasoning beside the content of a message or of a delta, under any of the names that providers use.

    `has_words`: some of it arrived before this delta.
    """
    if holder.keys().isdisjoint(THINKING):
        return []
    events: list[StreamEvent] = []
    seen: set[str] = set()
    for key in THINKING_TEXT:
        value = holder.get(key)
        if isinstance(value, dict):
            value = value.get("text") or value.get("content") or value
        if isinstance(value, str):
            if value and value not in seen:  # some servers send the same text under two names
                seen.add(value)
                events.append(ThinkingReceived(THINKING_PART, value, choice, at=f"{at}/{key}"))
        elif value is not None:
            events.append(FieldReceived(f"{at}/{key}", value))
    signed = read_reasoning_signature(holder, at)
    if signed is not None:
        signature, signed_by, item = signed
        if signed_by != NAME and item == REDACTED:
            item = None
            if not has_words and not seen:
                block = Thinking(signature=signature, signed_by=signed_by, redacted=True, at=f"{at}/{SIGNATURE}")
                return [*events, PartReceived(THINKING_PART, block, choice)]
        events.append(SignatureReceived(THINKING_PART, signature, signed_by, choice, item))
    return events


def read_reasoning_signature(holder: JsonObject, at: str) -> tuple[str | None, str, str | None] | None:
    """The signature of a message's reasoning, the dialect that made it, and its id; None if there is none."""
    opaque, item = opt_str(holder, SIGNATURE, at), opt_str(holder, SIGNATURE_ID, at)
    if opaque is None:
        return None if item is None else (None, NAME, item)
    signature, signed_by, bound = unwrap(opaque, NAME)
    return signature, signed_by, bound if item is None else item


_ANNOTATION = frozenset({"type", "url_citation"})
_URL_CITATION = frozenset({"url", "title", "content", "start_index", "end_index"})


def read_citations(value: Json, choice: int, at: str) -> list[StreamEvent]:
    """Read the `annotations` of a message."""
    if not isinstance(value, list):  # some servers put other things under this name
        return [] if value is None else [FieldReceived(at, value)]
    events: list[StreamEvent] = []
    for index, item in enumerate(value):
        holder = as_object(item, f"{at}/{index}")
        inner = holder.get("url_citation") if holder.get("type") == "url_citation" else None
        known = inner if isinstance(inner, dict) else {}
        start, end = known.get("start_index"), known.get("end_index")
        citation = Citation(
            url=opt_str(known, "url", f"{at}/{index}/url_citation") or "",
            title=opt_str(known, "title", f"{at}/{index}/url_citation") or "",
            cited_text=word_of(known, "content"),  # OpenRouter quotes the page
            start=start if type(start) is int else None,
            end=end if type(end) is int else None,
            value=item,
            at=f"{at}/{index}",
            extras=nest_extras(rest(holder, _ANNOTATION), "url_citation", rest(known, _URL_CITATION)) if known else {},
        )
        events.append(CitationReceived(TEXT_PART, citation, choice))
    return events


def write_citation(citation: Citation, offset: int) -> JsonObject | None:
    """A citation as an annotation, None if this dialect cannot express it; `offset` is where its text begins."""
    if not citation.url or citation.start is None or citation.end is None:
        return None
    inner: JsonObject = {
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start + offset,
        "end_index": citation.end + offset,
    }
    return {"type": "url_citation", "url_citation": inner}


def read_logprobs(value: Json, choice: int, at: str) -> list[StreamEvent]:
    """A choice's `logprobs`, those of a refusal after those of the content; other forms are not modelled."""
    if type(value) is not dict:
        return [FieldReceived(at, value)] if value else []
    tokens = tuple(
        read_token(token, f"{at}/{key}/{index}")
        for key in _LOGPROBS
        for index, token in enumerate(as_list(value.get(key) or [], f"{at}/{key}"))
    )
    return [LogprobsReceived(tokens, choice, at=at), *fields_of(value, frozenset(_LOGPROBS), at)]


def read_token(value: Json, at: str, *, nested: bool = True) -> TokenLogprob:
    """One token with its alternatives, which have none themselves; both OpenAI APIs use this form."""
    holder = as_object(value, at)
    logprob, raw = holder.get("logprob"), holder.get("bytes")
    tops = as_list(holder.get("top_logprobs") or [], f"{at}/top_logprobs") if nested else []
    return TokenLogprob(
        opt_str(holder, "token", at) or "",
        float(logprob) if isinstance(logprob, (int, float)) and abs(logprob) < _HUGE else 0.0,
        tuple(byte for byte in raw if isinstance(byte, int)) if isinstance(raw, list) else None,
        tuple(read_token(top, f"{at}/top_logprobs/{index}", nested=False) for index, top in enumerate(tops)),
    )


def write_token(token: TokenLogprob, *, nested: bool = True) -> JsonObject:
    """The token as JSON."""
    document: JsonObject = {
        "token": token.token,
        "logprob": token.logprob,
        "bytes": None if token.bytes is None else list(token.bytes),
    }
    if nested:
        document["top_logprobs"] = [write_token(top, nested=False) for top in token.top]
    return document


THOUGHT, WORDS, CALL = 0, 1, 2
_LOST_ORDERS: Final = ("order of reasoning and words", "order of words and calls")


class Order:
    """Records each part of an answer with its number, in any sequence, and reports the parts that are moved forward."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._first: dict[int, int] = {}
        self._last: dict[int, tuple[int, str]] = {}

    def note(self, rank: int, number: int, at: str) -> None:
        """Record a part of this rank, which comes after all parts with a smaller number."""
        if any(other > rank and first < number for other, first in self._first.items()):
            self._lose(rank, at)
        for other, (last, place) in self._last.items():
            if other < rank and last > number:
                self._lose(other, place)
        self._first[rank] = min(number, self._first.get(rank, number))
        self._last[rank] = max((number, at), self._last.get(rank, (number, at)))

    def _lose(self, rank: int, at: str) -> None:
        self._report.lose(at, _LOST_ORDERS[rank], f"{NAME} holds reasoning, then words, then calls", "content")
