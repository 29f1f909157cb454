import asyncio
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from sightline.agent.tools.mcp.message_filter import Sieve, SievedRead, SievedWrite


def notice(method: str, **params: Any) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


def question(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))


ANSWER = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))


def test_notices_that_nobody_reads_are_held_back() -> None:
    sieve = Sieve(1)
    assert sieve.passes(notice("notifications/tools/list_changed"))
    assert not sieve.passes(notice("notifications/message", level="info", data=""))
    assert not sieve.passes(notice("notifications/resources/updated", uri="a:"))
    assert not sieve.passes(ValueError("a line that is no message"))
    assert sieve.passes(ANSWER)


@pytest.mark.parametrize("progress", [10**400, "much", None, [1], float("nan"), float("inf"), -(10**16)])
def test_progress_that_is_no_number_is_held_back(progress: object) -> None:
    assert not Sieve(1).passes(notice("notifications/progress", progressToken=1, progress=progress))
    assert not Sieve(1).passes(notice("notifications/progress", progressToken=1, progress=1, total=progress))
    assert Sieve(1).passes(notice("notifications/progress", progressToken=1, progress=1, total=2.5))


def test_questions_wait_for_no_more_answers_than_are_borne() -> None:
    sieve = Sieve(2)
    assert [sieve.passes(question(number)) for number in range(3)] == [True, True, False]
    sieve.count_answer(question(9))  # our own question is no answer
    assert not sieve.passes(question(3))
    sieve.count_answer(ANSWER)
    sieve.count_answer(SessionMessage(JSONRPCError(jsonrpc="2.0", id=2, error={"code": 1, "message": ""})))
    assert [sieve.passes(question(number)) for number in range(3)] == [True, True, False]


def test_streams_pass_through_the_sieve() -> None:
    async def story() -> None:
        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](9)
        write, out = anyio.create_memory_object_stream[SessionMessage](9)
        sieve = Sieve(1)
        sieved, writing = SievedRead(read, sieve), SievedWrite(write, sieve)
        for item in (notice("notifications/message"), question(1), question(2), ANSWER, notice("x"), ANSWER):
            into.send_nowait(item)
        into.close()
        async with sieved, writing:
            assert await sieved.receive() == question(1)
            await writing.send(ANSWER)
            assert [item async for item in sieved] == [question(2), ANSWER, ANSWER]
            assert sieved.last_context is None
        assert out.receive_nowait() == ANSWER
        out.close()

    asyncio.run(story())
