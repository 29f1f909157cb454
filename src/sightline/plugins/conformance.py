"""The conformance run: calls all that a plug-in adds with samples, and says which law or rule it breaks.

The laws are those of the program itself: 1 verbatim, 3 no silent loss, 4 stream = whole, 5 no false success, 6 shown =
sent, 7 valid after every operation, 10 no secrets at rest and none astray, 11 the client notices nothing.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from sightline.agent.core.signature import definition_of
from sightline.catalog.toml import TomlText
from sightline.dialects.dialect import Client, Dialect, Target
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import Code, Fault
from sightline.exchange.recording.har_import import read_har
from sightline.model.events import Ended, Failed, Finished, Started, StreamEvent, TextReceived, UsageReceived
from sightline.model.exchange import ExchangeFailed
from sightline.model.fold import fold
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.plugins.hooks import event_of
from sightline.plugins.loading import check_catalogue
from sightline.plugins.plugin import ExportFormat, ImportFormat, MakeSigner, Plugin, SigningContext, name_of
from sightline.store.entries import FactEntry
from sightline.transport.http.framing import around_length
from sightline.transport.http.target import target
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode
from sightline.wire.sse import SseDecoder


@dataclass(frozen=True, slots=True)
class PluginFinding:
    """One rule and what it is about (`signer acme-hmac`). `problem` is None where the rule is kept."""

    what: str
    rule: str
    problem: str | None


Check = Callable[[], None]
"""Raises a `_BrokenRule` where the rule is broken; any other exception is a problem as well."""


class _BrokenRule(Exception):
    """What a plug-in does instead."""


def check_plugin(plugin: Plugin, built_in: Sequence[TomlText]) -> Iterator[PluginFinding]:
    """Check all that a plug-in adds; `built_in` are Sightline's own tables of providers and models."""
    for added in plugin.dialects:
        yield from _run(f"dialect {added.name}", _dialect_checks(added))
    for name, make in plugin.signers.items():
        yield from _run(f"signer {name}", _signer_checks(make))
    for tool in plugin.tools:
        yield from _run(f"tool {name_of(tool)}", {"its parameters are described": partial(_check_tool, tool)})
    if plugin.catalogue:
        text = plugin.catalogue
        yield from _run("catalogue models", {"law 10: no key goes astray": lambda: check_catalogue(text, built_in)})
    for hook in plugin.hooks:
        yield from _run(f"hook {name_of(hook)}", {"takes events": partial(hook, event_of(_EVENT))})
    for name, write in plugin.exporters.items():
        yield from _run(f"exporter {name}", {"writes exchanges, and none": partial(_check_export, write)})
    for name, read in plugin.importers.items():
        writer = plugin.exporters.get(name)
        checks: dict[str, Check] = {"leaves files of others alone": partial(_check_foreign, read)}
        if writer is not None:
            checks["reads back what it wrote"] = partial(_check_return, read, writer)
        yield from _run(f"importer {name}", checks)


def _run(what: str, checks: Mapping[str, Check]) -> Iterator[PluginFinding]:
    for rule, check in checks.items():
        try:
            check()
        except _BrokenRule as broken:
            yield PluginFinding(what, rule, str(broken))
        except Fault as fault:
            yield PluginFinding(what, rule, f"it refuses: {fault.message}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plug-in raises is what the author wants to know
            yield PluginFinding(what, rule, f"it raised {type(error).__name__}: {error}")
        else:
            yield PluginFinding(what, rule, None)


def _require(is_kept: object, problem: str) -> None:
    if not is_kept:
        raise _BrokenRule(problem)


# --- dialects ---------------------------------------------------------------------------------------

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
    **_TEXTS,
    "/messages/2/content": "Let me see.",
    "/messages/2/tool_calls/0/function/name": "measure",
    "/messages/3/content": "384400 km",
    "/temperature": "0.25",
    "/max_completion_tokens": "64",
}
"""Values of the sample, by the places where they stand, each of which is to be found in what was written."""

_REPLY: Final[tuple[StreamEvent, ...]] = (
    Started("r1", "m", 1_760_000_000),
    TextReceived(0, "About "),
    TextReceived(0, "384,400 km."),
    UsageReceived(Usage(input_tokens=11, output_tokens=7)),
    Finished("stop"),
    Ended(),
)


def _dialect_checks(added: Dialect) -> dict[str, Check]:
    return {
        "has a name of its own": lambda: _require(added.name not in NAMES, f"{added.name!r} is built in"),
        "law 1: keeps fields that it does not know": lambda: _check_unknown(added),
        "law 3: no silent loss": lambda: _check_loss(added),
        "law 4: a stream is the whole reply": lambda: _check_stream(added),
        "law 5: a stream that breaks off is no success": lambda: _check_truncated(added),
        "law 5: an error stays an error": lambda: _check_error(added),
        "law 7: what it writes is valid": lambda: _check_valid(added),
    }


