"""Caps on their way: what fits is sent, what does not is refused or held, and what was taken is counted."""

import asyncio
import json
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.facts import Model, Prices
from sightline.dialects.registry import dialect
from sightline.errors import Code
from sightline.model.reply import Usage
from sightline.model.request import Request
from sightline.settings import CapSettings
from sightline.store.caps import FolderCounts
from sightline.store.postgres import open_postgres
from sightline.store.postgres_caps import PostgresCounts
from sightline.tokens.caps import CapUse, Claim
from sightline.tokens.estimate import Estimate, between
from sightline.tokens.estimator import Estimator
from tests.holding import held, let_go, promptly
from tests.postgres_server import database
from tests.relay_stage import DIALECTS, Stage, asks, open_stage
from tests.store.traffic import NOON, prices
from tests.upstream import LAST, chunk, cut, head, pieces, says, streams

PRICED = {"acme/m": Model(prices=Prices(input=1.0, output=10.0))}
BODY = json.dumps({"model": "m", "max_tokens": 90, "messages": [{"role": "user", "content": "hi"}]}).encode()


def reply(asked: int = 8, written: int = 2) -> dict[str, Any]:
    usage = {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
    message = {"role": "assistant", "content": "Hi."}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def tokens(most: int, **fields: Any) -> tuple[CapSettings, ...]:
    return (CapSettings(name="daily", tokens=most, **fields),)


async def uses(stage: Stage) -> list[CapUse]:
    await stage.caps.wait_until_settled()
    return await stage.caps.counts.uses()


async def size_of_one(folder: Path) -> int:
    """How much a request of `BODY` reserves."""
    async with open_stage(folder / "one", caps=tokens(10_000)) as stage:
        seen: list[CapUse] = []

        async def look() -> None:
            seen.extend(await stage.caps.counts.uses())

        data = json.dumps(reply()).encode()
        stage.upstream.script = [pieces(look, head(200, [("Content-Type", "application/json")]), chunk(data), LAST)]
        await stage.ask(asks("openai-chat", body=BODY))
        return seen[0].reserved


async def ask_many(stages: list[Stage], gate: asyncio.Event, fitting: int) -> list[int]:
    """A thousand requests at once, none of which is answered before all are decided: their statuses."""
    data = json.dumps(reply()).encode()
    for stage in stages:
        stage.upstream.script = [pieces(gate, head(200, [("Content-Type", "application/json")]), chunk(data), LAST)]

    async def ask(number: int) -> int:
        status = (await stages[number % len(stages)].ask(asks("openai-chat", body=BODY))).status
        refused.append(status) if status != 200 else None
        if len(refused) == 1_000 - fitting:
            gate.set()
        return status

    refused: list[int] = []
    return await promptly(asyncio.gather(*map(ask, range(1_000))))


async def test_of_a_thousand_requests_at_once_exactly_those_are_sent_that_fit(tmp_path: Path) -> None:
    one = await size_of_one(tmp_path)
    async with open_stage(tmp_path, caps=tokens(100 * one + one - 1)) as stage:
        statuses = await ask_many([stage], asyncio.Event(), 100)
        assert (statuses.count(200), statuses.count(400)) == (100, 900)
        assert len(stage.upstream.seen) == 100
        [use] = await uses(stage)
        assert (use.spent, use.reserved) == (1_000, 0)


def test_of_a_thousand_requests_to_two_replicas_exactly_those_are_sent_that_fit(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        store = await open_postgres(url, tmp_path, prices=prices, now=lambda: NOON)
        await store.close()
        caps = tokens(100 * await size_of_one(tmp_path))
        async with (
            open_stage(tmp_path / "a", caps=caps, counts=PostgresCounts(url)) as one,
            open_stage(tmp_path / "b", caps=caps, counts=PostgresCounts(url)) as other,
        ):
            statuses = await ask_many([one, other], asyncio.Event(), 100)
            assert (statuses.count(200), statuses.count(400)) == (100, 900)
            assert len(one.upstream.seen) + len(other.upstream.seen) == 100
            await uses(one)
            [use] = await uses(other)
            assert (use.spent, use.reserved) == (1_000, 0)
            for stage in (one, other):
                await stage.caps.close()

    with database() as url:
        asyncio.run(story(url))


async def test_a_restart_keeps_what_was_spent(tmp_path: Path) -> None:
    for status in (200, 400):
        async with open_stage(tmp_path, caps=tokens(210)) as stage:
            stage.upstream.script = [says(reply(asked=150, written=50))]
            assert (await stage.ask(asks("openai-chat", body=BODY))).status == status
            [use] = await uses(stage)
            assert (use.spent, use.reserved) == (200, 0)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_refusal_is_an_error_of_the_client_that_names_the_cap(spoken: str, tmp_path: Path) -> None:
    async with open_stage(tmp_path, spoken, caps=tokens(1)) as stage:
        got = await stage.ask(asks(spoken))
        assert got.status == 400
        message = dialect(spoken).read_error(got.status, got.json(), {}).message
        assert message.startswith("the cap daily (")
        assert "allows 1 tokens" in message
        assert not stage.upstream.seen
        assert stage.kinds() == ["received", "failed"]


async def test_money_is_counted_as_the_record_counts_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path, caps=(CapSettings(name="money", dollars=1.0),), models=PRICED) as stage:
        stage.upstream.script = [says(reply(asked=1_000, written=100))]
        got = await stage.ask(asks("openai-chat", body=BODY))
        assert got.status == 200
        [use] = await uses(stage)
        assert use.spent == 2_000_000  # billionths: 1,000 at $1 and 100 at $10 for a million


@pytest.mark.parametrize(("unpriced", "status"), [("refuse", 400), ("pass", 200)])
async def test_a_cost_that_is_not_known_is_refused_unless_the_cap_lets_it_pass(
    unpriced: Any, status: int, tmp_path: Path
) -> None:
    async with open_stage(tmp_path, caps=(CapSettings(name="money", dollars=1.0, unpriced=unpriced),)) as stage:
        stage.upstream.script = [says(reply())]
        got = await stage.ask(asks("openai-chat", body=BODY))
        assert got.status == status
        if status == 400:
            assert "acme/m has no known price" in got.json()["error"]["message"]


async def test_each_value_of_what_a_cap_is_per_has_the_whole_amount(tmp_path: Path) -> None:
    async with open_stage(tmp_path, caps=tokens(300, per=("project", "key"))) as stage:
        stage.upstream.script = [says(reply(written=250))]
        seen = []
        for session, key in (
            ("a@shop", "sk-one-01234567"),
            ("b@shop", "sk-one-01234567"),
            ("b@home", "sk-two-01234567"),
        ):
            headers = (("Authorization", f"Bearer {key}"),)
            seen.append((await stage.ask(asks("openai-chat", body=BODY, session=session, headers=headers))).status)
        assert seen == [200, 400, 200]
        assert not any("sk-one" in use.key.bucket for use in await uses(stage))


async def test_a_cap_is_for_the_requests_of_its_filter(tmp_path: Path) -> None:
    async with open_stage(tmp_path, caps=tokens(1, filter="session:paid")) as stage:
        stage.upstream.script = [says(reply())]
        assert (await stage.ask(asks("openai-chat", body=BODY, session="free"))).status == 200
        assert (await stage.ask(asks("openai-chat", body=BODY, session="paid"))).status == 400


async def test_from_four_fifths_on_it_is_warned_in_the_log_and_with_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "sightline.exchange.caps")
    async with open_stage(tmp_path, caps=tokens(10_000, window="always")) as stage:
        told: list[Any] = []
        stage.caps.on_notice = told.append
        stage.upstream.script = [says(reply(asked=8, written=8_492))]
        first = await stage.ask(asks("openai-chat", body=BODY))
        await uses(stage)
        stage.upstream.script = [says(reply(asked=1, written=1))]
        second = await stage.ask(asks("openai-chat", body=BODY))
        await uses(stage)
        assert (first.header("x-sightline-cap"), second.header("x-sightline-cap")) == ("", "daily 85%")
        assert [(each["cap"], round(each["share"], 2)) for each in told] == [("daily", 0.85)]
    assert [each.getMessage() for each in caplog.records] == ["the cap daily is at 85% of 10,000 tokens"]


