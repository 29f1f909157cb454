import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.service.cluster import messages
from sightline.evals.service.cluster.host import (
    FarLogbook,
    FarSharing,
    FarSpending,
    HomeConnection,
    RemoteLedger,
    RemoteMemory,
    RemoteRates,
    recording,
)
from sightline.exchange.relay_messages import FaultMessage
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry
from sightline.store.store import Line, Log
from sightline.tokens.calibration import Calibration
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait
from tests.cluster_stage import heard
from tests.evals.service.test_limits_and_sharing import choice
from tests.store.traffic import prices

T = TypeVar("T")


async def answered(
    line: HomeConnection, asking: Coroutine[Any, Any, T], question: messages.Question, value: object
) -> T:
    """What comes of asking home one question, the first on this line, when it gives this value."""
    task = asyncio.get_running_loop().create_task(asking)
    await asyncio.sleep(0)
    assert await heard(line) == [messages.HostQuestion(1, question)]
    line.resolve(messages.HomeAnswer(1, msgspec.Raw(messages.pack(value))))
    return await task


async def test_everything_arrives_in_its_order_and_once() -> None:
    line = HomeConnection()
    for cost in (1.0, 2.0, 3.0):
        line.tell(messages.CostSpent(cost))
    assert await heard(line) == [messages.CostSpent(1.0), messages.CostSpent(2.0), messages.CostSpent(3.0)]
    assert await heard(line) == []


async def test_waiting_listener_receives_a_message_immediately() -> None:
    line = HomeConnection()
    listening = asyncio.get_running_loop().create_task(line.next(60))
    await asyncio.sleep(0)
    line.tell(messages.HostLeft())
    assert list(messages.for_home(await listening)) == [messages.HostLeft()]


async def test_large_output_is_sent_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_AT_ONCE", 10)
    line = HomeConnection()
    line.tell(messages.CostSpent(1.0))
    line.tell(messages.CostSpent(2.0))
    assert await heard(line) == [messages.CostSpent(1.0)]
    assert await heard(line) == [messages.CostSpent(2.0)]


async def test_a_question_gets_its_own_answer_or_fault() -> None:
    line, loop = HomeConnection(), asyncio.get_running_loop()
    one = loop.create_task(line.ask(messages.ListLogs("a"), int))
    two = loop.create_task(line.ask(messages.ListLogs("b"), int))
    await asyncio.sleep(0)
    assert await heard(line) == [
        messages.HostQuestion(1, messages.ListLogs("a")),
        messages.HostQuestion(2, messages.ListLogs("b")),
    ]
    assert line.resolve(messages.HomeAnswer(2, msgspec.Raw(b"7")))
    assert line.resolve(messages.HomeAnswer(1, fault=FaultMessage(Code.USAGE, "no")))
    assert await two == (2, 7)
    with pytest.raises(Fault, match="no"):
        await one


async def test_answer_to_a_cancelled_question_is_not_resolved() -> None:
    line = HomeConnection()
    asking = asyncio.get_running_loop().create_task(line.ask(messages.ListLogs(), int))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert not line.resolve(messages.HomeAnswer(1, msgspec.Raw(b"7")))


async def test_requests_are_counted_locally_and_reported_by_number() -> None:
    line = HomeConnection()
    ledger = RemoteLedger(line)
    first, second = ledger.add_request("acme", "m", 10, 1.0), ledger.add_request("acme", "m", 20, 1.0)
    ledger.settle(ledger.settle(first, 7, 2.0), 8, 2.0)
    ledger.unsent(second, 2.0)
    assert ledger.usage("acme", "m", 2.0)[:2] == (1, 8)
    assert await heard(line) == [
        messages.RequestCounted(1, "acme", "m", 10),
        messages.RequestCounted(2, "acme", "m", 20),
        messages.Settled(1, 7),
        messages.Settled(1, 8),
        messages.Uncounted(2),
    ]


