"""The exchanges of a send, and pairs that a person edited in a held request."""

from collections.abc import Sequence

import msgspec
import pytest

from sightline.chat.core.facts import PairsDeleted
from sightline.chat.core.pair import text_answer
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.core.sending import Delivered
from sightline.chat.service.blocks import blocks_of
from sightline.chat.service.running_send import SendTracing, revise
from sightline.editing.comparing import SectionChange
from sightline.editing.operations import SetText
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.model.exchange import Budgeted, Dropped, ExchangeCancelled
from sightline.store.entries import Entry, FactEntry
from tests.chat.core.stage import answered, driven, history_of, planned, view_of
from tests.chat.service.chat_stage import ChatStage, played
from tests.chat.service.workshop import Workshop, begin, equipped
from tests.holding import held, let_go
from tests.loop_stage import calls, count, says
from tests.running_stage import plays


def telemetry() -> tuple[SendTelemetry, ...]:
    _, ending = driven(planned(view_of(history_of(answered("a"))), "my secret"), [Delivered()])
    return ending.telemetry


def test_telemetry_before_an_attempt_is_sent_and_its_outcome_is_added() -> None:
    entries: list[Entry] = []
    tracing = SendTracing(Hub(entries.extend), lambda: 7.0, lambda text: text.replace("secret", "•"))
    attempt, success = telemetry()
    (first,) = tracing.plan_telemetry((attempt,))
    assert first["messages"][-1] == {"role": "user", "content": "my •"}
    tracing.add((success,))
    assert entries == [], "there was no exchange"
    tracing.on_recorded(FactEntry("x", 4, 1.0, ExchangeCancelled()))
    assert tracing.plan_telemetry((success, attempt)) == (first,)
    (noted,) = entries
    assert isinstance(noted, FactEntry)
    assert (noted.exchange, noted.n, noted.at) == ("x", 5, 7.0)
    assert isinstance(noted.fact, Budgeted)
    assert noted.fact.telemetry == msgspec.to_builtins(msgspec.structs.replace(success, messages=())) | {
        "messages": [],
        "selection": [{"id": "a", "model": "acme", "tokens": 20}],
        "trimmingRemoved": [],
    }
    tracing.add((success,))
    assert isinstance(entries[1], FactEntry)
    assert entries[1].n == 6


def test_a_drop_is_remembered_until_something_else_happens() -> None:
    tracing = SendTracing(Hub(lambda _entries: None), lambda: 7.0, str)
    tracing.on_recorded(FactEntry("x", 1, 1.0, Dropped("no")))
    assert tracing.was_dropped
    tracing.on_recorded(FactEntry("y", 0, 1.0, ExchangeCancelled()))
    assert not tracing.was_dropped


def test_unwritable_record_is_logged_and_does_not_raise(caplog: pytest.LogCaptureFixture) -> None:
    def full(_entries: Sequence[Entry]) -> None:
        raise Fault(Code.CONFIG, "the disk is full")

    tracing = SendTracing(Hub(full), lambda: 7.0, str)
    tracing.on_recorded(FactEntry("x", 1, 1.0, ExchangeCancelled()))
    tracing.add(telemetry()[-1:])
    assert "could not be recorded: the disk is full" in caplog.text


ASKED = SectionChange(who="user", old="b", new="B", nth=0, count=1, is_question=True)


@played()
async def test_nothing_happens_where_nothing_was_changed_or_the_pair_is_gone(stage: ChatStage) -> None:
    await stage.begin(answered("a"), answered("b"))
    chat, answer = stage.service.chat, text_answer("words")
    version = chat.version
    assert await revise(chat, "b", ("a",), answer, ()) is answer
    assert chat.version == version
    assert await revise(chat, "b", ("a", "b"), answer, ((ASKED,),)) == answer
    assert (stage.pair("b").user_text, stage.pair("b").is_edited) == ("B", True)
    await stage.happen(PairsDeleted(("b",)))
    version = chat.version
    assert await revise(chat, "b", ("a",), answer, ((ASKED,),)) is answer
    assert chat.version == version


@equipped
async def test_what_was_changed_between_the_rounds_of_a_run_is_what_the_history_has(
    stage: ChatStage, workshop: Workshop
) -> None:
    await begin(stage, plays(calls(count(1, "a"))), plays(says("Done.")), plays(says("Four.")))
    holds = stage.relays.relay.holds
    holds.set_rules([{"filter": "", "action": "hold"}])
    name = await stage.service.sends.send("v", "count my 3 secrets")
    hold = await held(stage.relays)
    edit = SetText(section=hold.draft.sections[0].id, text="count my things")
    holds.edit(hold.exchange, edit)
    let_go(stage.relays, hold)
    first = hold
    while (hold := await held(stage.relays)) is first:
        pass
    assert hold.draft.sections[0].text == "count my things", "the run goes on with what was sent"
    result = next(section for section in hold.draft.sections if section.kind == "tool_result")
    holds.edit(hold.exchange, SetText(section=result.id, text="it did something else"))
    let_go(stage.relays, hold)
    pair = await stage.ended(name)
    assert (pair.user_text, pair.is_edited) == ("count my things", True)
    block = blocks_of(pair.answer)[0]
    assert block.result.text == "it did something else"
    holds.set_rules([])
    await stage.ask("and then?")
    sent = [message["content"] for message in stage.upstream.seen[-1].json()["messages"]]
    assert sent == ["count my things", None, "it did something else", "Done.", "and then?"]
