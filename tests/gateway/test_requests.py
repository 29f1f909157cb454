import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.gateway import gateway as requests
from sightline.gateway.gateway import MOST_BYTES, ClientGoneError, is_too_deep, read_request
from sightline.gateway.paths import parse_path
from sightline.web.asgi import AsgiScope, RequestEvent


class Client:
    """Says its body in pieces; `is_heard` tells how much of it was taken."""

    def __init__(self, *pieces: bytes, stays: bool = True) -> None:
        self.pieces = list(pieces)
        self.stays = stays
        self.is_heard = 0

    async def __call__(self) -> RequestEvent:
        if not self.pieces:
            assert not self.stays
            return {"type": "http.disconnect"}
        self.is_heard += 1
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or not self.stays}


def taken(
    client: Client, path: str = "/v1/messages", headers: dict[str, str] | None = None, query: str = ""
) -> ClientRequest:
    scope: AsgiScope = {
        "type": "http",
        "method": "POST",
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
    }
    return asyncio.run(read_request(scope, client, parse_path(path), 12.5))


def refusal(body: bytes, path: str = "/v1/messages", headers: dict[str, str] | None = None) -> Fault:
    with pytest.raises(Fault) as caught:
        taken(Client(body), path, headers)
    return caught.value


def test_the_body_is_taken_as_it_came() -> None:
    body = b' { "stream" :true,\n"model":"m\\u0061x" , "x":[1.50,{"\\u00e9":null}] } '
    request = taken(Client(body[:5], b"", body[5:]), headers={"x-a": "é", "x-b": "2"}, query="beta=true")
    assert request == ClientRequest(
        dialect="anthropic",
        body=body,
        headers=(("x-a", "é"), ("x-b", "2")),
        path="/v1/messages",
        query="beta=true",
        model="max",
        is_stream=True,
        received=12.5,
    )


def test_prefixes_strict_header_and_counting_are_parsed() -> None:
    request = taken(Client(b'{"model":"m"}'), "/p/acme/s/task/v1/messages/count_tokens", {"x-sightline-strict": "1"})
    assert (request.provider, request.session, request.strict, request.counts) == ("acme", "task", True, True)
    assert request.path == "/v1/messages/count_tokens"
    assert not taken(Client(b'{"model":"m"}'), headers={"x-sightline-strict": "0"}).strict


def test_google_names_the_model_in_the_path() -> None:
    request = taken(Client(b'{"contents":[]}'), "/v1beta/models/gemini-3:streamGenerateContent")
    assert (request.model, request.is_stream) == ("gemini-3", True)
    request = taken(Client(b'{"model":"x","stream":true}'), "/v1beta/models/gemini-3:generateContent")
    assert (request.model, request.is_stream) == ("gemini-3", False)


@pytest.mark.parametrize(
    ("coding", "code"),
    [("gzip", gzip.compress), ("zstd", zstandard.compress), ("deflate", zlib.compress), ("GZIP", gzip.compress)],
)
@pytest.mark.parametrize("padding", [0, 3_000_000], ids=["short", "long"])
def test_codings_are_undone_and_the_coded_bytes_kept(coding: str, code: Any, padding: int) -> None:
    text = bytes(range(256)).hex() * (padding // 512)
    body = json.dumps({"model": "m", "x": text}).encode()
    coded = code(body)
    request = taken(Client(coded), headers={"content-encoding": coding})
    assert (request.body, request.coded, request.coding) == (body, coded, coding.lower())


def test_a_long_coded_body_is_decoded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_LARGE_BODY", 10)
    body = b'{"model":"m"}'
    assert taken(Client(gzip.compress(body)), headers={"content-encoding": "gzip"}).body == body


def test_identity_is_no_coding() -> None:
    request = taken(Client(b'{"model":"m"}'), headers={"content-encoding": "identity"})
    assert (request.coded, request.coding) == (None, "")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"model":"m"', "not JSON"),
        (b"\xff", "UTF-8"),
        (b'[{"model":"m"}]', "not a JSON object"),
        (b'"model"', "not a JSON object"),
        (b"{}", "names no model"),
        (b'{"model":""}', "names no model"),
        (b'{"model":null}', "not a text"),
        (b'{"model":7}', "not a text"),
        (b'{"model":"m","x":' + b"[" * 2000 + b"]" * 2000 + b"}", "1,000 levels"),
        (b"[" * 100_000, "1,000 levels"),
    ],
)
def test_what_no_dialect_can_mean_is_refused(body: bytes, told: str) -> None:
    fault = refusal(body)
    assert fault.code is Code.INVALID_REQUEST
    assert told in fault.message
    assert fault.hint


@pytest.mark.parametrize(
    ("body", "is_stream"),
    [
        (b'\xef\xbb\xbf{"model":"m"}', False),
        (b'{"model":"m","x":"\\ud800","stream":true}', True),
        (b'{"model":"m","stream":"yes"}', False),
        (b'{"model":"m","stream":null}', False),
        (b'{"model":"m","stream":1}', False),
        (b'{"model":"a","model":"m"}', False),
        (b'{"model":"m","x":' + b"[" * 900 + b"]" * 900 + b"}", False),
    ],
)
def test_what_clients_really_send_is_taken(body: bytes, is_stream: bool) -> None:
    request = taken(Client(body))
    assert (request.model, request.is_stream, request.body) == ("m", is_stream, body)


