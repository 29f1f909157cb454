import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from sightline.agent.core.tool import words_of
from sightline.agent.tools.mcp.config import CommandServer, McpContext, ServerLimits
from sightline.agent.tools.mcp.links import END, LineSplitter, McpLink, Overlong, open_pipes
from sightline.errors import Code, Fault
from tests.agent.tools.mcp.stage import hostile, listening, names, sdk, used, using
from tests.agent.tools.processes import is_gone


def test_lines_come_whole_whatever_the_bytes_come_in() -> None:
    lines = LineSplitter(100)
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\n\n  \r\ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"ee\n") == [b"three"]


def test_of_a_line_that_is_too_long_the_ends_are_kept() -> None:
    lines = LineSplitter(2000)
    found = []
    for _ in range(1000):
        found += lines.feed(b"x" * 5000)
    found += lines.feed(b"end\nshort\n")
    assert found == [Overlong(b"x" * END, b"x" * (END - 3) + b"end", 5_000_003), b"short"]


@given(st.lists(st.binary()), st.integers(1, 50))
def test_nothing_is_lost_and_nothing_is_kept_too_long(chunks: list[bytes], most: int) -> None:
    lines = LineSplitter(most)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    wanted = [line for line in b"".join(chunks).split(b"\n")[:-1] if line.strip() or len(line) > most]
    assert len(found) == len(wanted)
    for got, line in zip(found, wanted, strict=True):
        assert got == (line if len(line) <= most else Overlong(line[:END], line[END:][-END:], len(line)))


ENVIRONMENT = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-1"}
CONTEXT = McpContext(ENVIRONMENT, ServerLimits(close_s=1, message=10_000))
QUESTION = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))


def python(script: str) -> CommandServer:
    return CommandServer((sys.executable, "-c", script), {}, Path())


async def heard(link: McpLink) -> list[dict[str, Any]]:
    return [item.message.model_dump() async for item in link.read if isinstance(item, SessionMessage)]


def said_by(script: str) -> tuple[list[dict[str, Any]], Fault | None, str]:
    async def story() -> tuple[list[dict[str, Any]], Fault | None, str]:
        async with open_pipes(python(script), CONTEXT) as link:
            await link.write.send(QUESTION)
            found = await heard(link)
            await link.ended.wait()
            return found, link.why(), link.words()

    return asyncio.run(story())


def test_a_line_is_a_message() -> None:
    found, why, words = said_by("print(input().replace('ping', 'pong'))")
    assert [message["method"] for message in found] == ["pong"]
    assert (why and why.message, words) == ("ended with exit code 0", "")


def test_what_is_no_message_is_remembered_and_not_handed_on() -> None:
    found, why, words = said_by("input(); print('hello'); print('[1]'); exit(3)")
    assert (found, words) == ([], "hello")
    assert why
    assert (why.code, why.message) == (Code.UPSTREAM_ERROR, "ended with exit code 3")


def test_the_last_complaint_says_why() -> None:
    _, why, words = said_by("import os, sys; input(); print('a\\nb\\n\\n', file=sys.stderr, flush=True); os.abort()")
    assert (why and why.message, words) == ("ended with signal 6", "b")


@pytest.mark.parametrize(
    "line",
    [
        """'{"jsonrpc": "2.0", "id": 7, "result": {"a": "' + 'x' * 20_000 + '"}}'""",
        """'{"result": {"a": "' + 'x' * 20_000 + '"}, "id": 7, "jsonrpc": "2.0"}'""",
        """'{"jsonrpc": "2.0", "id": 7, "result": {"a": ' + '[' * 2_000 + ']' * 2_000 + '}}'""",
        """'{"jsonrpc": "2.0", "id": 7, "error": "no such thing"}'""",
        """'{"jsonrpc": "2.0", "id": 7, "error": {"code": "none", "message": "no such thing"}}'""",
        """'{"jsonrpc": "2.0", "id": 7}'""",
    ],
)
def test_an_answer_that_cannot_be_taken_is_answered_in_its_place(line: str) -> None:
    [message], *_ = said_by(f"input(); print({line})")
    assert message["id"] == 7
    assert "error" in message


def test_overlong_line_that_is_no_message_terminates_the_server() -> None:
    found, why, _ = said_by("input(); print('x' * 20_000, flush=True); input()")
    assert found == []
    assert why
    assert "was ended, because it wrote a message of" in why.message


async def test_a_server_that_does_not_read_is_ended() -> None:
    async with open_pipes(python("import signal; signal.pause()"), CONTEXT) as link:
        long = JSONRPCRequest(jsonrpc="2.0", id=1, method="x" * 200_000)
        await link.write.send(SessionMessage(long))
        await link.ended.wait()
        fault = link.why()
        found = fault.message if fault else ""
    assert found == "was ended, because it does not read its input"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (CommandServer(("no-such-program-here",), {}, Path()), "has a `command` that is not found"),
        (CommandServer((sys.executable,), {}, Path("/no/such/folder")), "has a `cwd` that is no folder"),
        (CommandServer((str(Path(__file__)),), {}, Path()), "cannot be started: Permission denied"),
    ],
)
async def test_a_command_that_cannot_be_started_is_a_fault(command: CommandServer, words: str) -> None:
    with pytest.raises(Fault) as raised:
        async with open_pipes(command, CONTEXT):
            pass
    assert raised.value.message == words
    assert raised.value.hint


async def test_a_server_gets_what_its_configuration_names_and_what_any_program_needs() -> None:
    servers = {"it": sdk(env={"MINE": "${OPENAI_API_KEY}"})}
    secrets = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "LANG": "C.UTF-8"}
    async with using(servers, environment=secrets) as tools:
        found = (await used(tools, "it__environment")).structured or {}
    assert found["MINE"] == "sk-1"
    assert found["LANG"] == "C.UTF-8"
    assert not {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} & set(found)


async def test_servers_and_what_they_started_are_gone_when_closed() -> None:
    async with using({"it": sdk(), "other": hostile("IsStubborn")}) as tools:
        bred = words_of(await used(tools, "it__breed"))
        stubborn = words_of(await used(tools, "other__go"))
        pids = [int(word) for word in f"{bred} {stubborn}".split()]
        assert not any(is_gone(pid) for pid in pids)
    assert all(is_gone(pid) for pid in pids)


async def test_a_server_is_gone_when_its_opening_is_cancelled(tmp_path: Path) -> None:
    async with listening() as ear:
        script = (
            "import os, socket, signal\n"
            "line = socket.socket(socket.AF_UNIX)\n"
            "line.connect(os.environ['TELL'])\n"
            "line.sendall(f'{os.getpid()}\\n'.encode())\n"
            "line.close()\n"
            "signal.pause()\n"
        )
        server = {"command": sys.executable, "args": ["-c", script], "env": {"TELL": ear.path}}

        async def open_it() -> None:
            async with using({"it": server}):
                raise AssertionError("it says nothing, so it cannot be open")

        task = asyncio.get_running_loop().create_task(open_it())
        pid = int(await ear.word())
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        found = pid
    assert is_gone(found)


async def test_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps({}))
    server = hostile("Server")
    async with using({"it": {**server, "cwd": str(tmp_path)}}) as tools:
        found = names(tools)
    assert found == ["it__go"]
