"""Rounds that begin behind what the provider keeps."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.amendment import Amendment
from sightline.agent.core.rounds import CallRecord, Round
from sightline.agent.service.markers import behind_marker, is_forgotten
from sightline.catalog.provider import Provider, Quirks
from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import Image, Link, Text
from sightline.model.reply import Reply
from sightline.model.request import Request
from tests.agent.service.test_asking import held, release
from tests.loop_stage import calls, count, plan, says
from tests.running_stage import RunStage, play
from tests.upstream import Play, Upstream, streams
from tests.upstream import says as answers

SPOKEN = "openai-responses"
SYSTEM, ASKED = Message("system", (Text("Be brief."),)), Message("user", (Text("Do it."),))
SPOKE, RESULT = Message("assistant", (Text("Well"),)), Message("tool", (Text("3"),))
REQUEST = Request("m", (SYSTEM, ASKED, SPOKE, RESULT), options=Options(store=True))
LAST = Round(number=1, reply=Reply(marker="resp_1"))


def test_only_what_came_after_the_marker_is_sent_with_the_instructions() -> None:
    shorter = behind_marker(REQUEST, LAST)
    assert shorter is not None
    assert shorter.messages == (SYSTEM, RESULT)
    assert shorter.options == Options(store=True, previous_response_id="resp_1")
    pictured = Message("system", (Image(Link("u")),))
    without = behind_marker(msgspec.structs.replace(REQUEST, messages=(pictured, SPOKE, RESULT)), LAST)
    assert without is not None
    assert without.messages == (RESULT,)


EDITED = CallRecord(key="1.1", id="a", name="f", arguments="{}", fate="ran", is_edited=True)
RESPELLED = CallRecord(key="1.1", id="a", name="f", arguments="{}", fate="ran", sent_id="b")


@pytest.mark.parametrize(
    ("request_", "last"),
    [
        (REQUEST, None),
        (REQUEST, Round(number=1, reply=Reply())),
        (REQUEST, Round(number=1, reply=Reply(marker="r", fault=Fault(Code.NETWORK, "x")))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), amendments=(Amendment("part", "a", "b"),))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), calls=(EDITED,))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), calls=(RESPELLED,))),
        (msgspec.structs.replace(REQUEST, options=Options(store=False)), LAST),
        (msgspec.structs.replace(REQUEST, messages=(ASKED,)), LAST),
        (msgspec.structs.replace(REQUEST, messages=(ASKED, SPOKE)), LAST),
    ],
)
def test_where_the_provider_may_have_another_conversation_all_is_sent(request_: Request, last: Round | None) -> None:
    assert behind_marker(request_, last) is None


def test_a_marker_that_is_not_known_any_more_is_recognised() -> None:
    assert is_forgotten(Fault(Code.INVALID_REQUEST, "Previous response with id 'resp_1' not found."))
    assert is_forgotten(Fault(Code.MODEL_UNKNOWN, "no", details={"param": "previous_response_id"}))
    assert not is_forgotten(Fault(Code.INVALID_REQUEST, "no"))
    assert not is_forgotten(Fault(Code.OVERLOADED, "previous response"))
    assert not is_forgotten(None)


def stored(reply: Reply, name: str) -> Play:
    """A streamed reply that the provider keeps under this name."""
    reply = msgspec.structs.replace(reply, id=name)
    data = write_reply(reply, SPOKEN, Client(id=name, model="m", created=1), is_stream=True)
    assert b'"object":"response"' in data
    return streams(data.replace(b'"object":"response"', b'"object":"response","store":true'))


def _stage(stage: RunStage, upstream: Upstream, *script: Play) -> None:
    acme = stage.catalog.providers["acme"]
    assert isinstance(acme, Provider)
    stage.catalog.providers["acme"] = msgspec.structs.replace(acme, quirks=Quirks(store=True))
    upstream.script = list(script)


def test_a_run_whose_replies_are_kept_sends_what_is_new(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), stored(says("Done."), "resp_2"))
        ended = await stage.run(plan(SPOKEN))
        first, second = (seen.json() for seen in upstream.seen)
        assert "previous_response_id" not in first
        assert second["previous_response_id"] == "resp_1"
        assert [item["type"] for item in second["input"]] == ["function_call_output"]
        assert (ended.why, [message.role for message in ended.request.messages]) == (
            "answered", ["user", "assistant", "tool", "assistant"],
        )  # fmt: skip

    play(story, tmp_path, SPOKEN)


def test_a_provider_that_has_forgotten_gets_all_of_it_once(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        gone = answers({"error": {"message": "Previous response with id 'resp_1' not found.", "code": "x"}}, 400)
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), gone, stored(says("Done."), "resp_2"))
        ended = await stage.run(plan(SPOKEN))
        _, second, third = (seen.json() for seen in upstream.seen)
        assert (second["previous_response_id"], "previous_response_id" in third) == ("resp_1", False)
        assert len(third["input"]) == 3
        assert (ended.why, len(ended.rounds)) == ("answered", 2)

    play(story, tmp_path, SPOKEN)


def test_who_steps_through_a_run_sees_the_whole_request(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), stored(says("Done."), "resp_2"))
        async with asyncio.TaskGroup() as group:
            group.create_task(stage.run(plan(SPOKEN), is_stepping=True))
            release(stage, await held(stage, 1))
            release(stage, await held(stage, 2))
        assert [len(seen.json()["input"]) for seen in upstream.seen] == [1, 3]

    play(story, tmp_path, SPOKEN)
