"""When many clients send at once, a few of their requests begin in each turn of the event loop, in order."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from sightline.server.direct_queue import DirectQueue
from sightline.server.http_connection import ClientConnection
from sightline.web.asgi import AsgiScope, ClientWriter, DirectClient, Receive
from tests.server.test_request_head import Transport, request

CLIENTS = 40
IN_A_TURN = 16


class Exchange:
    """A direct exchange that the test answers."""

    def __init__(self, client: DirectClient) -> None:
        self.client = client
        self.is_left = False

    def client_gone(self) -> None:
        self.is_left = True


class Stage:
    """Clients that are connected to a server whose loop says the same time all along, as libuv's does in a turn."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.exchanges: list[Exchange] = []
        self.served: list[bytes] = []
        self.open: set[ClientConnection] = set()
        self._queue = DirectQueue(self._begin)

    def _begin(self, _head: object, body: bytes, client: DirectClient) -> Exchange | None:
        if body == b"usual":
            return None
        self.begun.append(body)
        self.exchanges.append(Exchange(client))
        return self.exchanges[-1]

    async def _serve(self, _scope: AsgiScope, _receive: Receive, writer: ClientWriter) -> None:
        self.served.append(cast(bytes, writer.take_body()))
        writer.respond(200, [(b"content-length", b"2")], b"ok")

    def connect(self) -> tuple[ClientConnection, Transport]:
        connection, transport = ClientConnection(self._serve, self.open, self._queue), Transport()
        connection.connection_made(cast(Any, transport))
        return connection, transport

    def send(self, *bodies: bytes) -> None:
        """Each from a client of its own."""
        for body in bodies:
            self.connect()[0].data_received(request(body))

    async def warm_up(self) -> None:
        """Let llhttp read the head once."""
        connection, _ = self.connect()
        connection.data_received(request(b"usual"))
        await turns()
        connection.connection_lost(None)
        assert self.served == [b"usual"]
        self.served.clear()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The loop's time, as the only item of a list."""
    now = [1.0]
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _loop: now[0])
    yield now
    monkeypatch.undo()


async def test_requests_beyond_a_turns_share_begin_in_the_next_turns_in_order() -> None:
    stage = Stage()
    await stage.warm_up()
    clients = [stage.connect() for _ in range(CLIENTS)]
    for number, (connection, _) in enumerate(clients):
        connection.data_received(request(b"%d" % number))
    assert len(stage.begun) == IN_A_TURN
    await turns(1)
    assert len(stage.begun) == 2 * IN_A_TURN
    await turns(1)
    assert stage.begun == [b"%d" % number for number in range(CLIENTS)]
    for exchange in stage.exchanges:
        exchange.client.respond_directly(b"answer")
    assert [transport.written for _, transport in clients] == [b"answer"] * CLIENTS
    assert all(connection.is_idle for connection in stage.open)


async def test_each_turn_has_a_share_of_its_own(clock: list[float]) -> None:
    stage = Stage()
    await stage.warm_up()
    for turn in range(3):
        clock[0] += 1
        stage.send(*(b"%d" % number for number in range(IN_A_TURN)))
        assert len(stage.begun) == (turn + 1) * IN_A_TURN


async def test_a_request_that_comes_while_others_wait_begins_after_them() -> None:
    stage = Stage()
    await stage.warm_up()
    stage.send(*(b"%d" % number for number in range(CLIENTS)))
    await turns(1)
    stage.send(b"late")
    await turns()
    assert stage.begun[-2:] == [b"%d" % (CLIENTS - 1), b"late"]


async def test_what_a_waiting_client_sends_next_is_answered_after_its_first_request() -> None:
    stage = Stage()
    await stage.warm_up()
    stage.send(*(b"%d" % number for number in range(IN_A_TURN)))
    connection, transport = stage.connect()
    connection.data_received(request(b"first"))
    connection.data_received(request(b"usual"))
    assert not connection.is_idle
    await turns(10)
    assert stage.served == [b"first", b"usual"]
    assert transport.written.count(b"HTTP/1.1 200 OK") == len(stage.served)


async def test_a_request_that_waited_may_be_a_usual_one() -> None:
    stage = Stage()
    await stage.warm_up()
    stage.send(*(b"%d" % number for number in range(IN_A_TURN)))
    connection, transport = stage.connect()
    connection.data_received(request(b"usual"))
    assert not stage.served
    await turns()
    assert stage.served == [b"usual"]
    assert transport.written.startswith(b"HTTP/1.1 200")


async def test_a_client_that_leaves_while_its_request_waits_takes_nothing_with_it() -> None:
    stage = Stage()
    await stage.warm_up()
    clients = [stage.connect() for _ in range(IN_A_TURN + 2)]
    for number, (connection, _) in enumerate(clients):
        connection.data_received(request(b"%d" % number))
    left, transport = clients[IN_A_TURN]
    transport.is_closed = True
    left.connection_lost(None)
    await turns()
    assert stage.begun == [b"%d" % number for number in range(IN_A_TURN + 2) if number != IN_A_TURN]


async def test_a_request_that_waits_at_a_shutdown_is_answered() -> None:
    stage = Stage()
    await stage.warm_up()
    stage.send(*(b"%d" % number for number in range(IN_A_TURN)))
    connection, transport = stage.connect()
    connection.data_received(request(b"waits"))
    connection.shut_down()
    assert not transport.is_closed
    await turns()
    assert stage.served == [b"waits"]
    assert b"connection: close" in transport.written
    assert transport.is_closed
