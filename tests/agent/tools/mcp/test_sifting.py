import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from sightline.agent.tools.mcp.connection import Sifting


async def nobody(*_: object) -> Any:
    return {}


def test_lists_are_sifted_and_nothing_else() -> None:
    async def story() -> list[Mapping[str, Any]]:
        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, out = anyio.create_memory_object_stream[SessionMessage](0)

        async def answer() -> None:
            async for each in out:
                assert isinstance(each.message, JSONRPCRequest)
                reply = JSONRPCResponse(jsonrpc="2.0", id=each.message.id, result={"tools": [1, 2]})
                await into.send(SessionMessage(reply))

        dispatcher = Sifting(read, write, lambda raw: {"tools": raw["tools"][:1]})
        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            await group.start(dispatcher.run, nobody, nobody)
            found = [await dispatcher.send_raw_request(method, None) for method in ("tools/list", "tools/other")]
            group.cancel_scope.cancel()
        for stream in (into, read, write, out):
            stream.close()
        return found

    assert asyncio.run(story()) == [{"tools": [1]}, {"tools": [1, 2]}]
