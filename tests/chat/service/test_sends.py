"""Sending, told by the rules of the workflow that a live send has to keep."""

import asyncio

import pytest

from sightline.chat.core.facts import PairsStarred
from sightline.chat.core.pair import MessagePair
from sightline.chat.service.chat import Preferences
from sightline.errors import Fault
from sightline.model.exchange import AttemptStarted, ExchangeCancelled, Received
from sightline.model.parts import Text
from tests.chat.core.stage import answered
from tests.chat.service.chat_stage import ChatStage, overflows, played, refuses, says, says_until, word
from tests.relay_stage import KEY
from tests.upstream import after, chunk, cut, head, stall

EVENT_STREAM = [("Content-Type", "text/event-stream")]


def pairs(count: int, size: int = 20) -> list[MessagePair]:
    return [answered("abcdefgh"[number], size) for number in range(count)]


def code_of(fault: Fault) -> object:
    return fault.details["code"] if isinstance(fault.details, dict) else fault.code.value


async def failing(stage: ChatStage, text: str = "hello", **more: object) -> Fault:
    with pytest.raises(Fault) as caught:
        await stage.service.sends.send("v", text, **more)
    return caught.value


@played()
async def test_4_a_question_is_sent_with_what_is_visible_and_its_answer_completes_the_pair(stage: ChatStage) -> None:
    await stage.begin(*pairs(2), script=[says("Hel", "lo.")])
    pair = await stage.ask("hi there")
    assert stage.sent() == ["a?????????", "!!!!!!!!!!", "b?????????", "!!!!!!!!!!", "hi there"]
    assert (pair.state, pair.assistant_text, pair.model) == ("complete", "Hello.", "m")
    assert stage.ids == ["a", "b", pair.id]
    assert pair.answer.usage.input_tokens == 9
    assert pair.answer.predicted is not None
    assert pair.answer.exchange == pair.exchange == "x_1"
    assert pair.answer.seconds is not None
    received = stage.relays.facts("x_1")[0]
    assert isinstance(received, Received)
    assert (received.session, received.conversation) == ("chat", "chat")
    assert stage.stages("x_1") == ["attempt", "success"], "on record, each with its exchange"


@played()
async def test_4_6_there_is_one_send_at_a_time(stage: ChatStage) -> None:
    gate = asyncio.Event()
    await stage.begin(script=[says_until(gate, "a")])
    await stage.service.sends.send("v", "one")
    fault = await failing(stage, "two")
    assert (fault.status, code_of(fault)) == (409, "already_sending")
    gate.set()
    await stage.service.sends.wait_until_idle()
    assert len(stage.ids) == 1
    both = await asyncio.gather(
        *(stage.service.sends.send("v", text) for text in ("three", "four")), return_exceptions=True
    )
    assert sorted(isinstance(each, Fault) for each in both) == [False, True]
    await stage.service.sends.wait_until_idle()


@played()
async def test_5_1_a_providers_error_ends_the_pair_with_it(stage: ChatStage) -> None:
    await stage.begin(*pairs(1), script=[refuses(401, "invalid_api_key", "Incorrect API key provided")])
    pair = await stage.ask()
    assert pair.state == "error"
    assert pair.trouble.label == "auth"
    assert pair.answer is None
    assert pair.exchange == "x_1"
    assert stage.stages("x_1") == ["attempt", "error"]


@played(stream_max_retries=0)
async def test_5_2_a_connection_that_breaks_mid_stream_leaves_what_came_and_the_fault(stage: ChatStage) -> None:
    stage.watch()
    came = asyncio.Event()
    await stage.begin(script=[cut(head(200, EVENT_STREAM), chunk(word("half of")), came)])
    name = await stage.service.sends.send("v", "hello")
    await stage.news("delta")
    came.set()
    pair = await stage.ended(name)
    assert (pair.state, pair.assistant_text) == ("error", "half of")
    assert pair.answer.finish == "error"
    assert pair.trouble.label == "net"


