import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.cli.program import main

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

PROGRAM = [sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())"]

Put = Callable[[str, object], str]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file and gives its path."""

    def put_file(name: str, content: object) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return put_file


def test_a_request_goes_to_stdout_and_the_losses_to_stderr(
    put: Put, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = put("r.json", {**CHAT, "seed": 7})
    assert main(["translate", "request", "--from", "openai-chat", "--to", "anthropic", path]) == 0
    captured = capsysbinary.readouterr()
    body = json.loads(captured.out)
    assert body["system"] == "be kind"
    assert b"lost (option) /seed: seed" in captured.err
    assert b"added /max_tokens" in captured.err


def test_equal_dialects_give_the_very_bytes(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    data = b'{"model" : "gpt",\n "messages": [ ] , "temperature":1.0}'
    assert main(["translate", "request", "--from", "openai-chat", "--to", "openai-chat", put("r.json", data)]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == data
    assert captured.err == b""


def test_the_report_is_json(put: Put, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    report = tmp_path / "report.json"
    path = put("r.json", {**CHAT, "seed": 7})
    words = ["translate", "request", "--from", "openai-chat", "--to", "anthropic", "--report", str(report), path]
    assert main(words) == 0
    told = json.loads(report.read_bytes())
    assert {"pointer": "/seed", "what": "seed", "why": "anthropic has no such option", "severity": "option"} in told[
        "losses"
    ]
    assert told["additions"][0].keys() == {"pointer", "what", "why", "severity"}
    assert capsysbinary.readouterr().err == b""


def test_strict_refuses_and_lists_the_losses(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = put("r.json", {**CHAT, "seed": 7})
    assert main(["translate", "request", "--from", "openai-chat", "--to", "anthropic", "--strict", path]) == 1
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    error, hint, first, *_ = captured.err.decode().splitlines()
    assert error == "error[translation_loss]: 1 thing cannot be translated to anthropic"
    assert hint.startswith("hint: ")
    assert first.startswith("lost (option) /seed")


def test_model_and_system_policy_are_options(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    late = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "late"}]}
    words = ["translate", "request", "--from", "openai-chat", "--to", "anthropic", "--model", "claude"]
    assert main([*words, "--system", "merge_all", put("r.json", late)]) == 0
    body = json.loads(capsysbinary.readouterr().out)
    assert (body["model"], body["system"]) == ("claude", "late")


def test_canonical_is_a_form_of_requests_both_ways(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["translate", "request", "--from", "openai-chat", "--to", "canonical", put("r.json", CHAT)]) == 0
    canonical = capsysbinary.readouterr().out
    assert json.loads(canonical)["messages"][0]["role"] == "system"
    path = put("c.json", canonical)
    assert main(["translate", "request", "--from", "canonical", "--to", "openai-chat", path]) == 0
    assert json.loads(capsysbinary.readouterr().out) == CHAT
    words = ["translate", "request", "--from", "canonical", "--to", "canonical", "--model", "other", path]
    assert main(words) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "other"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", b"not JSON"),
        ({"messages": [{"role": "user", "content": 5}]}, b"/messages/0/content: expected a string or a list"),
    ],
)
def test_a_bad_body_is_one_clear_line_with_its_pointer(
    put: Put, data: object, told: bytes, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["translate", "request", "--from", "openai-chat", "--to", "anthropic", put("r.json", data)]) == 2
    captured = capsysbinary.readouterr()
    assert captured.err.startswith(b"error[invalid_request]: ")
    assert told in captured.err
    assert captured.out == b""


def test_a_wrong_dialect_names_the_nearest(put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "request", "--from", "openai_chat", "--to", "anthropic", put("r.json", CHAT)]) == 2
    assert "Did you mean openai-chat?" in capsys.readouterr().err
    assert main(["translate", "reply", "--from", "raw", "--to", "qqqq", put("r.json", REPLY)]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--report", "FILE"])
def test_unusable_path_is_reported(put: Put, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["translate", "request", "--from", "openai-chat", "--to", "anthropic"]
    words += ["/nowhere/at/all"] if option == "FILE" else ["--report", "/nowhere/at/all", put("r.json", CHAT)]
    assert main(words) == 2
    assert "error[usage]: /nowhere/at/all: No such file or directory" in capsys.readouterr().err


def test_a_reply_is_translated(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = put("r.json", REPLY)
    assert main(["translate", "reply", "--from", "openai-chat", "--to", "anthropic", path]) == 0
    assert json.loads(capsysbinary.readouterr().out)["stop_reason"] == "end_turn"
    assert main(["translate", "reply", "--from", "openai-chat", "--to", "reply", path]) == 0
    assert json.loads(capsysbinary.readouterr().out)["finish"] == "stop"


@pytest.mark.parametrize("kind", ["reply", "stream"])
def test_an_answer_can_be_given_another_models_name(kind: str, put: Put, capsysbinary) -> None:
    path = put("r", REPLY if kind == "reply" else STREAM)
    assert main(["translate", kind, "--from", "openai-chat", "--to", "reply", "--model", "mine", path]) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "mine"


def test_a_body_without_a_model_is_pointed_out(put: Put, capsysbinary) -> None:
    path = put("g.json", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
    assert main(["translate", "request", "--from", "gemini", "--to", "openai-chat", path]) == 0
    assert b"note: the body names no model; give one with --model" in capsysbinary.readouterr().err
    words = ["translate", "request", "--from", "gemini", "--to", "canonical", "--model", "mine", path]
    assert main(words) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "mine"


def test_a_reply_that_is_an_error_is_translated_and_exits_3(
    put: Put, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = put("r.json", {"error": {"message": "full", "type": "server_error", "code": "server_is_overloaded"}})
    assert main(["translate", "reply", "--from", "openai-chat", "--to", "anthropic", path]) == 3
    captured = capsysbinary.readouterr()
    assert json.loads(captured.out)["error"]["type"] == "overloaded_error"
    assert b"error[overloaded]: full" in captured.err


def test_the_clients_request_gives_tools_their_names_back(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    request = put("q.json", {"model": "m", "input": "hi", "tools": [{"type": "custom", "name": "patch"}]})
    called = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": '{"input": "x"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    reply = {**REPLY, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    words = ["translate", "reply", "--from", "openai-chat", "--to", "openai-responses", "--request", request]
    assert main([*words, put("r.json", reply)]) == 0
    item = json.loads(capsysbinary.readouterr().out)["output"][0]
    assert (item["type"], item["input"]) == ("custom_tool_call", "x")


def test_the_clients_request_is_of_the_dialect_of_the_output(put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    path = put("q.json", CHAT)
    assert main(["translate", "reply", "--from", "raw", "--to", "events", "--request", path, path]) == 2
    assert "--request needs a dialect" in capsys.readouterr().err


def test_a_stream_is_translated(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = put("s.sse", STREAM)
    assert main(["translate", "stream", "--from", "openai-chat", "--to", "anthropic", path]) == 0
    assert b"event: message_stop" in capsysbinary.readouterr().out
    assert main(["translate", "stream", "--from", "openai-chat", "--to", "reply", path]) == 0
    assert json.loads(capsysbinary.readouterr().out)["parts"] == [{"type": "text", "text": "hi"}]


def test_a_cut_stream_gives_what_arrived_and_exits_3(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = put("s.sse", STREAM[:90])
    assert main(["translate", "stream", "--from", "openai-chat", "--to", "reply", path]) == 3
    captured = capsysbinary.readouterr()
    reply = json.loads(captured.out)
    assert reply["finish"] == "error"
    assert reply["fault"]["code"] == "upstream_protocol"
    assert b"error[upstream_protocol]" in captured.err


def test_a_strict_stream_gives_nothing_when_it_loses(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    lossy = put("s.sse", STREAM.replace(b'"model":"m",', b'"model":"m","brand_new":1,'))
    words = ["translate", "stream", "--from", "openai-chat", "--to", "anthropic", "--strict"]
    assert main([*words, lossy]) == 1
    assert capsysbinary.readouterr().out == b""
    assert main([*words, put("ok.sse", STREAM)]) == 0
    assert b"message_stop" in capsysbinary.readouterr().out


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
        ("claude-opus-4-8", set(), {b"temperature 0.2: claude-opus-4-8 does not take it", b"/top_p"}),
        ("some-model", {"temperature", "top_p"}, set()),
    ],
)
def test_what_the_target_model_refuses_is_left_out(
    put: Put, capsysbinary: pytest.CaptureFixture[bytes], model: str, kept: set[str], lost: set[bytes]
) -> None:
    path = put("r.json", {**CHAT, "temperature": 0.2, "top_p": 0.9})
    assert main(["translate", "request", "--from", "openai-chat", "--to", "anthropic", "--model", model, path]) == 0
    captured = capsysbinary.readouterr()
    assert json.loads(captured.out).keys() & {"temperature", "top_p"} == kept
    assert all(words in captured.err for words in lost)
    arguments = ["--strict", "--from", "openai-chat", "--to", "anthropic", "--model", model, path]
    assert (main(["translate", "request", *arguments]) == 0) is not bool(lost)


def test_the_model_of_a_canonical_request_counts_too(put: Put, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = ["translate", "request", "--from", "openai-chat", "--to", "canonical"]
    main([*arguments, put("r.json", {**CHAT, "model": "claude-opus-4-8", "temperature": 0.2})])
    canonical = put("c.json", capsysbinary.readouterr().out)
    main(["translate", "request", "--from", "canonical", "--to", "anthropic", canonical])
    assert "temperature" not in json.loads(capsysbinary.readouterr().out)
