import asyncio

import msgspec
import pytest

from sightline.agent.core.output import ToolOutcome
from tests.agent.tools.mcp.stage import QUICK, hostile, listening, sdk, text, used, using

LAST = {"is_last": True}


def test_a_call_that_takes_too_long_is_cancelled_and_the_server_is_told() -> None:
    bounds = msgspec.structs.replace(QUICK, call_s=2)

    async def story() -> ToolOutcome:
        async with listening() as ear, using({"it": hostile("HangsAtTheCall", ear=ear)}, bounds) as tools:
            outcome = await used(tools, "it__go")
            assert await ear.word() == "cancelled"
            return outcome

    outcome = asyncio.run(story())
    assert outcome.is_error
    assert "did not answer within 2 seconds" in text(outcome)


@pytest.mark.parametrize("name", ["sdk__wait", "hostile__go"])
def test_whoever_is_cancelled_does_not_wait_for_the_server_to_hear_of_it(name: str) -> None:
    async def story() -> None:
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
                assert text(await used(tools, "sdk__add", a=1, b=2)) == "3"

    asyncio.run(story())


def test_a_server_that_dies_at_a_call_is_started_anew_for_the_next() -> None:
    async def story() -> None:
        async with using({"it": hostile("Dies"), "sdk": sdk()}) as tools:
            outcome = await used(tools, "it__go", **LAST)
            assert outcome.is_error
            assert "broke off while it worked: it ended with exit code 3. The next call starts it anew" in text(outcome)
            assert text(await used(tools, "sdk__add", a=1, b=2)) == "3"
            assert text(await used(tools, "it__go")) == "gone"
            assert tools.notes == ()

    asyncio.run(story())


def test_a_server_that_always_dies_is_not_started_for_ever() -> None:
    async def story() -> None:
        async with using({"it": hostile("Dies"), "sdk": sdk()}) as tools:
            for _ in range(1 + QUICK.restarts):
                assert "starts it anew" in text(await used(tools, "it__go", **LAST))
            outcome = await used(tools, "it__go")
            assert outcome.is_error
            assert text(outcome).startswith("the MCP server 'it' ended with exit code 3; it said: boom.")
            assert tools.notes == (text(outcome),)

    asyncio.run(story())


def test_calls_under_way_end_when_the_tools_are_closed() -> None:
    async def story() -> None:
        async with listening() as ear, using({"it": hostile("HangsAtTheCall", ear=ear)}) as tools:
            began = asyncio.Event()
            call = asyncio.get_running_loop().create_task(used(tools, "it__go", lambda _: began.set()))
            await began.wait()
            await tools.close()
            with pytest.raises(asyncio.CancelledError):
                await call
            outcome = await used(tools, "it__go")
            assert outcome.is_error
            assert "the MCP server 'it' " in text(outcome)

    asyncio.run(story())
