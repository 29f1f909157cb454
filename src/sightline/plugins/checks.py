"""The checks of the conformance run: how a rule is checked and what is found; and the checks of a dialect, for the laws
that a dialect can break, with samples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sightline.dialects.dialect import Client, Dialect, Target
from sightline.dialects.registry import DEFAULT, NAMES, dialect
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    Finished,
    RefusalReceived,
    Started,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Refusal, Text, ToolCall
from sightline.model.reply import Reply, Usage
from sightline.model.report import Report
from sightline.plugins.guard import OverdueError, call_within, describe_error
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import SseDecoder

CHECK_SECONDS: Final = 10.0
"""How long one rule may take."""


@dataclass(frozen=True, slots=True)
class PluginFinding:
    """A rule and what it is about (`signer acme-hmac`). `problem` is None if the plug-in follows the rule."""

    what: str
    rule: str
    problem: str | None


Check = Callable[[], None]
"""Raises a `BrokenRuleError` if the rule is broken; any other exception is a problem as well."""


class BrokenRuleError(Exception):
    """Raised if a rule is broken. The message is what the plug-in does instead."""


def run_checks(what: str, checks: Mapping[str, Check]) -> Iterator[PluginFinding]:
    """Check each rule, and yield a finding for each, even if the plug-in follows it."""
    for rule, check in checks.items():
        try:
            call_within(CHECK_SECONDS, check, lambda: None)
        except OverdueError:
            yield PluginFinding(what, rule, f"it did not return within {CHECK_SECONDS:g} s")
        except BrokenRuleError as broken:
            yield PluginFinding(what, rule, str(broken))
        except Fault as fault:
            yield PluginFinding(what, rule, f"it refuses: {describe_error(fault)}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plug-in raises is what the author wants to know
            yield PluginFinding(what, rule, f"it raised {describe_error(error)}")
        else:
            yield PluginFinding(what, rule, None)


def require(is_kept: object, problem: str) -> None:
    """Raise a `BrokenRuleError` with this problem unless the rule is followed."""
    if not is_kept:
        raise BrokenRuleError(problem)


_TEXTS: Final = {"/messages/0/content": "Answer briefly.", "/messages/1/content": "How far is the moon?"}
_REQUEST: Final[JsonObject] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": _TEXTS["/messages/0/content"]},
        {"role": "user", "content": _TEXTS["/messages/1/content"]},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "measure", "arguments": '{"to":"moon"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "384400 km"},
    ],
    "tools": [{"type": "function", "function": {"name": "measure", "parameters": {
        "type": "object", "properties": {"to": {"type": "string"}}}}}],
    "max_completion_tokens": 64,
    "temperature": 0.25,
}  # fmt: skip
_MARKS: Final = {
    **_TEXTS, "/messages/2/content": "Let me see.", "/messages/2/tool_calls/0/function/name": "measure",
    "/messages/3/content": "384400 km", "/temperature": "0.25", "/max_completion_tokens": "64",
}  # fmt: skip
"""Values of the sample, by their places. Each of them must be found in what was written."""

_CLIENT: Final = Client(id="r1", model="m", created=1_760_000_000)
_STARTED: Final = Started("r1", "m", 1_760_000_000)
_USED: Final = UsageReceived(Usage(input_tokens=11, output_tokens=7))
_REPLY: Final[tuple[StreamEvent, ...]] = (
    _STARTED, TextReceived(0, "About "), TextReceived(0, "384,400 km."), _USED, Finished("stop"), Ended(),
)  # fmt: skip
_REPLIES: Final[Mapping[str, tuple[StreamEvent, ...]]] = {
    "a text": _REPLY,
    "a refusal": (
        _STARTED, RefusalReceived(0, "I must not "), RefusalReceived(0, "say that."), _USED, Finished("refusal"),
        Ended(),
    ),
    "a call of a function": (
        _STARTED, TextReceived(0, "Let me see."), ToolCallBegun(1, "c1", "measure"), ArgumentsReceived(1, '{"to":'),
        ArgumentsReceived(1, '"moon"}'), ToolCallCompleted(1), _USED, Finished("tool_calls"), Ended(),
    ),
}  # fmt: skip
"""A dialect may report all of these except the text as lost, if it cannot express them."""


def dialect_checks(added: Dialect) -> dict[str, Check]:
    return {
        "has a name of its own": lambda: require(added.name not in NAMES, f"{added.name!r} is built in"),
        "law 1: keeps fields that it does not know": lambda: _check_unknown(added),
        "law 3: no silent loss": lambda: _check_loss(added),
        "law 4: a stream is the whole reply": lambda: _check_stream(added),
        "law 5: a stream that breaks off is no success": lambda: _check_truncated(added),
        "law 5: an error stays an error": lambda: _check_error(added),
        "law 7: what it writes is valid": lambda: _check_valid(added),
    }


def _write_sample(added: Dialect, report: Report) -> JsonObject:
    document = added.write_request(dialect(DEFAULT).read_request(_REQUEST), Target(), report)
    require(isinstance(document, dict), f"write_request returned {type(document).__name__}, not an object")
    assert isinstance(document, dict)
    return document


def _check_loss(added: Dialect) -> None:
    report = Report()
    text = encode(_write_sample(added, report)).decode()
    lost = [loss.pointer for loss in report.losses]
    for place, value in _MARKS.items():
        is_reported = any(pointer and (place == pointer or place.startswith(f"{pointer}/")) for pointer in lost)
        require(value in text or is_reported, f"{value!r} ({place}) is neither written nor reported as lost")


def _check_unknown(added: Dialect) -> None:
    document = _write_sample(added, Report()) | {"x_of_tomorrow": {"kept": True}}
    again = added.write_request(added.read_request(document), Target(), Report())
    require(isinstance(again, dict) and again.get("x_of_tomorrow") == {"kept": True}, "an unknown field is lost")


def _check_valid(added: Dialect) -> None:
    problems = added.problems(added.read_request(_write_sample(added, Report())))
    errors = [f"{each.pointer}: {each.message}" for each in problems if each.severity == "error"]
    require(not errors, "; ".join(errors))


def _read_stream(added: Dialect, pieces: Sequence[bytes]) -> list[StreamEvent]:
    frames, reader = SseDecoder(), added.stream_reader()
    events = [event for piece in pieces for frame in frames.feed(piece) for event in reader.feed(frame)]
    events += [event for frame in frames.close() for event in reader.feed(frame)]
    return events + reader.close()


def _stream(added: Dialect, events: Sequence[StreamEvent], report: Report | None = None) -> bytes:
    writer = added.stream_writer(_CLIENT, report or Report())
    return b"".join(map(writer.feed, events))


def _check_stream(added: Dialect) -> None:
    for what, sample in _REPLIES.items():
        in_stream, in_whole = Report(), Report()
        data = _stream(added, sample, in_stream)
        events = _read_stream(added, [data])
        require([type(each) for each in events].count(Ended) == 1, f"{what}: there is not exactly one Ended")
        require(isinstance(events[-1], Ended), f"{what}: something follows Ended")
        bytewise = _read_stream(added, [data[at : at + 1] for at in range(len(data))])
        require(events == bytewise, f"{what}: the same bytes, cut elsewhere, give other events")
        streamed = fold(events)
        whole = fold(added.read_reply(added.write_reply(fold(sample), _CLIENT, in_whole)))
        for how, reply, report in (("streamed", streamed, in_stream), ("whole", whole, in_whole)):
            is_reported = sample is not _REPLY and bool(report.losses)
            found, sent = _content(reply), _content(fold(sample))
            require(found == sent or is_reported, f"{what}, {how}: {sent} became {found}, and no loss is reported")
        ends = streamed.choice.finish, whole.choice.finish
        require(ends[0] == ends[1], f"{what}: streamed it ends with {ends[0]}, whole with {ends[1]}")


def _content(reply: Reply) -> list[Json]:
    """The text of a reply, and the name and arguments of each call. Some APIs have no separate part for a refusal and
    no ids of calls, and some have arguments as an object instead of text."""
    words = "".join(part.text for part in reply.choice.parts if isinstance(part, Text | Refusal))
    calls = [part for part in reply.choice.parts if isinstance(part, ToolCall)]
    return [words, *({"name": call.name, "arguments": decode(call.arguments.encode())} for call in calls)]


def _check_truncated(added: Dialect) -> None:
    data = _stream(added, _REPLY)
    ends = [at for at in range(1, len(data)) if data[:at].endswith(b"\n\n")]
    require(ends, "the stream is a single frame, or none of SSE")
    for end in ends[:-1] or [ends[0] // 2]:
        events = _read_stream(added, [data[:end]])
        is_over = any(isinstance(each, Finished) for each in events)
        require(is_over or any(isinstance(each, Failed) for each in events), f"cut after {end} bytes, it ends well")


def _check_error(added: Dialect) -> None:
    fault = Fault(Code.RATE_LIMITED, "Slow down, please.", status=429)
    status, body = added.write_error(fault)
    require(status >= 400, f"an error has the status {status}")
    read = added.read_error(status, body, {})
    require("Slow down" in read.message, "the words of an error are lost")
    streamed = fold(_read_stream(added, [_stream(added, [_REPLY[0], _REPLY[1], Failed(fault), Ended()])]))
    require(streamed.fault is not None, "a stream that fails is read as a success")
