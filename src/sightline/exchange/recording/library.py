"""The recordings that can answer clients: found by the contents of a request, each in turn, and the most similar one if
there is none.

First, what makes two requests the same, in whichever dialect they arrived: their texts, tools and options. Ignored is
what changes from one run to the next without meaning: ids, cache marks, signatures, the model's own reasoning,
metadata, the user's identity, whether the response streams, and dates in the instructions that clients write.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import assert_never

import msgspec

from sightline.dialects.endpoint import counting_of
from sightline.dialects.registry import dialect, find_dialect
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.exchange.recording.records import read_summaries
from sightline.filters.expression import Expression
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
    Tool,
)
from sightline.store.store import Store
from sightline.store.summary import Summary
from sightline.wire.jsontext import decode, encode

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_BILLING = re.compile(r"x-anthropic-billing-header:[^\n]*")
_VOLATILE = re.compile(r"(?:^|_)(?:id|ids|uuid|signature|encrypted_content|cache_control|metadata|status)$")
_OPTIONS = (
    "max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty",
    "logit_bias", "logprobs", "top_logprobs", "n", "verbosity",
)  # fmt: skip
_LIMIT = "option max_tokens "
_SYSTEM = ("system", "developer")
_LONGEST = 400


def lines_of(spoken: str, body: bytes, model: str, *, counts: bool = False) -> list[str]:
    """The request as lines that can be compared. Raises a fault if the body is not in its dialect."""
    document = decode(body)
    if counts and isinstance(document, dict) and isinstance(inner := document.get(counting_of(spoken).wrapper), dict):
        document = inner
    request = dialect(spoken).read_request(document)
    kind = "count" if counts else "ask"
    # The response to a count exists only in its own dialect.
    return [f"{kind} {spoken if counts else ''}".strip(), f"model {request.model or model}", *_request_lines(request)]


def key_of(lines: list[str]) -> bytes:
    """A key that is equal only for equal requests."""
    return hashlib.sha256("\0".join(lines).encode("utf-8", "surrogatepass")).digest()


def without_limit(lines: list[str]) -> list[str]:
    """The same request without its limit on output tokens."""
    return [line for line in lines if not line.startswith(_LIMIT)]


def marks_of(lines: list[str]) -> tuple[int, ...]:
    """A number for each line, small enough to keep for every recording, to find the most similar one."""
    return tuple(
        int.from_bytes(hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        for line in lines
    )


def shorten(line: str) -> str:
    """A line for people."""
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _request_lines(request: Request) -> Iterator[str]:
    yield from _options(request)
    for tool in request.tools:
        yield f"tool {_tool(tool)}"
    calls: dict[str, int] = {}
    words, speaker = "", ""
    for message in request.messages:
        for who, kind, text in _pieces_of(message, calls):
            # What is one text in one dialect is several parts or messages in another.
            if kind == "text" and who == speaker:
                words += text
                continue
            if speaker:
                yield from _text(speaker, words)
            speaker, words = (who, text) if kind == "text" else ("", "")
            if kind != "text":
                yield f"{kind} {text}"
    if speaker:
        yield from _text(speaker, words)


def _text(who: str, text: str) -> Iterator[str]:
    """One line for each line of the text, so that a difference can be shown at its place."""
    for line in text.split("\n"):
        yield f"{who}: {line}"


def _pieces_of(message: Message, calls: dict[str, int]) -> Iterator[tuple[str, str, str]]:
    who = "system" if message.role in _SYSTEM else "user" if message.role == "tool" else message.role
    for part in message.parts:
        piece = _piece(part, calls)
        if piece is None:
            continue
        kind, text = piece
        if kind == "text" and who == "system":
            text = _BILLING.sub("", _DATE.sub("(date)", text))
        if text:
            yield who, kind, text


def _piece(part: Part, calls: dict[str, int]) -> tuple[str, str] | None:
    match part:
        case Text(text=text) | Refusal(text=text):
            return "text", text
        case ToolCall(id=name, name=tool, arguments=arguments):
            return "call", f"{_number(name, calls)} {tool} {_arguments(arguments)}"
        case ToolResult(id=name, parts=parts, structured=structured):
            texts = [piece[1] for each in parts if (piece := _piece(each, calls)) is not None]
            if structured is not None:
                texts.append(_json(structured))
            return "result", f"{_number(name, calls)} {' '.join(texts)}"
        case Image(source=source) | Document(source=source) | Audio(source=source):
            return "file", f"{type(part).__name__.lower()} {_source(source)}"
        case Opaque(value=value):
            return "part", _json(_without_volatile(value))
        case Thinking() | CacheBreakpoint():
            return None
        case unreachable:
            assert_never(unreachable)


def _number(name: str, calls: dict[str, int]) -> int:
    """Calls are identified by their order, if the dialect gives them ids."""
    return calls.setdefault(name, len(calls) + 1) if name else 0


def _arguments(text: str) -> str:
    try:
        return _json(decode(text)) if text else "{}"
    except Fault:
        return text


def _source(source: Source | None) -> str:
    return hashlib.sha256(encode(msgspec.to_builtins(source))).hexdigest()[:16]


def _tool(tool: Tool) -> str:
    match tool:
        case FunctionTool(name=name, description=description, schema=schema):
            return f"{name} {description or ''} {_json(schema or {})}"
        case CustomTool(name=name, description=description, grammar=grammar):
            return f"{name} {description or ''} {grammar.definition if grammar else ''}"
        case OpaqueTool(value=value):
            return _json(_without_volatile(value))
        case unreachable:
            assert_never(unreachable)


def _options(request: Request) -> Iterator[str]:
    options: Options = request.options
    for name in _OPTIONS:
        if (value := getattr(options, name)) is not None:
            yield f"option {name} {_json(msgspec.to_builtins(value))}"
    if isinstance(options.format, SchemaFormat):
        yield f"option format {_json(options.format.schema)}"
    elif options.format is not None:
        yield f"option format {type(options.format).__name__}"
    if (reasoning := options.reasoning) is not None:
        yield f"option reasoning {_reasoning(reasoning)}"
    if (choice := request.tool_choice) is not None:
        yield f"option tool_choice {choice.mode} {' '.join(choice.names)}".strip()


def _reasoning(reasoning: Reasoning) -> str:
    return " ".join(str(each) for each in (reasoning.mode, reasoning.effort, reasoning.budget) if each is not None)


def _without_volatile(value: Json) -> Json:
    """The value without members that have no meaning in another run."""
    match value:
        case dict():
            kept: JsonObject = {
                key: _without_volatile(each) for key, each in value.items() if not _VOLATILE.search(key)
            }
            return kept
        case list():
            return [_without_volatile(each) for each in value]
        case _:
            return value


def _json(value: Json) -> str:
    """The value as JSON text with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_MOST_LINES = 16


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that can be played, and the marks by which it is found."""

    summary: Summary
    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NearestRecording:
    """The most similar recording to a request that has none, and how they differ."""

    summary: Summary
    difference: str


class Library:
    """The recordings of a store. A repeated request gets the next recording of it; after the last, the last again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recordings: list[Recording] = []
        self._by_key: dict[bytes, list[Summary]] = {}
        # Recordings in dialects that require a token limit, by their lines without it: clients of other dialects send
        # none.
        self._without_limit: dict[bytes, list[Summary]] = {}
        self._turns: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._recordings)

    async def fill(self, wanted: Expression, *, now: float) -> None:
        """Add every exchange that the filter matches and that got a response, from the oldest to the newest."""
        found = [summary async for summary in read_summaries(self._store, wanted, now)]
        for summary in reversed(found):
            if summary.state not in ("finished", "failed") or find_dialect(summary.dialect) is None:
                continue
            try:
                self._take(await load_exchange(self._store, summary))
            except Fault:
                continue  # its body is gone or not in its dialect, so that no request can match it

    def _take(self, recorded: RecordedExchange) -> None:
        if recorded.frames:
            lines = _lines(recorded)
            self._recordings.append(Recording(recorded.summary, marks_of(lines)))
            self._by_key.setdefault(key_of(lines), []).append(recorded.summary)
            if dialect(recorded.received.dialect).rules.needs_max_tokens:
                self._without_limit.setdefault(key_of(without_limit(lines)), []).append(recorded.summary)

    async def next(self, lines: list[str], spoken: str = "") -> RecordedExchange | None:
        """The next recording of this request, which arrived in this dialect; None if there is none."""
        key, summaries = self._find(lines, spoken)
        turn = self._turns.get(key, 0)
        if summaries:
            self._turns[key] = turn + 1
        return await self._load_turn(summaries, turn)

    async def at(self, lines: list[str], turn: int, spoken: str = "") -> RecordedExchange | None:
        """The recording of this request at this turn, counted from 0, for callers that count turns themselves. None if
        there is none."""
        return await self._load_turn(self._find(lines, spoken)[1], turn)

    def _find(self, lines: list[str], spoken: str) -> tuple[bytes, list[Summary]]:
        """The recordings of this request, and the key by which their turns are counted. A token limit that one side has
        only because its dialect requires one does not make them differ."""
        key, bare = key_of(lines), key_of(without_limit(lines))
        if key in self._by_key:
            return key, self._by_key[key]
        if bare == key:
            return bare, self._without_limit.get(bare, [])
        return bare, self._by_key.get(bare, []) if dialect(spoken).rules.needs_max_tokens else []

    async def _load_turn(self, summaries: list[Summary], turn: int) -> RecordedExchange | None:
        return await load_exchange(self._store, summaries[min(turn, len(summaries) - 1)]) if summaries else None

    async def nearest(self, lines: list[str]) -> NearestRecording | None:
        """The recording that has most in common with a request, the newest of several; None if there are no
        recordings."""
        marks = marks_of(lines)
        wanted = set(marks)
        if not self._recordings:
            return None
        nearest = max(
            reversed(self._recordings),
            key=lambda each: len(wanted.intersection(each.marks)) / (len(each.marks) + len(marks)),
        )
        return NearestRecording(
            nearest.summary, _difference(_lines(await load_exchange(self._store, nearest.summary)), lines)
        )


def _lines(recorded: RecordedExchange) -> list[str]:
    received = recorded.received
    return lines_of(received.dialect, recorded.body, received.model, counts=recorded.is_count)


def _difference(before: list[str], after: list[str]) -> str:
    """The lines that only the recording has (-), and those that only the request has (+)."""
    lines = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    changed = [shorten(line) for line in lines if not line.startswith("@@")]
    more = len(changed) - _MOST_LINES
    return "\n".join(changed[:_MOST_LINES]) + (f"\n(and {more} more lines)" if more > 0 else "")
