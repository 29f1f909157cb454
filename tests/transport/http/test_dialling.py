import asyncio
import errno
import gc
import socket
import threading

import pytest
import trustme

from sightline.errors import Code
from sightline.transport.http import dialling
from sightline.transport.http import dialling as addresses
from sightline.transport.http.dialling import Tunnel, connect_socket
from sightline.transport.http.faults import may_retry
from sightline.transport.http.target import Timeouts
from sightline.wire.call import HttpRequest
from tests.forward_proxy import ForwardProxy
from tests.transport.http.asking import PATIENT, client, everything, failure, kind, later, post, served_by, told, turns
from tests.upstream import LAST, Upstream, answer, chunk, cut, head, pieces, stall

FAR = "api.example.com"


# --- without a proxy ----------------------------------------------------------------------------------------


async def test_refused_connection_is_reported() -> None:
    async with client() as http:
        for host in ("127.0.0.1", "localhost"):
            fault = await failure(http.send(post(f"http://{host}:1/v1?key=secret"), Timeouts()))
            assert (fault.code, kind(fault)) == (Code.NETWORK, "refused")
            assert fault.message == f"{host}:1 refuses connections"
            assert may_retry(fault)


async def test_unknown_host_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    async with client() as http:
        fault = await failure(http.send(post("https://api.exmaple.invalid/"), Timeouts()))
        assert kind(fault) == "dns"
        assert "api.exmaple.invalid" in fault.message


async def test_a_door_that_never_opens() -> None:
    async with Upstream([stall()]) as upstream, client() as http:
        # It takes the connection, but says no word of TLS.
        url = f"https://127.0.0.1:{upstream.port}"
        sending = asyncio.ensure_future(failure(http.send(post(url), Timeouts(connect=10))))
        await upstream.arrived(1, of=upstream.connections)
        later(11)
        fault = await sending
        assert (fault.code, kind(fault)) == (Code.NETWORK, "connect_timeout")
        assert fault.message == f"no connection to 127.0.0.1:{upstream.port} within 10 s"
        assert may_retry(fault)
        await upstream.gone(0)


async def test_a_connection_that_is_not_wanted_any_more_is_not_finished() -> None:
    async with Upstream([stall()]) as upstream, client() as http:
        url = f"https://127.0.0.1:{upstream.port}"
        sending = asyncio.ensure_future(http.send(post(url), PATIENT))
        await upstream.arrived(1, of=upstream.connections)
        sending.cancel()
        await upstream.gone(0)
        with pytest.raises(asyncio.CancelledError):
            await sending


