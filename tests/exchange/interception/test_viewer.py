import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Insert, SetText, Undo
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import expand
from sightline.exchange.interception.viewer import MOST_LOOKS, Viewer
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import Records
from sightline.exchange.request_counter import MOST_ESTIMATORS
from sightline.model.exchange import Edited
from sightline.model.reply import Usage
from sightline.store.sqlite import open_store
from sightline.store.store import Store
from sightline.tokens.calibration import digest_chain
from tests.holding import JSON, asking, held, let_go
from tests.relay_stage import Stage, asks, open_stage
from tests.reply_samples import CALLS, SAYS, whole
from tests.upstream import answer

LONG = "A long instruction. " * 400


def turn(*words: str) -> bytes:
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(words)]
    return json.dumps({"model": "m", "messages": [{"role": "system", "content": LONG}, *messages]}).encode()


@asynccontextmanager
async def recorded(folder: Path, **settings: Any) -> AsyncIterator[tuple[Stage, Viewer, Store]]:
    """A relay whose exchanges are on a real record."""
    async with open_stage(folder, **settings) as stage:
        store = await open_store(folder / "data", prices=lambda _provider, _model: None, now=stage.clock.now)
        try:
            stage.hub._record = store.record
            stage.upstream.script = [answer(200, whole(settings.get("spoken", "openai-chat"), SAYS), JSON)]
            records = Records(store, stage.clock.now, lambda _provider, _model: None)
            yield stage, Viewer(stage.relay.holds, records, stage.relay.catalog, stage.memory), store
        finally:
            await store.close()


@asynccontextmanager
async def viewed(folder: Path, asked: ClientRequest, **settings: Any) -> AsyncIterator[tuple[Stage, Viewer, Hold]]:
    """One request that is held, and let go in the end."""
    async with recorded(folder, **settings) as (stage, viewing, _):
        stage.relay.holds.set_mode("every")
        async with asking(stage, asked):
            hold = await held(stage)
            yield stage, viewing, hold
            let_go(stage, hold)


async def test_what_an_edit_does_not_touch_is_the_very_same_section(tmp_path: Path) -> None:
    async with viewed(tmp_path, asks("openai-chat", body=turn("one", "two", "three"))) as (stage, viewing, hold):
        holds = stage.relay.holds
        before = await viewing.view_hold(hold)
        assert await viewing.view_hold(hold) is before, "nothing is looked at twice"
        section = before.sections[1]
        holds.edit(hold.exchange, SetText(section=section.id, text="uno"))
        after = viewing.now(hold)
        assert [each.text for each in after.since(before)] == ["uno"]
        assert after.sections[1].tokens == after.budget.sections[section.id]
        holds.edit(hold.exchange, Delete(section=before.sections[2].id))
        gone = viewing.now(hold)
        assert {each.id for each in gone.since(after)} >= {before.sections[2].id}
        holds.edit(hold.exchange, Undo())
        assert [each.text for each in viewing.now(hold).sections] == [each.text for each in after.sections]


async def test_every_section_says_where_it_came_from_and_an_edited_one_what_it_was(tmp_path: Path) -> None:
    async with viewed(tmp_path, asks("openai-chat", body=turn("one", "two", "three"))) as (stage, viewing, hold):
        holds = stage.relay.holds
        first = (await viewing.view_hold(hold)).sections
        assert [each.source_message_index for each in first] == [0, 1, 2, 3, None]
        assert {each.original_content for each in first} == {None}, "the text is what came"
        holds.edit(hold.exchange, SetText(section=first[1].id, text="uno"))
        holds.edit(hold.exchange, Insert(pointer="/messages/1", value={"role": "user", "content": "new"}))
        shown = viewing.now(hold).sections
        assert [(each.source_message_index, each.original_content) for each in shown] == [
            (0, None),
            (None, None),
            (1, "one"),
            (2, None),
            (3, None),
            (None, None),
        ]


async def test_counts_that_were_learned_change_what_every_section_takes(tmp_path: Path) -> None:
    async with viewed(tmp_path, asks("openai-chat", body=turn("one"))) as (stage, viewing, hold):
        look = await viewing.view_hold(hold)
        raw = look.budget.estimate
        counted = Usage(input_tokens=2 * raw.tokens)
        for _ in range(20):
            stage.memory.learn("acme", "m", look.budget.estimate, counted, tools=False)
        stage.relay.holds.edit(hold.exchange, SetText(section=look.sections[1].id, text="uno"))
        later = viewing.now(hold)
        assert later.budget.estimate.tokens > 1.5 * raw.tokens
        assert len(later.since(look)) == len(look.sections)


