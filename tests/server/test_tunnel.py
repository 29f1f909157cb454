import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from sightline.errors import Code, Fault
from sightline.server.tunnel import connect_to, join, refuse_own_machine
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Origin, Proxies
from tests.forward_proxy import ForwardProxy

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Ends:
    """What a client and a host have of a tunnel, and the task that joins them."""

    client: Stream
    host: Stream
    joining: "asyncio.Task[tuple[int, int]]"


@asynccontextmanager
async def joined(first: bytes = b"") -> AsyncIterator[Ends]:
    loop = asyncio.get_running_loop()
    pairs = [socket.socketpair() for _ in range(2)]
    near = [await loop.create_connection(asyncio.Protocol, sock=pair[0]) for pair in pairs]
    streams = [await asyncio.open_connection(sock=pair[1]) for pair in pairs]
    for transport, _ in near:
        transport.pause_reading()
    joining = loop.create_task(join(near[0][0], near[1][0], first))
    try:
        async with asyncio.timeout(60):
            yield Ends(streams[0], streams[1], joining)
    finally:
        for _, writer in streams:
            writer.transport.abort()
        await asyncio.gather(joining, return_exceptions=True)
        await asyncio.sleep(0)


async def test_bytes_pass_both_ways_and_are_counted() -> None:
    async with joined(b"before ") as ends:
        ends.client[1].write(b"there")
        assert await ends.host[0].readexactly(12) == b"before there"
        ends.host[1].write(b"back")
        assert await ends.client[0].readexactly(4) == b"back"
        ends.host[1].close()
        assert await ends.client[0].read() == b""
        ends.client[1].close()
        assert await ends.joining == (12, 4)


async def test_an_end_that_says_no_more_still_hears() -> None:
    async with joined() as ends:
        ends.client[1].write(b"all")
        ends.client[1].write_eof()
        assert await ends.host[0].read() == b"all"
        ends.host[1].write(b"answer")
        ends.host[1].close()
        assert await ends.client[0].read() == b"answer"


async def test_a_slow_end_makes_the_other_wait() -> None:
    async with joined() as ends:
        ends.client[1].write(b"x" * 16 * 1024 * 1024)
        for _ in range(100):
            await asyncio.sleep(0)
        # The host has read nothing, so that most of it still is with the client.
        assert ends.client[1].transport.get_write_buffer_size() > 8 * 1024 * 1024
        assert len(await ends.host[0].readexactly(16 * 1024 * 1024)) == 16 * 1024 * 1024


async def test_to_cancel_closes_both_ends() -> None:
    async with joined() as ends:
        await asyncio.sleep(0)
        ends.joining.cancel()
        assert await ends.client[0].read() == b""
        assert await ends.host[0].read() == b""


@pytest.mark.parametrize(
    "host",
    ["localhost", "a.localhost", "LOCALHOST.", "127.1.2.3", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "fe80::1%eth0"],
)
def test_an_address_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(Fault, match="this machine") as caught:
        refuse_own_machine(host, host)
    assert (caught.value.code, caught.value.status) == (Code.PERMISSION, 403)


@pytest.mark.parametrize("host", ["example.com", "10.1.2.3", "192.168.0.1", "2001:db8::1", "localhost.example"])
def test_other_addresses_are_not(host: str) -> None:
    refuse_own_machine(host, host)


async def test_a_name_that_leads_to_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    place = server.sockets[0].getsockname()
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: found)
    with pytest.raises(Fault, match="this machine"):
        await connect_to(Origin("https", "rebound.example", place[1]), Proxies.of({}), Trust(environment={}))
    server.close()


async def test_a_proxy_of_the_users_is_on_the_way() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with ForwardProxy(reach=server.sockets[0].getsockname()[:2]) as way:
        proxies = Proxies.of({"HTTPS_PROXY": way.url})
        origin = Origin("https", "far.example", 443)
        transport = await connect_to(origin, proxies, Trust(environment={}))
        transport.abort()
        assert way.asked == ["CONNECT far.example:443 HTTP/1.1"]
        way.refuse = 502
        with pytest.raises(Fault, match="answered 502"):
            await connect_to(origin, proxies, Trust(environment={}))
    server.close()


async def test_a_host_that_cannot_be_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Fault, match="could not be looked up"):
        await connect_to(Origin("https", "no.such.host.invalid", 443), Proxies.of({}), Trust(environment={}))
