import asyncio
import base64
import ssl
from typing import Any

import httpx2
import msgspec
import pytest
import trustme

from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.tools.mcp.config import McpNetwork, ServerLimits
from sightline.agent.tools.mcp.links import McpHttpGuard
from sightline.errors import Code, Fault
from tests.agent.tools.mcp import hostile_http as http
from tests.agent.tools.mcp.stage import QUICK, used, using
from tests.forward_proxy import ForwardProxy

URL = "http://127.0.0.1/mcp"
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
BOUNDS = ServerLimits(message=1000, notice_s=0.01)
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
def test_lost_or_unanswered_notification_does_not_block(answer: Any, message: Any) -> None:
    guard, response = asked(answer, message)
    assert (response.status_code, guard.fault) == (202, None)


def test_a_stream_may_go_on() -> None:
    head = {"content-type": "text/event-stream; charset=utf-8"}
    _, response = asked(httpx2.Response(200, headers=head, stream=Pieces(*[b"x" * 600] * 10)), CALL)
    assert len(response.content) == 6000


@pytest.mark.parametrize(
    ("status", "head", "code", "words"),
    [
        (307, {"location": "https://u:p@b.example/x?key=1"}, Code.CONFIG, "('b.example/x'), which is not followed"),
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


NO_START = msgspec.structs.replace(QUICK, start_s=1)
NO_ANSWER = msgspec.structs.replace(QUICK, call_s=2)
HEADERS = {"Authorization": "Bearer ${TOKEN}"}
ENVIRONMENT = {"TOKEN": "sk-very-secret"}


def called(service: http.Service, *calls: dict[str, Any], bounds: Any = QUICK) -> list[ToolOutcome]:
    async def story() -> list[ToolOutcome]:
        async with http.listening(service) as url:
            servers = {"it": {"url": url, "headers": HEADERS}}
            async with using(servers, bounds, ENVIRONMENT) as tools:
                return [await used(tools, "it__go", **call) for call in calls]

    return asyncio.run(story())


def test_configured_headers_are_sent_and_the_session_is_closed() -> None:
    service = http.Service()
    [outcome] = called(service, {})
    assert words_of(outcome) == "gone"
    assert all(headers["authorization"] == "Bearer sk-very-secret" for _, headers, _ in service.requests)
    assert service.requests[-1][0] == "DELETE"


@pytest.mark.parametrize(
    ("service", "code"),
    [
        (http.WantsAKey, Code.AUTH),
        (http.Refuses, Code.PERMISSION),
        (http.ShowsAPage, Code.UPSTREAM_PROTOCOL),
        (http.IsBroken, Code.UPSTREAM_ERROR),
        (http.SaysNothing, Code.TIMEOUT_IDLE),
    ],
)
async def test_a_service_that_cannot_be_used_is_a_fault(service: type[http.Service], code: Code) -> None:
    servers: Any = {"it": {"headers": HEADERS}}
    bounds = NO_START if service is http.SaysNothing else QUICK
    with pytest.raises(Fault) as raised:
        async with http.listening(service()) as servers["it"]["url"], using(servers, bounds, ENVIRONMENT):
            pass
    assert raised.value.code is code
    assert raised.value.hint
    assert "secret" not in f"{raised.value.message} {raised.value.hint} {raised.value!r}"


async def test_unreachable_server_raises_a_network_fault() -> None:
    async with http.listening(http.Service()) as url:
        pass
    with pytest.raises(Fault, match="the MCP server 'it' cannot be reached") as raised:
        async with using({"it": {"url": url}}):
            pass
    assert raised.value.code is Code.NETWORK


async def test_another_place_is_not_gone_to() -> None:
    other = http.Service()
    async with http.listening(other) as place, http.listening(http.SendsAway(place)) as url:
        with pytest.raises(Fault, match="redirects to another address"):
            async with using({"it": {"url": url, "headers": HEADERS}}, QUICK, ENVIRONMENT):
                pass
    assert other.requests == []


def test_huge_answers_are_errors_and_nothing_more() -> None:
    outcomes = called(http.AnswersHugely(), {"how": "json"}, {"how": "packed"}, {"how": "stream"})
    assert all(outcome.is_error for outcome in outcomes)
    assert "the answer is longer than 16 MB" in words_of(outcomes[0])
    assert "compressed" in words_of(outcomes[1])
    assert "exceeded the 16000000 byte limit" in words_of(outcomes[2])


@pytest.mark.parametrize("how", ["body", "stream", "nonsense", "status"])
def test_an_answer_that_fails_is_the_failure_of_that_call(how: str) -> None:
    failed, good = called(http.BreaksOff(), {"how": how}, {})
    assert failed.is_error
    assert words_of(good) == "gone"


def test_a_session_that_the_service_forgot_is_begun_anew() -> None:
    service = http.BreaksOff()
    failed, good = called(service, {"how": "lost"}, {})
    assert failed.is_error
    assert words_of(good) == "gone"
    assert [message.get("method") for _, _, message in service.requests].count("initialize") == 2


def test_a_service_that_hangs_holds_up_neither_the_next_call_nor_the_end() -> None:
    hung, good = called(http.HangsAtTheCall(), {}, {"is_quick": True}, bounds=NO_ANSWER)
    assert "did not answer within 2 seconds" in words_of(hung)
    assert words_of(good) == "gone"


async def test_cancelled_call_does_not_wait_for_a_hanging_server() -> None:
    service = http.HangsAtTheCall()
    async with http.listening(service) as url, using({"it": {"url": url}}) as tools:
        call = asyncio.get_running_loop().create_task(used(tools, "it__go"))
        await service.began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await service.was_cancelled.wait()


def test_streams_that_are_closed_again_and_again_come_to_an_end() -> None:
    service = http.ClosesItsStreams()
    [outcome] = called(service, {})
    assert outcome.is_error
    assert [method for method, _, _ in service.requests].count("GET") <= QUICK.reopenings


LOGIN = "me:secret"


async def test_certificates_that_were_added_are_believed_and_others_are_not() -> None:
    authority = trustme.CA()
    served, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.configure_trust(trusted)

    async with http.listening(http.Service(), served) as url:
        async with using({"it": {"url": url}}, network=McpNetwork(context=lambda: trusted)) as tools:
            assert words_of(await used(tools, "it__go")) == "gone"
        with pytest.raises(Fault):
            async with using({"it": {"url": url}}):
                pass


async def test_a_proxy_is_gone_through_with_its_password() -> None:
    authority = trustme.CA()
    served, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("far.example").configure_cert(served)
    authority.configure_trust(trusted)

    async with http.listening(http.Service(), served) as url, ForwardProxy(login=LOGIN) as proxy:
        port = int(url.rpartition(":")[2].partition("/")[0])
        proxy.reach = ("127.0.0.1", port)
        authorization = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
        network = McpNetwork(lambda: trusted, lambda _url: (f"http://127.0.0.1:{proxy.port}", authorization))
        async with using({"it": {"url": "https://far.example/mcp"}}, network=network) as tools:
            assert words_of(await used(tools, "it__go")) == "gone"
        assert proxy.asked[0] == "CONNECT far.example:443 HTTP/1.1"
