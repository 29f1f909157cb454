"""A server that means no good, on stdio: whatever it does ends as an outcome, a note or a fault, and nothing hangs."""

import asyncio
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from sightline.agent.core.tool import ToolOutcome, words_of
from sightline.agent.tools.mcp.config import ServerLimits
from sightline.agent.tools.mcp.connection import (
    LONGEST,
    FilteredRead,
    FilteredWrite,
    ListFilterDispatcher,
    MessageFilter,
    ProgressReports,
    words,
)
from sightline.errors import Code, Fault
from tests.agent.tools.mcp.stage import QUICK, hostile, listening, names, sdk, used, using

NO_START = msgspec.structs.replace(QUICK, start_s=1)
NO_ANSWER = msgspec.structs.replace(QUICK, call_s=2)
"""For servers that would never answer."""


def called(how: str, *calls: dict[str, Any]) -> tuple[list[ToolOutcome], tuple[str, ...]]:
    """What comes of calls of its tool `go`, and the notes about it."""

    async def story() -> tuple[list[ToolOutcome], tuple[str, ...]]:
        async with listening() as ear, using({"it": hostile(how, ear=ear)}) as tools:
            return [await used(tools, "it__go", **call) for call in calls or ({},)], tools.notes

    return asyncio.run(story())


def refused(how: str, bounds: ServerLimits = QUICK) -> Fault:
    async def story() -> None:
        async with listening() as ear, using({"it": hostile(how, ear=ear)}, bounds):
            pass

    with pytest.raises(Fault) as raised:
        asyncio.run(story())
    assert raised.value.message.startswith("the MCP server 'it' ")
    assert raised.value.hint
    return raised.value


@pytest.mark.parametrize("how", ["HangsAtTheGreeting", "HangsAtTheList"])
def test_a_server_that_hangs_at_its_start_is_given_up(how: str) -> None:
    fault = refused(how, NO_START)
    assert fault.code is Code.TIMEOUT_IDLE
    assert "does not answer in time" in fault.message


def test_a_server_that_ends_at_once_says_why() -> None:
    fault = refused("DiesAtOnce")
    assert fault.code is Code.UPSTREAM_ERROR
    assert fault.message == "the MCP server 'it' ended with exit code 7; it said: no such database"


def test_a_server_of_another_time_is_refused() -> None:
    fault = refused("SpeaksAnOldTongue")
    assert fault.code is Code.UPSTREAM_PROTOCOL
    assert "1999-01-01" in fault.message


async def test_a_server_that_is_none_is_refused() -> None:
    with pytest.raises(Fault, match="the MCP server 'it'"):
        async with using({"it": {"command": "cat"}}):
            pass


@pytest.mark.parametrize("how", ["WritesGarbage", "Floods", "ListsInCircles", "IsRestless"])
def test_noise_costs_nothing_but_time(how: str) -> None:
    [outcome], _ = called(how)
    assert (words_of(outcome), outcome.is_error) == ("gone", False)


def test_an_answer_of_fifty_megabytes_is_an_error_for_the_model_and_the_server_goes_on() -> None:
    outcomes, _ = called("AnswersHugely", {}, {"is_last": True}, {"is_nameless": True}, {})
    assert all(outcome.is_error for outcome in outcomes)
    assert [len(words_of(outcome)) < 300 for outcome in outcomes] == [True] * 4
    assert "50 MB long" in words_of(outcomes[0])
    assert "50 MB long" in words_of(outcomes[1])
    assert "The next call starts it anew" in words_of(outcomes[2])
    assert "50 MB long" in words_of(outcomes[3])


def test_an_answer_of_no_known_kind_is_an_error_in_one_line() -> None:
    [outcome], _ = called("AnswersNonsense")
    assert outcome.is_error
    assert "\n" not in words_of(outcome)


async def test_lies_about_tools_cost_the_liar_those_tools() -> None:
    async with using({"it": hostile("Lies"), "sdk": sdk()}) as tools:
        (found, notes) = names(tools), tools.notes
    assert found[:4] == ["it__good", "it__tree", "it__wordy", "sdk__add"]
    assert notes[0] == "the MCP server 'it': its tool 'no schema' is left out: what it calls its schema is none"


@pytest.mark.parametrize(
    ("how", "count", "note"),
    [
        ("ListsWithoutEnd", 512, "512 of its tools are the most"),
        ("ListsInCircles", 1, "has no end"),
        ("ListsNothing", 0, "its list of tools is none"),
    ],
)
async def test_a_list_has_an_end(how: str, count: int, note: str) -> None:
    async with using({"it": hostile(how)}) as tools:
        (found, notes) = names(tools), tools.notes
    assert len(found) == count
    assert any(note in each for each in notes)


async def test_a_list_that_changes_for_ever_is_read_again_and_again_and_calls_go_on() -> None:
    async with using({"it": hostile("IsRestless")}) as tools:
        for _ in range(3):
            before = names(tools)
            tools.changed.clear()
            await tools.changed.wait()
            assert names(tools) != before
            assert words_of(await used(tools, "it__go")) == "gone"


async def test_a_list_that_cannot_be_read_again_leaves_the_tools_that_were_there() -> None:
    async with listening() as ear, using({"it": hostile("ListsWrongLater", ear=ear)}) as tools:
        await used(tools, "it__go")
        assert await ear.word() == "refused"
        assert words_of(await used(tools, "it__go")) == "gone"
        assert names(tools) == ["it__go"]


def test_sampling_elicitation_and_roots_requests_are_refused() -> None:
    [outcome], _ = called("Asks")
    refusals = "Elicitation not supported; List roots not supported; Method not found; Sampling not supported; pong"
    assert words_of(outcome) == refusals


