import asyncio
import json
from pathlib import Path

from sightline.cli.show import summary_lines
from sightline.model.exchange import Received
from sightline.model.report import Loss
from sightline.store.entries import BodyEntry
from tests.recordings import exchange, failed, one
from tests.store.traffic import chat_body, chat_stream, noted, sha256

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
    return "\n".join(summary_lines(asyncio.run(one(folder, entries))))  # type: ignore[arg-type]


def test_the_last_turn_is_shown_and_what_stood_before_it_is_counted(tmp_path: Path) -> None:
    loss = Loss("", "a mark", "it has none", "option")
    client = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}'
    lines = told(
        tmp_path,
        exchange(  # type: ignore[arg-type]
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
    lines = told(tmp_path, exchange("x_1", b'{"messages":7}', [b"x"], end=failed(503)))  # type: ignore[arg-type]
    assert "outcome   503 overloaded: busy" in lines
    assert "The request cannot be read: " in lines
    assert lines.endswith("Answered:\n  overloaded: busy")


def test_what_has_no_answer_yet_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    body = chat_body("x" * 3000)
    entries = [BodyEntry(sha256(body), body), *noted("x_1", [Received("openai-chat", "m", sha256(body))])]
    lines = told(tmp_path, entries)  # type: ignore[arg-type]
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
    lines = told(tmp_path, exchange("x_1", body, frames, spoken="anthropic", stream=False))  # type: ignore[arg-type]
    assert "Answered:\n  [thinking] hm\n  [thinking, sealed]\n  [calls ls] {}" in lines
