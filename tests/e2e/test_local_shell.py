"""A run with OpenAI's local shell, over HTTP: the call is run here, and the next request says what it printed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from tests.background import upstream_in_background
from tests.terminal_stage import PROGRAM
from tests.tool_desk import tool_desk
from tests.upstream import Play, says, streams

ACTION = {"type": "exec", "command": ["sh", "-c", "echo $WORD > made; cat made"], "env": {"WORD": "amber"}}
CALL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "status": "completed", "action": ACTION}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbA=="}
WORDS = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "It says amber.", "annotations": []}],
}


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def answers(*items: dict[str, Any], stream: bool) -> Play:
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "model": "codex-mini-latest",
        "status": "completed",
        "output": list(items),
        "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
    }
    if not stream:
        return says(reply)
    frames = [event("response.created", response={**reply, "status": "in_progress", "output": []})]
    for index, item in enumerate(items):
        frames.append(event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"}))
        frames.append(event("response.output_item.done", output_index=index, item=item))
    return streams(*frames, event("response.completed", response=reply))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_the_next_request_carries_the_call_and_what_it_printed(tmp_path: Path, stream: bool) -> None:
    with tool_desk(tmp_path) as desk, upstream_in_background() as upstream:
        config = f'[providers.openai]\nbase_url = "{upstream.url}/v1"\nkey_env = "OPENAI_API_KEY"\n'
        (tmp_path / "sightline.toml").write_text(config)
        upstream.script = [answers(REASONING, CALL, stream=stream), answers(WORDS, stream=stream)]
        options = ["-m", "openai/codex-mini-latest", "--builtin", "local_shell", "--yes", "--quiet"]
        done = subprocess.run(
            [*PROGRAM, "ask", *options, *([] if stream else ["--no-stream"]), "Go."],
            cwd=tmp_path, env={**desk.environment, "OPENAI_API_KEY": "sk-1"}, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "It says amber."), done.stderr
    assert (tmp_path / "made").read_text() == "amber\n"
    first, second = (seen.json() for seen in upstream.seen)
    assert first["tools"] == second["tools"] == [{"type": "local_shell"}]
    assert second["input"][: len(first["input"])] == first["input"]
    reasoning, call, result = second["input"][len(first["input"]) :]
    assert (reasoning, call) == (REASONING, CALL)
    assert (result["type"], result["call_id"]) == ("local_shell_call_output", "call_1")
    assert result["output"] == "amber\n[exit code 0]"
    TypeAdapter(list[ResponseInputItemParam]).validate_python([call, result])


def test_unapproved_call_is_not_run(tmp_path: Path) -> None:
    with tool_desk(tmp_path) as desk, upstream_in_background() as upstream:
        config = f'[providers.openai]\nbase_url = "{upstream.url}/v1"\nkey_env = "OPENAI_API_KEY"\n'
        (tmp_path / "sightline.toml").write_text(config)
        upstream.script = [answers(CALL, stream=True)]
        done = subprocess.run(
            [*PROGRAM, "ask", "-m", "openai/codex-mini-latest", "--builtin", "local_shell", "Go."],
            cwd=tmp_path, env={**desk.environment, "OPENAI_API_KEY": "sk-1"}, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    assert (done.returncode, upstream.seen) == (2, [])
    assert "approve calls of local_shell" in done.stderr
