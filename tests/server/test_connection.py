import json
import socket
import threading
from collections.abc import Iterator

import pytest

from sightline.errors import Code, Fault
from sightline.server.heads import MOST_HEAD_BYTES
from tests.server.running import Running, Told, running

ASK = b'{"model":"m"}'


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        yield made


def head(server: Running, path: str, *more: str, body: bytes = ASK) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"host: {server.host}", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def told(said: bytes) -> tuple[int, dict[str, object]]:
    first, _, body = said.partition(b"\r\n\r\n")
    return int(first.split(b" ", 2)[1]), json.loads(body.removeprefix(b"2\r\n").removesuffix(b"\r\n0\r\n\r\n"))


def test_a_head_of_64_kib_is_refused_in_the_clients_dialect(server: Running) -> None:
    large = f"x-large: {'x' * MOST_HEAD_BYTES}"
    status, body = told(server.raw(head(server, "/v1/messages", large)))
    assert status == 431
    assert body["type"] == "error"
    status, body = told(server.raw(head(server, "/v1beta/models/m:generateContent", large)))
    assert status == 431
    assert body["error"]["code"] == 431  # type: ignore[index]


def test_a_head_that_arrives_in_two_pieces_is_counted_whole(server: Running) -> None:
    data = head(server, "/v1/messages", f"x-large: {'x' * MOST_HEAD_BYTES}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talk.sendall(data[:60_000])
        server.ask("GET", "/v1/models")  # the first piece has been read by the time this is answered
        talk.sendall(data[60_000:])
        assert b" 431 " in talk.recv(65536)


def test_many_headers_and_long_paths_count_too(server: Running) -> None:
    many = [f"x-{number}: {'x' * 60}" for number in range(1000)]
    assert told(server.raw(head(server, "/v1/messages", *many)))[0] == 431
    assert told(server.raw(head(server, f"/v1/messages?{'x' * MOST_HEAD_BYTES}")))[0] == 431


def test_a_head_that_never_ends_is_refused(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.sendall(b"POST /v1/messages HTTP/1.1\r\nx-endless: ")
        said = b""
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012 - it takes many to be refused
            while True:
                talk.sendall(b"x" * 65536)
        try:
            said = talk.recv(65536)
        except ConnectionResetError:
            return  # the refusal was overtaken by the end of the connection
    assert b" 431 " in said


def test_a_large_head_is_no_reason_to_refuse(server: Running) -> None:
    large = [f"x-{number}: {'x' * 1000}" for number in range(60)]
    assert told(server.raw(head(server, "/v1/messages", *large, "connection: close")))[0] == 200


def test_the_limit_is_for_each_request_of_a_connection(server: Running) -> None:
    large = f"x-large: {'x' * 40_000}"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        stream = talk.makefile("rb")
        for _ in range(4):
            talk.sendall(head(server, "/v1/messages", large, body=b'{"model":"m","x":"' + b"x" * 100_000 + b'"}'))
            assert b" 200 " in stream.readline()
            while stream.readline().strip():
                pass
            assert stream.readline() == b"2\r\n"
            assert stream.read(9) == b"{}\r\n0\r\n\r\n"
        stream.close()


@pytest.mark.parametrize(
    "said",
    [b"nonsense\r\n\r\n", b"GET /v1/models HTTP/1.1\r\nhost 127.0.0.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"],
)
def test_what_is_no_http_is_a_bad_request(server: Running, said: bytes) -> None:
    status, body = told(server.raw(said))
    assert status == 400
    assert "HTTP" in body["error"]["message"]  # type: ignore[index]


def test_two_lengths_are_a_bad_request(server: Running) -> None:
    before = len(server.relay.asked)
    smuggled = head(server, "/v1/messages", "transfer-encoding: chunked")
    assert told(server.raw(smuggled))[0] == 400
    assert len(server.relay.asked) == before


def test_a_client_that_hangs_up_ends_its_request_at_once(server: Running) -> None:
    never = server.event()
    server.relay.answer = Told([b"data: 1\n\n", never], headers=[(b"content-type", b"text/event-stream")])
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.sendall(head(server, "/v1/messages"))
        said = b""
        while b"data: 1" not in said:
            said += talk.recv(1024)
    assert server.relay.answer.was_left.wait(20)
    server.relay.answer = Told()


def test_a_client_that_hangs_up_before_the_answer_begins_does_too(server: Running) -> None:
    began, ended = threading.Event(), threading.Event()

    async def waits(_asked: object) -> Told:
        began.set()
        try:
            await server.event().wait()
        finally:
            ended.set()
        raise AssertionError

    server.relay.answering = waits
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.sendall(head(server, "/v1/messages"))
        assert began.wait(20)
    assert ended.wait(20)
    server.relay.answering = None


@pytest.mark.parametrize("offer", ["Upgrade: h2c", "upgrade:h2c "])
def test_an_offer_of_http_2_is_not_taken_and_the_body_not_lost(server: Running, offer: str) -> None:
    java = [
        offer,
        "Connection: Upgrade, HTTP2-Settings, close",
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    ]
    assert told(server.raw(head(server, "/v1/messages", *java)))[0] == 200
    assert server.relay.asked[-1].body == ASK


def test_a_word_in_a_body_is_no_offer(server: Running) -> None:
    body = b'{"model":"m","x":"\\r\\nupgrade: h2c"}'
    assert told(server.raw(head(server, "/v1/messages", "connection: close", body=body)))[0] == 200
    assert server.relay.asked[-1].body == body


def test_trailers_are_no_headers(server: Running) -> None:
    server.relay.answer = Told()
    seen = len(server.relay.asked)
    chunked = b"%x\r\n%s\r\n0\r\nauthorization: Bearer sk-trailer\r\nx-late: 1\r\n\r\n" % (len(ASK), ASK)
    lines = ["POST /v1/messages HTTP/1.1", f"host: {server.host}", "transfer-encoding: chunked", "trailer: x-late"]
    server.raw("\r\n".join([*lines, "connection: close", "", ""]).encode() + chunked)
    names = {name for name, _ in server.relay.asked[seen].headers}
    assert server.relay.asked[seen].body == ASK
    assert not names & {"authorization", "x-late"}


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection(server: Running, is_whole: bool) -> None:
    pieces = [b"data: 1\n\n", b"data: 2\n\n"] if is_whole else [b"data: 1\n\n", Fault(Code.NETWORK, "gone")]
    server.relay.answer = Told(pieces, headers=[(b"content-type", b"text/event-stream")])
    lines = ["POST /v1/messages HTTP/1.0", f"host: {server.host}", f"content-length: {len(ASK)}", "", ""]
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.sendall("\r\n".join(lines).encode() + ASK)
        said = b""
        try:
            while data := talk.recv(65536):
                said += data
        except ConnectionResetError:
            assert not is_whole
            return
    assert is_whole, "what broke off must not look whole"
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"data: 1\n\ndata: 2\n\n"


def test_requests_that_come_at_once_are_answered_in_their_order(server: Running) -> None:
    async def answering(asked: object) -> Told:
        body: bytes = asked.body  # type: ignore[attr-defined]
        return Told([body], headers=[(b"content-length", str(len(body)).encode())])

    server.relay.answering = answering
    bodies = [b'{"model":"m","n":%d}' % number for number in range(3)]
    first, second = (head(server, "/v1/messages", body=each) for each in bodies[:2])
    said = server.raw(first + second + head(server, "/v1/messages", "connection: close", body=bodies[2]) + b"ignored")
    server.relay.answering = None
    assert [said.find(each) for each in bodies] == sorted(said.find(each) for each in bodies)
    assert said.count(b"HTTP/1.1 200 OK") == 3


def test_nonsense_behind_a_request_is_refused_behind_its_answer(server: Running) -> None:
    server.relay.answer = Told()
    said = server.raw(head(server, "/v1/messages") + b"nonsense\r\n\r\n")
    assert said.index(b" 200 ") < said.index(b" 400 ")


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("transfer-encoding: chunked", b"x\r\n"),
        ("transfer-encoding: chunked", b"5\r\nabcdefgh\r\n0\r\n\r\n"),
        ("transfer-encoding: gzip", b"{}"),
        ("transfer-encoding: chunked, identity", b"{}"),
        ("transfer-encoding : chunked", b"0\r\n\r\n"),
        ("content-length: 2\r\ncontent-length: 3", b"{}"),
        ("content-length: +2", b"{}"),
        ("content-length: 2\r\n continued", b"{}"),
    ],
)
def test_a_body_whose_end_two_readers_could_see_differently_is_refused(
    server: Running, framing: str, body: bytes
) -> None:
    before = len(server.relay.asked)
    said = server.raw(f"POST /v1/messages HTTP/1.1\r\nhost: {server.host}\r\n{framing}\r\n\r\n".encode() + body)
    assert told(said)[0] == 400
    assert len(server.relay.asked) == before


def test_a_client_that_waits_for_leave_to_send_gets_it(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk:
        talk.sendall(head(server, "/v1/messages", "expect: 100-continue", "connection: close").removesuffix(ASK))
        assert talk.recv(1024) == b"HTTP/1.1 100 Continue\r\n\r\n"
        talk.sendall(ASK)
        assert b" 200 " in talk.recv(1024)


def test_a_body_that_was_not_read_is_no_request(server: Running) -> None:
    body = b"GET /v1/models HTTP/1.1\r\n\r\n" * 10_000
    asked = f"POST /v1/nothing HTTP/1.1\r\nhost: {server.host}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    said = server.raw(asked + head(server, "/v1/messages", "connection: close"))
    assert said.count(b"HTTP/1.1 ") == 2
    assert said.count(b" 200 ") == 1
