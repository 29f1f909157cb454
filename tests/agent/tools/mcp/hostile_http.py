"""An HTTP server on loopback that answers MCP by hand, and wrongly on cue: each behaviour is a class."""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Service:
    """One that does everything right, with JSON answers and no stream of notices."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.was_cancelled = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method = line.split()[0].decode()
                headers: dict[str, str] = {}
                while (field := (await reader.readline()).strip()) != b"":
                    name, _, value = field.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                message = json.loads(body) if body else {}
                self.requests.append((method, headers, message))
                await self.answer(method, message, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, method: str, message: Any, writer: asyncio.StreamWriter) -> None:
        match method, message.get("method"):
            case "POST", "initialize":
                await self.greet(message, writer)
            case "POST", "tools/list":
                tools = [{"name": "go", "inputSchema": {"type": "object"}}]
                await self.json(writer, message, {"tools": tools})
            case "POST", "tools/call":
                await self.call(message, writer)
            case "POST", _:
                if message["method"] == "notifications/cancelled":
                    self.was_cancelled.set()
                await self.notice(message, writer)
            case "GET", _:
                await self.stream(writer)
            case _:
                await self.leave(writer)

    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        info = {"name": "hostile", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        await self.json(writer, message, result, "mcp-session-id: 1\r\n")

    async def call(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.json(writer, message, {"content": [{"type": "text", "text": "gone"}]})

    async def notice(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "202 Accepted", b"")

    async def stream(self, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "405 Method Not Allowed", b"")

    async def leave(self, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "200 OK", b"")

    async def json(self, writer: asyncio.StreamWriter, message: Any, result: Any, more: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        await self.send(writer, "200 OK", body, f"content-type: application/json\r\n{more}")

    async def send(self, writer: asyncio.StreamWriter, status: str, body: bytes, more: str = "") -> None:
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body)
        await writer.drain()


class WantsAKey(Service):
    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "401 Unauthorized", b"", 'www-authenticate: Bearer realm="a"\r\n')

    async def notice(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "401 Unauthorized", b"")


class Refuses(WantsAKey):
    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "403 Forbidden", b"no", "content-type: text/plain\r\n")

    notice = greet


class ShowsAPage(WantsAKey):
    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "200 OK", b"<html>hello</html>", "content-type: text/html; charset=utf-8\r\n")

    notice = greet


class IsBroken(WantsAKey):
    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "502 Bad Gateway", b"<html>", "content-type: text/html\r\n")

    notice = greet


class SendsAway(WantsAKey):
    """To another place, which must never hear of the headers."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "307 Temporary Redirect", b"", f"location: {self.place}\r\n")

    notice = greet


class SaysNothing(Service):
    async def greet(self, message: Any, writer: asyncio.StreamWriter) -> None:
        pass


class HangsAtTheCall(Service):
    """At the notice of a cancelled call, too, and when it is left."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    async def call(self, message: Any, writer: asyncio.StreamWriter) -> None:
        if message["params"]["arguments"].get("is_quick"):
            await super().call(message, writer)
        self.began.set()

    async def notice(self, message: Any, writer: asyncio.StreamWriter) -> None:
        if message["method"] == "notifications/initialized":
            await super().notice(message, writer)

    async def leave(self, writer: asyncio.StreamWriter) -> None:
        pass


class AnswersHugely(Service):
    async def call(self, message: Any, writer: asyncio.StreamWriter) -> None:
        how = message["params"]["arguments"].get("how", "json")
        text = "x" * 50_000_000
        body = json.dumps(
            {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}
        )
        if how == "packed":
            head = "content-type: application/json\r\ncontent-encoding: gzip\r\n"
            await self.send(writer, "200 OK", gzip.compress(body.encode(), 1), head)
        elif how == "stream":
            await self.send(writer, "200 OK", f"data: {body}\n\n".encode(), "content-type: text/event-stream\r\n")
        else:
            await self.send(writer, "200 OK", body.encode(), "content-type: application/json\r\n")


class BreaksOff(Service):
    async def call(self, message: Any, writer: asyncio.StreamWriter) -> None:
        match message["params"]["arguments"].get("how"):
            case "body":
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
                writer.write(head + b'{"jsonrpc":')
            case "stream":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {")
            case "nonsense":
                await self.send(writer, "200 OK", b"{]", "content-type: application/json\r\n")
                return
            case "status":
                await self.send(writer, "500 Internal Server Error", b"oh", "content-type: text/plain\r\n")
                return
            case "lost":
                await self.send(writer, "404 Not Found", b"", "content-type: text/plain\r\n")
                return
            case None:
                await super().call(message, writer)
                return
        await writer.drain()
        writer.close()


class ClosesItsStreams(Service):
    """And wants them to be opened again, at once and for ever: that of notices and those of answers."""

    async def call(self, message: Any, writer: asyncio.StreamWriter) -> None:
        await self.stream(writer)

    async def stream(self, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, "200 OK", b"id: 1\nretry: 0\ndata:\n\n", "content-type: text/event-stream\r\n")


@asynccontextmanager
async def listening(service: Service, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The service's address while it listens."""
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
