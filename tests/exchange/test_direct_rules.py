"""Rules and exchanges that no task serves: what a rule concerns is for a task, and all else remains direct."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.provider import Route
from sightline.exchange.interception.holds import Holds
from sightline.filters.fields import FIELDS, FilterField, FilterScope, Kind, add_field, remove_field
from sightline.model.exchange import Dropped, ExchangeFinished
from tests.exchange.direct_stage import DirectStage, at_once, open_direct_stage, reply_of

CHAT = "openai-chat"

FILTERS: dict[str, tuple[str, str]] = {
    "model": ("model:m", "model:another"),
    "provider": ("provider:acme", "provider:beta"),
    "dialect": (f"dialect:{CHAT}", "dialect:gemini"),
    "session": ('session:""', "session:other"),
    "client": ("client:story*", "client:codex*"),
    "path": ("path:*/completions", "path:*/messages"),
    "method": ('method:""', "method:GET"),
    "transport": ("transport:http", "transport:websocket"),
    "state": ("state:received", "state:failed"),
    "tool": ('tool:""', "tool:look"),
    "text": ("text:elephant", "text:giraffe"),
    "age": ("age:<1h", "age:>1h"),
    "date": ("date:>2001-01-01", "date:<2001-01-01"),
    "losses": ("losses:0", "losses:>0"),
    "stream": ("stream:no", "stream:yes"),
    "side": ("side:no", "side:yes"),
    "origin": ('origin:""', "origin:x_1"),
    "id": ("id:x_*", "id:y_*"),
}
"""For each field that a rule can ask for, a filter that takes the request and one that does not."""
NOT_TOLD_BEFORE = {"id"}


async def ask(opened: DirectStage, **more: Any) -> bytes:
    document: dict[str, Any] = {"messages": [{"role": "user", "content": "the elephant"}], **more}
    return await opened.ask(**document)


@asynccontextmanager
async def warmed_up(folder: Path, **settings: Any) -> AsyncIterator[DirectStage]:
    settings.setdefault("routes", (Route(provider="acme", retries=0),))
    async with open_direct_stage(folder, CHAT, **settings) as opened:
        await opened.warm_up()
        yield opened


def set_rules(opened: DirectStage, *rules: dict[str, Any]) -> Holds:
    holds = opened.stage.relay.holds
    holds.set_rules([*rules])
    return holds


def is_direct(opened: DirectStage, before: int) -> bool:
    return len(opened.direct) > before


async def outcomes(opened: DirectStage, rule: dict[str, Any]) -> list[tuple[bytes, list[str]]]:
    """What the client got and what is on record of two requests, with this rule."""
    set_rules(opened, rule)
    found = []
    for _ in range(2):
        response = await ask(opened)
        port = f":{opened.stage.upstream.port}"  # with the colon: a hash may have the same digits
        found.append((response.replace(port.encode(), b"PORT"), [str(f).replace(port, "PORT") for f in opened.facts()]))
    return found


def test_the_filters_of_this_file_are_all_that_a_rule_can_ask_for() -> None:
    assert set(FILTERS) == {each.name for each in FIELDS if FilterScope.RULES in each.scopes}


@pytest.mark.parametrize("action", ["drop", "pass"])
@pytest.mark.parametrize("field", FILTERS)
async def test_a_rule_has_the_same_outcome_with_and_without_a_task(tmp_path: Path, field: str, action: str) -> None:
    for number, (filter_text, is_taken) in enumerate(zip(FILTERS[field], (True, False), strict=True)):
        found: list[list[tuple[bytes, list[str]]]] = []
        for way in (True, False):
            async with warmed_up(tmp_path / f"{number}-{way}", is_direct=way) as opened:
                before = len(opened.direct)
                found.append(await outcomes(opened, {"filter": filter_text, "action": action}))
                can_remain = opened.stage.relay.holds.has_only_rules and field not in NOT_TOLD_BEFORE
                remains = can_remain and (action == "pass" or not is_taken)
                assert len(opened.direct) - before == (2 if remains else 0)
                assert isinstance(opened.facts()[-1], Dropped if is_taken and action == "drop" else ExchangeFinished)
        assert found[0] == found[1], filter_text


async def test_rules_count_from_the_next_request_on(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        holds = set_rules(opened, {"filter": "model:another", "action": "drop"})
        before = len(opened.direct)
        assert b"hello" in await ask(opened)
        assert is_direct(opened, before), "a rule that matches nothing"
        set_rules(opened, {"filter": "model:m", "action": "drop"})
        before = len(opened.direct)
        assert b"was dropped" in await ask(opened)
        holds.set_mode("off")
        assert b"hello" in await ask(opened)
        assert len(opened.direct) == before + 1
        holds.set_mode("rules")
        assert b"was dropped" in await ask(opened)
        set_rules(opened)
        assert b"hello" in await ask(opened)
        assert len(opened.direct) == before + 2
        holds.add_mask({"kind": "strip", "strip": {"class": "thinking"}, "scope": "all"})
        await ask(opened)
        assert len(opened.direct) == before + 2, "a mask may change every request"


async def test_a_rule_for_one_time_is_used_up_by_one_request(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        holds = set_rules(
            opened,
            {"filter": "text:elephant", "action": "pass", "once": True},
            {"filter": "text:elephant", "action": "drop", "once": True},
        )
        before = len(opened.direct)
        assert b"hello" in await ask(opened)
        assert len(opened.direct) == before, "the rule is used up"
        assert len(holds.rules) == 1
        assert b"was dropped" in await ask(opened)
        assert not holds.rules
        assert b"hello" in await ask(opened)
        assert is_direct(opened, before)


async def test_the_next_request_is_held_also_where_the_last_was_direct(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        relay = opened.stage.relay
        set_rules(opened, {"filter": "model:another"})
        relay.holds.set_mode("next")
        before = len(opened.direct)
        opened.writer.write(opened.request())
        async with asyncio.timeout(20):
            while not relay.holds.waiting:  # noqa: ASYNC110 - a hold has no event to wait for
                await asyncio.sleep(0.001)
        (hold,) = relay.holds.waiting
        relay.holds.release(hold.exchange, hold.draft.sha256)
        assert b"hello" in await opened.read_response()
        assert len(opened.direct) == before
        assert b"hello" in await ask(opened)
        assert is_direct(opened, before), "the rules decide again"


@pytest.mark.parametrize(
    ("filter_text", "remains"),
    [("model:another", True), ("text:giraffe", True), ("model:m", False), ("tool:look", False), ("", False)],
)
async def test_replies_whose_calls_a_rule_may_stop_need_a_task(tmp_path: Path, filter_text: str, remains: bool) -> None:
    async with warmed_up(tmp_path) as opened:
        set_rules(opened, {"filter": filter_text, "phase": "tool_calls", "action": "drop"})
        before = len(opened.direct)
        await ask(opened)
        await ask(opened)
        assert len(opened.direct) - before == (2 if remains else 0)


async def test_the_text_of_each_request_is_looked_at(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        set_rules(opened, {"filter": "model:m text:giraffe", "action": "drop"})
        for content, is_dropped in (
            ("an elephant", False),
            ("a giraffe", True),
            ("a zebra", False),
            ("giraffes", True),
        ):
            response = await ask(opened, messages=[{"role": "user", "content": content}])
            assert (b"was dropped" in response) is is_dropped


async def test_a_field_that_was_added_is_asked_as_usual(tmp_path: Path) -> None:
    add_field(
        FilterField("loudness", Kind.NUMBER, "how loud", read=lambda subject: 9.0 if subject.says("HELP") else 1.0)
    )
    try:
        async with warmed_up(tmp_path) as opened:
            set_rules(opened, {"filter": "loudness:>5", "action": "drop"})
            assert b"hello" in await ask(opened)
            assert b"was dropped" in await ask(opened, messages=[{"role": "user", "content": "help"}])
            assert b"hello" in await ask(opened)
    finally:
        remove_field("loudness")


async def test_a_task_goes_on_with_a_request_that_the_rules_let_pass(tmp_path: Path) -> None:
    async with warmed_up(tmp_path) as opened:
        set_rules(opened, {"filter": "model:another", "action": "drop"})
        opened.stage.upstream.script = [at_once(reply_of(CHAT), status=201)]
        before, taken = len(opened.direct), len(opened.taken)
        assert b"hello" in await ask(opened)
        assert (len(opened.direct) - before, len(opened.taken) - taken) == (1, 0)
        assert isinstance(opened.facts()[-1], ExchangeFinished)
