"""A provider on loopback that answers by a script, and misbehaves on cue.

`async with Upstream() as upstream:` listens in the running loop. Each request plays the next step of its `script`; the
last step is played again and again. A step is made by a function below, or is any coroutine that takes a `Talk`:

    upstream.script = [answer(429, b"{}", [("Retry-After", "1")]), pieces(head(), chunk(b"a"), gate, chunk(b"b"), LAST)]

Nothing here waits for time: a piece waits for an `asyncio.Event`, and a stall ends when the client hangs up.
"""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from sightline.transport.http.connection import abort

Headers = Iterable[tuple[str, str]]
Ending = Literal["reset", "eof"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came. `connection` counts the connections of this upstream from 0."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int

    def header(self, name: str) -> str:
        """The first value of a header, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class HungUpError(Exception):
    """The client left while its request was being read or answered."""


class Talk(asyncio.Protocol):
    """One connection: what came, and ways to say something."""

    def __init__(self, upstream: "Upstream") -> None:
        self.upstream = upstream
        self.number = -1
        self.gone = asyncio.Event()
        self.transport: asyncio.Transport
        self._came = bytearray()
        self._more = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.upstream.welcome(self)

    def data_received(self, data: bytes) -> None:
        self._came += data
        self._more.set()

    def eof_received(self) -> None:
        self._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._hang_up()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _hang_up(self) -> None:
        self.gone.set()
        self._more.set()
        self._writable.set()

    # --- hearing ---

    async def read_until(self, mark: bytes) -> bytes:
        """What came up to and with the mark."""
        while mark not in self._came:
            await self._hear()
        end = self._came.index(mark) + len(mark)
        return self._take(end)

    async def read_exactly(self, size: int) -> bytes:
        """That many bytes."""
        while len(self._came) < size:
            await self._hear()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._came[:size])
        del self._came[:size]
        return taken

    async def _hear(self) -> None:
        if self.gone.is_set():
            raise HungUpError
        self._more.clear()
        await self._more.wait()

    # --- saying ---

    async def say(self, data: bytes) -> None:
        """Write, and wait while the client does not read."""
        if self.gone.is_set():
            raise HungUpError
        self.transport.write(data)
        await self._writable.wait()

    async def drip(self, data: bytes) -> None:
        """Write byte by byte, each in a turn of the loop of its own."""
        for byte in data:
            await self.say(bytes([byte]))
            await asyncio.sleep(0)

    async def stall(self) -> None:
        """Say nothing until the client hangs up."""
        await self.gone.wait()

    def end(self, how: Ending = "eof") -> None:
        """Hang up: what was written arrives first after an `eof`; a `reset` is at once."""
        if how == "eof":
            self.transport.close()
            return
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        abort(self.transport)


Play = Callable[[Talk], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Early:
    """A step that is played before the request's body is read."""

    play: Play


Step = Play | Early


@dataclass
class Upstream:
    """`seen` are the requests so far, `connections` all connections that were ever opened."""

    script: list[Step] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    seen: list[Seen] = field(default_factory=list)
    connections: list[Talk] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Event()
        self._played = 0
        self._server = await self._loop.create_server(lambda: Talk(self), self.host, 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for talk in self.connections:
            abort(talk.transport)
        for talk in self.connections:
            await talk.gone.wait()
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        failures = [each for each in results if isinstance(each, Exception)]
        if failures:
            raise failures[0]

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    async def gone(self, connection: int = 0) -> None:
        """Wait until the client has closed its side of a connection."""
        await self.arrived(connection + 1, of=self.connections)
        await self.connections[connection].gone.wait()

    async def arrived(self, count: int, *, of: list[Any] | None = None) -> None:
        """Wait until that many requests (or connections) have come."""
        awaited = self.seen if of is None else of
        while len(awaited) < count:
            self._arrived.clear()
            await self._arrived.wait()

    def welcome(self, talk: Talk) -> None:
        """Start to serve a connection."""
        talk.number = len(self.connections)
        self.connections.append(talk)
        self._arrived.set()
        self._tasks.add(self._loop.create_task(self._serve(talk)))

    async def _serve(self, talk: Talk) -> None:
        try:
            while True:
                await self._serve_one(talk)
        except HungUpError:
            pass
        finally:
            talk.transport.close()

    async def _serve_one(self, talk: Talk) -> None:
        line, *fields = (await talk.read_until(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        method, target, _version = line.split(" ")
        headers = tuple((name, value.strip()) for name, _, value in (each.partition(":") for each in fields))
        sizes = [int(value) for name, value in headers if name.lower() == "content-length"]
        step = self.script[min(self._played, len(self.script) - 1)]
        self._played += 1
        if isinstance(step, Early):
            body = b""
        elif ("transfer-encoding", "chunked") in {(name.lower(), value) for name, value in headers}:
            body = await self._read_chunks(talk)
        else:
            body = await talk.read_exactly(sum(sizes))
        self.seen.append(Seen(method, target, headers, body, talk.number))
        self._arrived.set()
        await (step.play if isinstance(step, Early) else step)(talk)

    @staticmethod
    async def _read_chunks(talk: Talk) -> bytes:
        body = b""
        while size := int(await talk.read_until(b"\r\n"), 16):
            body += (await talk.read_exactly(size + 2))[:-2]
        await talk.read_until(b"\r\n")
        return body


# --- heads ------------------------------------------------------------------------------------------


def head(status: int = 200, headers: Headers = (), *, framing: str = "chunked", reason: str = "Told") -> bytes:
    """The head of an answer; `framing` is `chunked`, `close`, or the number that content-length shall say."""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    if framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif framing == "close":
        lines.append("Connection: close")
    else:
        lines.append(f"Content-Length: {framing}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; the empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = chunk(b"")


# --- steps ------------------------------------------------------------------------------------------


def answer(
    status: int = 200, body: bytes = b"", headers: Headers = (), *, framing: str = "length", reason: str = "Told"
) -> Play:
    """A whole answer. `framing` is `length`, `chunked` or `close`, or a number for a content-length that may lie."""

    async def play(talk: Talk) -> None:
        await talk.say(head(status, headers, framing=str(len(body)) if framing == "length" else framing, reason=reason))
        if framing == "chunked":
            await talk.say((chunk(body) if body else b"") + LAST)
        else:
            await talk.say(body)
        if framing == "close":
            talk.end()

    return play


def says(value: Any, status: int = 200, headers: Headers = ()) -> Play:
    """A whole answer of JSON."""
    return answer(status, json.dumps(value).encode(), [("Content-Type", "application/json"), *headers])


def streams(*events: bytes, headers: Headers = ()) -> Play:
    """An answer of server-sent events, a chunk each."""
    said = [("Content-Type", "text/event-stream"), *headers]
    return pieces(head(200, said), *(chunk(event) for event in events), LAST)


Piece = bytes | asyncio.Event | Callable[[], object]


def pieces(*parts: Piece, then: Ending | Literal["keep", "stall"] = "keep") -> Play:
    """Raw bytes in turn; an event is waited for, a function is called. At the end the connection is kept, or stalls
    (nothing more is said until the client hangs up), or ends by `eof` or `reset`."""

    async def play(talk: Talk) -> None:
        for part in parts:
            if isinstance(part, bytes):
                await talk.say(part)
            elif isinstance(part, asyncio.Event):
                await part.wait()
            elif asyncio.iscoroutine(result := part()):
                await result
        if then == "stall":
            await talk.stall()
        elif then != "keep":
            talk.end(then)

    return play


def after(gate: asyncio.Event, step: Play, came: asyncio.Event | None = None) -> Play:
    """The same, once the gate is open; `came` is set when the request has come."""

    async def play(talk: Talk) -> None:
        if came is not None:
            came.set()
        await gate.wait()
        await step(talk)

    return play


def stall(*before: Piece) -> Play:
    """Nothing more after these pieces, until the client hangs up."""
    return pieces(*before, then="stall")


def cut(*before: Piece, how: Ending = "reset") -> Play:
    """Hang up after these pieces. A reset can overtake bytes that the client has not read: gate it by an event."""
    return pieces(*before, then=how)


def drip(data: bytes) -> Play:
    """Raw bytes, one by one."""

    async def play(talk: Talk) -> None:
        await talk.drip(data)

    return play


def early(step: Play) -> Early:
    """The step, played before the body of the request is read; the connection then closes with the body unread."""

    async def play(talk: Talk) -> None:
        await step(talk)
        talk.end()

    return Early(play)
