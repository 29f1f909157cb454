"""`sightline context` on a record."""

import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.workbench.context import server_of
from tests.cli.recorded_folder import fill, stand_alone_in
from tests.recordings import exchange
from tests.store.traffic import NOON


def tool(name: str, words: int) -> dict[str, object]:
    function = {"name": name, "description": "word " * words, "parameters": {"type": "object", "properties": {}}}
    return {"type": "function", "function": function}


CALL = {"id": "c1", "type": "function", "function": {"name": "mcp__git__log", "arguments": "{}"}}
BODY = {
    "model": "m",
    "tools": [tool("mcp__git__log", 300), tool("mcp__git__show", 100), tool("Read", 50)],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "<system-reminder>today</system-reminder>"},
        {"role": "user", "content": "What happened?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "commit " * 200},
    ],
}


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)
    later = {**BODY, "messages": [{"role": "user", "content": "Other."}]}
    fill(
        tmp_path / "data",
        exchange("x_1", json.dumps(BODY).encode(), session="fix@shop"),
        exchange("x_2", json.dumps(later).encode(), session="other", at=NOON + 9),
    )


def test_tokens_are_told_by_kind_tool_and_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "fix@shop", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["exchange"] == "x_1"
    kinds = {row["name"]: row["tokens"] for row in shown["kinds"]}
    assert {"Tools", "Tool results", "System prompt", "Added by the client", "User", "Tool calls"} <= set(kinds)
    assert kinds["Tools"] > kinds["Tool results"] > kinds["User"]
    assert [(row["name"], row["count"]) for row in shown["servers"]] == [("git", 2)]
    assert shown["tools"][0]["name"] == "mcp__git__log"
    assert shown["tools"][0]["results"] == kinds["Tool results"]
    assert abs(sum(row["tokens"] for row in shown["tools"]) - kinds["Tools"]) <= 2


def test_without_a_session_the_latest_request_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context"]) == 0
    said = capsys.readouterr().out
    assert "session other" in said
    assert "MCP servers" in said


def test_results_in_one_message_are_those_of_their_own_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"c1": "Bash", "c2": "Read"}
    calls = [{"type": "tool_use", "id": call, "name": name, "input": {}} for call, name in names.items()]
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "line " * 300},
        {"type": "text", "text": "Go on, and tell me " + "all " * 100},
    ]
    body = {
        "model": "m",
        "max_tokens": 10,
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in names.values()],
        "messages": [
            {"role": "user", "content": "What is there?"},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ],
    }
    asked = exchange("x_4", json.dumps(body).encode(), spoken="anthropic", session="parallel", at=NOON + 20)
    fill(tmp_path / "data", asked)
    assert main(["context", "parallel", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    kinds = {row["name"]: row["tokens"] for row in shown["kinds"]}
    read = {row["name"]: row["results"] for row in shown["tools"]}
    assert read["Read"] > 20 * read["Bash"]
    assert sum(read.values()) == kinds["Tool results"]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_half_a_character_in_the_name_of_a_tool_can_be_printed(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = {"model": "m", "tools": [tool("odd\ud83d", 9)], "messages": [{"role": "user", "content": "hi"}]}
    fill(tmp_path / "data", exchange("x_3", json.dumps(half).encode(), session="half", at=NOON + 20))
    assert main(["context", "half", *words]) == 0
    assert "odd" in capsys.readouterr().out


def test_a_session_that_is_not_on_record_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", "nobody"]) == 2
    assert "no request of the session" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "client", "server"),
    [
        ("mcp__git__log", "codex_cli/1", "git"),
        ("mcp_git_log", "gemini-cli/1", "git"),
        ("git_log", "opencode/1.0", "git"),
        ("apply_patch", "opencode/1.0", ""),
        ("git_log", "claude-cli/2", ""),
        ("bash", "opencode/1.0", ""),
    ],
)
def test_a_tool_tells_its_server_as_its_agent_names_it(name: str, client: str, server: str) -> None:
    assert server_of(name, client) == server