async def plain_words(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def no_words(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.transport.abort()


@pytest.mark.parametrize(("server", "expected"), [(plain_words, "tls"), (no_words, "reset")])
async def test_a_server_that_does_not_speak_tls(server, expected) -> None:
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening, client() as http:
        port = listening.sockets[0].getsockname()[1]
        fault = await failure(http.send(post(f"https://127.0.0.1:{port}/"), Timeouts()))
        assert kind(fault) == expected
        if expected == "tls":
            assert "does not speak TLS" in fault.message
            assert not may_retry(fault)
        await turns()


async def test_a_connection_is_kept_awake() -> None:
    async with Upstream([answer(200)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        raw = response._connection._transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_system_that_knows_no_keep_alive_is_served_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling.socket, "TCP_KEEPIDLE", 12345)
    async with Upstream([answer(200)]) as upstream, client() as http:
        assert (await http.send(post(upstream.url), PATIENT)).status == 200


# --- over TLS ---------------------------------------------------------------------------------------------


async def test_stream_over_tls_is_delivered_as_it_is_sent(authority: trustme.CA, ca_file: str) -> None:
    gate = asyncio.Event()
    step = pieces(head() + chunk(b"a"), gate, chunk(b"b" * 500_000) + LAST)
    tls = served_by(authority, "localhost")
    async with Upstream([step], tls=tls, host="localhost") as upstream, client(ca_file=ca_file) as http:
        body = b"x" * 3_000_000
        response = await http.send(post(upstream.url, body), Timeouts())
        assert await anext(response) == b"a"
        gate.set()
        assert b"".join(await everything(response)) == b"b" * 500_000
        assert upstream.seen[0].body == body
        again = await http.send(post(upstream.url), Timeouts())
        await again.close()
        assert len(upstream.connections) == 1
        await upstream.gone(0)


@pytest.mark.parametrize("how", ["eof", "reset"])
async def test_a_body_without_a_length_over_tls_ends_only_when_tls_says_so(authority, ca_file, how) -> None:
    read = asyncio.Event()
    step = cut(head(framing="close") + b"body", read, how=how)
    tls = served_by(authority, "localhost")
    async with Upstream([step], tls=tls, host="localhost") as upstream, client(ca_file=ca_file) as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert await anext(response) == b"body"
        read.set()
        if how == "eof":
            assert await response.read() == b""
        else:
            assert kind(await failure(response.read())) == "cut"


async def test_an_end_that_tls_did_not_announce_is_no_end(authority: trustme.CA, ca_file: str) -> None:
    async def hang_up(talk) -> None:
        await talk.say(head(framing="close") + b"body")
        await read.wait()
        # A TCP end, as anyone on the way can make it, and no word of TLS.
        talk.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await talk.stall()

    read = asyncio.Event()
    tls = served_by(authority, "localhost")
    async with Upstream([hang_up], tls=tls, host="localhost") as upstream, client(ca_file=ca_file) as http:
        response = await http.send(post(upstream.url), PATIENT)
        assert await anext(response) == b"body"
        read.set()
        assert kind(await failure(response.read())) == "cut"


async def test_before_an_answer_any_end_may_be_tried_again(authority: trustme.CA, ca_file: str) -> None:
    async def hang_up(talk) -> None:
        talk.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
        await talk.stall()

    tls = served_by(authority, "localhost")
    async with Upstream([hang_up], tls=tls, host="localhost") as upstream, client(ca_file=ca_file) as http:
        fault = await failure(http.send(post(upstream.url), PATIENT))
        assert kind(fault) == "eof"
        assert may_retry(fault)


# --- through a proxy ------------------------------------------------------------------------------------------


async def test_a_tunnel_leads_to_the_origin_and_is_kept(authority: trustme.CA, ca_file: str) -> None:
    async with (
        Upstream([answer(200, b"far")], tls=served_by(authority, FAR)) as upstream,
        ForwardProxy(reach=("127.0.0.1", upstream.port), login="me:secret") as proxy,
        client({"HTTPS_PROXY": proxy.url}, ca_file=ca_file) as http,
    ):
        for _ in range(2):
            request = HttpRequest("POST", f"https://{FAR}/v1", (("Authorization", "Bearer k"),), b"{}")
            assert await (await http.send(request, Timeouts())).read() == b"far"
        assert proxy.asked == [f"CONNECT {FAR}:443 HTTP/1.1"]
        assert "authorization" not in proxy.headers[0]
        assert not upstream.seen[0].header("proxy-authorization")
        assert len(upstream.connections) == 1


async def test_a_tunnel_inside_tls(authority: trustme.CA, ca_file: str) -> None:
    step = pieces(head() + chunk(b"far") + LAST)
    async with (
        Upstream([step], tls=served_by(authority, FAR)) as upstream,
        ForwardProxy(tls=served_by(authority, "localhost"), reach=("127.0.0.1", upstream.port)) as proxy,
        client({"HTTPS_PROXY": proxy.url}, ca_file=ca_file) as http,
    ):
        for _ in range(2):
            assert await (await http.send(post(f"https://{FAR}/", b"x" * 1_000_000), Timeouts())).read() == b"far"
        assert len(proxy.asked) == 1


async def test_plain_http_is_forwarded() -> None:
    async with (
        Upstream([answer(200, b"far")]) as upstream,
        ForwardProxy(reach=("127.0.0.1", upstream.port), login="me:secret") as proxy,
        client({"http_proxy": proxy.url}) as http,
    ):
        assert await (await http.send(post(f"http://{FAR}/v1?a=1"), Timeouts())).read() == b"far"
        assert proxy.asked == [f"POST http://{FAR}/v1?a=1 HTTP/1.1"]
        assert upstream.seen[0].target == "/v1?a=1"
        assert upstream.seen[0].header("host") == FAR


async def test_direct_goes_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(_host: str, port: int, **_: object) -> object:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    async with (
        Upstream([answer(200)]) as upstream,
        ForwardProxy(refuse=502) as proxy,
        client({"http_proxy": proxy.url}) as http,
    ):
        url = f"http://{FAR}:{upstream.port}/"
        assert (await http.send(post(url), Timeouts())).status == 502
        assert (await http.send(post(url), Timeouts(), past_proxy=True)).status == 200
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_password(scheme: str) -> None:
    async with ForwardProxy(login="me:secret") as proxy:
        wrong = proxy.url.replace("secret", "guess")
        async with client({f"{scheme}_proxy": wrong}) as http:
            fault = await failure(http.send(post(f"{scheme}://{FAR}/"), Timeouts()))
            assert (fault.code, kind(fault)) == (Code.NETWORK, "proxy")
            assert "user name and password" in fault.message
            assert f"{scheme}_proxy" in fault.hint
            assert "guess" not in fault.message + fault.hint
            assert not may_retry(fault)


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        (ForwardProxy(refuse=502), "answered 502"),
        (ForwardProxy(says=b"SSH-2.0\r\n\r\n", reach=("127.0.0.1", 1)), "gave no valid answer"),
    ],
)
async def test_a_proxy_that_refuses(proxy: ForwardProxy, words: str) -> None:
    async with proxy, client({"HTTPS_PROXY": proxy.url}) as http:
        fault = await failure(http.send(post(f"https://{FAR}/"), Timeouts()))
        assert (fault.code, kind(fault)) == (Code.NETWORK, "proxy")
        assert words in fault.message
        assert FAR in fault.message
        assert may_retry(fault)


async def test_a_proxy_that_is_not_there_is_named_with_its_variable() -> None:
    async with client({"HTTPS_PROXY": "http://me:secret@127.0.0.1:1"}) as http:
        fault = await failure(http.send(post(f"https://{FAR}/"), Timeouts()))
        assert (fault.message, kind(fault)) == ("the proxy 127.0.0.1:1 refuses connections", "refused")
        assert fault.hint.endswith("The proxy was named by HTTPS_PROXY.")


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_proxy_that_never_answers(how: str) -> None:
    async with ForwardProxy(silent=True) as proxy, client({"HTTPS_PROXY": proxy.url}) as http:
        sending = asyncio.ensure_future(http.send(post(f"https://{FAR}/"), Timeouts(connect=10)))
        await proxy.came.wait()
        if how == "timeout":
            later(11)
            fault = await failure(sending)
            assert kind(fault) == "connect_timeout"
            assert f"through the proxy 127.0.0.1:{proxy.port}" in fault.message
        else:
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending


@pytest.mark.parametrize("is_inside_tls", [False, True])
def test_certificate_of_the_origin_behind_a_tunnel_is_verified(
    authority: trustme.CA, ca_file: str, is_inside_tls: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        proxy_tls = served_by(authority, "localhost") if is_inside_tls else None
        async with (
            Upstream([answer(200)], tls=served_by(authority, "other.example")) as upstream,
            ForwardProxy(tls=proxy_tls, reach=("127.0.0.1", upstream.port)) as proxy,
            client({"HTTPS_PROXY": proxy.url}, ca_file=ca_file) as http,
        ):
            fault = await failure(http.send(post(f"https://{FAR}/"), Timeouts()))
            assert kind(fault) == "tls"
            assert fault.message == f"the certificate of {FAR} is for another host"
            assert "HTTPS_PROXY" not in fault.hint
            # The place of the failed connection is free again.
            assert kind(await failure(http.send(post(f"https://{FAR}/"), Timeouts()))) == "tls"

    told(story())
    assert not caplog.records


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


async def test_the_next_address_is_tried_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as server:
        port = server.getsockname()[1]
        named(monkeypatch, ("127.0.0.1", 1), ("::1", 1), ("127.0.0.1", port))
        with await connect_socket(asyncio.get_running_loop(), "a.example", port) as raw:
            assert raw.getpeername() == ("127.0.0.1", port)


async def test_both_kinds_of_address_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, ("::1", 1), ("::1", 2), ("127.0.0.1", 3), ("127.0.0.1", 4), ("127.0.0.1", 5))
    found = await addresses._addresses(asyncio.get_running_loop(), "a.example", 0)
    assert [address[1] for _, address in found] == [1, 3, 2, 4, 5]


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", (socket.AF_INET, ("127.0.0.1", 9))), ("::1", (socket.AF_INET6, ("::1", 9, 0, 0)))],
)
async def test_an_address_is_not_looked_up(host: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "getaddrinfo")
    assert await addresses._addresses(asyncio.get_running_loop(), host, 9) == [expected]


