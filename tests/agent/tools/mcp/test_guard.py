import asyncio
from typing import Any

import httpx2
import pytest

from sightline.agent.tools.mcp.config import Bounds
from sightline.agent.tools.mcp.guard import McpHttpGuard
from sightline.errors import Code

URL = "http://127.0.0.1/mcp"
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
BOUNDS = Bounds(message=1000, reopenings=3, reopenings_s=1000, notice_s=0.01)
JSON = {"content-type": "application/json"}


class Inner(httpx2.AsyncBaseTransport):
    """Answers as it is told, or fails so."""

    def __init__(self, answer: httpx2.Response | Exception | None) -> None:
        self.answer = answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, httpx2.Response)
        return self.answer


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces and may break off."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> Any:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def asked(
    answer: httpx2.Response | Exception | None, message: Any, **more: Any
) -> tuple[McpHttpGuard, httpx2.Response]:
    guard = McpHttpGuard(Inner(answer), BOUNDS)

    async def story() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=guard, trust_env=False) as client:
            return await client.post(URL, json=message, **more)

    return guard, asyncio.run(story())


def test_a_good_answer_passes() -> None:
    guard, response = asked(httpx2.Response(200, headers=JSON, content=b"{}"), CALL)
    assert (response.status_code, response.content, guard.fault) == (200, b"{}", None)


def test_a_network_that_fails_is_the_failure_of_one_call() -> None:
    guard, response = asked(httpx2.ConnectError("refused"), CALL)
    assert response.json() == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32603, "message": "cannot be reached: refused"},
    }
    assert guard.fault
    assert guard.fault.code is Code.NETWORK


@pytest.mark.parametrize("message", [NOTICE, CANCELLED])
@pytest.mark.parametrize("answer", [httpx2.ReadError("gone"), None, httpx2.Response(202, content=b"")])
def test_a_notice_that_is_lost_or_not_answered_holds_nobody_up(answer: Any, message: Any) -> None:
    guard, response = asked(answer, message)
    assert (response.status_code, guard.fault) == (202, None)


def test_an_answer_has_an_end() -> None:
    body = Pieces(*[b"x" * 600] * 1000)
    with pytest.raises(httpx2.StreamError, match="ask for less"):
        asked(httpx2.Response(200, headers=JSON, stream=body), CALL)


def test_an_answer_that_breaks_off_is_the_failure_of_one_call() -> None:
    with pytest.raises(httpx2.StreamError, match="broke off: gone"):
        asked(httpx2.Response(200, headers=JSON, stream=Pieces(b"{", httpx2.ReadError("gone"))), CALL)


def test_a_stream_may_go_on() -> None:
    head = {"content-type": "text/event-stream; charset=utf-8"}
    _, response = asked(httpx2.Response(200, headers=head, stream=Pieces(*[b"x" * 600] * 10)), CALL)
    assert len(response.content) == 6000


def test_what_is_packed_is_not_unpacked() -> None:
    head = {**JSON, "content-encoding": "gzip"}
    _, response = asked(httpx2.Response(200, headers=head, stream=Pieces(b"whatever")), CALL)
    assert "compressed" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("status", "head", "code", "words"),
    [
        (401, {}, Code.AUTH, "401"),
        (403, {}, Code.PERMISSION, "403"),
        (307, {"location": "https://u:p@b.example/x?key=1"}, Code.CONFIG, "('b.example/x'), which is not followed"),
        (500, {"content-type": "text/html"}, Code.UPSTREAM_ERROR, "status 500"),
        (200, {"content-type": "text/html"}, Code.UPSTREAM_PROTOCOL, "text/html"),
        (200, {}, Code.UPSTREAM_PROTOCOL, "no type"),
    ],
)
def test_an_answer_that_is_none_says_what_to_do(status: int, head: dict[str, str], code: Code, words: str) -> None:
    guard, _ = asked(httpx2.Response(status, headers=head, stream=Pieces(b"<html>")), CALL)
    assert guard.fault
    assert guard.fault.code is code
    assert words in guard.fault.message
    assert guard.fault.hint


def test_an_error_in_the_protocols_own_words_is_no_fault_of_http() -> None:
    guard, _ = asked(httpx2.Response(400, headers=JSON, content=b"{}"), CALL)
    assert guard.fault is None


def test_a_session_that_was_forgotten_is_lost() -> None:
    guard, _ = asked(httpx2.Response(404, content=b""), CALL)
    assert not guard.lost.is_set()
    guard, _ = asked(httpx2.Response(404, content=b""), CALL, headers={"mcp-session-id": "1"})
    assert guard.lost.is_set()


def test_streams_are_not_reopened_for_ever() -> None:
    guard = McpHttpGuard(Inner(httpx2.Response(200, content=b"")), BOUNDS)

    async def story() -> None:
        async with httpx2.AsyncClient(transport=guard, trust_env=False) as client:
            for _ in range(3):
                await client.get(URL)
            with pytest.raises(httpx2.ConnectError, match="again and again"):
                await client.get(URL)

    asyncio.run(story())
