"""Real servers, written with the official SDK, over both transports."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Toolbox, ToolOutcome, words_of
from sightline.agent.tools.mcp.mcp_tools import McpTools
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Image, Text
from tests.agent.tools.mcp.stage import (
    QUICK,
    Ear,
    hostile,
    listening,
    names,
    quiet,
    sdk,
    sdk_over_http,
    used,
    using,
)

WAYS = ["stdio", "http", "http json"]


@asynccontextmanager
async def real(way: str) -> AsyncIterator[tuple[McpTools, Ear]]:
    async with listening() as ear:
        if way == "stdio":
            async with using({"sdk": sdk(ear)}) as tools:
                yield tools, ear
        else:
            async with sdk_over_http(*way.split()[1:], ear=ear) as url, using({"sdk": {"url": url}}) as tools:
                yield tools, ear


@pytest.mark.parametrize("way", WAYS)
async def test_a_real_server_is_used(way: str) -> None:
    async with real(way) as (tools, _):
        Toolbox(tools.definitions).check()
        add = tools.definitions[0]
        assert (add.name, add.description, add.is_parallel) == ("sdk__add", "Add two numbers.", True)
        assert add.schema
        assert add.schema["required"] == ["a", "b"]
        assert not tools.definitions[1].is_parallel
        assert await used(tools, "sdk__add", a=1, b=2) == ToolOutcome((Text("3"),))
        failed = await used(tools, "sdk__fail")
        assert failed.is_error
        assert "there is nothing to be had" in words_of(failed)
        everything = await used(tools, "sdk__everything")
        assert [type(part) for part in everything.parts] == [Text, Image, Audio, Text, Text, Text]
        assert everything.structured == {"n": 1}
        assert tools.notes == ()


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_progress_is_reported_during_the_call(way: str) -> None:
    told: list[str] = []
    async with real(way) as (tools, _):
        found = await used(tools, "sdk__count", told.append, to=3)
    assert words_of(found) == "counted to 3"
    assert told == ["counting [2J (1 of 3)"]


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_cancelled_call_is_cancelled_over_there(way: str) -> None:
    async with real(way) as (tools, ear):
        began = asyncio.Event()
        call = asyncio.get_running_loop().create_task(used(tools, "sdk__wait", lambda _: began.set()))
        await began.wait()
        call.cancel()
        assert await ear.word() == "cancelled"
        assert words_of(await used(tools, "sdk__add", a=2, b=2)) == "4"


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_list_that_changes_is_read_again(way: str) -> None:
    async with real(way) as (tools, _):
        before = names(tools)
        assert not tools.changed.is_set()
        assert words_of(await used(tools, "sdk__grow")) == "grown"
        await tools.changed.wait()
        assert names(tools) == [*before, "sdk__more"]
        assert words_of(await used(tools, "sdk__more", a=1, b=1)) == "2"


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_server_that_asks_for_more_is_refused(way: str) -> None:
    async with real(way) as (tools, _):
        found = words_of(await used(tools, "sdk__think"))
    assert found == "Sampling not supported; Elicitation not supported; List roots not supported"


async def test_calls_run_beside_each_other() -> None:
    async with using({"it": sdk()}) as tools:
        found = await asyncio.gather(*(used(tools, "it__add", a=n, b=n) for n in range(20)))
    assert [words_of(outcome) for outcome in found] == [str(2 * n) for n in range(20)]


async def test_what_a_server_changes_during_a_run_is_met_here() -> None:
    async with using({"it": hostile("Changes")}) as tools:
        assert names(tools) == ["it__change", "it__go", "it__stay"]
        assert words_of(await used(tools, "it__change")) == "gone"
        await tools.changed.wait()
        gone = await used(tools, "it__go")
        assert gone.is_error
        assert words_of(gone).startswith(
            "The MCP server 'it' has no tool 'go' any more. Tools that can be called: it__goes"
        )
        other = await used(tools, "it__stay")
        assert other.is_error
        assert "'a' is a required property" in words_of(other)
        assert 'What it takes now: {"type":"object"' in words_of(other)
        assert words_of(await used(tools, "it__stay", a=1)) == "gone"


async def test_unknown_tool_error_lists_the_available_tools() -> None:
    async with using({"it": hostile("Server")}) as tools:
        assert words_of(await used(tools, "it__goo")) == "There is no tool 'it__goo'. Tools that can be called: it__go."
        words: Any = await tools.use(RunnableCall(key="k", id="i", name="it__go", arguments="words"), quiet)
        assert words.is_error


async def test_one_broken_server_does_not_take_the_others_along() -> None:
    servers = {
        "dead": hostile("DiesAtOnce"),
        "good": hostile("Server"),
        "none": {"command": "no-such-program-here"},
        "away": {"url": "http://127.0.0.1:1/mcp"},
    }

    async with using(servers) as tools:
        assert names(tools) == ["good__go"]
        assert [note.partition("; ")[0].partition(". ")[0] for note in tools.notes] == [
            "the MCP server 'dead' ended with exit code 7",
            "the MCP server 'none' has a `command` that is not found",
            "the MCP server 'away' cannot be reached: All connection attempts failed",
        ]
        assert words_of(await used(tools, "good__go")) == "gone"


async def test_if_no_server_can_be_used_that_is_a_fault() -> None:
    with pytest.raises(Fault, match="'one' has a `command` that is not found; the MCP server 'two' ended") as raised:
        async with using({"one": {"command": "no-such-program-here"}, "two": hostile("DiesAtOnce")}):
            pass
    assert raised.value.code is Code.CONFIG


async def test_servers_with_the_same_tools_have_tools_of_different_names() -> None:
    async with using({"a b": hostile("Server"), "a.b": hostile("Server"), "a_b": hostile("Server")}) as tools:
        found = names(tools)
        assert found[2] == "a_b__go"  # whose own name it is, though it comes last
        assert len(set(found)) == 3
        assert [words_of(await used(tools, name)) for name in found] == ["gone"] * 3


LAST = {"is_last": True}


async def test_timed_out_call_is_cancelled_on_the_server() -> None:
    bounds = msgspec.structs.replace(QUICK, call_s=2)
    async with listening() as ear, using({"it": hostile("HangsAtTheCall", ear=ear)}, bounds) as tools:
        outcome = await used(tools, "it__go")
        assert await ear.word() == "cancelled"
    assert outcome.is_error
    assert "did not answer within 2 seconds" in words_of(outcome)


@pytest.mark.parametrize("name", ["sdk__wait", "hostile__go"])
async def test_cancelled_call_does_not_wait_for_the_server_acknowledgement(name: str) -> None:
    async with listening() as ear:
        servers = {"sdk": sdk(ear), "hostile": hostile("HangsAtTheCall", ear=ear)}
        async with using(servers) as tools:
            began = asyncio.Event()
            call = asyncio.get_running_loop().create_task(used(tools, name, lambda _: began.set()))
            await began.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await ear.word() == "cancelled"
            assert words_of(await used(tools, "sdk__add", a=1, b=2)) == "3"


async def test_a_server_that_dies_at_a_call_is_started_anew_for_the_next() -> None:
    async with using({"it": hostile("Dies"), "sdk": sdk()}) as tools:
        outcome = await used(tools, "it__go", **LAST)
        assert outcome.is_error
        assert "broke off while it worked: it ended with exit code 3. The next call starts it anew" in words_of(outcome)
        assert words_of(await used(tools, "sdk__add", a=1, b=2)) == "3"
        assert words_of(await used(tools, "it__go")) == "gone"
        assert tools.notes == ()


async def test_a_call_waits_for_a_server_whose_new_start_an_abandoned_call_began() -> None:
    async with listening() as ear, using({"it": hostile("DiesAndStartsSlowly", ear=ear)}) as tools:
        gate = Path(ear.path).with_name("gate")
        os.mkfifo(gate)
        await used(tools, "it__go", **LAST)
        abandoned = asyncio.get_running_loop().create_task(used(tools, "it__go"))
        assert await ear.word() == "starting"
        abandoned.cancel()
        with pytest.raises(asyncio.CancelledError):
            await abandoned
        call = asyncio.get_running_loop().create_task(used(tools, "it__go"))
        await asyncio.to_thread(gate.write_text, "")
        assert words_of(await call) == "gone"


async def test_a_server_that_always_dies_is_not_started_for_ever() -> None:
    async with using({"it": hostile("Dies"), "sdk": sdk()}) as tools:
        for _ in range(1 + QUICK.restarts):
            assert "starts it anew" in words_of(await used(tools, "it__go", **LAST))
        outcome = await used(tools, "it__go")
        assert outcome.is_error
        assert words_of(outcome).startswith("the MCP server 'it' ended with exit code 3; it said: boom.")
        assert tools.notes == (words_of(outcome),)


async def test_calls_under_way_end_when_the_tools_are_closed() -> None:
    async with listening() as ear, using({"it": hostile("HangsAtTheCall", ear=ear)}) as tools:
        began = asyncio.Event()
        call = asyncio.get_running_loop().create_task(used(tools, "it__go", lambda _: began.set()))
        await began.wait()
        await tools.close()
        with pytest.raises(asyncio.CancelledError):
            await call
        outcome = await used(tools, "it__go")
        assert outcome.is_error
        assert "the MCP server 'it' " in words_of(outcome)