def _written(added: Dialect, report: Report) -> JsonObject:
    document = added.write_request(dialect("openai-chat").read_request(_REQUEST), Target(), report)
    _require(isinstance(document, dict), f"write_request returned {type(document).__name__}, not an object")
    assert isinstance(document, dict)
    return document


def _check_loss(added: Dialect) -> None:
    report = Report()
    text = encode(_written(added, report)).decode()
    lost = [loss.pointer for loss in report.losses]
    for place, value in _MARKS.items():
        is_reported = any(pointer and (place == pointer or place.startswith(f"{pointer}/")) for pointer in lost)
        _require(value in text or is_reported, f"{value!r} ({place}) is neither written nor reported as lost")


def _check_unknown(added: Dialect) -> None:
    document = _written(added, Report()) | {"x_of_tomorrow": {"kept": True}}
    again = added.write_request(added.read_request(document), Target(), Report())
    _require(isinstance(again, dict) and again.get("x_of_tomorrow") == {"kept": True}, "an unknown field is lost")


def _check_valid(added: Dialect) -> None:
    problems = added.problems(added.read_request(_written(added, Report())))
    errors = [f"{each.pointer}: {each.message}" for each in problems if each.severity == "error"]
    _require(not errors, "; ".join(errors))


def _read_stream(added: Dialect, pieces: Sequence[bytes]) -> list[StreamEvent]:
    frames, reader = SseDecoder(), added.stream_reader()
    events = [event for piece in pieces for frame in frames.feed(piece) for event in reader.feed(frame)]
    events += [event for frame in frames.close() for event in reader.feed(frame)]
    return events + reader.close()


def _stream(added: Dialect, events: Sequence[StreamEvent]) -> bytes:
    writer = added.stream_writer(Client(id="r1", model="m", created=1_760_000_000), Report())
    return b"".join(map(writer.feed, events))


def _check_stream(added: Dialect) -> None:
    data = _stream(added, _REPLY)
    events = _read_stream(added, [data])
    _require([type(each) for each in events].count(Ended) == 1, "the events do not end with exactly one Ended")
    _require(isinstance(events[-1], Ended), "something follows Ended")
    bytewise = _read_stream(added, [data[at : at + 1] for at in range(len(data))])
    _require(events == bytewise, "the same bytes, cut elsewhere, give other events")
    client = Client(id="r1", model="m", created=1_760_000_000)
    whole = fold(added.read_reply(added.write_reply(fold(_REPLY), client, Report())))
    streamed = fold(events)
    texts = ["".join(part.text for part in each.choice.parts if isinstance(part, Text)) for each in (streamed, whole)]
    _require(texts == ["About 384,400 km."] * 2, f"streamed and whole say {texts[0]!r} and {texts[1]!r}")
    _require(streamed.choice.finish == whole.choice.finish, "streamed and whole end for different reasons")


