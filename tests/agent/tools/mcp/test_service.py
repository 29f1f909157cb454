"""Servers over HTTP that mean no good. What the official SDK's server does over HTTP stands in test_mcp_tools.py."""

import asyncio
from typing import Any

import msgspec
import pytest

from sightline.agent.core.output import ToolOutcome
from sightline.errors import Code, Fault
from tests.agent.tools.mcp import hostile_http as http
from tests.agent.tools.mcp.stage import QUICK, text, used, using

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


def test_headers_of_the_configuration_go_along_and_the_session_is_ended() -> None:
    service = http.Service()
    [outcome] = called(service, {})
    assert text(outcome) == "gone"
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
def test_a_service_that_cannot_be_used_is_a_fault(service: type[http.Service], code: Code) -> None:
    async def story() -> None:
        servers: Any = {"it": {"headers": HEADERS}}
        bounds = NO_START if service is http.SaysNothing else QUICK
        async with http.listening(service()) as servers["it"]["url"], using(servers, bounds, ENVIRONMENT):
            pass

    with pytest.raises(Fault) as raised:
        asyncio.run(story())
    assert raised.value.code is code
    assert raised.value.hint
    assert "secret" not in f"{raised.value.message} {raised.value.hint} {raised.value!r}"


def test_nobody_there_is_a_fault() -> None:
    async def story() -> None:
        async with http.listening(http.Service()) as url:
            pass
        async with using({"it": {"url": url}}):
            pass

    with pytest.raises(Fault, match="the MCP server 'it' cannot be reached") as raised:
        asyncio.run(story())
    assert raised.value.code is Code.NETWORK


def test_another_place_is_not_gone_to() -> None:
    async def story() -> list[Any]:
        other = http.Service()
        async with http.listening(other) as place, http.listening(http.SendsAway(place)) as url:
            with pytest.raises(Fault, match="sends us to another place"):
                async with using({"it": {"url": url, "headers": HEADERS}}, QUICK, ENVIRONMENT):
                    pass
        return other.requests

    assert asyncio.run(story()) == []


def test_huge_answers_are_errors_and_nothing_more() -> None:
    outcomes = called(http.AnswersHugely(), {"how": "json"}, {"how": "packed"}, {"how": "stream"})
    assert all(outcome.is_error for outcome in outcomes)
    assert "the answer is longer than 16 MB" in text(outcomes[0])
    assert "compressed" in text(outcomes[1])
    assert "exceeded the 16000000 byte limit" in text(outcomes[2])


@pytest.mark.parametrize("how", ["body", "stream", "nonsense", "status"])
def test_an_answer_that_fails_is_the_failure_of_that_call(how: str) -> None:
    failed, good = called(http.BreaksOff(), {"how": how}, {})
    assert failed.is_error
    assert text(good) == "gone"


def test_a_session_that_the_service_forgot_is_begun_anew() -> None:
    service = http.BreaksOff()
    failed, good = called(service, {"how": "lost"}, {})
    assert failed.is_error
    assert text(good) == "gone"
    assert [message.get("method") for _, _, message in service.requests].count("initialize") == 2


def test_a_service_that_hangs_holds_up_neither_the_next_call_nor_the_end() -> None:
    hung, good = called(http.HangsAtTheCall(), {}, {"is_quick": True}, bounds=NO_ANSWER)
    assert "did not answer within 2 seconds" in text(hung)
    assert text(good) == "gone"


def test_whoever_is_cancelled_does_not_wait_for_a_service_that_hangs() -> None:
    async def story() -> None:
        service = http.HangsAtTheCall()
        async with http.listening(service) as url, using({"it": {"url": url}}) as tools:
            call = asyncio.get_running_loop().create_task(used(tools, "it__go"))
            await service.began.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await service.was_cancelled.wait()

    asyncio.run(story())


def test_streams_that_are_closed_again_and_again_come_to_an_end() -> None:
    service = http.ClosesItsStreams()
    [outcome] = called(service, {})
    assert outcome.is_error
    assert [method for method, _, _ in service.requests].count("GET") <= QUICK.reopenings
