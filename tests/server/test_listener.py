import asyncio
import logging
import resource
import selectors
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from sightline.errors import Code, Fault
from sightline.platform.processes import allow_many_files, new_loop
from sightline.server.listener import ListeningServer, bind_sockets, is_loopback
from tests.server.running import TOKEN, Told, running

ASK = b'{"model":"m"}'


def request(port: int) -> bytes:
    return f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 13\r\n\r\n".encode() + ASK


def read_until(client: socket.socket, mark: bytes | None = None) -> bytes:
    """What comes up to the mark, or to the end."""
    said = b""
    while (mark is None or mark not in said) and (some := client.recv(1024)):
        said += some
    return said


def closed(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def test_port_in_use_is_reported_with_a_hint() -> None:
    sockets = bind_sockets("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    with pytest.raises(Fault) as caught:
        bind_sockets("127.0.0.1", port)
    assert caught.value.code is Code.CONFIG
    assert f"{port} of 127.0.0.1 is in use" in caught.value.message
    assert "--port" in caught.value.hint
    closed(sockets)


@pytest.mark.parametrize(("host", "told"), [("203.0.113.7", "cannot be listened at"), ("127.0.0.1.bad", "not known")])
def test_an_address_of_another_machine_is_a_fault(host: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(name: str, port: int, **_: object) -> list[object]:
        if name.endswith("bad"):
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(Fault) as caught:
        bind_sockets(host, 0)
    assert caught.value.code is Code.CONFIG
    assert told in caught.value.message


def test_a_port_for_others_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidden(socket.socket):
        def bind(self, _address: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", Forbidden)
    with pytest.raises(Fault) as caught:
        bind_sockets("127.0.0.1", 80)
    assert "above 1023" in caught.value.hint


def test_default_address_is_bound_on_ipv4_and_ipv6() -> None:
    sockets = bind_sockets("127.0.0.1", 0)
    ports = {each.getsockname()[1] for each in sockets}
    closed(sockets)
    assert len(ports) == 1
    assert sockets[0].family == socket.AF_INET
    assert {each.family for each in sockets[1:]} <= {socket.AF_INET6}


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.1.2.3", True), ("0.0.0.0", False), ("box", False)],
)
def test_loopback_is_known(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one


def test_as_many_files_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        allow_many_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(hard, 4096)
        allow_many_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_loop_is_the_fast_one() -> None:
    loop = new_loop()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()


def test_without_the_fast_loop_the_usual_one_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.close()


def test_more_than_a_thousand_clients_at_once() -> None:
    allow_many_files()
    with running() as server, ExitStack() as stack:
        gate = server.event()

        async def answering(_asked: object) -> Told:
            return Told([b"data: 1\n\n", gate, b"data: 2\n\n"], headers=[(b"content-type", b"text/event-stream")])

        server.relay.answering = answering
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30)) for _ in range(1100)
        ]
        for client in clients:
            client.sendall(request(server.port))
        said = dict.fromkeys(clients, b"")

        def hear(until: bytes) -> None:
            with selectors.DefaultSelector() as waiting:
                for client in clients:
                    waiting.register(client, selectors.EVENT_READ)
                while len(waiting.get_map()):
                    for key, _ in waiting.select(30):
                        client = key.fileobj
                        assert isinstance(client, socket.socket)
                        said[client] += client.recv(65536)
                        if until in said[client]:
                            waiting.unregister(client)

        hear(b"data: 1")
        assert server.ask("GET", "/api/health")[0] == 200
        server.set(gate)
        hear(b"0\r\n\r\n")
        assert all(b"data: 2" in each for each in said.values())


def test_clients_are_served_on_a_loop_that_cannot_watch_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, whose loop takes clients one by one."""
    monkeypatch.setattr("sightline.server.listener.can_watch_sockets", lambda _loop: False)
    with running() as server, ExitStack() as stack:
        ports = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(3)]
        for client in ports:
            client.sendall(f"GET /api/health HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 200"


def test_running_streams_finish_on_shutdown() -> None:
    with running() as server:
        gate = server.event()
        server.relay.answer = Told([b"data: 1\n\n", gate, b"data: 2\n\n"])
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(request(server.port))
            read_until(client, b"data: 1")
            server.listening.end()
            server.set(gate)
            assert read_until(client).endswith(b"data: 2\n\n\r\n0\r\n\r\n")


def test_streams_are_cut_after_the_grace_period() -> None:
    with running(grace=0) as server:
        server.relay.answer = Told([b"data: 1\n\n", server.event()])
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(request(server.port))
            read_until(client, b"data: 1")
            server.listening.end()
            assert not read_until(client).endswith(b"0\r\n\r\n")
        assert server.relay.answer.was_left.wait(20)


def test_listeners_do_not_hold_up_the_end() -> None:
    with running(grace=600) as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as events:
        events.sendall(
            f"GET /api/events HTTP/1.1\r\nhost: {server.host}\r\nauthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        read_until(events, b"listening")
        server.listening.end()
        assert read_until(events).endswith(b"0\r\n\r\n")


def test_second_shutdown_signal_skips_the_grace_period() -> None:
    with running(grace=600) as server:
        server.relay.answer = Told([b"data: 1\n\n", server.event()])
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(request(server.port))
            read_until(client, b"data: 1")
            server.listening.end(signal.SIGINT)
            server.listening.end(signal.SIGTERM)
            read_until(client)
        assert server.listening.asked_by is signal.SIGINT


def test_a_failure_of_ours_is_an_error_for_the_client_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(_asked: object) -> Told:
        raise ZeroDivisionError

    with running() as server:
        server.relay.answering = fails
        assert server.ask("POST", "/v1/messages", ASK)[0] == 500
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_in_order(asked: signal.Signals) -> None:
    program = """
import asyncio
from sightline.platform.processes import new_loop
from sightline.server.listener import ListeningServer, bind_sockets

async def app(scope, receive, send): ...

async def ending(): ...

async def main():
    server = ListeningServer(app, ending=ending)
    sockets = bind_sockets("127.0.0.1", 0)
    print(sockets[0].getsockname()[1], flush=True)
    await server.run_on(sockets)
    print(server.asked_by.name, flush=True)

with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        port = int(child.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=20) as talk:
            talk.sendall(b"nonsense\r\n\r\n")
            assert talk.recv(100)  # it is being served, so that signals are heard
        child.send_signal(asked)
        assert child.stdout.readline().strip() == asked.name
        assert child.wait(20) == 0


def test_many_clients_are_let_in_within_one_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted: list[int] = []
    accept = ListeningServer._accept

    def counting(self: ListeningServer, listening: socket.socket) -> None:
        before = len(self._accepting)
        accept(self, listening)
        accepted.append(len(self._accepting) - before)

    monkeypatch.setattr(ListeningServer, "_accept", counting)
    with running() as server, ExitStack() as stack:
        is_held, hold = threading.Event(), threading.Event()
        server.loop.call_soon_threadsafe(lambda: (is_held.set(), hold.wait(20)))
        assert is_held.wait(20)
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        hold.set()
        assert server.ask("GET", "/api/health")[0] == 200
    assert max(accepted) >= 50


def test_a_connection_without_requests_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.server.listener._KEEP_ALIVE", 0)
    monkeypatch.setattr("sightline.server.listener._SWEEP", 0.01)
    with running() as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as idle:
        assert idle.recv(1) == b""
