import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.cli.traffic import summary_lines
from sightline.model.exchange import Received
from sightline.model.report import Loss
from sightline.store.entries import BodyEntry
from tests.cli.recorded_folder import fill, folder_of
from tests.recordings import exchange, failed, one
from tests.store.traffic import chat_body, chat_stream, noted, sha256
from tests.upstream import Upstream, says

BODY = chat_body('it\'s "quoted" $HOME `x` Grüße\n')
HEADERS = (("Content-Type", "application/json"), ("Authorization", "***"), ("X-Team", "blue"))
FRAMES = chat_stream("Hel", "lo")
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with folder_of(tmp_path, monkeypatch) as upstream:
        unsent = chat_body("never sent")
        facts = [Received("openai-chat", "m", sha256(unsent))]
        fill(
            tmp_path / "data",
            exchange("x_a1", BODY, FRAMES, headers=HEADERS),
            [BodyEntry(sha256(unsent), unsent), *noted("x_b1", facts)],
            noted("x_c1", [Received("openai-chat", "m", sha256(b"taken by retention"))]),
        )
        upstream.script = [says({"ok": True})]
        yield upstream


def shown(capsysbinary: Captured, *words: str) -> bytes:
    assert main(["show", *words]) == 0
    return capsysbinary.readouterr().out


def test_the_sent_body_is_printed_exactly(acme: Upstream, capsysbinary: Captured) -> None:
    assert shown(capsysbinary, "x_a", "--as", "wire") == BODY


def test_the_printed_command_and_script_send_the_same_bytes_with_the_key_from_the_environment(
    acme: Upstream, capsysbinary: Captured
) -> None:
    command = shown(capsysbinary, "a", "--as", "curl")
    script = shown(capsysbinary, "a", "--as", "python")
    subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    subprocess.run([sys.executable, "-"], input=script, capture_output=True, check=True)
    first, second = acme.seen
    for seen in (first, second):
        assert seen.body == BODY
        assert seen.target == "/v1/chat/completions"
        assert seen.header("authorization") == "Bearer the-secret-key"
        assert seen.header("x-team") == "blue"
    assert b"the-secret-key" not in command + script


def test_requests_replies_and_facts_are_had_as_json(acme: Upstream, capsysbinary: Captured) -> None:
    canonical = json.loads(shown(capsysbinary, "a", "--as", "canonical"))
    assert canonical["messages"][0]["parts"][0]["text"].startswith("it's")
    events = [json.loads(line) for line in shown(capsysbinary, "a", "--as", "events").splitlines()]
    assert "".join(event.get("text", "") for event in events) == "Hello"
    assert events[-1] == {"event": "ended"}
    facts = [json.loads(line) for line in shown(capsysbinary, "a", "--as", "facts").splitlines()]
    assert [fact["n"] for fact in facts] == list(range(len(facts)))
    assert [fact["kind"] for fact in facts if fact["kind"] != "frame"] == ["received", "attempt", "finished"]


def test_archives_and_pages_are_had_too(acme: Upstream, capsysbinary: Captured) -> None:
    (entry,) = json.loads(shown(capsysbinary, "a", "--as", "har"))["log"]["entries"]
    assert entry["request"]["postData"]["text"].encode() == BODY
    assert shown(capsysbinary, "a", "--as", "html").startswith(b"<!doctype html>")


def test_without_a_form_a_person_gets_a_summary(acme: Upstream, capsysbinary: Captured) -> None:
    told = shown(capsysbinary, "a").decode()
    assert told.startswith("exchange  x_a1\n")
    assert "  Hello\n" in told


def test_what_was_never_sent_is_what_would_have_been(acme: Upstream, capsysbinary: Captured) -> None:
    assert main(["show", "b", "--as", "wire"]) == 0
    captured = capsysbinary.readouterr()
    assert captured.out == chat_body("never sent")
    assert b"it was not sent" in captured.err
    assert main(["show", "b", "--as", "curl"]) == 2


def test_facts_outlive_the_bodies(acme: Upstream, capsysbinary: Captured) -> None:
    first, *_ = shown(capsysbinary, "c", "--as", "facts").splitlines()
    assert json.loads(first)["kind"] == "received"
    assert main(["show", "c"]) == 2
    assert b"no longer holds" in capsysbinary.readouterr().err


def test_unknown_id_is_reported(acme: Upstream, capsysbinary: Captured) -> None:
    assert main(["show", "x_nope"]) == 2
    assert b"hint: `sightline traffic` lists them." in capsysbinary.readouterr().err


def test_a_request_is_shown_in_the_raw_schema(acme: Upstream, capsysbinary: Captured) -> None:
    document = json.loads(shown(capsysbinary, "x_a", "--as", "raw"))
    assert document["model"] == json.loads(BODY)["model"]
    words = json.loads(BODY)["messages"][0]["content"]
    assert document["messages"] == [{"role": 1, "content": [{"type": 1, "text": words}]}]


CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
AGENT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "before"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nb.txt"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/a.png"}}]},
    ],
    "tools": [{"type": "function", "function": {"name": "ls"}}],
}


def told(folder: Path, entries: list[object]) -> str:
    return "\n".join(summary_lines(asyncio.run(one(folder, entries))))


def test_the_last_turn_is_shown_and_what_stood_before_it_is_counted(tmp_path: Path) -> None:
    loss = Loss("", "a mark", "it has none", "option")
    client = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
    lines = told(
        tmp_path,
        exchange(
            "x_1", client, chat_stream("Hel\nlo \x1b[2J"), asked="anthropic", sent=json.dumps(AGENT).encode(),
            losses=(loss,), session="s", origin="x_0",
        ),
    )  # fmt: skip
    assert "exchange  x_1 (replays x_0)" in lines
    assert "provider  acme, asked in openai-chat" in lines
    assert "tokens    9 in, 2 out" in lines
    assert "time      1.50 s, first byte after 0.50 s" in lines
    assert "lost      (option) /: a mark: it has none" in lines
    assert "Asked (3 messages before it, 1 tool):\n  [result] a.txt\n  b.txt\n  [image]\n" in lines
    assert "Answered:\n  Hel\n  lo \\x1b[2J" in lines
    assert "before\n" not in lines


def test_a_failure_and_what_cannot_be_read_are_shown_as_such(tmp_path: Path) -> None:
    lines = told(tmp_path, exchange("x_1", b'{"messages":7}', [b"x"], end=failed(503)))
    assert "outcome   503 overloaded: busy" in lines
    assert "The request cannot be read: " in lines
    assert lines.endswith("Answered:\n  overloaded: busy")


def test_what_has_no_answer_yet_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    body = chat_body("x" * 3000)
    entries = [BodyEntry(sha256(body), body), *noted("x_1", [Received("openai-chat", "m", sha256(body))])]
    lines = told(tmp_path, entries)
    assert "provider  not sent" in lines
    assert "… (3,000 characters)" in lines


def test_thinking_and_calls_are_marked(tmp_path: Path) -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2ln"},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {}},
    ]
    reply = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content,
             "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    body = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
    frames = [json.dumps(reply).encode()]
    lines = told(tmp_path, exchange("x_1", body, frames, spoken="anthropic", stream=False))
    assert "Answered:\n  [thinking] hm\n  [thinking, signed]\n  [calls ls] {}" in lines
