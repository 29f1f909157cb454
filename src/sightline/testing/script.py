"""A scripted model: replies by round, a provider on loopback that sends them, and tools without side effects.

A round is written as deltas, or is a captured stream of a provider.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Self, TypeAlias

import msgspec

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, ToolOutcome, text_outcome
from sightline.agent.tools.tools import Progress
from sightline.dialects.dialect import Client
from sightline.dialects.endpoint import provider_dialects
from sightline.dialects.registry import DEFAULT, dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.dialects.streaming import finish_for_content
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.json import Json
from sightline.model.reply import Finish, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import MISFIT, decode, encode
from sightline.wire.sse import SseDecoder

MODEL = "scripted"
_HINT = "docs/guide/harness.md says how a script is written."


class ThinkingDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some reasoning."""

    thinking: str


class CallDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool; its arguments arrive in these fragments."""

    call: str
    arguments: tuple[str, ...] | str | dict[str, Json] = ()
    id: str = ""


class ScriptedResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a scripted tool."""

    text: str
    is_error: bool = False


class ToolLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool as it is offered to the model."""

    name: str
    description: str = ""
    schema: dict[str, Json] | None = None

    @property
    def definition(self) -> Definition:
        return Definition(name=self.name, description=self.description, schema=self.schema)


Delta: TypeAlias = str | dict[str, Json]


class ScriptedRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reply. `results` are the results of its calls, in order, if no real tool provides them."""

    deltas: tuple[Delta, ...] = ()
    capture: str = ""
    results: tuple[str | ScriptedResult, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The replies of a whole run. `captures` has the bytes of captured streams, by the name that a round uses."""

    rounds: Annotated[tuple[ScriptedRound, ...], msgspec.Meta(min_length=1)]
    prompt: str = "Play your part."
    system: str | None = None
    dialect: str = ""
    tools: tuple[ToolLine, ...] = ()
    captures: dict[str, bytes] = {}

    def pieces(self, number: int, dialect_name: str) -> list[bytes]:
        """The chunks of a round's reply, as a provider of this dialect sends them."""
        scripted = self.rounds[number]
        if scripted.capture:
            # A capture as it was received, one event at a time.
            text = self.captures[scripted.capture].replace(b"\r\n", b"\n")
            return [frame + b"\n\n" for frame in text.split(b"\n\n") if frame.strip()]
        writer = dialect(dialect_name).stream_writer(
            Client(id=f"scripted_{number + 1}", model=MODEL, created=1), Report()
        )
        return [data for event in _events(scripted, number) if (data := writer.feed(event))]

    def whole(self, number: int, dialect_name: str) -> bytes:
        """The reply of a round as one body, for a client that does not ask for a stream."""
        scripted, spoken = self.rounds[number], dialect(dialect_name)
        if scripted.capture:
            decoder = ReplyDecoder(spoken)
            events = [*decoder.feed(self.captures[scripted.capture]), *decoder.close()]
        else:
            events = _events(scripted, number)
        client = Client(id=f"scripted_{number + 1}", model=MODEL, created=1)
        return encode(spoken.write_reply(fold(events, dialect_name), client, Report()))

    def reply_dialect(self, wanted: str = "") -> str:
        """The dialect of the replies. Raises a fault if a capture is of another dialect than the one wanted."""
        found = {name: _dialect_of(data, name) for name, data in self.captures.items()}
        dialect_name = wanted or self.dialect or next(iter(found.values()), DEFAULT)
        for name, each in found.items():
            if each != dialect_name:
                hint = "A captured stream keeps its dialect: leave out --dialect. Replies written as deltas fit any."
                raise Fault(Code.USAGE, f"{name} is a stream of {each}, not of {dialect_name}", hint=hint)
        served = [each.name for each in provider_dialects()]
        if dialect_name not in served:
            raise Fault(
                Code.USAGE, f"no model speaks {dialect_name!r}", hint=f"Those that do speak: {', '.join(served)}."
            )
        return dialect_name


def read_script(files: Sequence[str], read: Callable[[str, str], bytes]) -> Script:
    """Read a script from a JSON file, or from captured streams, one file for each reply.

    `read` returns the bytes of a file, whose name may be relative to another file.
    """
    first = read(files[0], "")
    if not first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        captures = {file: first if file == files[0] else read(file, "") for file in files}
        return Script(tuple(ScriptedRound(capture=file) for file in files), captures=captures)
    if len(files) > 1:
        raise Fault(Code.USAGE, f"{files[0]} is a whole script", hint="Name it alone; several files are captures.")
    try:
        script = msgspec.convert(decode(first), Script)
        for scripted in script.rounds:
            for delta in scripted.deltas:
                if isinstance(delta, dict):
                    _delta(delta)
            if scripted.capture and scripted.deltas:
                raise Fault(Code.USAGE, "a round has deltas or a capture, not both")
    except (*MISFIT, Fault) as error:
        words = error.message if isinstance(error, Fault) else str(error)
        raise Fault(Code.USAGE, f"{files[0]} is no script: {words}", hint=_HINT) from None
    captures = {scripted.capture: read(scripted.capture, files[0]) for scripted in script.rounds if scripted.capture}
    return msgspec.structs.replace(script, captures=captures)


def _delta(value: dict[str, Json]) -> ThinkingDelta | CallDelta:
    kind: type[ThinkingDelta] | type[CallDelta] = ThinkingDelta if "thinking" in value else CallDelta
    return msgspec.convert(value, kind)


def _events(scripted: ScriptedRound, number: int) -> list[StreamEvent]:
    events: list[StreamEvent] = [Started(f"scripted_{number + 1}", MODEL, 1)]
    part, kind, calls = -1, "", 0
    for delta in scripted.deltas:
        parsed = delta if isinstance(delta, str) else _delta(delta)
        fresh = type(parsed).__name__
        part += fresh != kind or isinstance(parsed, CallDelta)
        kind = fresh
        match parsed:
            case str():
                events.append(TextReceived(part, parsed))
            case ThinkingDelta(thinking):
                events.append(ThinkingReceived(part, thinking))
            case CallDelta():
                calls += 1
                events += _call(parsed, part, f"call_{number + 1}_{calls}")
    finish = finish_for_content(scripted.finish or "stop", has_calls=bool(calls))
    counted = [] if scripted.usage is None else [UsageReceived(scripted.usage)]
    return [*events, *counted, Finished(finish), Ended()]


def _call(delta: CallDelta, part: int, otherwise: str) -> list[StreamEvent]:
    fragments: tuple[str, ...]
    match delta.arguments:
        case str() as text:
            fragments = (text,)
        case dict() as value:
            fragments = (msgspec.json.encode(value).decode(),)
        case tuple() as pieces:
            fragments = pieces or ("{}",)
    return [
        ToolCallBegun(part, delta.id or otherwise, delta.call),
        *(ArgumentsReceived(part, fragment) for fragment in fragments),
        ToolCallCompleted(part),
    ]


def _dialect_of(data: bytes, name: str) -> str:
    """The dialect of a capture, by the first event that identifies it."""
    decoder = SseDecoder()
    for frame in [*decoder.feed(data), *decoder.close()]:
        try:
            value = decode(frame.data)
        except Fault:
            continue
        if isinstance(value, dict):
            for each in provider_dialects():
                if each.owns_frame(value):
                    return each.name
    raise Fault(Code.USAGE, f"{name} is neither a script nor a captured stream", hint=_HINT)


_HOST = "127.0.0.1"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class ScriptedProvider:
    """Answers each request with the next reply: as a stream whose chunks are `delay` seconds apart, or whole if the
    client does not ask for a stream. `requests` has the bodies received. `faults` are errors in place of replies, by
    their number from 0.

    If the script has no further reply, the request is refused, and `is_over` is True.
    """

    def __init__(
        self,
        script: Script,
        dialect_name: str,
        *,
        sleep: Callable[[float], Awaitable[None]],
        delay: float = 0.0,
        faults: Mapping[int, Fault] | None = None,
    ) -> None:
        self._faults = faults or {}
        self._script = script
        self._spoken = dialect_name
        self._sleep = sleep
        self._delay = delay
        self._server: asyncio.Server | None = None
        self.requests: list[bytes] = []
        self.url = ""

    @property
    def is_over(self) -> bool:
        """Whether there were more requests than the script has replies."""
        return len(self.requests) > len(self._script.rounds)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self.url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length(head))
                if not head.startswith(b"POST "):
                    writer.write(self._error(Fault(Code.INVALID_REQUEST, "a script answers POST alone", status=404)))
                    continue
                self.requests.append(body)
                await self._answer(writer, is_stream=_asks_for_stream(head, body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, *, is_stream: bool) -> None:
        number = len(self.requests) - 1
        if self.is_over:
            writer.write(self._error(Fault(Code.INVALID_REQUEST, f"the script has no reply {number + 1}")))
        elif number in self._faults:
            writer.write(self._error(self._faults[number]))
        elif not is_stream:
            writer.write(_response(200, self._script.whole(number, self._spoken)))
        else:
            writer.write(_STREAM)
            for piece in self._script.pieces(number, self._spoken):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                if self._delay:
                    await self._sleep(self._delay)
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _error(self, fault: Fault) -> bytes:
        status, value = dialect(self._spoken).write_error(fault)
        return _response(status, encode(value))


def _response(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _asks_for_stream(head: bytes, body: bytes) -> bool:
    """Whether the client wants a stream: Gemini has it in the path, the others in the body."""
    path = head.split(b" ", 2)[1].partition(b"?")[0]
    try:
        asked = decode(body)
    except Fault:
        asked = None
    return path.endswith(b":streamGenerateContent") or (isinstance(asked, dict) and asked.get("stream") is True)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


class ScriptedTools:
    """The tools of a script that have no other definition."""

    def __init__(self, script: Script, real: frozenset[str] = frozenset()) -> None:
        self._script = script
        self.definitions = tuple(each.definition for each in script.tools if each.name not in real)

    def __str__(self) -> str:
        return "the script"

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """The scripted result, by the position of the call in its round."""
        number, _, place = call.key.partition(".")
        results = self._script.rounds[int(number) - 1].results
        if int(place) > len(results):
            return text_outcome(f"The script has no result for call {place} of round {number}.", is_error=True)
        scripted = results[int(place) - 1]
        result = ScriptedResult(scripted) if isinstance(scripted, str) else scripted
        return text_outcome(result.text, is_error=result.is_error)

    async def close(self) -> None:
        """Nothing to close."""
