import hashlib
import io
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.program import main
from sightline.editing.masks import read_masks
from sightline.exchange.interception.core.rules import Interception
from sightline.exchange.interception.store import KeptInterception
from tests.background import upstream_in_background, wait_until_gone
from tests.cli.recorded_folder import stand_alone_in, traffic
from tests.server_process import PROGRAM
from tests.upstream import LAST, Upstream, chunk, cut, head, says, stall, streams

EVENT_STREAM = [("Content-Type", "text/event-stream")]
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def event(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "r", "model": "m", "choices": [choice], **more}).encode() + b"\n\n"


HELLO = (event({"role": "assistant", "content": "Hel"}), event({"content": "lo"}), event({}, "stop", usage=USAGE))
DONE = b"data: [DONE]\n\n"
WHOLE = {
    "id": "r",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": USAGE,
}


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A provider of the user's own, in a folder and an environment that hold nothing else."""
    stand_alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("ACME_API_KEY", "the-secret")
    with upstream_in_background() as upstream:
        (tmp_path / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_API_KEY"\n'
            '[models."m"]\nproviders = ["acme"]\ncontext_window = 1000\nprices = { input = 1.0, output = 2.0 }\n'
        )
        yield upstream


Captured = pytest.CaptureFixture[bytes]


def test_the_answer_goes_to_stdout_and_the_account_to_stderr(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [streams(*HELLO, DONE)]
    assert main(["ask", "Say hello."]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert captured.err.startswith(b"acme/m: 9 tokens in (")
    assert b"2 out, $0.000013, " in captured.err
    (seen,) = acme.seen
    assert (seen.method, seen.target) == ("POST", "/v1/chat/completions")
    assert seen.header("authorization") == "Bearer the-secret"
    assert seen.json()["messages"] == [{"role": "user", "content": "Say hello."}]
    assert seen.json()["stream"] is True


def test_no_stream_prints_the_complete_answer(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [says(WHOLE)]
    assert main(["ask", "--no-stream", "--quiet", "hi"]) == 0
    assert capsysbinary.readouterr() == (b"Hello", b"")
    assert "stream" not in acme.seen[0].json() or acme.seen[0].json()["stream"] is False


def test_the_reply_can_be_had_as_json(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [streams(*HELLO, DONE)]
    assert main(["ask", "--json", "hi"]) == 0
    reply = json.loads(capsysbinary.readouterr().out)
    assert reply["parts"] == [{"type": "text", "text": "Hello"}]
    assert reply["usage"] == {"input_tokens": 9, "output_tokens": 2}


def test_request_is_recorded(acme: Upstream, capsysbinary: Captured, tmp_path: Path) -> None:
    acme.script = [streams(*HELLO, DONE), says({"error": {"message": "no"}}, 400)]
    assert main(["ask", "--quiet", "Say hello."]) == 0
    assert capsysbinary.readouterr() == (b"Hello", b"")
    assert main(["ask", "Say it again."]) == 3
    failed, finished = traffic(capsysbinary, "session:ask client:sightline")
    assert (finished["state"], finished["provider"], finished["model"]) == ("finished", "acme", "m")
    assert (finished["status"], finished["input_tokens"], finished["title"]) == (200, 9, "Say hello.")
    assert (failed["state"], failed["fault"], failed["status"]) == ("failed", "invalid_request", 400)
    assert main(["show", "--as", "wire", str(finished["id"])]) == 0
    assert capsysbinary.readouterr().out == acme.seen[0].body
    acme.script = [streams(*HELLO, DONE)]
    assert main(["replay", "--quiet", str(finished["id"])]) == 0
    assert acme.seen[2].body == acme.seen[0].body
    assert b"the-secret" not in b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())


def test_a_dry_run_is_on_no_record(acme: Upstream, capsysbinary: Captured, tmp_path: Path) -> None:
    with (tmp_path / "sightline.toml").open("a") as file:
        file.write("[providers.acme.quirks]\ncounts_tokens = true\n")
    acme.script = [says({"input_tokens": 42}), says({"input_tokens": 42}), streams(*HELLO, DONE)]
    assert main(["ask", "--dry-run", "hi"]) == 0
    assert not (tmp_path / "data").exists()
    assert main(["ask", "--dry-run", "--count", "hi"]) == 0
    assert traffic(capsysbinary) == []
    assert main(["ask", "--count", "hi"]) == 0
    asked, counted = traffic(capsysbinary)
    assert (asked["path"], counted["path"]) == ("/v1/chat/completions", "/v1/chat/completions/input_tokens")


def test_a_dry_run_does_not_even_load_the_record(acme: Upstream) -> None:
    script = (
        "import sys; from sightline.cli import main; main(['ask', '--dry-run', 'hi']); "
        "print(*[name for name in sys.modules if name.startswith(('sightline.store', 'sqlite3'))], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stderr.splitlines()[-1] == ""
    assert acme.seen == []


def test_answer_is_printed_with_a_warning_if_it_cannot_be_recorded(
    acme: Upstream, capsysbinary: Captured, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    newer = sqlite3.connect(tmp_path / "data" / "record.sqlite3")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    acme.script = [streams(*HELLO, DONE)]
    assert main(["ask", "--quiet", "hi"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert captured.err.startswith(b"warning: this will not be recorded: the record was made by a newer Sightline")
    assert b"\nhint: Use that Sightline" in captured.err


def test_what_is_shown_is_what_is_sent(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [streams(*HELLO, DONE)]
    question = ["ask", "-s", "Be brief.", "--temperature", "0.5", "--max-tokens", "7", "Grüße 👋"]
    assert main([*question, "--dry-run", "--as", "wire"]) == 0
    assert acme.seen == []
    captured = capsysbinary.readouterr()
    assert b"POST http://127.0.0.1:" in captured.err
    assert b" tokens in (" in captured.err
    assert f"sha256 {hashlib.sha256(captured.out).hexdigest()})".encode() in captured.err
    assert main(question) == 0
    assert acme.seen[0].body == captured.out


def test_the_estimate_of_an_answer_is_of_the_request_after_masks(
    acme: Upstream, capsysbinary: Captured, tmp_path: Path
) -> None:
    acme.script = [streams(*HELLO, DONE)]
    mask = {
        "scope": "all",
        "kind": "patch",
        "anchor": {"kind": "system"},
        "hunks": [{"old": "short", "new": "w " * 99}],
    }
    KeptInterception(tmp_path / "data").write(Interception(), read_masks([mask]), {})
    question = ["ask", "-s", "Be short.", "hi"]
    assert main([*question, "--dry-run"]) == 0
    shown = re.search(rb"\n(\S+) tokens in", capsysbinary.readouterr().err)
    assert main(question) == 0
    told = re.search(rb"\((\S+) estimated", capsysbinary.readouterr().err)
    assert told[1] == shown[1]


def test_a_dry_run_needs_no_key(acme: Upstream, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured) -> None:
    monkeypatch.delenv("ACME_API_KEY")
    assert main(["ask", "--dry-run", "hi"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "m"
    assert acme.connections == []


def test_the_canonical_form_is_the_request_before_its_dialect(acme: Upstream, capsysbinary: Captured) -> None:
    assert main(["ask", "--as", "canonical", "hi"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["messages"][0]["parts"] == [{"type": "text", "text": "hi"}]
    assert acme.seen == []


def test_the_prompt_can_come_from_stdin(
    acme: Upstream, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured
) -> None:
    acme.script = [streams(*HELLO, DONE)]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\ufeffaus der Röhre\n".encode())))
    assert main(["ask", "-"]) == 0
    assert acme.seen[0].json()["messages"][0]["content"] == "aus der Röhre\n"


def test_a_schema_is_sent(acme: Upstream, tmp_path: Path, capsysbinary: Captured) -> None:
    (tmp_path / "s.json").write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    assert main(["ask", "--dry-run", "--schema", "s.json", "n?"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["response_format"]["type"] == "json_schema"
    for wrong in ("[]", "{"):
        (tmp_path / "s.json").write_text(wrong)
        assert main(["ask", "--schema", "s.json", "n?"]) == 2
        assert capsysbinary.readouterr().err.startswith(b"error[usage]: s.json: ")
    assert acme.seen == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", ""], "error[invalid_request]: the input is empty"),
        (["ask", "-m", "gtp-4o", "hi"], "error[model_unknown]"),
        (["ask", "--max-tokens", "0", "hi"], "error[usage]"),
        (["ask", "-f", "nowhere.txt", "hi"], "error[usage]: nowhere.txt"),
        (["ask", "--config", "nowhere.toml", "hi"], "error[config]: nowhere.toml"),
        (["ask"], "error[usage]"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_sent(
    acme: Upstream, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "hint: " in told
    assert acme.connections == []


def test_bad_stdin_is_refused(
    acme: Upstream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abc\xff")))
    assert main(["ask", "-"]) == 2
    assert "not UTF-8 text (byte 3)" in capsys.readouterr().err


def test_a_key_that_is_not_set_is_named(
    acme: Upstream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ACME_API_KEY")
    assert main(["ask", "hi"]) == 2
    assert "error[auth]: the variable ACME_API_KEY is not set\nhint: Set ACME_API_KEY" in capsys.readouterr().err
    assert acme.seen == []


def test_a_refusal_keeps_the_providers_words_and_hides_the_key(
    acme: Upstream, capsys: pytest.CaptureFixture[str]
) -> None:
    acme.script = [
        says({"error": {"message": "Incorrect API key provided: the-secret.", "code": "invalid_api_key"}}, 401)
    ]
    assert main(["ask", "hi"]) == 3
    told = capsys.readouterr().err
    assert "error[auth]: Incorrect API key provided: " in told
    assert "the-secret" not in told
    assert len(acme.seen) == 1


def test_retries_are_noted(acme: Upstream, capsysbinary: Captured) -> None:
    busy = says({"error": {"message": "slow down"}}, 429, [("Retry-After", "0")])
    acme.script = [busy, streams(*HELLO, DONE)]
    assert main(["ask", "hi"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hello"
    assert re.search(rb"note: attempt 2 after 0.[0-9] s \(rate_limited: 429: slow down\)\n", captured.err)
    assert acme.seen[0].body == acme.seen[1].body


def test_an_answer_that_breaks_off_is_kept_and_is_no_success(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [cut(head(200, EVENT_STREAM), chunk(HELLO[0]), how="eof")]
    assert main(["ask", "hi"]) == 3
    captured = capsysbinary.readouterr()
    assert captured.out == b"Hel"
    assert b"error[" in captured.err
    assert len(acme.seen) == 1


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("delta", "finish", "code", "words"),
    [
        ({"content": "Hel"}, "length", 0, b"truncated at its token limit"),
        ({"content": "Hel"}, "content_filter", 1, b"filter stopped"),
        ({"content": "Hel"}, "stop", 0, b""),
        (
            {"reasoning_content": "Well, "},
            "length",
            1,
            b"there is no answer: the limit of tokens was reached before any",
        ),
        ({"tool_calls": [CALL]}, "tool_calls", 0, b"called a tool"),
        ({}, "stop", 0, b"note: the model's answer is empty"),
    ],
)
def test_how_an_answer_ended_is_reported(
    acme: Upstream, capsysbinary: Captured, delta: dict[str, object], finish: str, code: int, words: bytes
) -> None:
    acme.script = [streams(event(delta), event({}, finish), DONE)]
    assert main(["ask", "hi"]) == code
    assert words in capsysbinary.readouterr().err


def _shown(capsysbinary: Captured, *words: str) -> dict[str, Any]:
    assert main(["ask", "--dry-run", *words]) == 0
    return json.loads(capsysbinary.readouterr().out)


def test_the_user_s_instructions_stand_beside_the_family_s_and_s_replaces_those(
    acme: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    (tmp_path / "rules.txt").write_text("Use metres.\n")
    body = _shown(capsysbinary, "-m", "openai/gpt-5", "--instructions", "rules.txt", "hi")
    base, _, user = body["instructions"].partition("\n\n")
    assert (base.startswith("You are"), user) == (True, "Use metres.")
    said = _shown(capsysbinary, "-m", "openai/gpt-5", "-s", "Be loud.", "--instructions", "Use feet.", "hi")
    assert said["instructions"] == "Be loud.\n\nUse feet."
    assert "instructions" not in _shown(capsysbinary, "-m", "openai/gpt-5", "-s", "", "hi")
    with (tmp_path / "sightline.toml").open("a") as file:
        file.write('[families."gpt-5"]\nbase_instructions = ""\n')
    assert "instructions" not in _shown(capsysbinary, "-m", "openai/gpt-5", "hi")
    assert _shown(capsysbinary, "--instructions", "Use feet.", "hi")["messages"][0]["content"] == "Use feet."


def test_tools_that_the_model_s_api_has_are_offered_where_its_family_has_them(
    acme: Upstream, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    tools = _shown(capsysbinary, "-m", "openai/codex-mini-latest", "--builtin", "local_shell", "hi")["tools"]
    assert tools == [{"type": "local_shell"}]
    tools = _shown(capsysbinary, "-m", "openai/gpt-5", "--builtin", "web_search", "hi")["tools"]
    assert tools == [{"type": "web_search"}]
    assert main(["ask", "--dry-run", "-m", "openai/gpt-5", "--builtin", "local_shell", "hi"]) == 2
    assert b"the tool 'local_shell' cannot be offered" in capsysbinary.readouterr().err


def test_token_counting_endpoint_of_the_provider_is_used(
    acme: Upstream, tmp_path: Path, capsysbinary: Captured
) -> None:
    with (tmp_path / "sightline.toml").open("a") as file:
        file.write("[providers.acme.quirks]\ncounts_tokens = true\n")
    acme.script = [says({"input_tokens": 42})]
    assert main(["ask", "--dry-run", "--count", "hi"]) == 0
    assert b"42 tokens in (counted by acme) of 1,000" in capsysbinary.readouterr().err
    assert acme.seen[0].target == "/v1/chat/completions/input_tokens"


def test_one_that_does_not_count_says_so(acme: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--dry-run", "--count", "hi"]) == 2
    assert "acme does not count tokens" in capsys.readouterr().err
    assert acme.seen == []


def test_what_was_learned_is_there_in_the_next_run(acme: Upstream, tmp_path: Path, capsysbinary: Captured) -> None:
    usage = {"prompt_tokens": 600, "completion_tokens": 1}
    acme.script = [streams(HELLO[0], event({}, "stop", usage=usage), DONE)]
    words = "different words in a long question " * 40
    for _ in range(6):
        assert main(["ask", words]) == 0
    bands = re.findall(r"600 tokens in \(([^)]*) estimated\)", capsysbinary.readouterr().err.decode())
    assert len(bands) == 6
    assert bands[0] != bands[-1]
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@contextmanager
def started(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [*PROGRAM, "ask", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_ends_at_once_with_130_and_closes_the_upstream(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [stall(head(200, EVENT_STREAM), chunk(HELLO[0]))]
    with started("hi") as process:
        assert process.stdout.read(3) == b"Hel"
        process.send_signal(signal.SIGINT)
        wait_until_gone(acme)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in told
    assert [each["state"] for each in traffic(capsysbinary)] == ["cancelled"]


def test_request_is_recorded_even_if_the_process_is_killed(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [stall(head(200, EVENT_STREAM), chunk(HELLO[0]))]
    with started("hi") as process:
        assert process.stdout.read(3) == b"Hel"
        process.kill()
        process.communicate(timeout=60)
    (found,) = traffic(capsysbinary)
    assert (found["state"], found["fault"], found["session"]) == ("failed", "interrupted", "ask")


def test_the_last_chunk_is_not_waited_for_once_the_answer_has_ended(acme: Upstream, capsysbinary: Captured) -> None:
    acme.script = [stall(head(200, EVENT_STREAM), *(chunk(each) for each in (*HELLO, DONE)))]
    assert main(["ask", "hi"]) == 0
    assert capsysbinary.readouterr().out == b"Hello"
    assert LAST


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_answer_that_cannot_be_written_is_no_success(acme: Upstream, pieces: int) -> None:
    whole = b"".join((*HELLO, DONE))
    acme.script = [streams(whole)] if pieces == 1 else [streams(*HELLO, DONE)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "ask", "hi"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error[usage]: stdout: No space left")
    assert b"Exception ignored" not in done.stderr


def test_unwritable_data_folder_is_noted(acme: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    acme.script = [streams(*HELLO, DONE)]
    assert main(["ask", "--data", "/proc/nowhere", "hi"]) == 0
    assert "note: the calibration of token estimates could not be saved: /proc/nowhere" in capsys.readouterr().err
