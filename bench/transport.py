"""What our HTTP client costs beside the barest one that can be written, and beside httpx: on-CPU time of this process.

The upstream is a process of its own. In a paced stream every chunk is read by itself, as a model's tokens are; in a
burst many chunks come in one read; a whole answer is one small JSON body. Connections are kept.
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Protocol

import httptools

from bench.timing import medians, microseconds, ratio, table
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.wire.call import HttpRequest

ROUNDS = 15
CHUNKS = 300
WHOLE_ANSWERS = 200
PAUSE = 0.0005
AIM = "<= 2.00x"
# The generation of httpx that the vendors' SDKs bring along.
HTTPX = "httpx2"

BODY = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]}'
EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "word "}}], "object": "chat.completion.chunk"}\n\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b'{"choices": [{"message": {"content": "' + b"word " * 190 + b'"}}]}'
WHOLE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(WHOLE)


class Client(Protocol):
    """Sends the request to a path and tells how many bytes of body came back."""

    async def ask(self, path: str) -> int: ...

    async def close(self) -> None: ...


class Ours:
    """The client of this repository."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        self._headers = (("Content-Type", "application/json"), ("User-Agent", "bench"))

    async def ask(self, path: str) -> int:
        request = HttpRequest("POST", self._url + path, self._headers, BODY)
        size = 0
        async with await self._client.send(request, Timeouts()) as response:
            async for piece in response:
                size += len(piece)
        return size

    async def close(self) -> None:
        await self._client.close()


class Bare(asyncio.Protocol):
    """An asyncio protocol that feeds llhttp and counts: no pool, no limits, no time, no faults, and nobody to read
    along while the answer comes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._size += len(body)

    def on_message_complete(self) -> None:
        self._done.set_result(None)

    async def ask(self, path: str) -> int:
        loop = asyncio.get_running_loop()
        if self._transport is None:
            await loop.create_connection(lambda: self, "127.0.0.1", self._port)
        assert self._transport is not None
        self._size = 0
        self._done = loop.create_future()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Length: {len(BODY)}\r\n\r\n"
        self._transport.write(head.encode() + BODY)
        await self._done
        return self._size

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Httpx:
    """The client below most vendors' SDKs."""

    def __init__(self, port: int) -> None:
        self._client = import_module(HTTPX).AsyncClient(trust_env=False, base_url=f"http://127.0.0.1:{port}")

    async def ask(self, path: str) -> int:
        size = 0
        async with self._client.stream("POST", path, content=BODY) as response:
            async for piece in response.aiter_raw():
                size += len(piece)
        return size

    async def close(self) -> None:
        await self._client.aclose()


def report() -> str:
    """CPU time for each unit of work, and how many times the bare client's that is."""
    kinds: dict[str, Callable[[int], Client]] = {"bare": Bare, "sightline": Ours}
    if find_spec(HTTPX) is not None:
        kinds[HTTPX] = Httpx
    works = {
        "a chunk of a paced stream": ("/paced", 1, CHUNKS, CHUNKS * len(EVENT)),
        "a chunk of a burst": ("/burst", 5, 5 * CHUNKS, CHUNKS * len(EVENT)),
        "a whole answer of 1 KB": ("/whole", WHOLE_ANSWERS, WHOLE_ANSWERS, len(WHOLE)),
    }
    rows = []
    with _upstream() as port, asyncio.Runner() as runner:
        clients = {name: kind(port) for name, kind in kinds.items()}
        for work, (path, requests, units, size) in works.items():
            tasks = {
                name: partial(_run, runner, partial(_ask, client, path, requests, size))
                for name, client in clients.items()
            }
            times = medians(tasks, ROUNDS, process_time)
            others = [ratio(times[name] / times["bare"]) if name in times else "-" for name in ("sightline", HTTPX)]
            rows.append([work, microseconds(times["bare"] / units), *others])
        for client in clients.values():
            runner.run(client.close())
    rows.append(["(aim)", "", AIM, ""])
    title = f"HTTP client, CPU time (median of {ROUNDS})"
    return table(title, ["work", "bare asyncio + httptools", "sightline", HTTPX], rows)


def _run(runner: asyncio.Runner, work: Callable[[], Coroutine[None, None, None]]) -> None:
    runner.run(work())


async def _ask(client: Client, path: str, requests: int, size: int) -> None:
    for _ in range(requests):
        got = await client.ask(path)
        assert got == size, f"{got} bytes, not {size}"


# --- the upstream, in its own process ---------------------------------------------------------------------------


@contextmanager
def _upstream() -> Iterator[int]:
    command = [sys.executable, "-m", "bench.transport"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            # It ends when nobody holds the other end of its input.
            process.stdin.close()
            process.wait()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            path = head.split(b" ", 2)[1]
            if path == b"/whole":
                writer.write(WHOLE_HEAD + WHOLE)
            elif path == b"/burst":
                writer.write(STREAM_HEAD + CHUNK * CHUNKS + b"0\r\n\r\n")
            else:
                writer.write(STREAM_HEAD)
                for _ in range(CHUNKS):
                    writer.write(CHUNK)
                    await asyncio.sleep(PAUSE)
                writer.write(b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