@pytest.mark.parametrize(
    ("limits", "why", "spent"),
    [
        ({"tokens": 1}, "the cap daily (", 22),
        ({"dollars": 1.0}, "the cap daily cannot count this request: acme/m has no known price", 0),
    ],
)
async def test_a_cap_that_holds_waits_for_a_person_and_counts_what_is_let_go(
    limits: dict[str, Any], why: str, spent: int, tmp_path: Path
) -> None:
    async with open_stage(tmp_path, caps=(CapSettings(name="daily", action="hold", **limits),)) as stage:
        stage.upstream.script = [says(reply(asked=20))]
        task = asyncio.create_task(stage.ask(asks("openai-chat", body=BODY)))
        hold = await promptly(held(stage))
        assert hold.reason.startswith(why)
        assert sum(use.reserved for use in await uses(stage)) == 0
        let_go(stage, hold)
        assert (await promptly(task)).status == 200
        assert [use.spent for use in await uses(stage)] == [spent]


async def test_what_is_held_by_one_cap_is_still_refused_by_another(tmp_path: Path) -> None:
    caps = (CapSettings(name="a", tokens=1, action="hold"), CapSettings(name="hard", tokens=2))
    async with open_stage(tmp_path, caps=caps) as stage:
        task = asyncio.create_task(stage.ask(asks("openai-chat", body=BODY)))
        let_go(stage, await promptly(held(stage)))
        got = await promptly(task)
        assert got.status == 400
        assert "the cap hard" in got.json()["error"]["message"]
        assert not stage.upstream.seen


