"""A plug-in that raises, hangs or returns something else is named and switched off, and nothing else is."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sightline.app.configuration import configuration, load_with_problems
from sightline.cli.program import main
from sightline.dialects.registry import find_dialect, unregister
from sightline.errors import Code, Fault
from sightline.evals.core.graders.grade import GRADERS, remove_grader
from sightline.filters.fields import remove_field
from sightline.filters.parsing import parse
from sightline.filters.predicate import Known, matches
from sightline.plugins.adding import PluginExchange
from sightline.plugins.guard import LoadedPlugin, call_within
from sightline.plugins.loading import load_plugins
from sightline.store.summary import FIELDS
from tests.gateway_server import served
from tests.plugins.test_loading import HEAD, config, write
from tests.relay_stage import REQUESTS
from tests.worker_stage import workers

LIMIT = 0.2


def loop_forever() -> None:
    while True:
        pass


def sleep_forever() -> None:
    time.sleep(3600)


@pytest.mark.parametrize("hang", [loop_forever, sleep_forever])
def test_a_call_that_hangs_is_ended_and_not_made_again(hang: Callable[[], None]) -> None:
    owner = LoadedPlugin("slow.py", "plugins/slow.py", seconds=LIMIT)
    call = owner.guard("dialect slow", hang)
    with pytest.raises(Fault, match=r"'slow.py' \(dialect slow\) failed: TimeoutError: it did not return within 0.2 s"):
        call()
    with pytest.raises(Fault, match="off until the next start") as caught:
        owner.guard("dialect slow", list)()
    assert "sightline plugin test plugins/slow.py" in str(caught.value.hint)
    assert owner.guard("tool other", list)() == []  # what it has not broken


def test_code_that_keeps_every_exception_is_ended_as_well() -> None:
    def stubborn() -> None:
        while True:
            try:
                time.sleep(3600)
            except Exception:  # noqa: BLE001
                continue

    owner = LoadedPlugin("slow.py", "slow.py", seconds=LIMIT)
    with pytest.raises(Fault, match="did not return"):
        owner.guard("hook slow", stubborn)()


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        (lambda: asyncio.sleep(3600), "did not return within 0.5 s"),
        (lambda: asyncio.to_thread(json.loads, "{"), "JSONDecodeError"),
    ],
)
async def test_an_async_call_that_hangs_is_ended(sign: Callable[[], object], words: str) -> None:
    owner = LoadedPlugin("signer.py", "signer.py", seconds=60)
    with pytest.raises(Fault, match=words):
        await owner.wait("signer s", sign(), seconds=0.5)  # type: ignore[arg-type]


async def test_an_async_call_that_blocks_the_event_loop_is_ended() -> None:
    async def block() -> None:
        await asyncio.sleep(0)
        loop_forever()

    owner = LoadedPlugin("signer.py", "signer.py", seconds=LIMIT)
    with pytest.raises(Fault, match=r"did not return within 0\.2 s"):
        await owner.wait("signer s", block(), seconds=60)


async def test_a_call_that_loops_in_a_thread_is_ended() -> None:
    owner = LoadedPlugin("field.py", "field.py", seconds=LIMIT)
    with pytest.raises(Fault, match=r"\(field slow\) failed: TimeoutError"):
        await asyncio.to_thread(owner.guard("field slow", loop_forever))
    assert await asyncio.to_thread(owner.guard("field other", list)) == []


async def test_a_call_that_waits_in_a_thread_is_named_and_not_made_again() -> None:
    owner, release = LoadedPlugin("field.py", "field.py", seconds=LIMIT), threading.Event()
    stuck = asyncio.ensure_future(asyncio.to_thread(owner.guard("field slow", release.wait)))
    while "field slow" not in owner.failures:  # noqa: ASYNC110 - another thread notes it
        await asyncio.sleep(0.01)
    with pytest.raises(Fault, match="off until the next start"):
        owner.guard("field slow", list)()
    release.set()
    with suppress(Fault):  # it ends as soon as it is no longer waiting
        await stuck


def test_what_takes_its_time_within_the_limit_is_left_alone() -> None:
    assert call_within(60, lambda: sum(range(1000)), lambda: None) == 499500


def test_a_file_that_hangs_while_it_is_loaded_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.plugins.loading.LOAD_SECONDS", LIMIT)
    write(tmp_path, "slow.py", "import time\ntime.sleep(3600)")
    (loaded,) = load_plugins(["slow.py"], tmp_path).loaded
    assert loaded.failures == {"": "TimeoutError: it did not return within 0.2 s"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("dialects=('chat',)", "dialects holds 'chat', which is no Dialect"),
        ("tools=[len]", "tools is of type list, not tuple"),
        ("signers={'s': 1}", "signers holds 1, which is no Callable"),
        ("catalogue=b''", "catalogue is of type bytes, not str"),
        ("fields={'team': len}", "which is no ExchangeField"),
        ("panels={1: Panel('t', '')}", "panels holds 1, which is no Panel"),
        ("name=None, tools=(len,)", "name is of type NoneType, not str"),
    ],
)
def test_a_plug_in_of_other_types_is_left_out(tmp_path: Path, fields: str, words: str) -> None:
    name = "" if fields.startswith("name") else "name='odd', "
    write(tmp_path, "odd.py", f"{HEAD}from sightline.plugins import Panel\nPLUGIN = Plugin({name}{fields})")
    (loaded,) = load_plugins(["odd.py"], tmp_path).loaded
    assert words in loaded.failures[""]


# --- a provider whose plug-in is broken -------------------------------------------------------------


def test_a_dialect_that_cannot_be_loaded_fails_its_provider_alone(tmp_path: Path) -> None:
    write(tmp_path, "broken.py", "1 / 0")
    text = """
        [plugins]
        use = ["broken.py"]
        [providers.gone]
        dialect = "acme-chat"
        base_url = "http://127.0.0.1:9/v1"
        [providers.unsigned]
        base_url = "http://127.0.0.1:9/v1"
        sign = "nobody"
        """
    try:
        file = config(tmp_path, text)
        for _ in range(2):  # also where the program reads the file again
            messages = [problem.text for problem in load_with_problems(file).problems]
            assert any("the plug-in 'broken.py' failed: ZeroDivisionError" in each for each in messages)
            assert any("providers.gone.dialect: the dialect 'acme-chat' is not there" in each for each in messages)
            assert any("providers.unsigned.sign: nothing signs requests as 'nobody'" in each for each in messages)
            assert configuration(file).catalog.providers["gone"].sign  # it is refused, not a mistake that ends it all
        assert main(["config", "check", "--config", file]) == 2
        with served(tmp_path, text) as server:
            for path, words in (
                ("/p/gone/v1/chat/completions", "these plug-ins have failed: broken.py"),
                ("/p/gone/v1/files", "these plug-ins have failed: broken.py"),
                ("/p/unsigned/v1/chat/completions", "nothing signs requests as 'nobody'"),
            ):
                status, body = server.post(path, json.dumps(REQUESTS["openai-chat"]).encode())
                assert status == 400
                assert words in json.dumps(body)
            assert server.api("/api/plugins") == [
                {
                    "name": "broken.py",
                    "place": str(tmp_path / "plugins" / "broken.py"),
                    "adds": [],
                    "failures": {"": "ZeroDivisionError: division by zero (broken.py, line 1)"},
                }
            ]
            assert "acme-chat" not in [each["name"] for each in server.api("/api/about")["dialects"]]
    finally:
        unregister("acme-chat")


def test_without_a_failed_plug_in_an_unknown_dialect_is_a_mistake(tmp_path: Path) -> None:
    text = '[providers.gone]\ndialect = "acme-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    with pytest.raises(Fault, match="acme-chat"):
        configuration(config(tmp_path, text))
    assert find_dialect("acme-chat") is None


def test_a_signer_that_no_plug_in_has_is_found_by_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\nsign = "aws-sigv5"\n'
    assert main(["config", "check", "--config", config(tmp_path, text)]) == 2
    said = capsys.readouterr()
    assert "nothing signs requests as 'aws-sigv5'" in said.out + said.err
    assert "aws-sigv4" in said.out + said.err


BROKEN = """
import time
from dataclasses import replace
from sightline.dialects.registry import dialect
from sightline.plugins import Plugin
CHAT = dialect("openai-chat")

