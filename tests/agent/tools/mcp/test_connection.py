"""A server that means no good, on stdio: whatever it does ends as an outcome, a note or a fault, and nothing hangs."""

import asyncio
from typing import Any

import msgspec
import pytest

from sightline.agent.core.output import ToolOutcome
from sightline.agent.tools.mcp.config import Bounds
from sightline.errors import Code, Fault
from tests.agent.tools.mcp.stage import QUICK, hostile, listening, names, sdk, text, used, using

NO_START = msgspec.structs.replace(QUICK, start_s=1)
NO_ANSWER = msgspec.structs.replace(QUICK, call_s=2)
"""For servers that would never answer."""


def called(how: str, *calls: dict[str, Any]) -> tuple[list[ToolOutcome], tuple[str, ...]]:
    """What comes of calls of its tool `go`, and the notes about it."""

    async def story() -> tuple[list[ToolOutcome], tuple[str, ...]]:
        async with listening() as ear, using({"it": hostile(how, ear=ear)}) as tools:
            return [await used(tools, "it__go", **call) for call in calls or ({},)], tools.notes

    return asyncio.run(story())


def refused(how: str, bounds: Bounds = QUICK) -> Fault:
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


def test_a_server_that_is_none_is_refused() -> None:
    async def story() -> None:
        async with using({"it": {"command": "cat"}}):
            pass

    with pytest.raises(Fault, match="the MCP server 'it'"):
        asyncio.run(story())


@pytest.mark.parametrize("how", ["WritesGarbage", "Floods", "ListsInCircles", "IsRestless"])
def test_noise_costs_nothing_but_time(how: str) -> None:
    [outcome], _ = called(how)
    assert (text(outcome), outcome.is_error) == ("gone", False)


def test_an_answer_of_fifty_megabytes_is_an_error_for_the_model_and_the_server_goes_on() -> None:
    outcomes, _ = called("AnswersHugely", {}, {"is_last": True}, {"is_nameless": True}, {})
    assert all(outcome.is_error for outcome in outcomes)
    assert [len(text(outcome)) < 300 for outcome in outcomes] == [True] * 4
    assert "50 MB long" in text(outcomes[0])
    assert "50 MB long" in text(outcomes[1])
    assert "The next call starts it anew" in text(outcomes[2])
    assert "50 MB long" in text(outcomes[3])


def test_an_answer_of_no_known_kind_is_an_error_in_one_line() -> None:
    [outcome], _ = called("AnswersNonsense")
    assert outcome.is_error
    assert "\n" not in text(outcome)


def test_lies_about_tools_cost_the_liar_those_tools() -> None:
    async def story() -> tuple[list[str], tuple[str, ...]]:
        async with using({"it": hostile("Lies"), "sdk": sdk()}) as tools:
            return names(tools), tools.notes

    found, notes = asyncio.run(story())
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
def test_a_list_has_an_end(how: str, count: int, note: str) -> None:
    async def story() -> tuple[list[str], tuple[str, ...]]:
        async with using({"it": hostile(how)}) as tools:
            return names(tools), tools.notes

    found, notes = asyncio.run(story())
    assert len(found) == count
    assert any(note in each for each in notes)


def test_a_list_that_changes_for_ever_is_read_again_and_again_and_calls_go_on() -> None:
    async def story() -> None:
        async with using({"it": hostile("IsRestless")}) as tools:
            for _ in range(3):
                before = names(tools)
                tools.changed.clear()
                await tools.changed.wait()
                assert names(tools) != before
                assert text(await used(tools, "it__go")) == "gone"

    asyncio.run(story())


def test_a_list_that_cannot_be_read_again_leaves_the_tools_that_were_there() -> None:
    async def story() -> None:
        async with listening() as ear, using({"it": hostile("ListsWrongLater", ear=ear)}) as tools:
            await used(tools, "it__go")
            assert await ear.word() == "refused"
            assert text(await used(tools, "it__go")) == "gone"
            assert names(tools) == ["it__go"]

    asyncio.run(story())


def test_nobody_is_lent_a_model_a_person_or_folders() -> None:
    [outcome], _ = called("Asks")
    refusals = "Elicitation not supported; List roots not supported; Method not found; Sampling not supported; pong"
    assert text(outcome) == refusals


def test_a_server_that_only_asks_and_never_reads_cannot_fill_our_memory() -> None:
    async def story() -> ToolOutcome:
        async with listening() as ear, using({"it": hostile("ReadsNothing", ear=ear)}, NO_ANSWER) as tools:
            assert await ear.word() == "asked"
            return await used(tools, "it__go")

    outcome = asyncio.run(story())
    assert outcome.is_error
    assert "did not answer within 2 seconds" in text(outcome)


def test_a_server_that_knows_only_the_newest_protocol_is_spoken_to_in_it() -> None:
    async def story() -> None:
        async with listening() as ear, using({"it": hostile("IsModern", ear=ear)}) as tools:
            assert await ear.word() == "listened to"
            refusal = await used(tools, "it__ask")
            assert refusal.is_error
            assert "asks for more before it answers, which is refused here: elicitation/create" in text(refusal)
            assert text(await used(tools, "it__go")) == "gone"
            await tools.changed.wait()
            assert names(tools) == ["it__go", "it__ask", "it__more"]

    asyncio.run(story())


def test_no_secret_is_told_whatever_the_server_tells() -> None:
    server = hostile("TellsSecrets", env={"API_TOKEN": "${TOKEN}", "ROOT": "${HOME}/x"})
    environment = {"TOKEN": "sk-very-secret", "HOME": "/srv/me"}

    async def story() -> None:
        async with using({"it": server}, environment=environment) as tools:
            good = await used(tools, "it__go")
            assert text(good) == "*** in /srv/me/x"  # a folder is no secret, and the model may need it
            assert good.structured == {"seen": ["***", {"***": 1}]}
            assert "bad token ***" in text(await used(tools, "it__go", is_error=True))
        server["args"][1] = "TellsSecretsAtOnce"
        with pytest.raises(Fault, match=r"cannot sign in with \*\*\*"):
            async with using({"it": server}, environment=environment):
                pass

    asyncio.run(story())
