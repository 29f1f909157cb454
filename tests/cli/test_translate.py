import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sightline.cli.program import main
from tests.server_process import PROGRAM

CHAT = {"model": "gpt", "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]}
REPLY = {
    "id": "r",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
STREAM = (
    b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


Put = Callable[[str, object], str]
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file and gives its path."""

    def put_file(name: str, content: object) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return put_file


class Translated(NamedTuple):
    """How `translate` ended, and what it printed."""

    code: int
    out: bytes
    err: str

    @property
    def value(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.out)


Translate = Callable[..., Translated]


@pytest.fixture
def translate(put: Put, capsysbinary: Captured) -> Translate:
    """Runs `translate KIND --from … --to …` on this content, or on the file of this path."""

    def run(kind: str, source: str, target: str, content: object, *words: str) -> Translated:
        path = content if isinstance(content, str) else put(f"{kind}.input", content)
        code = main(["translate", kind, "--from", source, "--to", target, *words, path])
        out, err = capsysbinary.readouterr()
        return Translated(code, out, err.decode())

    return run


def test_a_request_goes_to_stdout_and_the_losses_to_stderr(translate: Translate) -> None:
    done = translate("request", "openai-chat", "anthropic", {**CHAT, "seed": 7})
    assert (done.code, done.value["system"]) == (0, "be kind")
    assert "lost (option) /seed: seed" in done.err
    assert "added /max_tokens" in done.err


def test_equal_dialects_give_the_very_bytes(translate: Translate) -> None:
    data = b'{"model" : "gpt",\n "messages": [ ] , "temperature":1.0}'
    assert translate("request", "openai-chat", "openai-chat", data) == (0, data, "")


def test_the_report_is_json(translate: Translate, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = translate("request", "openai-chat", "anthropic", {**CHAT, "seed": 7}, "--report", str(report))
    assert (done.code, done.err) == (0, "")
    told = json.loads(report.read_bytes())
    loss = {"pointer": "/seed", "what": "seed", "why": "anthropic has no such option", "severity": "option"}
    assert loss in told["losses"]
    assert told["additions"][0].keys() == {"pointer", "what", "why", "severity"}


def test_strict_refuses_and_lists_the_losses(translate: Translate) -> None:
    done = translate("request", "openai-chat", "anthropic", {**CHAT, "seed": 7}, "--strict")
    assert (done.code, done.out) == (1, b"")
    error, hint, first, *_ = done.err.splitlines()
    assert error == "error[translation_loss]: 1 thing cannot be translated to anthropic"
    assert hint.startswith("hint: ")
    assert first.startswith("lost (option) /seed")


def test_model_and_system_policy_are_options(translate: Translate) -> None:
    late = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "late"}]}
    words = ("--model", "claude", "--system", "merge_all")
    body = translate("request", "openai-chat", "anthropic", late, *words).value
    assert (body["model"], body["system"]) == ("claude", "late")


def test_canonical_is_a_form_of_requests_both_ways(translate: Translate) -> None:
    canonical = translate("request", "openai-chat", "canonical", CHAT)
    assert canonical.value["messages"][0]["role"] == "system"
    assert translate("request", "canonical", "openai-chat", canonical.out).value == CHAT
    assert translate("request", "canonical", "canonical", canonical.out, "--model", "other").value["model"] == "other"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "not JSON"),
        ({"messages": [{"role": "user", "content": 5}]}, "/messages/0/content: expected a string or a list"),
    ],
)
def test_a_bad_body_is_one_clear_line_with_its_pointer(translate: Translate, data: object, told: str) -> None:
    done = translate("request", "openai-chat", "anthropic", data)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("error[invalid_request]: ")
    assert told in done.err


def test_a_wrong_dialect_names_the_nearest(translate: Translate) -> None:
    done = translate("request", "openai_chat", "anthropic", CHAT)
    assert (done.code, "Did you mean openai-chat?" in done.err) == (2, True)
    done = translate("reply", "raw", "qqqq", REPLY)
    assert (done.code, "Did you mean" in done.err) == (2, False)


@pytest.mark.parametrize(("content", "words"), [("/nowhere/at/all", ()), (CHAT, ("--report", "/nowhere/at/all"))])
def test_unusable_path_is_reported(translate: Translate, content: object, words: tuple[str, ...]) -> None:
    done = translate("request", "openai-chat", "anthropic", content, *words)
    assert done.code == 2
    assert "error[usage]: /nowhere/at/all: No such file or directory" in done.err


def test_a_reply_is_translated(translate: Translate) -> None:
    assert translate("reply", "openai-chat", "anthropic", REPLY).value["stop_reason"] == "end_turn"
    assert translate("reply", "openai-chat", "reply", REPLY).value["finish"] == "stop"


@pytest.mark.parametrize(("kind", "content"), [("reply", REPLY), ("stream", STREAM)])
def test_an_answer_can_be_given_another_models_name(kind: str, content: object, translate: Translate) -> None:
    assert translate(kind, "openai-chat", "reply", content, "--model", "mine").value["model"] == "mine"


def test_a_body_without_a_model_is_pointed_out(translate: Translate) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    done = translate("request", "gemini", "openai-chat", body)
    assert (done.code, "note: the body names no model; give one with --model" in done.err) == (0, True)
    assert translate("request", "gemini", "canonical", body, "--model", "mine").value["model"] == "mine"


def test_a_reply_that_is_an_error_is_translated_and_exits_3(translate: Translate) -> None:
    error = {"error": {"message": "full", "type": "server_error", "code": "server_is_overloaded"}}
    done = translate("reply", "openai-chat", "anthropic", error)
    assert (done.code, done.value["error"]["type"]) == (3, "overloaded_error")
    assert "error[overloaded]: full" in done.err


def test_the_clients_request_gives_tools_their_names_back(translate: Translate, put: Put) -> None:
    request = put("q.json", {"model": "m", "input": "hi", "tools": [{"type": "custom", "name": "patch"}]})
    called = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": '{"input": "x"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    reply = {**REPLY, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    item = translate("reply", "openai-chat", "openai-responses", reply, "--request", request).value["output"][0]
    assert (item["type"], item["input"]) == ("custom_tool_call", "x")


def test_the_clients_request_is_of_the_dialect_of_the_output(translate: Translate, put: Put) -> None:
    done = translate("reply", "raw", "events", CHAT, "--request", put("q.json", CHAT))
    assert (done.code, "--request needs a dialect" in done.err) == (2, True)


def test_a_stream_is_translated(translate: Translate) -> None:
    assert b"event: message_stop" in translate("stream", "openai-chat", "anthropic", STREAM).out
    assert translate("stream", "openai-chat", "reply", STREAM).value["parts"] == [{"type": "text", "text": "hi"}]


def test_a_cut_stream_gives_what_arrived_and_exits_3(translate: Translate) -> None:
    done = translate("stream", "openai-chat", "reply", STREAM[:90])
    assert (done.code, done.value["finish"], done.value["fault"]["code"]) == (3, "error", "upstream_protocol")
    assert "error[upstream_protocol]" in done.err


def test_a_strict_stream_gives_nothing_when_it_loses(translate: Translate) -> None:
    lossy = STREAM.replace(b'"model":"m",', b'"model":"m","brand_new":1,')
    done = translate("stream", "openai-chat", "anthropic", lossy, "--strict")
    assert (done.code, done.out) == (1, b"")
    done = translate("stream", "openai-chat", "anthropic", STREAM, "--strict")
    assert (done.code, b"message_stop" in done.out) == (0, True)


def test_a_terminal_gets_a_line_end(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    screen = Terminal(io.BytesIO())
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["translate", "request", "--from", "raw", "--to", "raw", put("r.json", b"[]")]) == 0
    assert screen.buffer.getvalue() == b"[]\n"  # it is the BytesIO of above


def test_a_live_stream_comes_out_as_it_goes_in() -> None:
    """The first event must be readable while the input is still open."""
    command = [*PROGRAM, "translate", "stream", "--from", "openai-chat", "--to", "anthropic"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first, rest = STREAM.split(b"\n\n", 1)
        process.stdin.write(first + b"\n\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"event: message_start\n"
        process.stdin.write(rest)
        process.stdin.close()
        assert b"message_stop" in process.stdout.read()
    assert process.returncode == 0


def test_a_reader_that_leaves_early_is_no_error(put: Put) -> None:
    data = json.dumps({"messages": [{"role": "user", "content": "x" * 500_000}]}).encode()
    command = [*PROGRAM, "translate", "request", "--from", "openai-chat", "--to", "openai-chat", put("big.json", data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("model", "kept", "lost"),
    [
        ("claude-opus-4-8", set(), {"temperature 0.2: claude-opus-4-8 does not take it", "/top_p"}),
        ("some-model", {"temperature", "top_p"}, set()),
    ],
)
def test_what_the_target_model_refuses_is_left_out(
    translate: Translate, model: str, kept: set[str], lost: set[str]
) -> None:
    body = {**CHAT, "temperature": 0.2, "top_p": 0.9}
    done = translate("request", "openai-chat", "anthropic", body, "--model", model)
    assert (done.code, done.value.keys() & {"temperature", "top_p"}) == (0, kept)
    assert all(words in done.err for words in lost)
    strict = translate("request", "openai-chat", "anthropic", body, "--model", model, "--strict")
    assert strict.code == (1 if lost else 0)


def test_the_model_of_a_canonical_request_counts_too(translate: Translate) -> None:
    body = {**CHAT, "model": "claude-opus-4-8", "temperature": 0.2}
    canonical = translate("request", "openai-chat", "canonical", body).out
    assert "temperature" not in translate("request", "canonical", "anthropic", canonical).value
