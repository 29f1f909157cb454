"""What a scripted model says, round by round: deltas in our own words, or captured streams as a provider sent them."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import msgspec

from sightline.agent.core.tool import Definition
from sightline.dialects.dialect import Client
from sightline.dialects.paths import served_dialects
from sightline.dialects.registry import DEFAULT, dialect
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
from sightline.model.json import Json
from sightline.model.reply import Finish
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.wire.jsontext import MISFIT, decode
from sightline.wire.sse import SseDecoder

MODEL = "scripted"
_HINT = "docs/guide/harness.md says how a script is written."


class ThinkingDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some reasoning."""

    thinking: str


class CallDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool; its arguments come in these fragments."""

    call: str
    arguments: tuple[str, ...] | str | dict[str, Json] = ()
    id: str = ""


class ScriptedResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a scripted tool answers."""

    text: str
    is_error: bool = False


class ToolLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool as the model is told of it."""

    name: str
    description: str = ""
    schema: dict[str, Json] | None = None

    @property
    def definition(self) -> Definition:
        """The same for the loop."""
        return Definition(name=self.name, description=self.description, schema=self.schema)


Delta: TypeAlias = str | dict[str, Json]


class ScriptedRound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply. `results` are what its calls bring, in their order, where no real tool does that."""

    deltas: tuple[Delta, ...] = ()
    capture: str = ""
    results: tuple[str | ScriptedResult, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole run's worth of replies. `captures` are the bytes of captured streams, by the name that a round has."""

    rounds: Annotated[tuple[ScriptedRound, ...], msgspec.Meta(min_length=1)]
    prompt: str = "Play your part."
    system: str | None = None
    dialect: str = ""
    tools: tuple[ToolLine, ...] = ()
    captures: dict[str, bytes] = {}

    def pieces(self, number: int, spoken: str) -> list[bytes]:
        """The pieces in which the reply of a round comes, as a provider of this dialect sends them."""
        told = self.rounds[number]
        if told.capture:
            return _frames(self.captures[told.capture])
        writer = dialect(spoken).stream_writer(Client(id=f"scripted_{number + 1}", model=MODEL, created=1), Report())
        return [data for event in _events(told, number) if (data := writer.feed(event))]

    def reply_dialect(self, wanted: str = "") -> str:
        """The dialect of the replies; a fault where a capture is of another one than is wanted."""
        found = {name: _dialect_of(data, name) for name, data in self.captures.items()}
        spoken = wanted or self.dialect or next(iter(found.values()), DEFAULT)
        for name, each in found.items():
            if each != spoken:
                hint = "A capture is played as it came; deltas can be said in any dialect."
                raise Fault(Code.USAGE, f"{name} is a stream of {each}, not of {spoken}", hint=hint)
        served = [each.name for each in served_dialects()]
        if spoken not in served:
            raise Fault(Code.USAGE, f"no model speaks {spoken!r}", hint=f"Those that do speak: {', '.join(served)}.")
        return spoken


def read_script(files: Sequence[str], read: Callable[[str, str], bytes]) -> Script:
    """The script in a file of JSON, or captured streams, a file for each reply.

    `read` gives the bytes of a file, whose name may be relative to another's.
    """
    first = read(files[0], "")
    if not first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        captures = {file: first if file == files[0] else read(file, "") for file in files}
        return Script(tuple(ScriptedRound(capture=file) for file in files), captures=captures)
    if len(files) > 1:
        raise Fault(Code.USAGE, f"{files[0]} is a whole script", hint="Name it alone; several files are captures.")
    try:
        script = msgspec.convert(decode(first), Script)
        for told in script.rounds:
            _check(told)
    except (*MISFIT, Fault) as error:
        words = error.message if isinstance(error, Fault) else str(error)
        raise Fault(Code.USAGE, f"{files[0]} is no script: {words}", hint=_HINT) from None
    captures = {told.capture: read(told.capture, files[0]) for told in script.rounds if told.capture}
    return msgspec.structs.replace(script, captures=captures)


def _check(scripted: ScriptedRound) -> None:
    for delta in scripted.deltas:
        if isinstance(delta, dict):
            _delta(delta)
    if scripted.capture and scripted.deltas:
        raise Fault(Code.USAGE, "a round has deltas or a capture, not both")


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


def _frames(data: bytes) -> list[bytes]:
    """A capture as it came, an event at a time."""
    text = data.replace(b"\r\n", b"\n")
    return [frame + b"\n\n" for frame in text.split(b"\n\n") if frame.strip()]


def _dialect_of(data: bytes, name: str) -> str:
    """The dialect of a capture, by its first event that says something."""
    decoder = SseDecoder()
    for frame in [*decoder.feed(data), *decoder.close()]:
        try:
            value = decode(frame.data)
        except Fault:
            continue
        if isinstance(value, dict):
            for each in served_dialects():
                if each.owns_frame(value):
                    return each.name
    raise Fault(Code.USAGE, f"{name} is neither a script nor a captured stream", hint=_HINT)