async def test_a_server_that_only_asks_and_never_reads_cannot_fill_our_memory() -> None:
    async with listening() as ear, using({"it": hostile("ReadsNothing", ear=ear)}, NO_ANSWER) as tools:
        assert await ear.word() == "asked"
        outcome = await used(tools, "it__go")
    assert outcome.is_error
    assert "did not answer within 2 seconds" in words_of(outcome)


async def test_a_server_that_knows_only_the_newest_protocol_is_spoken_to_in_it() -> None:
    async with listening() as ear, using({"it": hostile("IsModern", ear=ear)}) as tools:
        assert await ear.word() == "listened to"
        refusal = await used(tools, "it__ask")
        assert refusal.is_error
        assert "asks for more before it answers, which is refused here: elicitation/create" in words_of(refusal)
        assert words_of(await used(tools, "it__go")) == "gone"
        await tools.changed.wait()
        assert names(tools) == ["it__go", "it__ask", "it__more"]


async def test_secrets_in_server_output_are_masked() -> None:
    server = hostile("TellsSecrets", env={"API_TOKEN": "${TOKEN}", "ROOT": "${HOME}/x"})
    environment = {"TOKEN": "sk-very-secret", "HOME": "/srv/me"}

    async with using({"it": server}, environment=environment) as tools:
        good = await used(tools, "it__go")
        assert words_of(good) == "*** in /srv/me/x"  # a folder is no secret, and the model may need it
        assert good.structured == {"seen": ["***", {"***": 1}]}
        assert "bad token ***" in words_of(await used(tools, "it__go", is_error=True))
    server["args"][1] = "TellsSecretsAtOnce"
    with pytest.raises(Fault, match=r"cannot sign in with \*\*\*"):
        async with using({"it": server}, environment=environment):
            pass


def test_progress_is_words_and_numbers() -> None:
    assert words(3, 10, "reading") == "reading (3 of 10)"
    assert words(3, None, None) == "3"
    assert words(0.5, 0, "") == "0.5"


@given(st.floats(), st.none() | st.floats(), st.none() | st.text())
def test_progress_is_one_short_line_that_moves_no_cursor(progress: float, total: float | None, message: str) -> None:
    line = words(progress, total, message)
    assert line.isprintable()
    assert len(line) < LONGEST + 60


async def test_progress_flood_is_throttled_and_nothing_follows_the_end() -> None:
    told: list[str] = []
    report = ProgressReports(told.append)
    for number in range(1000):
        await report.report(number, None, None)
    report.end()
    await asyncio.sleep(0)
    await report.report(1000, None, None)
    assert told[0] == "0"
    assert len(told) < 1000
    assert "1000" not in told


async def nobody(*_: object) -> Any:
    return {}


async def test_lists_are_sifted_and_nothing_else() -> None:
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)

    async def answer() -> None:
        async for each in out:
            reply = JSONRPCResponse(jsonrpc="2.0", id=each.message.id, result={"tools": [1, 2]})
            await into.send(SessionMessage(reply))

    dispatcher = ListFilterDispatcher(read, write, lambda raw: {"tools": raw["tools"][:1]})
    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        await group.start(dispatcher.run, nobody, nobody)
        found = [await dispatcher.send_raw_request(method, None) for method in ("tools/list", "tools/other")]
        group.cancel_scope.cancel()
    for stream in (into, read, write, out):
        stream.close()
    assert found == [{"tools": [1]}, {"tools": [1, 2]}]


def notice(method: str, **params: Any) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


def question(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))


ANSWER = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))


def test_unused_notifications_are_filtered_out() -> None:
    sieve = MessageFilter(1)
    assert sieve.passes(notice("notifications/tools/list_changed"))
    assert not sieve.passes(notice("notifications/message", level="info", data=""))
    assert not sieve.passes(notice("notifications/resources/updated", uri="a:"))
    assert not sieve.passes(ValueError("a line that is no message"))
    assert sieve.passes(ANSWER)


@pytest.mark.parametrize("progress", [10**400, "much", None, [1], float("nan"), float("inf"), -(10**16)])
def test_progress_that_is_no_number_is_held_back(progress: object) -> None:
    assert not MessageFilter(1).passes(notice("notifications/progress", progressToken=1, progress=progress))
    assert not MessageFilter(1).passes(notice("notifications/progress", progressToken=1, progress=1, total=progress))
    assert MessageFilter(1).passes(notice("notifications/progress", progressToken=1, progress=1, total=2.5))


def test_questions_wait_for_no_more_answers_than_are_borne() -> None:
    sieve = MessageFilter(2)
    assert [sieve.passes(question(number)) for number in range(3)] == [True, True, False]
    sieve.count_answer(question(9))  # our own question is no answer
    assert not sieve.passes(question(3))
    sieve.count_answer(ANSWER)
    sieve.count_answer(SessionMessage(JSONRPCError(jsonrpc="2.0", id=2, error={"code": 1, "message": ""})))
    assert [sieve.passes(question(number)) for number in range(3)] == [True, True, False]


async def test_streams_pass_through_the_sieve() -> None:
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    write, out = anyio.create_memory_object_stream[SessionMessage](9)
    sieve = MessageFilter(1)
    sieved, writing = FilteredRead(read, sieve), FilteredWrite(write, sieve)
    for item in (notice("notifications/message"), question(1), question(2), ANSWER, notice("x"), ANSWER):
        into.send_nowait(item)
    into.close()
    async with sieved, writing:
        assert await sieved.receive() == question(1)
        await writing.send(ANSWER)
        assert [item async for item in sieved] == [question(2), ANSWER, ANSWER]
        assert sieved.last_context is None
    assert out.receive_nowait() == ANSWER
    out.close()
