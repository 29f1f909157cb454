"""A forward proxy on loopback: CONNECT tunnels and absolute-form requests, with a password or a refusal if told so."""

import asyncio
import base64
import ssl
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

REFUSALS = {407: "Proxy Authentication Required", 502: "Bad Gateway", 503: "Service Unavailable"}


@dataclass
class ForwardProxy:
    """`asked` are the request lines so far, `headers` the header lines that came with each.

    `refuse` answers every request with that status; `login` is the `user:password` that it wants; `silent` never
    answers; `reach` is where every tunnel leads, whatever host was asked for; `says` replaces the answer to CONNECT.
    `came` is set by the first request.
    """

    tls: ssl.SSLContext | None = None
    login: str = ""
    refuse: int = 0
    silent: bool = False
    reach: tuple[str, int] | None = None
    says: bytes = b""
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self.came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server = await asyncio.start_server(self._welcome, "127.0.0.1", 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    @property
    def url(self) -> str:
        """Its URL as a variable of the environment would have it, with the login if there is one."""
        login = f"{self.login}@" if self.login else ""
        return f"{'https' if self.tls else 'http'}://{login}{'localhost' if self.tls else '127.0.0.1'}:{self.port}"

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._tasks.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = text.split("\r\n")[:-2]
        named = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
        self.asked.append(line)
        self.headers.append(named)
        self.came.set()
        if self.silent:
            await reader.read()
            return
        wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}" if self.login else None
        status = self.refuse or (407 if wanted and named.get("proxy-authorization") != wanted else 0)
        if status:
            writer.write(f"HTTP/1.1 {status} {REFUSALS[status]}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            await reader.read()
            return
        await self._forward(line, fields, reader, writer)

    async def _forward(
        self, line: str, fields: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, version = line.split(" ")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            address = self.reach or (host.strip("[]"), int(port))
            opening = b""
        else:
            parts = urlsplit(target)
            address = self.reach or (parts.hostname or "", parts.port or 80)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            kept = [each for each in fields if not each.lower().startswith("proxy-")]
            opening = "\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode("latin-1")
        there, back = await asyncio.open_connection(*address)
        self._writers.append(back)
        if method == "CONNECT":
            writer.write(self.says or b"HTTP/1.1 200 Connection established\r\n\r\n")
        back.write(opening)
        await _both_ways((reader, back), (there, writer))


async def _both_ways(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Pass bytes on until either side ends."""
    running = [asyncio.get_running_loop().create_task(_pass_on(*way)) for way in ways]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()