def _check_truncated(added: Dialect) -> None:
    data = _stream(added, _REPLY)
    ends = [at for at in range(1, len(data)) if data[:at].endswith(b"\n\n")]
    _require(ends, "the stream is a single frame, or none of SSE")
    for end in ends[:-1] or [ends[0] // 2]:
        events = _read_stream(added, [data[:end]])
        is_over = any(isinstance(each, Finished) for each in events)
        _require(is_over or any(isinstance(each, Failed) for each in events), f"cut after {end} bytes, it ends well")


def _check_error(added: Dialect) -> None:
    fault = Fault(Code.RATE_LIMITED, "Slow down, please.", status=429)
    status, body = added.write_error(fault)
    _require(status >= 400, f"an error has the status {status}")
    read = added.read_error(status, body, {})
    _require("Slow down" in read.message, "the words of an error are lost")
    streamed = fold(_read_stream(added, [_stream(added, [_REPLY[0], _REPLY[1], Failed(fault), Ended()])]))
    _require(streamed.fault is not None, "a stream that fails is read as a success")


# --- signers ----------------------------------------------------------------------------------------

_SECRET: Final = "conformance-secret-0123456789"


class _AnyVariable(dict[str, str]):
    """An environment in which each variable has a value."""

    def __missing__(self, _name: str) -> str:
        return _SECRET

    def get(self, name: str, default: object = None, /) -> str:
        return self[name]

    def __contains__(self, _name: object) -> bool:
        return True


async def _give_token(_request: HttpRequest) -> tuple[int, bytes]:
    return 200, b'{"access_token": "conformance-token-0123456789", "expires_in": 3600, "token_type": "Bearer"}'


_UNSIGNED: Final = HttpRequest(
    "POST",
    "https://llm.us-east-1.example.com/v1/chat/completions?a=1",
    (("content-type", "application/json"), ("accept", "text/event-stream")),
    b'{"model":"m","messages":[{"role":"user","content":"caf\xc3\xa9"}]}',
)


def _signer_checks(make: MakeSigner) -> dict[str, Check]:
    context = SigningContext("conformance", {}, _AnyVariable(), lambda: 1_760_000_000.0, _give_token)

    async def sign_twice() -> tuple[HttpRequest, HttpRequest]:
        signer = make(context)
        first: object = await signer.sign(_UNSIGNED)
        _require(isinstance(first, HttpRequest), f"sign returned {type(first).__name__}, not an HttpRequest")
        assert isinstance(first, HttpRequest)
        return first, await signer.sign(first)

    def check(is_kept: Callable[[HttpRequest, HttpRequest], object], problem: str) -> Check:
        return lambda: _require(is_kept(*asyncio.run(sign_twice())), problem)

    def lines(request: HttpRequest) -> bool:
        around_length(request, target(request.url), None)  # raises the fault of what cannot be sent
        return True

    names = {name for name, _ in _UNSIGNED.headers}
    return {
        "signs": check(
            lambda first, _: first.headers != _UNSIGNED.headers or first.url != _UNSIGNED.url, "it adds nothing"
        ),
        "law 6: what was shown is sent": check(
            lambda first, _: (first.body, first.method) == (_UNSIGNED.body, _UNSIGNED.method),
            "it changes the body or method",
        ),
        "law 10: the request goes to its provider": check(
            lambda first, _: urlsplit(first.url)[:3] == urlsplit(_UNSIGNED.url)[:3], "it changes the address"
        ),
        "law 10: the secret is in no address": check(
            lambda first, _: _SECRET not in first.url, "addresses are recorded, and it puts a secret there"
        ),
        "law 11: the client's headers are kept": check(
            lambda first, _: names <= {name.lower() for name, _ in first.headers}, "it removes headers"
        ),
        "can be sent": check(lambda first, _: lines(first), ""),
        "law 8: can be signed again for a retry": check(
            lambda first, second: len(second.headers) == len(first.headers), "signed again, it has headers twice"
        ),
    }


# --- tools, hooks and formats -----------------------------------------------------------------------

_EVENT: Final = FactEntry("x_conformance", 1, 1_760_000_000.0, ExchangeFailed("rate_limited", "Slow down, please."))
_ENTRY: Final[JsonObject] = {
    "startedDateTime": "2026-01-02T03:04:05.000Z",
    "time": 12.5,
    "request": {
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "httpVersion": "HTTP/1.1",
        "headers": [{"name": "content-type", "value": "application/json"}],
        "queryString": [],
        "cookies": [],
        "headersSize": -1,
        "bodySize": -1,
        "postData": {
            "mimeType": "application/json",
            "text": '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
        },
    },
    "response": {
        "status": 200,
        "statusText": "OK",
        "httpVersion": "HTTP/1.1",
        "headers": [{"name": "content-type", "value": "application/json"}],
        "cookies": [],
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "content": {
            "size": 0,
            "mimeType": "application/json",
            "text": '{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",'
            '"content":"Hello."}}]}',
        },
    },
    "cache": {},
    "timings": {"send": 0, "wait": 12.5, "receive": 0},
}


def _archive(*entries: Json) -> JsonObject:
    return {
        "log": {"version": "1.2", "creator": {"name": "Sightline", "version": "0"}, "pages": [], "entries": [*entries]}
    }


def _check_tool(tool: Callable[..., object]) -> None:
    definition = definition_of(tool)
    _require(definition.description, "it has no docstring: a model would not know what it is for")


def _check_export(write: ExportFormat) -> None:
    for archive in (_archive(), _archive(_ENTRY), _archive(_ENTRY, _ENTRY)):
        data: object = write(archive)
        _require(isinstance(data, bytes), f"it returned {type(data).__name__}, not bytes")


def _check_foreign(read: ImportFormat) -> None:
    for data in (b"", b"\x00\x01\xff", b"[1, 2]", b'{"sightline":"record","version":1}\n', encode(_archive(_ENTRY))):
        _require(read(data) is None, f"it takes {data[:20]!r} for a file of its own; it has to return None")


def _check_return(read: ImportFormat, write: ExportFormat) -> None:
    archive = read(write(_archive(_ENTRY)))
    _require(archive is not None, "it returned None")
    assert archive is not None
    found = read_har(encode(archive), lambda _url: "openai")
    _require(len(found.exchanges) == 1, f"one exchange became {len(found.exchanges)}")
