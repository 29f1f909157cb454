"""A server on loopback in front of the relay of a stage, and a client that speaks bytes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from sightline.exchange.direct import DirectExchange, DirectLane
from sightline.gateway.gateway import Gateway
from sightline.model.exchange import Fact
from sightline.server.listener import ListeningServer, bind_sockets
from sightline.web.asgi import DirectClient
from tests.relay_stage import PATHS, REQUESTS, Stage, open_stage
from tests.upstream import Play, head, pieces

REPLIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10},
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m-1",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hello", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 8, "output_tokens": 2, "total_tokens": 10},
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2, "totalTokenCount": 10},
        "modelVersion": "m-1",
    },
}
JSON = [("Content-Type", "application/json")]
_OWN = re.compile(rb"x_[0-9]{4}")


def at_once(body: bytes, headers: Sequence[tuple[str, str]] = JSON, status: int = 200) -> Play:
    """A whole answer in one piece, as a provider's short ones come."""
    return pieces(head(status, headers, framing=str(len(body))) + body)


def reply_of(spoken: str, **more: Any) -> bytes:
    return json.dumps({**REPLIES[spoken], **more}).encode()


class DirectStage:
    """`direct` are the exchanges that were begun directly, `taken` those of them whose response was taken so."""

    def __init__(self, stage: Stage, listening: ListeningServer, port: int, spoken: str) -> None:
        self.stage = stage
        self.listening = listening
        self.port = port
        self.direct: list[DirectExchange] = []
        self.taken: list[DirectExchange] = []
        self.warm_reply = reply_of(spoken)
        self._spoken = spoken
        self._numbers = count(1)

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    def request(self, **more: Any) -> bytes:
        """The bytes of a request; no two have the same body, and all have the same head but for its length."""
        document = {**REQUESTS[self._spoken], "user": f"number {next(self._numbers):05}", **more}
        body = json.dumps(document).encode()
        lines = (
            f"POST {PATHS[self._spoken]} HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer sk-of-the-client-99",
            "User-Agent: story/1", "X-Claude-Code-Session-Id: s-1", f"Content-Length: {len(body)}", "", "",
        )  # fmt: skip
        return "\r\n".join(lines).encode() + body

    async def read_response(self) -> bytes:
        """The next response, with what differs from run to run made equal."""
        said = await self.reader.readuntil(b"\r\n\r\n")
        if found := re.search(rb"content-length: (\d+)", said):
            body = await self.reader.readexactly(int(found[1]))
        elif b"transfer-encoding: chunked" in said:
            body = await self._read_chunks()
        else:
            body = await self.reader.read()
        return _OWN.sub(b"x", said + body)

    async def _read_chunks(self) -> bytes:
        """A body in chunks, whatever their sizes; `<cut>` where it does not end."""
        body = b""
        try:
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
        except asyncio.IncompleteReadError:
            return body + b"<cut>"
        return body

    async def ask(self, **more: Any) -> bytes:
        self.writer.write(self.request(**more))
        response = await self.read_response()
        await self.stage.relay.wait_until_learned()  # what is estimated next rests on it
        return response

    async def warm_up(self) -> None:
        """Ask until the head, the route and the shape of the answers are known."""
        self.stage.upstream.script = [at_once(self.warm_reply)]
        for _ in range(4):
            await self.ask()

    def facts(self) -> list[Fact]:
        """The facts of the latest exchange."""
        latest = max(each.exchange for each in self.stage.entries if hasattr(each, "exchange"))
        return self.stage.facts(latest)


@asynccontextmanager
async def open_direct_stage(
    folder: Path, spoken: str = "openai-chat", *, is_direct: bool = True, **settings: Any
) -> AsyncIterator[DirectStage]:
    """A stage with a server. Without `is_direct` a task serves every request."""
    ids = count(1)
    async with open_stage(folder, spoken, **settings) as stage:
        relay = stage.relay
        relay.make_id = lambda: f"x_{next(ids):04}"
        if not is_direct:
            relay.holds.stay_ready()
        gateway = Gateway(relay, relay.catalog, lambda _provider: True, stage.clock.monotonic)
        sockets = bind_sockets("127.0.0.1", 0)

        async def ending() -> None:
            await relay.close(0)

        listening = ListeningServer(gateway.serve, ending=ending, heeds_signals=False, begin=gateway.begin)
        serving = asyncio.create_task(listening.run_on(sockets))
        await asyncio.sleep(0)
        opened = DirectStage(stage, listening, sockets[0].getsockname()[1], spoken)
        begin, take_whole = DirectLane.begin, DirectExchange.take_whole

        def count_begun(lane: DirectLane, body: bytes, received: float, client: DirectClient) -> DirectExchange | None:
            begun = begin(lane, body, received, client)
            if begun is not None:
                opened.direct.append(begun)
            return begun

        def count_taken(exchange: DirectExchange, *answer: Any) -> bool:
            is_taken = take_whole(exchange, *answer)
            if is_taken:
                opened.taken.append(exchange)
            return is_taken

        DirectLane.begin = count_begun  # type: ignore[method-assign]
        DirectExchange.take_whole = count_taken  # type: ignore[method-assign]
        try:
            await opened.connect()
            yield opened
            opened.writer.close()
        finally:
            DirectLane.begin, DirectExchange.take_whole = begin, take_whole  # type: ignore[method-assign]
            listening.end()
            await serving
