import asyncio
import errno
import gc
import socket
import threading

import pytest

from sightline.transport.http import dialling as addresses
from sightline.transport.http.dialling import connect_socket
from tests.transport.http.asking import told, turns

Found = tuple[int, int, int, str, tuple[str, int]]


def named(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, int]) -> None:
    """Let the name look-up find these."""

    def lookup(*_: object, **__: object) -> list[Found]:
        return [
            (socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))
            for host, port in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def listening(*, backlog: int = 10) -> socket.socket:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(backlog)
    return server


def test_the_next_address_is_tried_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        named(monkeypatch, ("127.0.0.1", 1), ("::1", 1), ("127.0.0.1", port))

        async def story() -> None:
            raw = await connect_socket(asyncio.get_running_loop(), "a.example", port)
            with raw:
                assert raw.getpeername() == ("127.0.0.1", port)

        told(story())


def test_both_kinds_of_address_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, ("::1", 1), ("::1", 2), ("127.0.0.1", 3), ("127.0.0.1", 4), ("127.0.0.1", 5))

    async def story() -> list[int]:
        found = await addresses._addresses(asyncio.get_running_loop(), "a.example", 0)
        return [address[1] for _, address in found]

    assert told(story()) == [1, 3, 2, 4, 5]


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", (socket.AF_INET, ("127.0.0.1", 9))), ("::1", (socket.AF_INET6, ("::1", 9, 0, 0)))],
)
def test_an_address_is_not_looked_up(host: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> object:
        return await addresses._addresses(asyncio.get_running_loop(), host, 9)

    monkeypatch.delattr(socket, "getaddrinfo")
    assert told(story()) == [expected]


def test_a_refusal_says_more_than_a_missing_route(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_loop: object, address: tuple[int, tuple[str, int]]) -> socket.socket:
        number = errno.ENETUNREACH if address[0] == socket.AF_INET6 else errno.ECONNREFUSED
        raise OSError(number, "")

    named(monkeypatch, ("::1", 1), ("127.0.0.1", 1))
    monkeypatch.setattr(addresses, "_connected", fail)
    with pytest.raises(ConnectionRefusedError):
        told(_connect())
    named(monkeypatch, ("::1", 1), ("::1", 2))
    with pytest.raises(OSError) as caught:
        told(_connect())
    assert caught.value.errno == errno.ENETUNREACH


async def _connect() -> socket.socket:
    return await connect_socket(asyncio.get_running_loop(), "a.example", 1)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("turn", range(8))
def test_a_wait_that_ends_at_any_moment_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch, count: int, turn: int
) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        named(monkeypatch, *[("127.0.0.1", port)] * count)

        async def story() -> None:
            connecting = asyncio.ensure_future(_connect())
            await turns(turn)
            connecting.cancel()
            await asyncio.wait([connecting])
            if not connecting.cancelled():
                connecting.result().close()

        told(story())
        # A socket that was left open would warn here, and warnings are errors.
        gc.collect()


def test_a_name_server_that_does_not_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, has_begun = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> list[Found]:
        has_begun.set()
        answers.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        looking = asyncio.ensure_future(connect_socket(loop, "a.example", 1))
        await asyncio.to_thread(has_begun.wait)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking

    told(story())  # returns although the look-up is still under way
    answers.set()


def test_a_look_up_that_ends_after_it_was_given_up_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def late(*_: object, **__: object) -> list[Found]:
        answers.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", late)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        looking = asyncio.ensure_future(connect_socket(loop, "late.example", 1))
        await turns(2)
        looking.cancel()
        await turns(2)
        answers.set()
        (thread,) = (each for each in threading.enumerate() if each.name == "look up late.example")
        await asyncio.to_thread(thread.join)
        await turns(2)

    told(story())
