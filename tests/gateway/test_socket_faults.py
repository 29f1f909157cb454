"""Sockets that misbehave: hostile frames, foreign origins, slow readers, clients that vanish, a server that ends."""

import base64
import json
import os
import socket as sockets
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.server import ServerConnection

from tests.gateway.test_responses_socket import ACME, ASK, client_of, exchanges, read_response, serving
from tests.gateway_server import Served, served
from tests.person import Person
from tests.socket_upstream import SocketUpstream, answer_all, events, script, socket_upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[SocketUpstream]:
    with socket_upstream(answer_all) as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, upstream: SocketUpstream) -> Iterator[Served]:
    config = ACME.format(url=upstream.url) + "\n[server]\nmax_message_mb = 1\n"
    with served(tmp_path_factory.mktemp("faults"), config) as made:
        yield made


def shake_hands(server: Served, **headers: str) -> sockets.socket:
    """A plain connection, with the handshake said."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    made = sockets.create_connection((host, int(port)), timeout=30)
    given = {
        "Host": f"{host}:{port}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    made.sendall(f"GET /p/acme/v1/responses HTTP/1.1\r\n{lines}\r\n".encode())
    return made


def read_head(made: sockets.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += made.recv(1)
    return data


def frame(opcode: int, payload: bytes, *, fin: bool = True, mask: bool = True) -> bytes:
    length = len(payload)
    head = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if mask else 0
    if length < 126:
        head += bytes([bit | length])
    elif length < 1 << 16:
        head += struct.pack("!BH", bit | 126, length)
    else:
        head += struct.pack("!BQ", bit | 127, length)
    return head + (b"\0\0\0\0" if mask else b"") + payload


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(1, b"{}", mask=False), 1002),
        (frame(1, b"\xff\xfe"), 1007),
        (frame(9, b"x" * 126), 1002),
        (frame(9, b"x", fin=False), 1002),
        (frame(0, b"x"), 1002),
        (frame(3, b"x"), 1002),
        (b"\xf1\x80\0\0\0\0", 1002),
        (frame(8, struct.pack("!H", 1005)), 1002),
        (frame(1, b"", fin=False) + frame(1, b"x"), 1002),
        (b"\x81\xff" + struct.pack("!Q", 1 << 40) + b"\0\0\0\0", 1009),
        (frame(1, b"y" * 600_000, fin=False) + frame(0, b"y" * 600_000), 1009),
    ],
    ids=["not masked", "not UTF-8", "long ping", "ping in pieces", "continues nothing", "unknown kind", "reserved bits",
         "code that no frame has", "text in a text", "huge", "huge in pieces"],
)  # fmt: skip
def test_a_frame_that_is_none_closes_the_socket_with_its_code(server: Served, sent: bytes, code: int) -> None:
    with shake_hands(server) as made:
        assert read_head(made).startswith(b"HTTP/1.1 101 ")
        made.sendall(sent)
        data = b""
        while piece := made.recv(4096):
            data += piece
    assert data[0] == 0x88
    assert struct.unpack("!H", data[2:4])[0] == code


def test_a_small_message_that_unpacks_to_a_huge_one_is_refused(server: Served) -> None:
    packer = zlib.compressobj(wbits=-12)
    packed = packer.compress(b" " * (1 << 24)) + packer.flush(zlib.Z_SYNC_FLUSH)
    with shake_hands(server, Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits=12") as made:
        assert b"permessage-deflate" in read_head(made)
        made.sendall(frame(0x41, packed.removesuffix(b"\0\0\xff\xff")))
        closing = made.recv(4)
    assert struct.unpack("!H", closing[2:4])[0] == 1009


@pytest.mark.parametrize(
    "offer",
    ["permessage-deflate; server_max_window_bits=8", "permessage-deflate; what=1", "x-webkit-deflate-frame", "; ; ="],
)
def test_an_offer_to_compress_that_means_nothing_here_is_declined(server: Served, offer: str) -> None:
    with shake_hands(server, Sec_WebSocket_Extensions=offer) as made:
        told = read_head(made)
        assert told.startswith(b"HTTP/1.1 101 ")
        assert b"sec-websocket-extensions" not in told.lower()


def test_frames_that_come_with_the_handshake_or_byte_by_byte_are_read(server: Served) -> None:
    ask = frame(1, json.dumps(ASK).encode())
    with shake_hands(server) as made:
        made.sendall(ask[:20])
        read_head(made)
        for byte in ask[20:]:
            made.sendall(bytes([byte]))
        made.sendall(frame(9, b"ping"))
        data = b""
        while b"response.completed" not in data or b"\x8a\x04ping" not in data:
            data += made.recv(65536)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
    ],
    ids=str,
)
def test_a_browsers_page_gets_no_socket(server: Served, upstream: SocketUpstream, headers: dict[str, str]) -> None:
    before = len(upstream.handshakes)
    with shake_hands(server, **headers) as made:
        assert read_head(made).startswith(b"HTTP/1.1 403 ")
    assert len(upstream.handshakes) == before


@pytest.mark.parametrize(
    ("headers", "status"), [({"Sec_WebSocket_Version": "8"}, b"426"), ({"Sec_WebSocket_Key": "short"}, b"400")], ids=str
)
def test_a_handshake_that_is_none_is_refused(server: Served, headers: dict[str, str], status: bytes) -> None:
    with shake_hands(server, **headers) as made:
        assert read_head(made).startswith(b"HTTP/1.1 " + status)


def test_other_paths_have_no_socket(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused, client_of(server, "/p/acme/v1/chat/completions"):
        pass
    assert refused.value.response.status_code == 405


def test_a_client_that_vanishes_takes_the_providers_socket_along(tmp_path: Path) -> None:
    begun = threading.Event()

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        upstream.take(connection)
        connection.send(events("resp_1", "a")[0])
        begun.set()
        upstream.take(connection)

    with serving(tmp_path, play) as (server, upstream):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            assert begun.wait(30)
            socket.recv(timeout=30)
            socket.socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
            socket.socket.close()
        assert upstream.closed.wait(30)
        (shown,) = exchanges(server)
        shown = Person(server).ended(shown["id"])
    assert (shown["state"], shown["reason"]) == ("cancelled", "client_gone")


@pytest.mark.parametrize(
    "wrong", [b"\x81\x02\xff\xfe", b"\xf1\x00", b"\x81\x82\0\0\0\0{}"], ids=["not UTF-8", "reserved bits", "masked"]
)
def test_a_provider_whose_frames_are_none_ends_the_response_as_failed(tmp_path: Path, wrong: bytes) -> None:
    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        upstream.take(connection)
        connection.send(events("resp_1", "a")[0])
        connection.socket.sendall(wrong)
        upstream.take(connection)

    with serving(tmp_path, play) as (server, _), client_of(server) as socket:
        socket.send(json.dumps(ASK))
        assert json.loads(read_response(socket)[-1])["type"] == "response.failed"
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        (shown,) = exchanges(server)
    assert shown["state"] == "failed"


def test_a_client_that_does_not_read_stops_the_provider(tmp_path: Path) -> None:
    """What waits for the client is bounded: the provider's writes block long before all of it has left."""
    sent = 0
    blocked = threading.Event()
    large = json.dumps({"type": "response.custom", "data": "z" * 250_000})

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        nonlocal sent
        upstream.take(connection)
        connection.send(events("resp_1", "a")[0])
        connection.socket.settimeout(2)
        try:
            for _ in range(400):
                connection.send(large)
                sent += 1
        except (OSError, ConnectionClosed):
            pass
        blocked.set()

    with serving(tmp_path, play) as (server, _), shake_hands(server) as made:
        made.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        read_head(made)
        made.sendall(frame(1, json.dumps(ASK).encode()))
        assert blocked.wait(60)
    assert sent < 200


def test_a_server_that_ends_says_that_it_goes_away(tmp_path: Path) -> None:
    with serving(tmp_path, answer_all) as (server, upstream):
        with client_of(server) as socket:
            socket.send(json.dumps(ASK))
            read_response(socket)
            server.listening.end()
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=30)
        assert upstream.closed.wait(30)
    assert closed.value.rcvd.code == 1001
    assert upstream.closes[0][0] == 1001


def test_a_server_that_ends_lets_a_response_finish(tmp_path: Path) -> None:
    gate = threading.Event()
    frames = events("resp_1", "a b")

    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        script(None, frames[0])(connection, upstream)
        gate.wait(30)
        script(*frames[1:], None)(connection, upstream)

    with serving(tmp_path, play) as (server, _), client_of(server) as socket:
        socket.send(json.dumps(ASK))
        got = [socket.recv(timeout=30)]
        server.listening.end()
        gate.set()
        got += read_response(socket)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=30)
    assert got == frames
    assert closed.value.rcvd.code == 1001
