"""The conformance run: calls everything that a plug-in adds with samples, and reports which law or rule it breaks.

The laws are those of the program itself; docs/guide/plugins.md lists those that a plug-in can break.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from sightline.agent.core.arguments import definition_of
from sightline.catalog.toml import TomlText
from sightline.evals.core.graders.command import from_value
from sightline.evals.core.graders.finding import Grading, GradingSubject
from sightline.evals.core.graders.grade import check_grader_name
from sightline.evals.core.graders.payload import payload_of
from sightline.evals.core.result import CaseObservation
from sightline.exchange.recording.har import read_har
from sightline.filters.fields import check_field_name
from sightline.filters.predicate import Known
from sightline.model.exchange import Fact
from sightline.model.json import Json, JsonObject
from sightline.plugins.adding import FIELD_VALUES, PluginExchange, check_name
from sightline.plugins.checks import BrokenRuleError, Check, PluginFinding, dialect_checks, require, run_checks
from sightline.plugins.guard import PLAIN
from sightline.plugins.hooks import event_of
from sightline.plugins.loading import check_catalogue, find_all
from sightline.plugins.plugin import (
    ExchangeField,
    ExchangeHook,
    ExportFormat,
    FindValues,
    GradeAnswer,
    ImportFormat,
    MakeSigner,
    Panel,
    Plugin,
    SigningContext,
    name_of,
)
from sightline.store.entries import FactEntry
from sightline.transport.http.framing import around_length
from sightline.transport.http.target import target
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode


def check_plugin(
    plugin: Plugin, built_in: Sequence[TomlText], texts: Sequence[str] = (), options: Mapping[str, str] | None = None
) -> Iterator[PluginFinding]:
    """Check everything that a plug-in adds. `built_in` are Sightline's own tables of providers and models, `texts` are
    additional samples for redactors, and `options` are the `sign_options` that signers get."""
    law_10, events = "law 10: no key goes astray", "takes events of every kind"
    catalogue = partial(check_catalogue, plugin.catalogue, built_in)
    described, written = "its parameters are described", "writes exchanges, and none"
    parts: dict[str, Mapping[str, Check]] = {
        **{f"dialect {each.name}": dialect_checks(each) for each in plugin.dialects},
        **{f"signer {name}": _signer_checks(make, options or {}) for name, make in plugin.signers.items()},
        **{f"tool {name_of(each)}": {described: partial(_check_tool, each)} for each in plugin.tools},
        **({"catalogue models": {law_10: catalogue}} if plugin.catalogue else {}),
        **{f"hook {name_of(each)}": {events: partial(_check_hook, each)} for each in plugin.hooks},
        **{f"exporter {name}": {written: partial(_check_export, each)} for name, each in plugin.exporters.items()},
        **{f"importer {name}": _importer_checks(plugin, name) for name in plugin.importers},
        **{f"grader {name}": _grader_checks(name, grade) for name, grade in plugin.graders.items()},
        **{f"redactor {name}": _redactor_checks(find, texts) for name, find in plugin.redactors.items()},
        **{f"field {name}": _field_checks(name, field) for name, field in plugin.fields.items()},
        **{f"panel {name}": _panel_checks(name, panel) for name, panel in plugin.panels.items()},
    }
    for what, checks in parts.items():
        kind, _, name = what.partition(" ")
        is_named = kind in ("signer", "exporter", "importer", "redactor")
        named: dict[str, Check] = {"has a name of its own": partial(check_name, kind, name)} if is_named else {}
        yield from run_checks(what, {**named, **checks})


# --- signers ----------------------------------------------------------------------------------------

_SECRET: Final = "conformance-secret-0123456789"


class _AnyVariable(dict[str, str]):
    """An environment in which every variable has a value."""

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


def _signer_checks(make: MakeSigner, options: Mapping[str, str]) -> dict[str, Check]:
    context = SigningContext("conformance", options, _AnyVariable(), lambda: 1_760_000_000.0, _give_token)

    async def sign_twice() -> tuple[HttpRequest, HttpRequest]:
        signer = make(context)
        first: object = await signer.sign(_UNSIGNED)
        require(isinstance(first, HttpRequest), f"sign returned {type(first).__name__}, not an HttpRequest")
        assert isinstance(first, HttpRequest)
        return first, await signer.sign(first)

    def check(is_kept: Callable[[HttpRequest, HttpRequest], object], problem: str) -> Check:
        return lambda: require(is_kept(*asyncio.run(sign_twice())), problem)

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
        # Raises a fault if it cannot.
        "can be sent": check(lambda first, _: around_length(first, target(first.url), None), ""),
        "law 8: can be signed again for a retry": check(
            lambda first, second: len(second.headers) == len(first.headers), "signed again, it has headers twice"
        ),
    }


# --- tools, hooks and formats -----------------------------------------------------------------------

_SHA: Final = "0" * 64
_FACTS: Final[tuple[JsonObject, ...]] = (
    {"kind": "received", "dialect": "raw", "model": "m", "sha256": _SHA, "session": "team.task", "client": "sdk"},
    {"kind": "translated", "dialect": "raw", "sha256": _SHA, "losses": 0}, {"kind": "held"},
    {"kind": "edited", "operation": "{}", "before": _SHA, "after": _SHA}, {"kind": "released", "sha256": _SHA},
    {"kind": "attempt", "number": 1, "provider": "acme", "sha256": _SHA}, {"kind": "answered", "sha256": _SHA},
    {"kind": "body", "of": "reply", "sha256": _SHA, "size": 7}, {"kind": "stored", "owner": "o", "created": 1},
    {"kind": "finished", "finish": "stop", "status": 200, "usage": {"input_tokens": 11, "output_tokens": 7}},
    {"kind": "failed", "code": "rate_limited", "message": "Slow down."}, {"kind": "cancelled"}, {"kind": "dropped"},
    {"kind": "budgeted", "telemetry": {}},
)  # fmt: skip
"""One fact of each kind that hooks get."""
_JSON: Final[JsonObject] = {"name": "content-type", "value": "application/json"}
_HEAD: Final[JsonObject] = {
    "httpVersion": "HTTP/1.1", "headers": [_JSON], "cookies": [], "headersSize": -1, "bodySize": -1
}  # fmt: skip
_ENTRY: Final[JsonObject] = {
    "startedDateTime": "2026-01-02T03:04:05.000Z", "time": 12.5,
    "request": {**_HEAD, "method": "POST", "url": "https://api.openai.com/v1/chat/completions", "queryString": [],
                "postData": {"mimeType": "application/json",
                             "text": '{"model":"m","messages":[{"role":"user","content":"hi"}]}'}},
    "response": {**_HEAD, "status": 200, "statusText": "OK", "redirectURL": "",
                 "content": {"size": 0, "mimeType": "application/json",
                             "text": '{"id":"r","model":"m","choices":[{"index":0,"finish_reason":"stop",'
                                     '"message":{"role":"assistant","content":"Hello."}}]}'}},
    "cache": {}, "timings": {"send": 0, "wait": 12.5, "receive": 0},
}  # fmt: skip


def _archive(*entries: Json) -> JsonObject:
    return {
        "log": {"version": "1.2", "creator": {"name": "Sightline", "version": "0"}, "pages": [], "entries": [*entries]}
    }


def _check_hook(hook: ExchangeHook) -> None:
    for number, fact in enumerate(_FACTS):
        entry = FactEntry("x_conformance", number, 1_760_000_000.0 + number, msgspec.convert(fact, Fact))
        _require_plain(partial(hook, event_of(entry))())


def _require_plain(value: Any) -> Any:
    if asyncio.iscoroutine(value):
        value.close()
        raise BrokenRuleError(PLAIN)
    return value


def _check_tool(tool: Callable[..., object]) -> None:
    require(definition_of(tool).description, "it has no docstring: a model would not know what it is for")


def _check_export(write: ExportFormat) -> None:
    for archive in (_archive(), _archive(_ENTRY), _archive(_ENTRY, _ENTRY)):
        data: object = write(archive)
        require(isinstance(data, bytes), f"it returned {type(data).__name__}, not bytes")


def _importer_checks(plugin: Plugin, name: str) -> dict[str, Check]:
    read, write = plugin.importers[name], plugin.exporters.get(name)
    checks: dict[str, Check] = {"leaves files of others alone": partial(_check_foreign, read)}
    if write is not None:
        checks["reads back what it wrote"] = partial(_check_return, read, write)
    return checks


def _check_foreign(read: ImportFormat) -> None:
    for data in (b"", b"\x00\x01\xff", b"[1, 2]", b'{"sightline":"record","version":1}\n', encode(_archive(_ENTRY))):
        require(read(data) is None, f"it takes {data[:20]!r} for a file of its own; it has to return None")


def _check_return(read: ImportFormat, write: ExportFormat) -> None:
    archive = read(write(_archive(_ENTRY)))
    require(archive is not None, "it returned None")
    assert archive is not None
    found = read_har(encode(archive), lambda _url: "openai")
    require(len(found.exchanges) == 1, f"one exchange became {len(found.exchanges)}")


# --- graders, redactors, fields and panels ----------------------------------------------------------

_ANSWERS: Final = ("", "About 384,400 km.", 'Ünïcode 🙂, quotes " and\nlines. ' * 100)


def _grader_checks(name: str, grade: GradeAnswer) -> dict[str, Check]:
    def payload(answer: str) -> JsonObject:
        observation = CaseObservation(text=answer, question="How far is the moon?")
        return payload_of(GradingSubject(observation, Grading(criteria="It says how far the moon is.")), None)

    def check_scores() -> None:
        for answer in _ANSWERS:
            finding = from_value(_require_plain(grade(payload(answer))))
            require(finding.score is not None, f"for the answer {answer[:20]!r}: {finding.reason}")

    def check_payload() -> None:
        given, kept = payload(_ANSWERS[1]), payload(_ANSWERS[1])
        _require_plain(grade(given))
        require(given == kept, "it changes the case that it gets, which other graders get as well")

    return {
        "has a name of its own": lambda: check_grader_name(name),
        "gives a score from 0 to 1": check_scores,
        "leaves the case as it is": check_payload,
    }


def _redactor_checks(find: FindValues, samples: Sequence[str]) -> dict[str, Check]:
    texts = (*_ANSWERS, "12345678 90 /home/ada ada@example.com AKIAIOSFODNN7EXAMPLE", "a" * 10_000, *samples)

    def check_values() -> None:
        for text in texts:
            for value in find_all(find, text):
                require(value and value in text, f"it found {value!r}, which is not in the text")

    def check_again() -> None:
        for text in texts:
            found = sorted(find_all(find, text), key=len, reverse=True)
            redacted = reduce(lambda left, value: left.replace(value, "redacted-1"), found, text)
            left = [value for value in find_all(find, redacted) if value not in text]
            require(not left, f"it takes the stand-in for a value: {left[:1]}")

    return {"law 10: finds values that are in the text": check_values, "law 10: leaves stand-ins alone": check_again}


_FULL: Final = PluginExchange(Known(
    {
        "id": "x_1", "model": "m", "provider": "acme", "dialect": "raw", "session": "team.task",
        "client": "sdk", "path": "/v1/chat/completions", "method": "POST", "status": 200, "state": "finished",
        "finish": "stop", "fault": "", "input": 11, "output": 7, "cached": 0, "cost": 0.25, "losses": 0, "attempts": 1,
        "time": 1.5, "first": 0.5, "stream": True, "side": False, "origin": "", "tool": ("measure",),
        "at": 1_760_000_000.0,
    },
    "How far is the moon? About 384,400 km.",
))  # fmt: skip


def _field_checks(name: str, field: ExchangeField) -> dict[str, Check]:
    def check_value() -> None:
        for subject in (_FULL, PluginExchange(Known())):
            value: object = field.read(subject)
            require(field.kind in FIELD_VALUES, f"there is no kind {field.kind!r}; kinds are {', '.join(FIELD_VALUES)}")
            is_value = value is None or isinstance(value, FIELD_VALUES[field.kind])
            require(is_value, f"its kind is {field.kind!r}, and its value {value!r} is of type {type(value).__name__}")

    def check_stable() -> None:
        require(field.read(_FULL) == field.read(_FULL), "the same exchange has another value the second time")

    return {
        "has a name of its own": lambda: check_field_name(name),
        "says what it means": lambda: require(field.meaning.strip(), "`meaning` is empty; it is shown while one types"),
        "has a value of its kind, also where nothing is known": check_value,
        "has the same value every time": check_stable,
    }


_EVADING: Final = re.compile(r"\b(?:eval\s*\(|new\s+Function\b|innerHTML\b|outerHTML\b|insertAdjacentHTML\b)")
_ELSEWHERE: Final = re.compile(r"""(?:from|import)\s*\(?\s*["'`]|["'`](?:https?|wss?)://""")
_EXPORTED: Final = re.compile(r"export\s+default\b|export\s*\{[^}]*\bas\s+default\b")


def _panel_checks(name: str, panel: Panel) -> dict[str, Check]:
    found = _EVADING.search(panel.module)
    other = _ELSEWHERE.search(panel.module)
    return {
        "has a name that can be an address": lambda: check_name("panel", name),
        "has a title": lambda: require(panel.title.strip(), "`title` is empty; it is the name of the tab"),
        "its module has a default export": lambda: require(
            _EXPORTED.search(panel.module), "write `export default function show(element, exchange, sightline)`"
        ),
        "the page's policy lets it run": lambda: require(
            found is None, f"the page refuses {found and found[0]!r}; use textContent and append"
        ),
        "law 10: it asks this server alone": lambda: require(
            other is None, f"the page refuses addresses and modules from elsewhere: {other and other[0]!r}"
        ),
    }
