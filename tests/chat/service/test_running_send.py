"""A send from its first step to its end."""

import asyncio
from dataclasses import dataclass

import pytest

from sightline.chat.core.plan import SendTelemetry
from sightline.chat.service.answerer import AnswerRequest, AnswerResult
from sightline.editing.operations import Set
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.recorder import FactObserver
from sightline.model.request import Tool
from tests.chat.core.stage import answered
from tests.chat.service.chat_stage import ChatStage, played, says, says_until, word
from tests.fake_clock import FakeClock
from tests.holding import held, let_go
from tests.upstream import chunk, head, pieces


def asked_for_a_pause(stage: ChatStage, seconds: int) -> None:
    """The provider wants to be left alone for so long."""
    stage.relays.memory.ledger.observe_headers("acme", "m", {"retry-after": str(seconds)}, stage.clock.now())


async def refused(stage: ChatStage, **more: object) -> Fault:
    with pytest.raises(Fault) as caught:
        await stage.service.sends.send("v", "hello", **more)
    return caught.value


def stages(told: tuple[SendTelemetry, ...]) -> list[str]:
    return [each.stage for each in told]


@played()
async def test_exhausted_limit_is_reported_before_anything_happens(stage: ChatStage) -> None:
    await stage.begin()
    asked_for_a_pause(stage, 30)
    fault = await refused(stage)
    assert fault.status == 429
    assert fault.details == {
        "code": "quota_wait",
        "line": "can go in 30 s: the pause that the provider asked for",
        "can_go_at": stage.clock.now() + 30,
    }
    assert (stage.ids, stage.upstream.seen) == ([], [])