@pytest.mark.parametrize(
    ("step", "spent"),
    [
        (says({"error": {"message": "no"}}, 400), 0),
        (cut(), 0),
        (streams(b'data: {"choices":[{"delta":{"content":"four"}}]}\n\n'), 2),
    ],
)
async def test_an_answer_that_failed_counts_what_came_of_it(step: Any, spent: int, tmp_path: Path) -> None:
    async with open_stage(tmp_path, caps=tokens(10000)) as stage:
        stage.upstream.script = [step]
        await stage.ask(
            asks("openai-chat", body=BODY.replace(b'"m",', b'"m","stream":true,'), is_stream=True, retries=0)
        )
        [use] = await uses(stage)
        one = await size_of_one(tmp_path)
        assert (use.spent, use.reserved) == (one - 90 + spent if spent else 0, 0)


async def test_a_body_that_is_no_request_counts_by_its_bytes(tmp_path: Path) -> None:
    async with open_stage(tmp_path, caps=tokens(90000)) as stage:
        stage.upstream.script = [says(reply())]
        got = await stage.ask(asks("openai-chat", body=b'["' + b"x" * 70_000 + b'"]'))
        assert got.status == 400
        assert "can take up to 102,004 tokens" in got.json()["error"]["message"]


@pytest.mark.parametrize("limit", [-1, -(10**6), 2**63])
@pytest.mark.parametrize("cap", [{"tokens": 10_000}, {"dollars": 0.01, "unpriced": "pass"}])
async def test_a_request_whose_reply_may_be_of_any_length_is_refused(
    cap: dict[str, Any], limit: int, tmp_path: Path
) -> None:
    body = BODY.replace(b'"max_tokens": 90', b'"max_tokens": %d' % limit)
    async with open_stage(tmp_path, caps=(CapSettings(name="daily", **cap),), models=PRICED) as stage:
        got = await stage.ask(asks("openai-chat", body=body))
        assert got.status == 400
        assert "the cap daily (" in got.json()["error"]["message"]
        assert not stage.upstream.seen
        assert [(use.spent, use.reserved) for use in await uses(stage)] == [(0, 0)]


async def test_counting_tokens_is_not_capped(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "anthropic", caps=tokens(1)) as stage:
        stage.upstream.script = [says({"input_tokens": 7})]
        counted = asks("anthropic", counts=True, path="/v1/messages/count_tokens")
        assert (await stage.ask(counted)).status == 200