def test_a_body_of_google_must_still_be_an_object() -> None:
    assert "not a JSON object" in refusal(b"[]", "/v1beta/models/m:generateContent").message
    assert "not JSON" in refusal(b"x", "/v1beta/models/m:generateContent").message


def test_a_damaged_or_unknown_coding_is_refused() -> None:
    assert refusal(b"no gzip", headers={"content-encoding": "gzip"}).code is Code.INVALID_REQUEST
    assert refusal(b"{}", headers={"content-encoding": "br"}).code is Code.INVALID_REQUEST


def test_a_few_bytes_that_say_gigabytes_are_refused() -> None:
    bomb = zstandard.compress(b" " * (MOST_BYTES + 1))
    assert refusal(bomb, headers={"content-encoding": "zstd"}).code is Code.REQUEST_TOO_LARGE


def test_body_declared_too_long_is_drained_and_rejected() -> None:
    client = Client(b"x", b"x", b"x")
    with pytest.raises(Fault) as caught:
        taken(client, headers={"content-length": str(MOST_BYTES + 1)})
    assert caught.value.status == 413
    assert client.is_heard == 3


def test_oversized_body_with_expect_continue_is_rejected_unread() -> None:
    client = Client(b"x")
    with pytest.raises(Fault):
        taken(client, headers={"content-length": str(MOST_BYTES + 1), "expect": "100-continue"})
    assert client.is_heard == 0


def test_a_body_that_grows_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_BYTES", 10)
    client = Client(b"12345", b"67890", b"1", b"more")
    with pytest.raises(Fault) as caught:
        taken(client)
    assert caught.value.status == 413
    assert client.is_heard == 4
    with pytest.raises(Fault):
        taken(Client(b"12345678901"))


def test_draining_of_a_rejected_body_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_MOST_UNREAD", 3)
    client = Client(b"12", b"34", b"56", b"78")
    with pytest.raises(Fault):
        taken(client, headers={"content-length": str(MOST_BYTES + 1)})
    assert client.is_heard == 2


def test_client_disconnect_during_the_body_is_no_request() -> None:
    with pytest.raises(ClientGoneError):
        taken(Client(b'{"model":', stays=False))


def levels(count: int) -> bytes:
    return b'{"model":"m","x":' + b"[" * (count - 1) + b"]" * (count - 1) + b"}"


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_thousand_levels_pass_and_no_more(coding: str) -> None:
    def coded(body: bytes) -> bytes:
        return gzip.compress(body) if coding else body

    headers = {"content-encoding": coding} if coding else {}
    words = json.dumps({"model": "m", "x": "[{" * 200_000}).encode()
    for body in (levels(1000), words):
        assert taken(Client(coded(body)), headers=headers).body == body
    for deep in (levels(1001), levels(200_000), words[:-1] + b',"y":' + levels(1000) + b"}"):
        fault = refusal(coded(deep), headers=headers)
        assert (fault.code, fault.status) == (Code.INVALID_REQUEST, 400)
        assert "1,000 levels" in fault.message


def nested(levels: int, opening: bytes = b"[", inner: bytes = b"", closing: bytes = b"]") -> bytes:
    return opening * levels + inner + closing * levels


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        nested(1000),
        nested(500, b'{"a":[', b"1", b"]}"),
        b"[" + b",".join([b'{"a":[[]]}'] * 5000) + b"]",
        json.dumps({"text": "[" * 5000}).encode(),
        json.dumps({"text": '"[' * 5000}).encode(),
        json.dumps({"text": '\\"[' * 3000 + "\\"}).encode(),
        json.dumps({"text": "\\" * 7, "more": "{" * 3000}).encode(),
        b'"' + b"[" * 3000,
        b"]" * 3000 + b"[" * 900,
    ],
)
def test_what_people_mean_is_not_too_deep(text: bytes) -> None:
    assert not is_too_deep(text)


@pytest.mark.parametrize(
    "text",
    [
        nested(1001),
        nested(501, b'{"a":[', b"1", b"]}"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text":"\\\\","deep":' + nested(1001) + b"}",
        b'{"text":"\\"","deep":' + nested(1001) + b"}",
        b"[" + b"[]," * 500 + nested(1000) + b"]",
    ],
)
def test_what_is_deeper_than_any_api_means_is_found(text: bytes) -> None:
    assert is_too_deep(text)


@given(st.integers(990, 1010), st.text(max_size=5), st.booleans())
def test_the_limit_is_exact(levels: int, text: str, is_object: bool) -> None:
    inner = json.dumps([text, "[{" * 20, text]).encode()
    wrapped = nested(levels - 1, b'{"k":' if is_object else b"[", inner, b"}" if is_object else b"]")
    assert is_too_deep(b"[" + b'"x",' * 3 + wrapped + b"]") is (levels + 1 > 1000)