@played()
async def test_a_send_that_waits_says_so_and_goes_when_it_can(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin()
    asked_for_a_pause(stage, 30)
    stage.upstream.script = [says("ok")]
    pair = await stage.ask(quota="wait")
    assert pair.state == "complete"
    assert stage.clock.waits == [30.0]
    assert stage.stages("x_1") == ["waiting", "attempt", "success"]
    paused = await stage.rest("paused")
    assert [each["line"] for each in paused] == ["can go in 30 s: the pause that the provider asked for"]
    assert stage.service.sends.paused is None


@played(clock=FakeClock(holds=True))
async def test_a_send_that_waits_goes_anyway_if_a_person_says_so_later(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin()
    asked_for_a_pause(stage, 30)
    stage.upstream.script = [says("ok")]
    sends = stage.service.sends
    name = await sends.send("v", "hello", quota="wait")
    await stage.news("paused")
    assert sends.paused is not None
    sends.resume(anyway=True)
    with pytest.raises(Fault, match="no send is waiting"):
        sends.resume(anyway=True)
    await sends.wait_until_idle()
    assert stage.pair(name).state == "complete"
    with pytest.raises(Fault, match="no send is waiting"):
        sends.resume(anyway=True)


@played(clock=FakeClock(holds=True))
async def test_a_send_that_waits_can_be_broken_off(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin()
    asked_for_a_pause(stage, 30)
    name = await stage.service.sends.send("v", "hello", quota="wait")
    await stage.news("paused")
    await stage.service.sends.cancel()
    assert stage.pair(name).trouble.code == "cancelled"
    assert stages(stage.service.sends.telemetry(name)) == ["waiting", "cancelled"]
    assert stage.relays.entries == [], "nothing was sent, and nothing is on record"


@played()
async def test_what_can_never_go_is_not_waited_for(stage: ChatStage) -> None:
    await stage.begin(model="poor")
    fault = await refused(stage, quota="wait")
    assert fault.status == 429
    assert fault.details["can_go_at"] is None
    assert "make the request smaller" in fault.message
    assert stage.ids == []
    stage.upstream.script = [says("who says so?")]
    assert (await stage.ask(quota="anyway")).state == "complete"


@played()
async def test_a_send_can_be_held_edited_and_let_go(stage: ChatStage) -> None:
    await stage.begin(script=[says("ok")])
    name = await stage.service.sends.send("v", "hello", hold=True)
    hold = await held(stage.relays)
    stage.relays.relay.holds.edit(hold.exchange, Set(pointer="/messages/0/content", value="goodbye"))
    let_go(stage.relays, hold)
    await stage.service.sends.wait_until_idle()
    assert stage.sent() == ["goodbye"]
    pair = stage.pair(name)
    assert (pair.user_text, pair.is_edited, pair.state) == ("goodbye", True, "complete")
    assert stage.relays.kinds()[:3] == ["received", "budgeted", "held"]
    assert stage.relays.relay.holds.is_idle, "no rule was needed, and none is left behind"


@played()
async def test_a_hold_that_is_dropped_breaks_the_send_off(stage: ChatStage) -> None:
    await stage.begin()
    name = await stage.service.sends.send("v", "hello", hold=True)
    hold = await held(stage.relays)
    stage.relays.relay.holds.drop(hold.exchange)
    pair = await stage.ended(name)
    assert (pair.state, pair.trouble.code, pair.user_text) == ("error", "cancelled", "hello")
    assert stage.upstream.seen == []


@played()
async def test_what_a_rule_drops_has_failed_for_the_reason_that_it_gives(stage: ChatStage) -> None:
    await stage.begin()
    stage.relays.relay.holds.set_rules([{"filter": "", "action": "drop"}])
    stage.relays.relay.holds.set_mode("rules")
    trouble = (await stage.ask()).trouble
    assert "dropped in Sightline: a rule drops everything" in trouble.message


@played()
async def test_words_that_have_come_are_not_given_up_for_another_attempt(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    error = b'data: {"error": {"code": "context_length_exceeded", "message": "too long after all"}}\n\n'
    sse = [("Content-Type", "text/event-stream")]
    stage.upstream.script = [pieces(head(200, sse), chunk(word("so far")), chunk(error), chunk(b""))]
    pair = await stage.ask()
    assert (pair.state, pair.assistant_text) == ("error", "so far")
    assert len(stage.upstream.seen) == 1


@played()
async def test_overflow_error_inside_the_stream_is_treated_as_overflow(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    error = b'data: {"error": {"code": "context_length_exceeded", "message": "too long"}}\n\n'
    sse = [("Content-Type", "text/event-stream")]
    stage.upstream.script = [pieces(head(200, sse), chunk(error), chunk(b"")), says("ok")]
    pair = await stage.ask()
    assert (pair.state, pair.assistant_text) == ("complete", "ok")
    assert [len(stage.sent(number)) for number in range(2)] == [3, 1]


@dataclass
class Mistaken:
    """Has a mistake in it."""

    engine: Engine

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        return ()

    async def answer(self, wanted: AnswerRequest, heard: EventObserver, noted: FactObserver) -> AnswerResult:
        raise ZeroDivisionError


@played(answering=Mistaken)
async def test_whatever_goes_wrong_here_no_pair_waits_forever(stage: ChatStage) -> None:
    await stage.begin()
    name = await stage.service.sends.send("v", "hello")
    task = stage.service.sends._task
    await asyncio.wait({task})
    assert isinstance(task.exception(), ZeroDivisionError)
    assert stage.pair(name).trouble.code == "interrupted"
    assert stage.service.sends.sending == ""


@played()
async def test_when_the_server_ends_the_pair_does_too(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin(script=[says_until(asyncio.Event(), "so far")])
    name = await stage.service.sends.send("v", "hello")
    await stage.news("delta")
    await stage.service.close(0)
    pair = stage.pair(name)
    assert (pair.state, pair.assistant_text) == ("complete", "so far")
    assert pair.answer.finish == "cancelled"


@played()
async def test_a_log_that_cannot_be_written_at_the_end_is_caught_up_with_later(
    stage: ChatStage, caplog: pytest.LogCaptureFixture
) -> None:
    gate = asyncio.Event()
    await stage.begin(script=[says_until(gate, "a")])
    name = await stage.service.sends.send("v", "hello")

    def full(_log: str) -> None:
        raise Fault(Code.CONFIG, "the disk is full")

    stage.logbook.before_append = full
    gate.set()
    await stage.service.sends.wait_until_idle()
    assert "could not be kept: the disk is full" in caplog.text
    stage.logbook.before_append = lambda _log: None
    assert stage.pair(name).state == "sending"
    await stage.service.chat.load()
    assert stage.pair(name).trouble.code == "interrupted"


@played()
async def test_a_question_that_cannot_be_kept_is_not_sent(stage: ChatStage) -> None:
    await stage.begin()

    def full(log: str) -> None:
        if log == "chat":
            raise Fault(Code.CONFIG, "the disk is full")

    stage.logbook.before_append = full
    with pytest.raises(Fault, match="the disk is full"):
        await stage.service.sends.send("v", "hello")
    assert (stage.upstream.seen, stage.ids, stage.logbook.kept.get("chat-sending:p_1")) == ([], [], None)
    stage.logbook.before_append = lambda _log: None
    stage.upstream.script = [says("now")]
    assert (await stage.ask()).state == "complete"


@played()
async def test_broken_off_at_once_it_does_not_even_begin(stage: ChatStage) -> None:
    await stage.begin(script=[says("never")])
    name = await stage.service.sends.send("v", "hello")
    await stage.service.sends.cancel()
    assert stage.pair(name).trouble.code == "cancelled"
    assert stage.upstream.seen == []


@played()
async def test_a_process_that_is_stopped_hard_ends_the_pair_first(stage: ChatStage) -> None:
    stage.watch()
    await stage.begin(script=[says_until(asyncio.Event(), "so far")])
    name = await stage.service.sends.send("v", "hello")
    await stage.news("delta")
    task = stage.service.sends._task
    task.cancel()
    await asyncio.wait({task})
    pair = stage.pair(name)
    assert (pair.trouble.code, pair.assistant_text) == ("interrupted", "so far")