async def test_a_client_that_leaves_while_it_is_reserved_leaves_nothing_reserved(tmp_path: Path) -> None:
    class SlowCounts(FolderCounts):
        async def reserve(self, claims: Any) -> list[CapUse]:
            began.set()
            await go_on.wait()
            return await super().reserve(claims)

    began, go_on = asyncio.Event(), asyncio.Event()

    async with open_stage(tmp_path, caps=tokens(10000), counts=SlowCounts(tmp_path)) as stage:
        assert stage.caps is not None
        task = asyncio.create_task(stage.ask(asks("openai-chat", body=BODY)))
        await promptly(began.wait())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        for _ in range(5):
            await asyncio.sleep(0)
        [use] = await uses(stage)
        assert (use.spent, use.reserved) == (0, 0)


async def test_a_large_request_is_counted_as_usual_while_small_ones_to_its_model_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one is counted on a thread, and what was learned about requests with tools applies to it."""
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    large = json.dumps({**json.loads(BODY), "tools": tools, "messages": [{"role": "user", "content": "hi " * 30_000}]})
    count, begun, may_end = Estimator.estimate_by_rules, threading.Event(), threading.Event()

    def count_slowly(estimator: Estimator, request: Request) -> Estimate:
        if threading.current_thread() is not threading.main_thread() and not begun.is_set():
            begun.set()
            assert may_end.wait(30)
        return count(estimator, request)

    async def reserved(folder: str, *bodies: bytes) -> int:
        async with open_stage(tmp_path / folder, caps=tokens(10**9)) as stage:
            for _ in range(20):
                stage.memory.learn("acme", "m", between(90, 100, 110), Usage(input_tokens=300), tools=True)
                stage.memory.learn("acme", "m", between(90, 100, 110), Usage(input_tokens=100), tools=False)
            stage.upstream.script = [says(reply(asked=1, written=1))]
            seen: list[int] = []
            reserve = stage.caps.counts.reserve

            async def look(claims: Sequence[Claim]) -> list[CapUse]:
                seen.append(max(claim.amount for claim in claims))
                return await reserve(claims)

            monkeypatch.setattr(stage.caps.counts, "reserve", look)
            begun.clear()
            may_end.clear()
            asking = asyncio.ensure_future(stage.ask(asks("openai-chat", body=large.encode())))
            assert await asyncio.to_thread(begun.wait, 30)
            for body in bodies:
                await stage.ask(asks("openai-chat", body=body))
            may_end.set()
            await asking
            return max(seen)

    monkeypatch.setattr(Estimator, "estimate_by_rules", count_slowly)
    assert await reserved("beside", BODY) == await reserved("alone")


async def test_large_requests_are_counted_one_by_one_even_if_a_client_leaves_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count of a client that has left goes on, since a thread cannot be cancelled."""
    large = json.dumps({**json.loads(BODY), "messages": [{"role": "user", "content": "hi " * 30_000}]}).encode()
    count, begun, may_end = Estimator.estimate_by_rules, threading.Event(), threading.Event()
    steps: list[str] = []

    def count_slowly(estimator: Estimator, request: Request) -> Estimate:
        steps.append("begins")
        begun.set()
        assert may_end.wait(30)
        steps.append("ends")
        return count(estimator, request)

    async with open_stage(tmp_path, caps=tokens(10**9)) as stage:
        stage.upstream.script = [says(reply())]
        monkeypatch.setattr(Estimator, "estimate_by_rules", count_slowly)
        leaving = asyncio.ensure_future(stage.ask(asks("openai-chat", body=large)))
        assert await asyncio.to_thread(begun.wait, 30)
        leaving.cancel()
        staying = asyncio.ensure_future(stage.ask(asks("openai-chat", body=large)))
        for _ in range(5):
            await asyncio.to_thread(lambda: None)  # a count that has begun by now does so before this
        may_end.set()
        assert (await promptly(staying)).status == 200
        await asyncio.wait({leaving})
        assert steps[:4] == ["begins", "ends", "begins", "ends"]


async def test_a_cap_that_cannot_be_counted_lets_nothing_pass(tmp_path: Path) -> None:
    (tmp_path / "caps.sqlite3").mkdir()
    async with open_stage(tmp_path, caps=tokens(10000)) as stage:
        got = await stage.ask(asks("openai-chat", body=BODY))
        assert got.status == 400
        assert "caps cannot be counted" in got.json()["error"]["message"]
        assert Code.CAP_REACHED.value not in got.body.decode()
