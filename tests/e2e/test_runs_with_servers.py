"""Runs of `sightline ask` with MCP servers: a real one over both transports, and some that mean no good."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sightline.model.parts import ToolCall
from tests.agent.tools.mcp.stage import SDK_SERVER, hostile, sdk
from tests.loop_stage import calls, says
from tests.running_stage import plays
from tests.terminal_stage import CTRL_C, PROGRAM, seated
from tests.tool_desk import ToolDesk, tool_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ToolDesk]:
    with tool_desk(tmp_path) as made:
        yield made


def servers(desk: ToolDesk, **named: object) -> None:
    (desk.folder / "mcp.json").write_text(json.dumps({"mcpServers": named}))


def ran(desk: ToolDesk, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [*PROGRAM, "ask", "--mcp", "mcp.json", "--yes", *words, "Do it."]
    return subprocess.run(
        command, cwd=desk.folder, env=desk.environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def told(desk: ToolDesk, number: int) -> list[str]:
    """What the model was told of its calls in a request."""
    return [each["content"] for each in desk.upstream.seen[number].json()["messages"] if each["role"] == "tool"]


@contextmanager
def over_http() -> Iterator[str]:
    with subprocess.Popen([sys.executable, SDK_SERVER, "http"], stdout=subprocess.PIPE) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def test_a_real_server_is_used_over_both_transports(desk: ToolDesk) -> None:
    both = [ToolCall(f"c{n}", f"{name}__add", '{"a": "2", "b": 3}') for n, name in enumerate(("pipes", "web"))]
    failing = ToolCall("c3", "pipes__fail", "{}")
    desk.upstream.script = [plays(calls(*both, failing)), plays(says("Both say 5."))]
    with over_http() as url:
        servers(desk, pipes=sdk(), web={"url": url})
        done = ran(desk)
    assert (done.returncode, done.stdout) == (0, "Both say 5."), done.stderr
    two, web, failed = told(desk, 1)
    assert (two, web) == ("5", "5")
    assert "there is nothing to be had" in failed
    assert "← pipes__fail (error): " in done.stderr


def test_servers_that_mean_no_good_cost_the_run_one_call_each(desk: ToolDesk) -> None:
    bad = {"huge": "AnswersHugely", "nonsense": "AnswersNonsense", "dying": "Dies"}
    servers(desk, **{name: hostile(how) for name, how in bad.items()}, good=sdk())
    first = [ToolCall(f"a_{name}", f"{name}__go", '{"is_last": true}') for name in bad]
    again = [ToolCall(f"b_{name}", f"{name}__go", '{"is_last": true}') for name in bad]
    desk.upstream.script = [
        plays(calls(*first, ToolCall("c", "good__add", '{"a": 1, "b": 1}'))),
        plays(calls(*again)),
        plays(says("Well.")),
    ]
    done = ran(desk)
    assert (done.returncode, done.stdout) == (0, "Well."), done.stderr
    results = told(desk, 2)
    assert results.pop(len(bad)) == "2"
    assert len(results) == 2 * len(bad)
    assert all(len(each) < 1000 for each in results)
    assert len(desk.upstream.seen[2].body) < 20_000
    for name in bad:
        assert done.stderr.count(f"← {name}__go (error): ") == 2


def test_server_with_invalid_tools_is_noted_and_the_others_are_used(desk: ToolDesk) -> None:
    servers(desk, bad=hostile("Lies"), good=sdk())
    desk.upstream.script = [plays(calls(ToolCall("c1", "good__add", '{"a": 1, "b": 1}'))), plays(says("2"))]
    done = ran(desk)
    assert (done.returncode, done.stdout) == (0, "2"), done.stderr
    assert "note: the MCP server 'bad': its tool" in done.stderr
    names = [tool["function"]["name"] for tool in desk.upstream.seen[0].json()["tools"]]
    assert {"bad__good", "good__add"} <= set(names)


def test_hanging_server_does_not_delay_stopping(desk: ToolDesk) -> None:
    servers(desk, it=hostile("IsStubborn"), other=hostile("HangsAtTheCall"))
    desk.upstream.script = [plays(calls(ToolCall("c1", "other__go", "{}")))]
    with seated(["ask", "--mcp", "mcp.json", "--yes", "Wait."], desk.folder, desk.environment) as seat:
        seat.until("→ other__go {}")
        seat.type(CTRL_C)
        seat.until("stopping after this step")
        seat.type(CTRL_C)
        assert seat.ended() == 130
    assert "sightline resume r_" in seat.shown