async def test_counts_are_learned_for_a_view_while_other_models_are_estimated(tmp_path: Path) -> None:
    async with viewed(tmp_path, asks("openai-chat", body=turn("one"))) as (stage, viewing, hold):
        look = await viewing.view_hold(hold)
        for number in range(MOST_ESTIMATORS):
            stage.relay.holds.counter.estimator(replace(hold.choice, model=f"other-{number}"))
        counted = Usage(input_tokens=2 * look.budget.estimate.tokens)
        for _ in range(20):
            stage.memory.learn("acme", "m", look.budget.estimate, counted, tools=False)
        stage.relay.holds.edit(hold.exchange, SetText(section=look.sections[1].id, text="uno"))
        assert viewing.now(hold).budget.estimate.tokens > 1.5 * look.budget.estimate.tokens


async def test_a_request_is_compared_with_the_one_before_it_at_the_same_provider(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (stage, viewing, _):
        await stage.ask(asks("openai-chat", body=turn("one"), session="s"))
        holds = stage.relay.holds
        holds.set_mode("every")
        next_turn = turn("one", "Hello there.", "two")
        async with asking(stage, asks("openai-chat", body=next_turn, session="s")):
            hold = await held(stage)
            look = await viewing.view_hold(hold)
            assert look.follows
            assert look.cost.kept_tokens >= 1024
            holds.edit(hold.exchange, SetText(section=look.sections[0].id, text="short"))
            cost = viewing.now(hold).cost
            assert cost.broken_by_edit >= 1024
            let_go(stage, hold)
        async with asking(stage, asks("openai-chat", body=next_turn, session="s", provider="open")):
            gone, hold = hold, await held(stage)
            assert not (await viewing.view_hold(hold)).follows, "another provider's cache has nothing of it"
            assert viewing._views.get(gone) is None, "what is no longer held is let go"
            let_go(stage, hold)


async def test_what_the_provider_counted_leads_where_the_conversation_goes_on(tmp_path: Path) -> None:
    asked = asks("openai-chat", body=turn("one", "Hello there.", "two"), session="s")
    async with viewed(tmp_path, asked) as (stage, viewing, hold):
        chain = digest_chain("acme", "m", hold.draft.request)
        stage.memory.note_count(chain[:3], 1500)
        look = await viewing.view_hold(hold)
        assert look.budget.estimate.low >= 1500
        assert look.budget.estimate.tokens < 1600
        stage.relay.holds.edit(hold.exchange, SetText(section=look.sections[0].id, text="short"))
        later = viewing.now(hold).budget
        assert later.estimate.tokens < 1500, "the counted beginning was edited, so it is estimated again"


async def test_new_hold_can_be_shown_immediately(tmp_path: Path) -> None:
    async with viewed(tmp_path, asks("openai-chat")) as (_, viewing, hold):
        assert viewing.now(hold).sections[0].text == "hi"
        first, second = await asyncio.gather(viewing.view_hold(hold), viewing.view_hold(hold))
        assert first is second


async def test_held_calls_are_shown_without_a_budget(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (stage, viewing, _):
        stage.relay.holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        stage.upstream.script = [answer(200, whole("openai-chat", CALLS), JSON)]
        async with asking(stage, asks("openai-chat")):
            hold = await held(stage)
            look = await viewing.view_hold(hold)
            assert (look.budget, look.cost, look.validity.ok) == (None, None, True)
            assert await viewing.view_hold(hold) == look
            stage.relay.holds.edit(hold.exchange, SetText(section=look.sections[0].id, text="{}"))
            assert [each.text for each in viewing.now(hold).since(look)] == ["{}"]
            let_go(stage, hold)


async def test_what_is_on_record_cannot_be_edited_and_is_remembered_for_a_while(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (stage, viewing, store):
        shown = []
        for number in range(MOST_LOOKS + 1):
            await stage.ask(asks("openai-chat", body=turn(f"one {number}")))
            await store.settle()
            found = await viewing.records.read(f"x_{number + 1}")
            shown.append(await viewing.view_recorded(found, "openai-chat"))
            assert await viewing.view_recorded(found, "openai-chat") is shown[-1]
        assert not any(section.editable for section in shown[0].sections)
        assert not any(part.editable for section in shown[0].sections for part in section.parts)
        found = await viewing.records.read("x_1")
        assert await viewing.view_recorded(found, "openai-chat") is not shown[0]


async def test_a_request_before_that_cannot_be_read_has_left_nothing(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (stage, viewing, _):
        await stage.ask(asks("openai-chat", body=turn("one"), session="s"))
        await stage.ask(asks("openai-chat", body=turn("one", "Hello there.", "two"), session="s"))
        found = await viewing.records.read("x_2")
        before = await viewing.records.previous("x_2")
        assert before is not None

        async def unreadable(_exchange: str) -> RecordedExchange:
            return RecordedExchange(before.summary, before.facts, b"5", b"5")

        viewing.records.previous = unreadable  # type: ignore[method-assign, assignment]
        look = await viewing.view_recorded(found, "openai-chat")
        assert not look.follows
        assert isinstance(look.draft, Draft)


async def test_hold_can_be_viewed_while_the_record_fails(tmp_path: Path) -> None:
    async with recorded(tmp_path) as (stage, viewing, _):

        async def troubled(_exchange: str) -> RecordedExchange:
            raise Fault(Code.CONFIG, "the disk is full")

        viewing.records.previous = troubled  # type: ignore[method-assign, assignment]
        stage.relay.holds.set_mode("every")
        async with asking(stage, asks("openai-chat")):
            hold = await held(stage)
            assert (await viewing.view_hold(hold)).sections[0].text == "hi"
            let_go(stage, hold)


def reply(name: str, text: str) -> bytes:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": f"m_{name}", "role": "assistant", "status": "completed", "content": content}
    told = {"id": name, "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [message]}
    return json.dumps(told).encode()


def responses(words: str, before: str = "") -> Any:
    body = {"model": "m", "input": words} | ({"previous_response_id": before} if before else {})
    return asks("openai-responses", body=json.dumps(body).encode(), session="s")


async def test_a_chain_of_responses_becomes_one_request(tmp_path: Path) -> None:
    async with recorded(tmp_path, spoken="openai-responses") as (stage, viewing, _):
        stage.upstream.script = [answer(200, reply(f"r{n}", f"said {n}"), JSON) for n in (1, 2, 3)]
        await stage.ask(responses("one"))
        await stage.ask(responses("two", "r1"))
        holds = stage.relay.holds
        holds.set_mode("every")
        async with asking(stage, responses("three", "r2")):
            hold = await held(stage)
            assert await expand(holds, viewing.records, hold.exchange) is hold
            texts = [section.text for section in viewing.now(hold).sections[:5]]
            assert texts == ["one", "said 1", "two", "said 2", "three"]
            let_go(stage, hold)
        assert "previous_response_id" not in json.loads(stage.upstream.seen[-1].body)
        facts = [noted.fact for noted in await viewing.records.facts("x_3")]
        assert [fact.operation for fact in facts if isinstance(fact, Edited)] == ["expand"]
        async with asking(stage, responses("four", "r3")):
            hold = await held(stage)
            await expand(holds, viewing.records, hold.exchange)
            assert len(viewing.now(hold).sections) > 6, "what was written out before is not looked up again"
            let_go(stage, hold)


async def test_a_link_that_is_not_on_record_is_named(tmp_path: Path) -> None:
    async with viewed(tmp_path, responses("two", "r_lost"), spoken="openai-responses") as (stage, viewing, hold):
        holds = stage.relay.holds
        with pytest.raises(Fault, match="r_lost") as caught:
            await expand(holds, viewing.records, hold.exchange)
        assert caught.value.status == 422
        assert not hold.draft.is_dirty


async def test_calls_of_a_reply_cannot_be_written_out(tmp_path: Path) -> None:
    async with recorded(tmp_path, spoken="openai-responses") as (stage, viewing, _):
        holds = stage.relay.holds
        holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        stage.upstream.script = [answer(200, whole("openai-responses", CALLS), JSON)]
        async with asking(stage, responses("one")):
            hold = await held(stage)
            with pytest.raises(Fault) as caught:
                await expand(holds, viewing.records, hold.exchange)
            assert caught.value.status == 422
            let_go(stage, hold)
        with pytest.raises(Fault) as caught:
            await expand(holds, viewing.records, hold.exchange)
        assert caught.value.status == 409
