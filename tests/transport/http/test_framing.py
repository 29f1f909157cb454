import gc
import weakref
from collections.abc import Sequence

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.transport.http.framing import HEAD_LIMIT, AnswerParser, AnswerShape, request_head
from sightline.transport.http.target import Proxies, Proxy, target
from sightline.wire.call import HttpRequest
from tests.transport.http.asking import kind

PLACE = "api.example.com"


def heard(*data: bytes, clean: bool | None = None, bodiless: bool = False) -> AnswerParser:
    """What a parser makes of these reads; `clean` is how the connection ended, if it did."""
    parser = AnswerParser(PLACE, bodiless=bodiless)
    for part in data:
        if part and not parser.is_over():
            parser.feed(part)
    if clean is not None:
        parser.feed_eof(clean=clean)
    return parser


def failed(*data: bytes, clean: bool | None = None) -> Fault:
    fault = heard(*data, clean=clean).fault
    assert fault is not None
    return fault


def test_a_whole_answer() -> None:
    parser = heard(b"HTTP/1.1 200 All Right\r\nX-One: 1\r\nx-one:  2 \r\nX-None:\r\nContent-Length: 2\r\n\r\nhi")
    assert parser.status == 200
    assert parser.headers == [(b"X-One", b"1"), (b"x-one", b"2"), (b"X-None", b""), (b"Content-Length", b"2")]
    assert parser.pieces == [b"hi"]
    assert parser.is_complete
    assert parser.keeps_alive


def test_chunks_are_unwrapped_and_trailers_are_no_headers() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n1\r\n!\r\n0\r\nX-Late: 1\r\n\r\n"
    parser = heard(data)
    assert b"".join(parser.pieces) == b"hi!"
    assert parser.headers == [(b"Transfer-Encoding", b"chunked")]
    assert parser.is_complete


def test_interim_answers_are_passed_over_with_their_headers() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 Done\r\nA: b\r\n\r\n"
    parser = heard(data)
    assert (parser.status, parser.headers) == (204, [(b"A", b"b")])
    assert parser.is_complete


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    assert not heard(data).is_complete
    parser = heard(data, clean=True)
    assert parser.is_complete
    assert not parser.keeps_alive
    assert parser.pieces == [b"until the end"]


def test_an_old_server_s_answer_is_taken_and_its_connection_is_not() -> None:
    parser = heard(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    assert parser.is_complete
    assert not parser.keeps_alive


@pytest.mark.parametrize(
    "after",
    [b"more", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", b"\0"],
)
def test_bytes_after_a_response_are_ignored_and_end_the_connection(after: bytes) -> None:
    parser = heard(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" + after)
    assert parser.is_complete
    assert parser.fault is None
    assert parser.pieces == [b"hi"]
    assert parser.headers == [(b"Content-Length", b"2")]
    assert not parser.keeps_alive


def test_an_answer_to_head_has_no_body_whatever_it_says() -> None:
    parser = heard(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nhi", bodiless=True)
    assert parser.is_complete
    assert not parser.pieces
    assert not parser.keeps_alive


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"<html>",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX\0: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: 1\r\n  folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ],
)
def test_what_is_not_http_as_we_take_it_is_refused(data: bytes) -> None:
    fault = failed(data)
    assert fault.code is Code.UPSTREAM_PROTOCOL
    assert PLACE in fault.message
    assert fault.details == {"kind": "malformed", "bytes": True}


def test_a_bad_chunk_does_not_take_the_good_ones_with_it() -> None:
    parser = heard(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nxyz\r\n")
    assert parser.has_head
    assert parser.pieces == [b"hi"]
    assert parser.fault is not None


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        b"H",
        b"HTTP/1.1 200 OK\r\nX: 1\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
    ],
)
def test_an_answer_that_began_and_did_not_end_was_cut(data: bytes, clean: bool) -> None:
    fault = failed(data, clean=clean)
    assert (fault.code, kind(fault)) == (Code.NETWORK, "cut")


def test_a_body_without_a_length_that_ends_by_a_reset_was_cut() -> None:
    assert kind(failed(b"HTTP/1.1 200 OK\r\n\r\nuntil the e", clean=False)) == "cut"


def test_an_answer_that_did_not_begin_was_none() -> None:
    assert kind(failed(clean=True)) == "eof"
    assert kind(failed(clean=False)) == "reset"


def test_the_end_of_the_connection_changes_nothing_after_the_end_of_the_answer() -> None:
    parser = heard(b"HTTP/1.1 204 OK\r\n\r\n", clean=False)
    assert parser.is_complete
    assert parser.fault is None


def head_of(size: int) -> bytes:
    start, end = b"HTTP/1.1 200 OK\r\nX: ", b"\r\nContent-Length: 2\r\n\r\n"
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.mark.parametrize("step", [1000, HEAD_LIMIT - 1, HEAD_LIMIT, HEAD_LIMIT + 1, HEAD_LIMIT + 10])
def test_a_head_may_be_large_but_not_gigantic(step: int) -> None:
    def split(data: bytes) -> list[bytes]:
        return [data[at : at + step] for at in range(0, len(data), step)]

    assert b"".join(heard(*split(head_of(HEAD_LIMIT) + b"hi")).pieces) == b"hi"
    assert failed(*split(head_of(HEAD_LIMIT + 1) + b"hi")).code is Code.UPSTREAM_PROTOCOL


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("before", [b"0\r\nX-Late: ", b"2;x="], ids=["trailer", "chunk extension"])
def test_what_frames_a_body_may_be_large_but_not_gigantic(before: bytes) -> None:
    good = heard(CHUNKED, b"2\r\nhi\r\n", before, b"y" * (HEAD_LIMIT - len(before)))
    assert not good.is_over()
    bad = heard(CHUNKED, b"2\r\nhi\r\n", before, b"y" * (HEAD_LIMIT - len(before)), b"y")
    assert bad.pieces == [b"hi"]
    assert not bad.keeps_alive
    assert bad.fault is not None
    assert (bad.fault.code, kind(bad.fault)) == (Code.UPSTREAM_PROTOCOL, "malformed")
    assert "256 KiB" in bad.fault.message


def test_the_framing_of_many_small_chunks_is_never_too_large() -> None:
    parser = heard(CHUNKED, *[b"1;extension=value", b"\r\nx\r\n"] * (HEAD_LIMIT // 16), b"0\r\n\r\n")
    assert parser.is_complete
    assert len(b"".join(parser.pieces)) == HEAD_LIMIT // 16


def test_interim_answers_without_end_are_a_gigantic_head() -> None:
    assert "256 KiB" in failed(*[b"HTTP/1.1 100 Continue\r\n\r\n" * 1000] * 20).message


def test_it_is_gone_with_its_last_user_and_does_not_wait_for_the_collector() -> None:
    gc.disable()
    try:
        parser = heard(b"HTTP/1.1 204 OK\r\n\r\n")
        trace = weakref.ref(parser)
        # `on_body` belongs to the list of pieces, so no circle is left.
        del parser
        assert trace() is None
    finally:
        gc.enable()


# --- any bytes, any split -------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.1 101 X\r\n",
        b"HTTP/1.1 204\r\n", b"HTTP/1.1 500 \r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Connection: close\r\n",
        b"Connection: upgrade\r\nUpgrade: x\r\n", b"X-A:  b \t\r\n", b"X-Empty:\r\n", b" folded\r\n", b"\r\n", b"\n",
        b"5\r\nhello\r\n", b"2;a=b\r\nhi\r\n", b"0\r\n\r\n", b"0\r\nX-T: 1\r\n\r\n", b"hello", b"\0", b"\xff",
    ]
)  # fmt: skip
PLAUSIBLE = st.lists(LINES, max_size=12).map(b"".join)
ANSWERS = st.binary(max_size=80) | PLAUSIBLE | PLAUSIBLE.map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail)