def hang(*_):
    time.sleep(3600)

def leave(*_):
    raise SystemExit(3)

class Blocking:
    def __init__(self, context): pass
    async def sign(self, request):
        while True: time.sleep(0.01)

PLUGIN = Plugin(
    name="broken",
    dialects=(
        replace(CHAT, name="hanging", write_request=hang),
        replace(CHAT, name="leaving", write_request=leave),
        replace(CHAT, name="odd", write_request=lambda *_: "text"),
    ),
    signers={"blocking": Blocking},
    hooks=(hang,),
)
"""
TABLES = """
[plugins]
use = ["broken.py", "absent.py"]
timeout_s = 1
[providers.acme]
base_url = "{url}/v1"
[providers.blocking]
base_url = "{url}/v1"
sign = "blocking"
[providers.hanging]
dialect = "hanging"
base_url = "{url}/v1"
[providers.leaving]
dialect = "leaving"
base_url = "{url}/v1"
[providers.odd]
dialect = "odd"
base_url = "{url}/v1"
"""


def test_no_plug_in_takes_the_gateway_down_in_any_of_its_processes(tmp_path: Path) -> None:
    write(tmp_path, "broken.py", BROKEN)
    words = {
        "leaving": "(dialect leaving) failed: SystemExit: 3",
        "odd": "(dialect odd) failed: TypeError: it returned str, not dict or list",
        "hanging": "(dialect hanging) failed: TimeoutError: it did not return within 1 s",
        "blocking": "(signer blocking) failed: TimeoutError: it did not return within 1 s",
    }
    with workers(tmp_path, config=TABLES) as stage:
        stage.worker()
        for client in stage.clients(4):
            for provider, said in words.items():
                path = f"/p/{provider}/v1/messages"
                client.connection.request(
                    "POST", path, json.dumps(REQUESTS["anthropic"]), {"content-type": "application/json"}
                )
                answer = client.connection.getresponse()
                body = answer.read().decode()
                assert answer.status == 400
                assert f"the plug-in 'broken.py' {said}" in json.loads(body)["error"]["message"]
            assert client.ask("Are you there?")[0] == 200
        assert len(stage.upstream.seen) == 4  # nothing was sent unsigned
        (broken, absent) = stage.server.api("/api/plugins")
        assert "FileNotFoundError" in absent["failures"][""]
        assert "hook hang" in broken["adds"]
        assert stage.end() == 0


# --- what is added by name --------------------------------------------------------------------------


def load(tmp_path: Path, body: str) -> LoadedPlugin:
    write(tmp_path, "mine.py", f"{HEAD}from sightline.plugins import ExchangeField, Panel\n{body}")
    return load_plugins(["mine.py"], tmp_path, LIMIT).loaded[0]


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ("lambda exchange: 1 / 0", "ZeroDivisionError"),
        ("lambda exchange: 7", "it returned int, not str or tuple or NoneType"),
        ("lambda exchange: __import__('time').sleep(3600)", "did not return within 0.2 s"),
        ("lambda exchange: exchange.value('modle')", r"value\('modle'\): .* has no such value; it has at, attempts,"),
        ("lambda exchange: exchange.value('tokens')", "no such value"),
        ("lambda exchange: exchange.value('stars')", "no such value"),
        ("lambda exchange: exchange.value('team')", "no such value"),
    ],
)
def test_a_list_filtered_by_a_field_that_fails_says_so(tmp_path: Path, read: str, words: str) -> None:
    loaded = load(tmp_path, f"PLUGIN = Plugin(name='f', fields={{'team': ExchangeField('text', 'a team', {read})}})")
    try:
        with pytest.raises(Fault, match=words) as caught:
            matches(parse("team:billing"), Known(), now=0.0)
        assert caught.value.code is Code.CONFIG
    finally:
        remove_field("team")
    assert "field team" in loaded.failures


def test_a_field_can_ask_for_all_that_the_record_knows() -> None:
    exchange = PluginExchange(Known({name: name for name in FIELDS}))
    assert [exchange.value(name) for name in FIELDS] == list(FIELDS)
    assert [exchange.value(name) for name in ("tools", "m", "elapsed")] == ["tool", "model", "time"]


@pytest.mark.parametrize(
    ("parts", "what", "words"),
    [
        ("fields={'model': ExchangeField('text', 'm', len)}", "field model", "is built in"),
        (
            "fields={'Team name': ExchangeField('text', 'm', len)}",
            "field Team name",
            "not a valid name for a filter field",
        ),
        ("fields={'day': ExchangeField('date', 'm', len)}", "field day", "no kind 'date' of field"),
        ("graders={'rubrics': len}", "grader rubrics", "is built in"),
        ("graders={'my_words': len}", "grader my_words", "digits and dashes, not underscores"),
        ("graders={'Words': len}", "grader Words", "Use lowercase letters, digits and dashes"),
        ("panels={'Über': Panel('t', '')}", "panel Über", "not a valid name for a panel. Use lowercase letters"),
        ("exporters={'har': len}", "exporter har", "the exporter 'har' is built in. Give yours another name."),
        ("importers={'jsonl': len}", "importer jsonl", "is built in"),
        ("redactors={'key': len}", "redactor key", "is built in"),
        ("redactors={'a {b}': len}", "redactor a {b}", "not a valid name for a redactor"),
        ("signers={'aws-sigv4': len}", "signer aws-sigv4", "is built in"),
        ("dialects=(raw,)", "dialect raw", "the dialect 'raw' is built in. Give yours another name."),
    ],
)
def test_what_cannot_be_added_is_named(tmp_path: Path, parts: str, what: str, words: str) -> None:
    head = "from sightline.dialects.registry import dialect\nraw = dialect('raw')\n"
    loaded = load(tmp_path, f"{head}def ok():\n    'Fine.'\nPLUGIN = Plugin(name='p', tools=(ok,), {parts})")
    assert list(loaded.failures) == [what]
    fault = loaded.fault_of(what, loaded.failures[what])
    assert words in fault.message
    assert loaded.plugin is not None  # the rest is used


@pytest.mark.parametrize(
    ("grade", "words"),
    [
        ("lambda case: 1 / 0", "ZeroDivisionError"),
        ("__import__('asyncio').sleep", "write a plain function"),
        ("lambda case: 'good'", "it returned str, not bool or int or float or dict"),
        ("lambda case: __import__('time').sleep(3600)", "did not return within 0.2 s"),
    ],
)
def test_a_grader_that_fails_is_named_in_its_fault(tmp_path: Path, grade: str, words: str) -> None:
    load(tmp_path, f"PLUGIN = Plugin(name='g', graders={{'mine': {grade}}})")
    try:
        step = next(GRADERS["mine"].build(GRADERS["mine"].config(), None)(subject()))  # type: ignore[arg-type]
        with pytest.raises(Fault, match=words):
            asyncio.run(step.call(step.payload, LIMIT))  # type: ignore[union-attr]
    finally:
        remove_grader("mine")


def subject() -> object:
    from sightline.evals.core.graders.finding import Grading, GradingSubject
    from sightline.evals.core.result import CaseObservation

    return GradingSubject(CaseObservation(text="Hello"), Grading())


def test_what_two_plug_ins_call_the_same_is_the_first_ones(tmp_path: Path) -> None:
    for name in ("first", "second"):
        text = f"""{HEAD}from sightline.plugins import ExchangeField, Panel
