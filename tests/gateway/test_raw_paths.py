"""What no dialect understands passes to its provider and back as it is, over real sockets on both sides."""

import gzip
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pytest

from tests.gateway_server import Served, served
from tests.raw_upstream import RawRequest, RawUpstream, head, raw_upstream

KEY = "sk-of-the-client-0123456789"
OWN = "sk-configured-9876543210"


def echo(request: RawRequest) -> None:
    """What came, as JSON."""
    body = request.read()
    said = {"method": request.method, "target": request.target, "size": len(body), "sha256": sha256(body).hexdigest()}
    request.answer(200, json.dumps(said).encode(), ("content-type", "application/json"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream(echo) as made:
        yield made


@pytest.fixture(autouse=True)
def _fresh(upstream: RawUpstream) -> None:
    upstream.handle = echo
    upstream.seen.clear()


@pytest.fixture(scope="module")
def gateway(upstream: RawUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One upstream as every home, at another path for each, and as a provider with a key of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACME_KEY", OWN)
        config = f"""
[providers.openai]
base_url = "{upstream.url}/openai/v1"
key_env = ""
[providers.anthropic]
base_url = "{upstream.url}/anthropic"
key_env = ""
[providers.gemini]
base_url = "{upstream.url}/gemini/v1beta"
key_env = ""
[providers.acme]
base_url = "{upstream.url}/acme/v1"
key_env = "ACME_KEY"
query = {{ "api-version" = "7" }}
stream_idle_timeout_ms = 400
first_byte_timeout_ms = 400
[providers.speech]
base_url = "{upstream.url}/speech"
[[routes]]
path = "/v1/audio/*"
provider = "speech"
"""
        with served(tmp_path_factory.mktemp("raw"), config) as made:
            yield made


def ask(
    gateway: Served, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(urlsplit(gateway.url).netloc, timeout=30)
    try:
        connection.request(
            method, path, body, headers or {}, encode_chunked=bool((headers or {}).get("Transfer-Encoding"))
        )
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@contextmanager
def wired(gateway: Served, data: bytes) -> Iterator[socket.socket]:
    """A connection over which these bytes have been sent."""
    with socket.create_connection(("127.0.0.1", urlsplit(gateway.url).port), timeout=60) as wire:
        wire.sendall(data.replace(b"HOST", urlsplit(gateway.url).netloc.encode()))
        yield wire


def talk(gateway: Served, data: bytes) -> bytes:
    """Everything that is answered to these bytes, until the server closes."""
    with wired(gateway, data) as wire, wire.makefile("rb") as stream:
        return stream.read()


def lines_of_head(stream: BinaryIO) -> list[str]:
    return [line.strip().decode() for line in iter(stream.readline, b"\r\n")]


def view(gateway: Served, response: HTTPResponse) -> Any:
    return gateway.api(f"/api/exchanges/{response.headers['x-sightline-exchange']}")


def latest(gateway: Served) -> Any:
    return gateway.api("/api/exchanges?limit=1")["exchanges"][0]


# --- whose a path is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "target"),
    [
        ("/v1/files?limit=2", {}, "/openai/v1/files?limit=2"),
        ("/v1/v1/files", {}, "/openai/v1/files"),
        ("/files", {}, "/openai/v1/files"),
        ("//v1/files/", {}, "/openai/v1/files/"),
        ("/v1/files", {"anthropic-version": "2023-06-01"}, "/anthropic/v1/files"),
        ("/v1/messages/batches", {"x-api-key": KEY}, "/anthropic/v1/messages/batches"),
        ("/messages/batches", {}, "/anthropic/messages/batches"),
        ("/v1beta/files", {}, "/gemini/v1beta/files"),
        ("/v1alpha/tunedModels", {}, "/gemini/v1alpha/tunedModels"),
        ("/v1internal:loadCodeAssist", {}, "/gemini/v1internal:loadCodeAssist"),
        ("/upload/v1beta/files", {}, "/gemini/upload/v1beta/files"),
        ("/v1/interactions", {"x-goog-api-key": KEY}, "/gemini/v1/interactions"),
        ("/v1beta/models/m:predict", {}, "/gemini/v1beta/models/m:predict"),
        ("/p/acme/v1/anything/at/all", {}, "/acme/v1/anything/at/all?api-version=7"),
        ("/p/acme/anything", {}, "/acme/v1/anything?api-version=7"),
        ("/s/task/p/acme/v2/other", {}, "/acme/v2/other?api-version=7"),
        ("/v1/audio/speech", {}, "/speech/v1/audio/speech"),
        ("/p/openai/v1/audio/speech", {}, "/openai/v1/audio/speech"),
    ],
)
def test_a_path_goes_to_the_provider_whose_it_is(
    gateway: Served, path: str, headers: dict[str, str], target: str
) -> None:
    response, body = ask(gateway, "POST", path, b"{}", headers)
    assert (response.status, json.loads(body)["target"]) == (200, target)


@pytest.mark.parametrize("path", ["/robots.txt", "/nothing/here", "/p/nobody/v1/files"])
def test_a_path_of_no_provider_is_not_found_and_not_recorded(gateway: Served, upstream: RawUpstream, path: str) -> None:
    response, body = ask(gateway, "GET", path)
    assert response.status == 404
    assert json.loads(body)["error"]["message"]
    assert "x-sightline-exchange" not in response.headers
    assert upstream.seen == []


@pytest.mark.parametrize("path", ["/v1/files/../../admin", "/v1/files/%2e%2e/x", "/p/acme/..%2f..%2fadmin", "/v1/a\\b"])
def test_a_path_that_leads_out_of_the_base_url_is_refused(gateway: Served, upstream: RawUpstream, path: str) -> None:
    told = talk(gateway, b"GET " + path.encode() + b" HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 400 ")
    assert upstream.seen == []


def test_model_lists_are_still_our_own_and_other_methods_on_them_pass(gateway: Served, upstream: RawUpstream) -> None:
    assert "data" in json.loads(ask(gateway, "GET", "/v1/models")[1])
    assert upstream.seen == []
    assert json.loads(ask(gateway, "DELETE", "/v1/models/ft:mine")[1])["method"] == "DELETE"


# --- what passes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_passes(gateway: Served, method: str) -> None:
    assert json.loads(ask(gateway, method, "/v1/things/1?a=%20&b")[1])["method"] == method
    line = latest(gateway)
    assert (line["dialect"], line["state"], line["status"]) == ("raw-http", "finished", 200)
    assert (line["method"], line["path"]) == (method, "/v1/things/1?a=%20&b")


def test_headers_pass_both_ways_but_for_those_of_a_connection(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        request.answer(202, b"ok", ("X-One", "1"), ("x-one", "2"), ("connection", "x-hop"), ("x-hop", "1"),
                       ("x-ratelimit-remaining-requests", "7"), ("set-cookie", "a=b"))  # fmt: skip

    upstream.handle = answer
    sent = {"X-Mine": "é", "x-sightline-strict": "1", "Cookie": "c=1", "Accept-Encoding": "br", "OpenAI-Beta": "v2"}
    response, body = ask(gateway, "GET", "/v1/things", None, sent)
    assert (response.status, body) == (202, b"ok")
    assert response.headers.get_all("x-one") == ["1", "2"]
    assert response.headers["x-ratelimit-remaining-requests"] == "7"
    assert "x-hop" not in response.headers
    assert "x-request-id" not in response.headers
    seen = upstream.seen[0]
    assert (seen.header("x-mine"), seen.header("accept-encoding"), seen.header("openai-beta")) == ("é", "br", "v2")
    assert not {"cookie", "x-sightline-strict"} & {name.lower() for name, _ in seen.headers}


def test_a_body_of_any_type_passes_and_is_on_record(gateway: Served) -> None:
    data = bytes(range(256)) * 3000
    response, body = ask(gateway, "POST", "/v1/files", data, {"content-type": "multipart/form-data; boundary=x"})
    assert json.loads(body)["sha256"] == sha256(data).hexdigest()
    shown = view(gateway, response)
    request = shown["raw"]["request"]
    assert (request["size"], request["sha256"]) == (len(data), sha256(data).hexdigest())
    assert request["media_type"] == "multipart/form-data; boundary=x"
    assert shown["hashes"] == {"received": sha256(data).hexdigest(), "sent": sha256(data).hexdigest(),
                               "reply": sha256(body).hexdigest()}  # fmt: skip
    exchange = response.headers["x-sightline-exchange"]
    assert gateway.body(exchange, "received") == gateway.body(exchange, "sent") == data
    assert gateway.body(exchange, "reply") == body


def test_chunks_pass_as_chunks_with_their_trailers(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        body = request.read()
        request.say(head(200, ("transfer-encoding", "chunked"), ("content-type", "text/plain")))
        request.say(b"%x\r\n%b\r\n0\r\nx-sum: 42\r\nset-cookie: a=b\r\n\r\n" % (len(body), body))

    upstream.handle = answer
    told = talk(
        gateway,
        b"PUT /v1/things HTTP/1.1\r\nhost: HOST\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\nX-Check: ok\r\nauthorization: Bearer no\r\n\r\n"
        b"GET /v1/models HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
    )
    assert b"5\r\nabcde\r\n0\r\nx-sum: 42\r\n\r\nHTTP/1.1 200 OK" in told  # and the connection goes on
    seen = upstream.seen[0]
    assert seen.header("te") == "trailers"
    assert seen.trailers == [("x-check", "ok")]


def test_a_coded_body_passes_as_it_came_and_is_kept_decoded(gateway: Served, upstream: RawUpstream) -> None:
    plain = b'{"a": 1}' * 100

    def answer(request: RawRequest) -> None:
        assert request.read() == gzip.compress(plain, mtime=0)
        request.answer(200, gzip.compress(plain), ("content-encoding", "gzip"), ("content-type", "application/json"))

    upstream.handle = answer
    response, body = ask(gateway, "POST", "/v1/x", gzip.compress(plain, mtime=0), {"content-encoding": "gzip"})
    assert gzip.decompress(body) == plain
    shown = view(gateway, response)
    assert shown["raw"]["request"]["sha256"] == shown["raw"]["reply"]["sha256"] == sha256(plain).hexdigest()
    assert gateway.body(shown["id"], "reply") == gateway.body(shown["id"], "sent") == plain


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_pass_and_are_not_followed(gateway: Served, upstream: RawUpstream, status: int) -> None:
    upstream.handle = lambda request: request.answer(status, b"", ("location", "https://elsewhere.example/x"))
    response, _ = ask(gateway, "GET", "/v1/files/1/content")
    assert (response.status, response.headers["location"]) == (status, "https://elsewhere.example/x")
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("method", "told", "answered"),
    [
        ("HEAD", head(200, ("content-length", "12345")), b"content-length: 12345"),
        ("GET", head(304, ("content-length", "12345"), ("etag", '"x"')), b'etag: "x"'),
        ("DELETE", head(204, ("x-a", "1")), b"x-a: 1"),
    ],
)
def test_answers_without_a_body_have_none(
    gateway: Served, upstream: RawUpstream, method: str, told: bytes, answered: bytes
) -> None:
    upstream.handle = lambda request: request.say(told)
    got = talk(
        gateway,
        f"{method} /v1/files/1 HTTP/1.1\r\nhost: HOST\r\n\r\n".encode()
        + b"GET /v1/models HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n",
    )
    first, _, rest = got.partition(b"\r\n\r\n")
    assert answered in first
    assert rest.startswith(b"HTTP/1.1 200 OK")
    assert b"transfer-encoding" not in first


def test_what_comes_before_the_answer_passes_too(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        request.say(head(103, ("link", "</a>")) + head(100))
        request.answer(200, b"ok")

    upstream.handle = answer
    told = talk(gateway, b"GET /v1/x HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_a_client_that_waits_for_leave_gets_it(gateway: Served) -> None:
    asked = b"PUT /v1/x HTTP/1.1\r\nhost: HOST\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
    with wired(gateway, asked) as wire:
        assert wire.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(b"abc")
        assert wire.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


# --- piece by piece ---------------------------------------------------------------------------------


def test_the_answer_may_begin_before_the_request_has_ended(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        request.say(head(200, ("transfer-encoding", "chunked")))
        for piece in request.pieces():
            request.say(b"%x\r\n%b\r\n" % (len(piece), piece.upper()))
        request.say(b"0\r\n\r\n")

    upstream.handle = answer
    asked = b"POST /v1/x HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n"
    with wired(gateway, asked) as wire, wire.makefile("rb") as stream:
        lines_of_head(stream)
        for word in (b"one", b"two"):
            wire.sendall(b"3\r\n" + word + b"\r\n")
            assert stream.read(8) == b"3\r\n" + word.upper() + b"\r\n"
        wire.sendall(b"0\r\n\r\n")
        assert stream.read(5) == b"0\r\n\r\n"


def test_a_large_body_passes_both_ways_in_little_memory(gateway: Served, upstream: RawUpstream) -> None:
    piece, count = bytes(range(256)) * 1024, 400  # 100 MB each way

    def answer(request: RawRequest) -> None:
        request.say(head(200, ("content-length", str(len(piece) * count)), ("content-type", "video/mp4")))
        for each in request.pieces():
            request.say(each)

    upstream.handle = answer
    digest = sha256()
    before = _resident_kb()
    most = 0
    size = len(piece) * count
    asked = b"POST /v1/videos HTTP/1.1\r\nhost: HOST\r\ncontent-length: %d\r\n\r\n" % size
    with wired(gateway, asked) as wire, wire.makefile("rb") as stream:

        def send() -> None:
            for _ in range(count):
                wire.sendall(piece)

        sending = threading.Thread(target=send)
        sending.start()
        lines = lines_of_head(stream)
        left = size
        while left:
            data = stream.read(min(left, 1 << 20))
            digest.update(data)
            left -= len(data)
            most = max(most, _resident_kb())
        sending.join()
    exchange = next(line.partition(": ")[2] for line in lines if line.startswith("x-sightline-exchange"))
    wanted = sha256(piece * count).hexdigest()
    assert digest.hexdigest() == wanted
    shown = gateway.api(f"/api/exchanges/{exchange}?frames=0")
    for each in (shown["raw"]["request"], shown["raw"]["reply"]):
        assert (each["size"], each["sha256"], each["kept"]) == (size, wanted, 8 << 20)
    assert most - before < 120_000  # 16 MB are kept of it; the rest of the program is at work too


def test_a_client_that_does_not_read_makes_the_provider_wait_and_loses_nothing(
    gateway: Served, upstream: RawUpstream
) -> None:
    piece, count = bytes(range(256)) * 1024, 400  # 100 MB
    blocked = threading.Event()
    sent: list[int] = []

    def answer(request: RawRequest) -> None:
        request.say(head(200, ("content-length", str(len(piece) * count)), ("content-type", "video/mp4")))
        for number in range(count):
            if not select.select([], [request.talk], [], 1)[1]:
                sent.append(number)
                blocked.set()
            request.say(piece)

    upstream.handle = answer
    before = _resident_kb()
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.settimeout(60)
        wire.connect(("127.0.0.1", urlsplit(gateway.url).port))
        wire.sendall(f"GET /v1/videos HTTP/1.1\r\nhost: {urlsplit(gateway.url).netloc}\r\n\r\n".encode())
        assert blocked.wait(60)
        assert _resident_kb() - before < 60_000
        with wire.makefile("rb") as stream:
            lines_of_head(stream)
            digest = sha256()
            for _ in range(count):
                digest.update(stream.read(len(piece)))
    assert digest.hexdigest() == sha256(piece * count).hexdigest()
    assert sent[0] < count // 2
    assert latest(gateway)["state"] == "finished"


def _resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


# --- credentials ------------------------------------------------------------------------------------


def test_a_configured_key_takes_the_place_of_the_clients_and_neither_is_on_record(
    gateway: Served, upstream: RawUpstream
) -> None:
    def answer(request: RawRequest) -> None:
        request.answer(200, f"you are {OWN}".encode(), ("content-type", "text/plain"), ("x-key", OWN))

    upstream.handle = answer
    response, body = ask(gateway, "GET", f"/p/acme/v1/me?key={KEY}", None, {"Authorization": f"Bearer {KEY}"})
    seen = upstream.seen[0]
    assert seen.header("authorization") == f"Bearer {OWN}"
    assert KEY not in seen.target
    assert body.strip() == b"you are ***"
    assert len(body) == int(response.headers["content-length"])
    assert response.headers["x-key"] == "***"
    shown = json.dumps(view(gateway, response))
    assert KEY not in shown
    assert OWN not in shown
    assert latest(gateway)["path"] == "/v1/me?key=***"


def test_the_clients_own_credential_reaches_its_home(gateway: Served, upstream: RawUpstream) -> None:
    ask(gateway, "GET", "/v1/files", None, {"Authorization": f"Bearer {KEY}"})
    assert upstream.seen[0].header("authorization") == f"Bearer {KEY}"


def test_a_coded_answer_with_a_configured_key_breaks_off(gateway: Served, upstream: RawUpstream) -> None:
    data = gzip.compress(OWN.encode())
    upstream.handle = lambda request: request.answer(200, data, ("content-encoding", "gzip"))
    told = talk(gateway, b"GET /p/acme/v1/me HTTP/1.1\r\nhost: HOST\r\n\r\n")
    assert data not in told
    assert latest(gateway)["fault"] == "upstream_protocol"


# --- what goes wrong --------------------------------------------------------------------------------


def test_the_providers_error_is_the_clients_with_retry_after(gateway: Served, upstream: RawUpstream) -> None:
    told = b'{"error": {"message": "slow down", "type": "rate_limit", "code": "rate_limit_exceeded"}}'
    upstream.handle = lambda request: request.answer(429, told, ("retry-after", "3"))
    response, body = ask(gateway, "POST", "/v1/images", b"{}")
    assert (response.status, body, response.headers["retry-after"]) == (429, told, "3")
    assert len(upstream.seen) == 1
    line = latest(gateway)
    assert (line["state"], line["status"], line["fault"]) == ("failed", 429, "rate_limited")
    assert "slow down" in line["message"]


def test_an_answer_that_is_cut_does_not_look_whole(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        request.say(head(200, ("content-length", "10")) + b"abc")
        time.sleep(0.05)
        request.reset()

    upstream.handle = answer
    told = talk(gateway, b"GET /p/acme/v1/x HTTP/1.1\r\nhost: HOST\r\n\r\n")
    assert told.endswith(b"\r\n\r\nabc")
    line = latest(gateway)
    assert (line["state"], line["fault"]) == ("failed", "network")


def test_an_answer_that_stalls_breaks_off(gateway: Served, upstream: RawUpstream) -> None:
    def answer(request: RawRequest) -> None:
        request.say(head(200, ("transfer-encoding", "chunked")) + b"3\r\nabc\r\n")
        request.talk.recv(1)

    upstream.handle = answer
    told = talk(gateway, b"GET /p/acme/v1/x HTTP/1.1\r\nhost: HOST\r\n\r\n")
    assert told.endswith(b"3\r\nabc\r\n")
    assert latest(gateway)["fault"] == "timeout_idle"


def test_no_answer_is_the_gateways_own_error(gateway: Served, upstream: RawUpstream) -> None:
    upstream.handle = lambda request: request.reset()
    response, body = ask(gateway, "POST", "/p/acme/v1/x", b"{}")
    assert response.status == 502
    assert json.loads(body)["error"]["message"]
    assert latest(gateway)["fault"] == "network"
    upstream.handle = lambda request: request.talk.recv(1) and None
    assert ask(gateway, "GET", "/p/acme/v1/x")[0].status == 504


def test_an_early_refusal_reaches_a_client_that_is_still_sending(gateway: Served, upstream: RawUpstream) -> None:
    upstream.handle = lambda request: request.answer(413, b'{"error": {"message": "too large"}}')
    response, body = ask(gateway, "POST", "/v1/files", iter([b"x" * 65536] * 200), {"Transfer-Encoding": "chunked"})
    assert (response.status, body) == (413, b'{"error": {"message": "too large"}}')


def test_a_client_that_leaves_ends_the_request_at_the_provider(gateway: Served, upstream: RawUpstream) -> None:
    gone: list[bool] = []

    def answer(request: RawRequest) -> None:
        with pytest.raises(ConnectionError):
            request.read()
        gone.append(True)

    upstream.handle = answer
    with wired(gateway, b"POST /v1/x HTTP/1.1\r\nhost: HOST\r\ncontent-length: 1000\r\n\r\nabc"):
        while not upstream.seen:
            time.sleep(0.01)
    while not gone:
        time.sleep(0.01)
    while latest(gateway)["state"] == "sending":
        time.sleep(0.01)
    assert latest(gateway)["state"] == "cancelled"


def test_a_broken_chunk_of_the_client_reaches_no_end_at_the_provider(gateway: Served, upstream: RawUpstream) -> None:
    told = talk(gateway, b"POST /v1/x HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")
    assert told.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "told", [b"this is no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"]
)
def test_an_answer_that_is_no_http_is_an_error(gateway: Served, upstream: RawUpstream, told: bytes) -> None:
    upstream.handle = lambda request: request.say(told)
    assert ask(gateway, "GET", "/p/acme/v1/x")[0].status == 502