async def test_a_refusal_says_more_than_a_missing_route(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_loop: object, address: tuple[int, tuple[str, int]]) -> socket.socket:
        number = errno.ENETUNREACH if address[0] == socket.AF_INET6 else errno.ECONNREFUSED
        raise OSError(number, "")

    named(monkeypatch, ("::1", 1), ("127.0.0.1", 1))
    monkeypatch.setattr(addresses, "_connect", fail)
    with pytest.raises(ConnectionRefusedError):
        await _connect()
    named(monkeypatch, ("::1", 1), ("::1", 2))
    with pytest.raises(OSError) as caught:
        await _connect()
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


def test_hanging_dns_lookup_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_look_up_that_ends_after_it_was_given_up_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def late(*_: object, **__: object) -> list[Found]:
        answers.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", late)
    loop = asyncio.get_running_loop()
    looking = asyncio.ensure_future(connect_socket(loop, "late.example", 1))
    await turns(2)
    looking.cancel()
    await turns(2)
    answers.set()
    (thread,) = (each for each in threading.enumerate() if each.name == "look up late.example")
    await asyncio.to_thread(thread.join)
    await turns(2)


class Line(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


async def asked(*answers: bytes | None, authorization: str = "") -> tuple[int, bytes]:
    loop = asyncio.get_running_loop()
    tunnel, line = Tunnel(loop), Line()
    tunnel.connection_made(line)
    for reply in answers:
        loop.call_soon(*((tunnel.connection_lost, None) if reply is None else (tunnel.data_received, reply)))
    return await tunnel.connect("api.example.com:443", authorization), line.written


async def test_it_asks_for_the_origin_and_tells_the_password() -> None:
    status, written = await asked(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert status == 200
    assert written == b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"
    _, written = await asked(b"HTTP/1.0 200\r\n\r\n", authorization="Basic x")
    assert written.endswith(b"\r\nProxy-Authorization: Basic x\r\n\r\n")


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([b"HTTP/1.1 2", b"00 OK\r\nVia: x\r\n", b"\r\n"], 200),
        ([b"HTTP/1.1 407 No\r\nContent-Length: 4\r\n\r\nbody"], 407),
        ([b"HTTP/1.1 200 OK\r\n\r\nthe proxy speaks for the origin"], 0),
        ([b"SSH-2.0\r\n\r\n"], 0),
        ([b"x" * 70_000], 0),
        ([b"HTTP/1.1 200", None], 0),
        ([b"HTTP/1.1 200 OK\r\n\r\n", None], 200),
    ],
)
async def test_the_answer_is_a_status_or_nothing(answers: list[bytes | None], status: int) -> None:
    assert (await asked(*answers))[0] == status
