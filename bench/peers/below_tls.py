"""What a request below TLS (`run --tls`) costs, beside the same request by a base URL.

Both go to the same provider over TLS, whose host a proxy leads to this process."""

import asyncio
import base64
import json
import os
import socket
import ssl
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from bench.peers.process import PROXY_CORE, Tree
from bench.peers.workshop import MissingError

ROUNDS = 3
REQUESTS = 300
WARM = 50
MOST_TIMES = 2.0
HOST = "bench.example"
BASE = "by a base URL"
CONFIG = """\
[network]
ca_file = "{trusted}"
[providers.bench]
base_url = "https://bench.example/v1"
dialect = "openai-chat"
"""
REPLY = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
).encode()
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "words " * 200}]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY) + REPLY
Ask = Callable[[], Awaitable[None]]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A provider that says the same to everyone."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.CancelledError, ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


def _leading_to(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A proxy by which every host is the provider above."""

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(asyncio.CancelledError):
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    return lead


def _plain_asker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, host: str) -> Ask:
    lines = (f"POST {path} HTTP/1.1", f"host: {host}", "authorization: Bearer sk", "content-type: application/json")
    asked = "\r\n".join((*lines, f"content-length: {len(BODY)}", "", "")).encode() + BODY

    async def ask() -> None:
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(len(REPLY))

    return ask


def _http2_asker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Ask:
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived, StreamEnded

    state = H2Connection(H2Configuration(client_side=True))
    state.initiate_connection()
    head = [(":method", "POST"), (":path", "/v1/chat/completions"), (":scheme", "https"), (":authority", HOST)]
    further = [("authorization", "Bearer sk"), ("content-type", "application/json")]

    async def ask() -> None:
        stream = state.get_next_available_stream_id()
        state.send_headers(stream, [*head, *further])
        state.send_data(stream, BODY, end_stream=True)
        while True:
            writer.write(state.data_to_send())
            events = state.receive_data(await reader.read(65_536))
            for each in events:
                if isinstance(each, DataReceived):
                    state.acknowledge_received_data(each.flow_controlled_length or 0, each.stream_id or 0)
            if any(isinstance(event, StreamEnded) for event in events):
                return

    return ask


async def _connect_below(proxy: str, trusted: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(proxy)
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    login = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    writer.write(f"CONNECT {HOST}:443 HTTP/1.1\r\nproxy-authorization: Basic {login}\r\n\r\n".encode())
    told = await reader.readuntil(b"\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 200"), told
    await writer.start_tls(trusted, server_hostname=HOST)
    return reader, writer


async def _measure(ask: Ask, tree: Tree) -> tuple[float, float]:
    """The median of a request, and the server's time on its core for one, in ms."""
    before, _ = await asyncio.to_thread(tree.settled_cpu_seconds)
    took = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        await ask()
        took.append(time.perf_counter() - began)
    after, _ = await asyncio.to_thread(tree.settled_cpu_seconds)
    return statistics.median(took) * 1000, (after - before) / REQUESTS * 1000


async def _figures(folder: Path) -> dict[str, tuple[float, float]]:
    import trustme

    authority, own = trustme.CA(), _free_port()
    trusted = folder / "vendors.pem"
    authority.cert_pem.write_to_path(str(trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    provider = await asyncio.start_server(_serve, "127.0.0.1", 0, ssl=context)
    way = await asyncio.start_server(_leading_to(provider.sockets[0].getsockname()[1]), "127.0.0.1", 0)
    config = folder / "sightline.toml"
    config.write_text(CONFIG.format(trusted=trusted))
    program, data = str(Path(sys.executable).with_name("sightline")), folder / "data"
    words = [program, "serve", "--no-open", "--port", str(own), "--config", str(config), "--data", str(data)]
    tree = Tree(words, folder, {"HTTPS_PROXY": f"http://127.0.0.1:{way.sockets[0].getsockname()[1]}"}, PROXY_CORE)
    try:
        await _until_listening(own, tree)
        proxy = await asyncio.to_thread(_open_proxy, own, data / "token")
        plain = await asyncio.open_connection("127.0.0.1", own)
        askers = {BASE: _plain_asker(*plain, "/p/bench/v1/chat/completions", f"127.0.0.1:{own}")}
        for title, protocol in (("below TLS, HTTP/1.1", "http/1.1"), ("below TLS, HTTP/2", "h2")):
            client = ssl.create_default_context(cadata=proxy["certificate"])
            client.set_alpn_protocols([protocol])
            streams = await _connect_below(proxy["url"], client)
            below = _http2_asker(*streams) if protocol == "h2" else _plain_asker(*streams, "/v1/chat/completions", HOST)
            askers[title] = below
        for ask in askers.values():
            for _ in range(WARM):
                await ask()
        # In turn, so that what else the machine does is in all of them.
        rounds = [{title: await _measure(ask, tree) for title, ask in askers.items()} for _ in range(ROUNDS)]
        return {
            title: (min(each[title][0] for each in rounds), min(each[title][1] for each in rounds)) for title in askers
        }
    finally:
        tree.stop()
        provider.close()
        way.close()


def _open_proxy(port: int, token: Path) -> dict[str, str]:
    while not token.exists():  # a server that listens may not have written it yet
        time.sleep(0.05)
    headers = {"authorization": f"Bearer {token.read_text().strip()}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/proxy", b'{"session": "bench"}', headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        opened: dict[str, str] = json.loads(answer.read())
    return opened


async def _until_listening(port: int, tree: Tree) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if tree.has_ended:
                raise MissingError(f"Sightline did not start: {tree.last_words()}") from None
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise MissingError("Sightline did not start within a minute")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def report() -> str:
    """The table, and whether the aim is held."""
    os.environ.pop("no_proxy", None)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_figures(Path(folder)))
    without = found[BASE]
    rows = [
        f"| {title} | {median:.2f} | {cpu:.2f} | {cpu / without[1]:.2f} |" for title, (median, cpu) in found.items()
    ]
    worst = max(cpu / without[1] for _, cpu in found.values())
    verdict = "held" if worst <= MOST_TIMES else "**not held**"
    return "\n".join(
        [
            "### Below TLS\n",
            "| | request, median ms | CPU ms a request | times |\n|---|---:|---:|---:|",
            *rows,
            f"\nA request below TLS takes {worst:.2f} times the CPU of one by a base URL "
            f"(aim: at most {MOST_TIMES:g}): {verdict}.",
        ]
    )
