import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.transport.http.client import request_head
from sightline.transport.http.proxies import Proxies, Proxy
from sightline.transport.http.target import target
from sightline.wire.call import HttpRequest

URL = "https://api.example.com/v1/chat?stream=1"


def head(*headers: tuple[str, str], method: str = "POST", body: bytes = b"{}", url: str = URL) -> list[str]:
    written = request_head(HttpRequest(method, url, headers, body), target(url), None)
    assert written.endswith(b"\r\n\r\n")
    return written.decode("latin-1").split("\r\n")[:-2]


def test_ours_come_first_and_the_given_ones_keep_order_and_spelling() -> None:
    line, *fields = head(("X-B", "2"), ("authorization", "Bearer k"), ("X-A", "1"), ("X-B", "3"))
    assert line == "POST /v1/chat?stream=1 HTTP/1.1"
    assert fields[:3] == ["Host: api.example.com", "Content-Length: 2", "Accept-Encoding: identity"]
    assert fields[3].startswith("User-Agent: sightline/")
    assert fields[4:] == ["X-B: 2", "authorization: Bearer k", "X-A: 1", "X-B: 3"]


def test_what_is_given_is_not_said_twice() -> None:
    given_headers = [("host", "other"), ("accept-encoding", "gzip"), ("USER-AGENT", "me"), ("content-length", "2")]
    assert head(*given_headers)[1:] == ["host: other", "accept-encoding: gzip", "USER-AGENT: me", "content-length: 2"]


def test_who_passes_on_does_not_say_whose_program_it_is() -> None:
    written = request_head(HttpRequest("POST", URL, (), b"{}", is_passed_on=True), target(URL), None)
    assert b"user-agent" not in written.lower()


def test_a_get_without_a_body_tells_no_length_and_a_post_does() -> None:
    assert not [field for field in head(method="GET", body=b"") if field.startswith("Content-Length")]
    assert "Content-Length: 0" in head(method="POST", body=b"")
    assert "Content-Length: 3" in head(method="GET", body=b"abc")


def test_a_forwarding_proxy_gets_the_whole_url_and_its_password() -> None:
    proxies = Proxies.of({"http_proxy": "http://u:p@proxy.example:3128"})
    aim = target("http://a.example:81/x?y=1")
    written = request_head(HttpRequest("GET", "", (), b""), aim, proxies.for_origin(aim.origin)).decode()
    assert written.startswith("GET http://a.example:81/x?y=1 HTTP/1.1\r\nHost: a.example:81\r\n")
    assert "\r\nProxy-Authorization: Basic dTpw\r\n" in written


def test_a_forwarding_proxy_without_a_password_gets_none() -> None:
    proxy = Proxy("http", "proxy.example", 3128, "http_proxy")
    assert b"Proxy-" not in request_head(HttpRequest("GET", "", (), b""), target("http://a.example/"), proxy)


def test_the_origin_behind_a_tunnel_never_sees_the_proxys_password() -> None:
    proxy = Proxy("http", "proxy.example", 3128, "HTTPS_PROXY", "Basic dTpw")
    written = request_head(HttpRequest("GET", "", (), b""), target(URL), proxy)
    assert written.startswith(b"GET /v1/chat?stream=1 HTTP/1.1\r\n")
    assert b"dTpw" not in written


@pytest.mark.parametrize(
    "headers",
    [
        [("X-A", "1\r\nX-B: 2")],
        [("X-A", "1\n")],
        [("X-A", "1\0")],
        [("X-A", "snow ☃")],
        [("X-A: 1\r\nX-B", "2")],
        [("X A", "1")],
        [("", "1")],
        [("Content-Length", "3")],
        [("Content-Length", "2"), ("content-length", "2")],
        [("Host", "a"), ("host", "b")],
        [("Transfer-Encoding", "chunked")],
        [("Connection", "close")],
        [("Expect", "100-continue")],
        [("Proxy-Authorization", "Basic x")],
    ],
)
def test_a_header_that_would_change_the_message_is_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Fault) as caught:
        head(*headers)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint


def test_the_value_of_a_refused_header_is_not_repeated() -> None:
    with pytest.raises(Fault) as caught:
        head(("Authorization", "Bearer secret\n"))
    assert "secret" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("method", ["", "GET /", "G\r\nX", "CONNECT"])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    with pytest.raises(Fault) as caught:
        head(method=method)
    assert caught.value.code is Code.INVALID_REQUEST


class Heard:
    """A server's view of a request."""

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.requests = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1"), value.decode("latin-1").strip(" \t")))

    def on_message_complete(self) -> None:
        self.requests += 1


TEXT = st.text(st.characters(max_codepoint=0x2FF), max_size=12) | st.text("a:\r\n\0 \t", max_size=8)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=4))
def test_no_headers_make_a_second_header_or_a_second_request(headers: list[tuple[str, str]]) -> None:
    request = HttpRequest("POST", URL, tuple(headers), b"{}")
    try:
        written = request_head(request, target(URL), None)
    except Fault:
        return
    heard = Heard()
    httptools.HttpRequestParser(heard).feed_data(written + request.body)
    assert heard.requests == 1
    ours = len(heard.headers) - len(headers)
    assert 0 <= ours <= 4
    assert heard.headers[ours:] == [(name, value.strip(" \t")) for name, value in headers]