def essence(parser: AnswerParser) -> tuple[object, ...]:
    """All that a caller sees. The words of a fault may differ: llhttp sees more or less of what is wrong at once."""
    fault = parser.fault
    whole = (parser.status, parser.headers) if parser.has_head else ()
    return whole, b"".join(parser.pieces), parser.is_complete, fault and (fault.code, fault.details)


def parts(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(ANSWERS, st.lists(st.integers(0, 10_000), max_size=12), st.booleans())
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nmore", [40], True)
@example(b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc", [30], True)
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", [44, 45], True)
def test_any_bytes_in_any_split_are_the_same_answer_or_the_same_fault(
    data: bytes, cuts: list[int], clean: bool
) -> None:
    whole = essence(heard(data, clean=clean))
    assert essence(heard(*parts(data, cuts), clean=clean)) == whole
    assert essence(heard(*(bytes([byte]) for byte in data), clean=clean)) == whole
    _, _, is_complete, fault = whole
    assert is_complete != (fault is not None)


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


def test_given_headers_are_not_duplicated() -> None:
    given_headers = [("host", "other"), ("accept-encoding", "gzip"), ("USER-AGENT", "me"), ("content-length", "2")]
    assert head(*given_headers)[1:] == ["host: other", "accept-encoding: gzip", "USER-AGENT: me", "content-length: 2"]


def test_forwarded_request_adds_no_user_agent() -> None:
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


# --- answers of a known shape -----------------------------------------------------------------------

KNOWN = b"HTTP/1.1 200 OK\r\nX-One: a b\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi"


def known_shape(data: bytes) -> AnswerShape | None:
    """The shape of an answer after it was read three times."""
    shape = None
    for _ in range(3):
        parser = AnswerParser(PLACE, shape=shape)
        parser.feed(data)
        shape = parser.shape
    return shape


def said(parser: AnswerParser) -> dict[str, object]:
    fault = parser.fault and parser.fault.message
    head = (parser.status, parser.headers, parser.named, parser.has_head)
    end = (parser.is_complete, parser.keeps_alive, fault, parser.trailers)
    return {"head": head, "body": parser.pieces, "end": end}


@pytest.mark.parametrize(
    "data",
    [
        KNOWN,
        KNOWN.replace(b"a b", b"another \xfc"),
        KNOWN.replace(b"a b", b""),
        KNOWN.replace(b": a b", b":a b"),
        KNOWN.replace(b"a b", b" a b\t "),
        KNOWN.replace(b"a b", b"a\x00b"),
        KNOWN.replace(b"a b", b"a\r\n b"),
        KNOWN.replace(b"a b", b"a\r\nX-Two: b"),
        KNOWN.replace(b"a b", b"a\r\nContent-Length: 2"),
        KNOWN.replace(b"a b", b"a\r\nTransfer-Encoding: chunked"),
        KNOWN.replace(b"keep-alive", b"close"),
        KNOWN.replace(b": 2", b": 0")[:-2],
        KNOWN.replace(b": 2", b": 1"),
        KNOWN.replace(b": 2", b": 20"),
        KNOWN.replace(b": 2", b": +2"),
        KNOWN.replace(b": 2", b": 2, 2"),
        KNOWN.replace(b"200 OK", b"404 Not Found"),
        KNOWN.replace(b"1.1", b"1.0"),
        KNOWN + b"HTTP/1.1 200 OK\r\n",
        KNOWN[:-1],
        KNOWN[:30],
    ],
)
def test_after_an_answer_of_a_known_shape_any_other_is_what_llhttp_says(data: bytes) -> None:
    shape = known_shape(KNOWN)
    assert shape is not None
    parser = AnswerParser(PLACE, shape=shape)
    parser.feed(data)
    assert said(parser) == said(heard(data))


IN_CHUNKS = (
    b"HTTP/1.1 200 OK\r\nX-One: a b\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"2\r\nhi\r\n3;x=y\r\nyou\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    "data",
    [
        IN_CHUNKS,
        IN_CHUNKS.replace(b"a b", b"another \xfc"),
        IN_CHUNKS.replace(b"0\r\n\r\n", b"0\r\nX-Late: 1\r\n\r\n"),
        IN_CHUNKS.replace(b": chunked", b": Chunked"),
        IN_CHUNKS.replace(b": chunked", b": gzip, chunked"),
        IN_CHUNKS.replace(b"a b", b"a\r\nTransfer-Encoding: chunked"),
        IN_CHUNKS.replace(b"a b", b"a\r\nContent-Length: 2"),
        IN_CHUNKS.replace(b"Transfer-Encoding: chunked", b"Content-Length: 2"),
        IN_CHUNKS.replace(b"keep-alive", b"close"),
        IN_CHUNKS.replace(b"200 OK", b"201 Created"),
        IN_CHUNKS.replace(b"1.1", b"1.0"),
        IN_CHUNKS.replace(b"2\r\nhi", b"z\r\nhi"),
        IN_CHUNKS.replace(b"2\r\nhi", b"2\r\nhi there"),
        IN_CHUNKS + b"HTTP/1.1 200 OK\r\n",
        IN_CHUNKS[:-2],
        IN_CHUNKS[:-12],
        IN_CHUNKS[: IN_CHUNKS.index(b"2\r\nhi")],
        IN_CHUNKS[:30],
    ],
)
@pytest.mark.parametrize("size", [1 << 16, 7])
def test_after_an_answer_in_chunks_any_other_is_what_llhttp_says(data: bytes, size: int) -> None:
    shape = known_shape(IN_CHUNKS)
    assert shape is not None
    parser, other = AnswerParser(PLACE, shape=shape), AnswerParser(PLACE)
    head = data.find(b"\r\n\r\n") + 4 if size < 100 else size
    pieces = [data[:head], *(data[at : at + size] for at in range(head, len(data), size))]
    for each in (parser, other):
        for piece in pieces:
            if not each.is_over():
                each.feed(piece)
    assert said(parser) == said(other)


def test_an_answer_of_a_known_shape_keeps_it_and_another_loses_it() -> None:
    shape = known_shape(KNOWN)
    again, other = AnswerParser(PLACE, shape=shape), AnswerParser(PLACE, shape=shape)
    again.feed(KNOWN.replace(b"a b", b"c"))
    assert again.shape is shape
    other.feed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert other.shape is None


def test_the_answer_to_a_request_for_the_head_alone_is_never_of_a_known_shape() -> None:
    parser = AnswerParser(PLACE, bodiless=True, shape=known_shape(KNOWN))
    parser.feed(KNOWN[:-2])
    assert said(parser) == said(heard(KNOWN[:-2], bodiless=True))


@pytest.mark.parametrize(
    "data",
    [
        KNOWN.replace(b"200 OK", b"204 No Content").replace(b": 2", b": 0")[:-2],
        KNOWN.replace(b"Content-Length: 2", b"X-Two: 2"),
        KNOWN.replace(b"Connection: keep-alive", b"X-One: b"),
        KNOWN.replace(b": a b", b":a b"),
        KNOWN.replace(b"keep-alive", b"close"),
    ],
    ids=["no body", "no length", "twice the same name", "no space", "the last one"],
)
def test_an_answer_that_its_lines_alone_do_not_tell_has_no_shape(data: bytes) -> None:
    assert known_shape(data) is None