async def test_home_hears_of_headers_about_limits_and_of_no_others() -> None:
    line = HomeConnection()
    ledger = RemoteLedger(line)
    ledger.observe_headers("acme", "m", {"content-type": "text/plain", "date": "now", "set-cookie": "secret"}, 1.0)
    ledger.observe_headers("acme", "m", {"retry-after": "7", "set-cookie": "secret"}, 1.0)
    ledger.observe_headers(
        "acme", "m", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}, 1.0
    )
    accepted = ledger.add_request("acme", "m", 1, 1.0)
    ledger.keep_headers(accepted, (b"X-RateLimit-Remaining-Tokens", b"Set-Cookie"), (b"5", b"secret"), 1.0)
    assert await heard(line) == [
        messages.Observed("acme", "m", {"retry-after": "7"}),
        messages.Observed("acme", "m", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}),
        messages.RequestCounted(1, "acme", "m", 1),
        messages.Observed("acme", "m", {"x-ratelimit-remaining-tokens": "5"}),
    ]


async def test_a_request_goes_when_home_says_so_and_frees_its_place_once() -> None:
    line = HomeConnection()
    rates = RemoteRates(line)
    assert rates.counts_tokens(choice())
    question = messages.Admit("acme", "m", 5, choice(rpm=3).facts)
    release = await answered(line, rates.admit("acme", "m", choice(rpm=3).facts, 5), question, value=True)
    release()
    release()
    assert await heard(line) == [messages.RequestReleased(1)]


async def test_wait_time_is_requested_from_the_home_process() -> None:
    line, wait = HomeConnection(), Wait(3.0, "used_up", "rpm", 2.0)
    question = messages.HowLong("acme", "m", 5, choice().facts)
    assert await answered(line, RemoteRates(line).wait(choice(), 5), question, wait) == wait


def test_what_is_spent_and_learned_goes_home_and_nothing_is_kept(tmp_path: Path) -> None:
    async def story() -> None:
        line = HomeConnection()
        FarSpending(line).spend(0.25)
        FarSpending(line).spend(0.0)
        FarSpending(line).spend(None)
        known = Calibration()
        for _ in range(8):
            known.observe(Calibration.key("acme", "m", tools=False), Estimate(100, 90, 110), 150)
        memory = RemoteMemory(line, known.to_json(), tmp_path, lambda: 1.0)
        assert memory.ratio("acme", "m", tools=False) is not None
        memory.learn("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), tools=False)
        memory.save()
        assert await heard(line) == [
            messages.CostSpent(0.25),
            messages.CostSpent(None),
            messages.Learned("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), False),
        ]

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []


async def test_what_belongs_on_record_goes_home() -> None:
    line = HomeConnection()
    recording(line, [BodyEntry("ab", b"body")])
    assert await heard(line) == [messages.RecordEntries((BodyEntry("ab", b"body"),))]


async def test_logs_are_kept_at_home() -> None:
    line, loop = HomeConnection(), asyncio.get_running_loop()
    logbook = FarLogbook(line)
    tasks = [
        loop.create_task(logbook.append("run:r_1", 0, [b"one"], 1.0)),
        loop.create_task(logbook.lines("run:r_1", 2)),
        loop.create_task(logbook.logs("run:")),
    ]
    await asyncio.sleep(0)
    questions = [
        messages.Append("run:r_1", 0, (b"one",), 1.0),
        messages.ReadLines("run:r_1", 2),
        messages.ListLogs("run:"),
    ]
    assert await heard(line) == [messages.HostQuestion(n, question) for n, question in enumerate(questions, 1)]
    lines, logs = (Line(3, 1.0, b"x"),), (Log("run:r_1", 3, 1.0, 2.0),)
    for n, value in enumerate((True, lines, logs), 1):
        line.resolve(messages.HomeAnswer(n, msgspec.Raw(messages.pack(value))))
    assert await asyncio.gather(*tasks) == [None, list(lines), list(logs)]
    with pytest.raises(Fault, match="does not forget"):
        await logbook.forget("run:r_1")


async def test_earlier_answers_are_looked_for_at_home_where_they_are_wanted() -> None:
    line = HomeConnection()
    assert await FarSharing(line, prices, is_cached=False).answers("acme") is None
    answers = await FarSharing(line, prices, is_cached=True).answers("acme")
    assert answers is not None
    question = messages.Find("acme", "k")
    assert await answered(line, answers.find("k", "ab"), question, messages.FindAnswer()) is None
    answers.keep("k", "x_1")
    assert await heard(line) == [messages.Keep("acme", "k", "x_1")]