PLUGIN = Plugin(
    name="{name}", exporters={{"x": lambda _: b"{name}"}}, importers={{"x": lambda _: {{"by": "{name}"}}}},
    redactors={{"r": lambda _: ["{name}"]}}, panels={{"p": Panel("{name}", "")}}, signers={{"s": len}},
    fields={{"team": ExchangeField("text", "a team", lambda _: "{name}")}}, graders={{"g": lambda _: 1}},
)"""
        write(tmp_path, f"{name}.py", text)
    try:
        plugins = load_plugins(["first.py", "second.py"], tmp_path)
        assert matches(parse("team:first"), Known(), now=0.0)
    finally:
        remove_field("team")
        remove_grader("g")
    first, second = plugins.loaded
    assert first.failures == {}
    assert second.plugin is not None
    assert set(second.failures) == set(second.plugin.contents())
    said = "the plug-in 'first.py' has a redactor r already. A name is used once: rename one of them"
    assert said in second.failures["redactor r"]
    assert plugins.exporters()["x"]({}) == b"first"
    assert plugins.read_foreign(b"") == {"by": "first"}
    assert plugins.redactors()["r"]("") == ["first"]
    assert plugins.panels()["p"][0] == "first.py"


def test_a_redactor_that_fails_lets_nothing_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = {
        "1 / 0": "ZeroDivisionError",
        "[7]": "a value of type int",
        "7": "it returned int, not a list of texts",
        "text[:4]": "it returned str, not a list of texts",
        "None": "it returned NoneType, .* return \\[\\] where there is no value",
    }
    for body, words in failing.items():
        write(tmp_path, "r.py", f"{HEAD}PLUGIN = Plugin(name='r', redactors={{'r': lambda text: {body}}})")
        finders = load_plugins(["r.py"], tmp_path).redactors()
        with pytest.raises(Fault, match=rf"\(redactor r\) failed: .*{words}"):
            finders["r"]("text")


def test_formats_that_fail_are_named(tmp_path: Path) -> None:
    body = "exporters={'x': lambda archive: 'text'}, importers={'x': lambda data: b''}"
    write(tmp_path, "x.py", f"{HEAD}PLUGIN = Plugin(name='x', {body})")
    plugins = load_plugins(["x.py"], tmp_path)
    with pytest.raises(Fault, match="it returned str, not bytes"):
        plugins.exporters()["x"]({})
    with pytest.raises(Fault, match="it returned bytes, not dict or NoneType"):
        plugins.read_foreign(b"text")
