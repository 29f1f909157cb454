import json

from sightline.errors import Code, Fault
from sightline.exchange.client_response import header, headers_for_client, refusal, without, without_coding
from tests.relay_stage import taken


def test_a_fault_in_the_words_of_a_dialect() -> None:
    import asyncio

    got = asyncio.run(taken(refusal("anthropic", Fault(Code.RATE_LIMITED, "slow", retry_after=1.2), [(b"x-a", b"b")])))
    assert (got.status, got.header("retry-after"), got.header("x-a")) == (429, "2", "b")
    assert got.header("content-length") == str(len(got.body))
    assert json.loads(got.body)["error"]["message"] == "slow"


def test_a_provider_s_headers_without_those_of_its_connection() -> None:
    headers = (
        (b"Date", b"now"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"close, X-Hop"),
        (b"X-Hop", b"1"),
        (b"Content-Length", b"3"),
        (b"X-Sightline-Exchange", b"forged"),
        (b"Set-Cookie", b"a=configured-key"),
        (b"Content-Encoding", b"gzip"),
    )
    passed = headers_for_client(headers)
    assert passed == [headers[0], headers[6], headers[7]]
    assert headers_for_client(headers, ("configured-key",))[1] == (b"Set-Cookie", b"a=***")
    assert without_coding(passed) == passed[:2]
    assert header(headers, b"date") == "now"
    assert header(headers, b"none") == ""


def test_a_secret_at_the_end() -> None:
    assert without(b"ab configured-key", ("configured-key",)) == b"ab ***"
    assert without(b"ab config", ("configured-key",)) == b"ab config"