@played()
async def test_5_3_broken_off_mid_stream_what_came_stays_and_is_marked(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin(*pairs(1), script=[stall(head(200, EVENT_STREAM), chunk(word("only ")), chunk(word("this")))])
    name = await stage.service.sends.send("v", "hello")
    while (so_far := stage.service.sends.so_far(name)) is None or so_far.text != "only this":
        await stage.news("delta")
    await stage.service.sends.cancel()
    await stage.upstream.gone()
    pair = stage.pair(name)
    assert (pair.state, pair.assistant_text) == ("complete", "only this")
    assert (pair.answer.finish, pair.answer.reason, pair.answer.is_partial) == ("cancelled", "user", True)
    assert "user" in [fact.reason for fact in stage.relays.facts() if isinstance(fact, ExchangeCancelled)]
    assert stage.relays.kinds()[-2:] == ["cancelled", "budgeted"]
    assert stage.service.sends.so_far(name) is None
    with pytest.raises(Fault, match="nothing is being sent"):
        await stage.service.sends.cancel()


@played()
async def test_5_4_reask_in_place_keeps_the_earlier_answer_even_on_failure(
    stage: ChatStage,
) -> None:
    await stage.begin(*pairs(3), script=[says("another"), refuses(401, "no", "no")])
    sends = stage.service.sends
    assert await sends.reask("b", "v", model="large") == "b"
    await sends.wait_until_idle()
    assert stage.upstream.seen[0].json()["model"] == "large"
    assert stage.sent(0) == ["a?????????", "!!!!!!!!!!", "b?????????"], "only what is older goes along"
    pair = stage.pair("b")
    assert (pair.assistant_text, pair.model) == ("another", "large")
    assert [answer.text for answer in pair.earlier] == ["!!!!!!!!!!"]
    await sends.reask("b", "v", model="m")
    await sends.wait_until_idle()
    pair = stage.pair("b")
    assert (pair.state, pair.assistant_text, pair.model) == ("complete", "another", "large")
    assert pair.trouble is not None


@played()
async def test_5_4_reask_defaults_to_the_same_model_and_rejects_failed_pairs(
    stage: ChatStage,
) -> None:
    await stage.begin(answered("a", model="large"), script=[says("another"), refuses(401, "no", "no")])
    await stage.service.sends.reask("a", "v")
    await stage.service.sends.wait_until_idle()
    assert stage.upstream.seen[0].json()["model"] == "large"
    failed = await stage.ask()
    with pytest.raises(Fault, match="has no answer"):
        await stage.service.sends.reask(failed.id, "v")


@played()
async def test_5_5_a_filter_changed_in_flight_does_not_touch_the_request(stage: ChatStage) -> None:
    gate = asyncio.Event()
    await stage.begin(*pairs(2), script=[says_until(gate, "a")])
    name = await stage.service.sends.send("v", "hello")
    looking = await stage.service.views.set_view("v", filter="s>0")
    assert list(looking.view.visible) == [], "not even the pair that is on its way"
    gate.set()
    assert (await stage.ended(name)).state == "complete"
    assert len(stage.sent()) == 5


@played()
async def test_5_6_a_model_chosen_in_flight_is_for_the_next_send(stage: ChatStage) -> None:
    gate = asyncio.Event()
    await stage.begin(*pairs(4), script=[says_until(gate, "a"), says("b")])
    name = await stage.service.sends.send("v", "hello")
    looking = await stage.service.views.set_view("v", model="large")
    assert looking.view.room.limit == 1000
    gate.set()
    await stage.service.sends.wait_until_idle()
    assert stage.upstream.seen[0].json()["model"] == "m"
    assert stage.pair(name).model == "m"
    await stage.ask()
    assert stage.upstream.seen[1].json()["model"] == "large"


@played()
async def test_7_6_a_setting_changed_in_flight_does_not_touch_the_retries(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin(*pairs(4))
    changing = asyncio.Event()
    stage.upstream.script = [after(changing, overflows()), says("ok")]
    name = await stage.service.sends.send("v", "hello")
    await stage.upstream.arrived(1)
    settings = {"charsPerToken": 0.5, "maxTrimAttempts": 0, "userRequestAllowance": 50}
    await stage.service.chat.prefer(Preferences(settings))
    looking = await stage.service.views.get("v")
    assert len(looking.view.included) == 2, "what is on screen goes by the new settings"
    changing.set()
    await stage.service.sends.wait_until_idle()
    told = stage.service.sends.telemetry(name)
    assert stage.pair(name).state == "complete"
    assert {each.chars_per_token for each in told} == {1.0}
    assert {each.predicted_message_count for each in told} == {4}


@played()
async def test_7_2_an_overflow_leaves_out_one_pair_and_tries_again(stage: ChatStage) -> None:
    await stage.begin(*pairs(4), script=[overflows(), overflows(), says("at last")])
    pair = await stage.ask()
    assert [len(stage.sent(number)) for number in range(3)] == [9, 7, 5]
    assert pair.state == "complete"
    assert stage.stages("x_1") == ["attempt", "overflow_initial"]
    assert stage.stages("x_2") == ["overflow_retry"]
    assert stage.stages("x_3") == ["overflow_retry", "success"]
    looking = await stage.service.views.get("v")
    assert looking.counter().text == "[4-2]/5"
    assert "2 of 4 pairs were left out" in looking.last.trim_summary
    await stage.service.views.set_view("v", filter="")
    assert looking.counter().text == "4 / 5", "another filter is another view of things"


@played()
async def test_7_6_a_filter_changed_during_retries_stops_them_with_a_notice(stage: ChatStage) -> None:
    await stage.begin(*pairs(3))
    changing = asyncio.Event()
    stage.upstream.script = [after(changing, overflows()), says("never")]
    name = await stage.service.sends.send("v", "hello")
    await stage.upstream.arrived(1)
    await stage.service.views.set_view("v", filter="s>0")
    changing.set()
    trouble = (await stage.ended(name)).trouble
    assert trouble.code == "filter_changed"
    assert "Look at what is visible now" in trouble.hint
    assert len(stage.upstream.seen) == 1
    assert stage.stages("x_1")[-1] == "filter_changed"


@played()
async def test_7_6_a_prompt_that_cannot_fit_is_not_sent_and_there_is_no_pair(stage: ChatStage) -> None:
    await stage.begin(*pairs(1))
    fault = await failing(stage, "x" * 101)
    assert (fault.status, code_of(fault)) == (422, "user_prompt_too_large")
    assert stage.ids == ["a"]
    assert stage.logbook.kinds() == ["asked", "answered"]
    assert (stage.upstream.seen, stage.relays.entries) == ([], [])
    looking = await stage.service.views.get("v")
    assert looking.last.trouble is not None
    assert [each.stage for each in looking.last.telemetry] == ["user_prompt_too_large"]


@played()
async def test_what_was_looked_at_is_what_is_sent_or_nothing_is(stage: ChatStage) -> None:
    await stage.begin(*pairs(2), script=[says("ok")])
    shown = (await stage.service.sends.preview("v", "hello")).prepared
    await stage.happen(PairsStarred(("a",), 1))
    await stage.service.views.set_view("v", filter="s0")
    fault = await failing(stage, expect_sha256=shown.sha256)
    assert (fault.status, code_of(fault)) == (409, "preview_outdated")
    assert stage.ids == ["a", "b"]
    await stage.service.views.set_view("v", filter="")
    await stage.ask(expect_sha256=shown.sha256)
    assert stage.upstream.seen[0].body == shown.body
    attempts = [fact for fact in stage.relays.facts() if isinstance(fact, AttemptStarted)]
    assert [attempt.sha256 for attempt in attempts] == [shown.sha256]


@played()
async def test_next_question_can_be_sent_as_soon_as_the_answer_is_announced(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin(script=[says("ok")])
    for _ in range(3):
        name = await stage.service.sends.send("v", "hello")
        while stage.pair(name).state == "sending":
            await stage.news("changed")
    await stage.service.sends.wait_until_idle()
    assert [stage.pair(each).state for each in stage.ids] == ["complete"] * 3


@played()
async def test_a_key_that_a_person_writes_is_neither_sent_nor_on_record(stage: ChatStage) -> None:
    await stage.begin(script=[says("I see stars.")])
    words, files = f"my key is {KEY}", (Text(f"File: a.txt\n```\n{KEY}\n```\n"),)
    preview = await stage.service.sends.preview("v", words, files)
    await stage.service.sends.send("v", words, files, expect_sha256=preview.prepared.sha256)
    await stage.service.sends.wait_until_idle()
    body = stage.upstream.seen[0].body.decode()
    assert "my key is ***" in body
    assert KEY not in body
    assert KEY not in str(stage.relays.facts())
