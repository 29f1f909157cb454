import asyncio
from collections.abc import Callable

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.exchange import Exchange
from sightline.exchange.hub import Hub
from sightline.exchange.phase import TRANSITIONS, CancelledEnd, DroppedEnd, ExchangePhase, FailedEnd, FinishedEnd
from sightline.model.exchange import (
    Dropped,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    FrameArrived,
    Held,
    Received,
)
from sightline.model.parts import Text
from sightline.model.reply import Choice, Reply
from sightline.store.entries import Entry, FactEntry, plain_entries
from tests.fake_clock import FakeClock

REQUEST = ClientRequest("gemini", b"", (), "/", received=9.5)


def exchange_on(
    kept: list[Entry],
    clock: FakeClock | None = None,
    on_streamed: Callable[[Exchange], None] | None = None,
    secrets: tuple[str, ...] = (),
) -> Exchange:
    return Exchange(
        REQUEST,
        "x_1",
        Hub(lambda entries: kept.extend(plain_entries(entries))),
        clock or FakeClock(10.0),
        secrets,
        on_streamed=on_streamed,
    )


def facts_in(kept: list[Entry]) -> list[object]:
    return [each.fact for each in kept if isinstance(each, FactEntry)]


def says(text: str, finish: str = "stop") -> Reply:
    return Reply(choices=(Choice(parts=(Text(text),), finish=finish),))  # type: ignore[arg-type]


async def test_time_that_is_waited_is_no_overhead_and_losses_are_counted() -> None:
    clock, kept = FakeClock(10.0), list[Entry]()
    exchange = exchange_on(kept, clock)
    with exchange.waiting():
        await clock.sleep(1)
        assert (b"x-sightline-overhead-ms", b"500.000") in exchange.own_headers()
        with exchange.waiting_for_user():
            assert exchange.user_awaited.is_set()
            await clock.sleep(2)
    assert not exchange.user_awaited.is_set()
    exchange.losses = 2
    assert exchange.own_headers() == [
        (b"x-sightline-exchange", b"x_1"),
        (b"x-sightline-overhead-ms", b"500.000"),
        (b"x-sightline-losses", b"2"),
    ]
    assert len(kept) == 2, "what has left is on record"


async def test_no_id_leaves_for_what_is_not_on_record() -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    exchange = Exchange(REQUEST, "x_1", Hub(full), FakeClock())
    assert [name for name, _ in exchange.own_headers()] == [b"x-sightline-overhead-ms"]


async def test_a_response_whose_calls_may_be_held_does_not_stream_to_the_client() -> None:
    ended: list[Exchange] = []
    exchange = exchange_on([], on_streamed=ended.append)
    exchange.stream(lambda _: pytest.fail("it is aborted by its task"))
    exchange.holds_calls = True
    assert not exchange.is_streaming
    exchange.end_stream()
    assert ended == []
    exchange.abort(Fault(Code.OVERLOADED, "enough"))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    assert exchange.abort_reason == Fault(Code.OVERLOADED, "enough")


@pytest.mark.parametrize("end", [each for each in ExchangePhase if each.is_end])
def test_nothing_follows_an_end_and_every_other_phase_can_end(end: ExchangePhase) -> None:
    assert not TRANSITIONS[end]
    assert all(end in TRANSITIONS[phase] for phase in ExchangePhase if not phase.is_end)


async def test_a_phase_that_cannot_follow_is_a_mistake_of_ours() -> None:
    kept: list[Entry] = []
    exchange = exchange_on(kept)
    with pytest.raises(RuntimeError, match="x_1 cannot go from received to streaming"):
        exchange.enter(ExchangePhase.STREAMING)
    exchange.enter(ExchangePhase.SENDING)
    exchange.end(CancelledEnd("client_gone"))
    with pytest.raises(RuntimeError, match="from cancelled to finished"):
        exchange.end(FinishedEnd(Reply()))
    assert [type(fact) for fact in facts_in(kept)] == [Received, ExchangeCancelled]


async def test_a_refusal_fails_the_exchange_unless_it_is_over() -> None:
    kept: list[Entry] = []
    exchange = exchange_on(kept)
    exchange.end(DroppedEnd("no"))
    assert exchange.refuse(Fault(Code.NETWORK, "gone")).status >= 400
    assert [type(fact) for fact in facts_in(kept)] == [Received, Dropped]
    kept.clear()
    exchange_on(kept).refuse(Fault(Code.NETWORK, "gone"))
    assert [type(fact) for fact in facts_in(kept)] == [Received, ExchangeFailed]


def streams_with_calls(kept: list[Entry], secrets: tuple[str, ...] = ()) -> Exchange:
    exchange = exchange_on(kept, secrets=secrets)
    exchange.enter(ExchangePhase.SENDING)
    exchange.enter(ExchangePhase.STREAMING)
    exchange.holds_calls = True
    return exchange


async def test_the_end_of_a_response_whose_calls_may_be_held_is_recorded_later() -> None:
    kept: list[Entry] = []
    exchange = streams_with_calls(kept)
    exchange.recorder.record_chunk(b"a reply")
    exchange.end_response(FinishedEnd(says("hi")))
    assert not kept
    exchange.settle_response()
    exchange.recorder.record_hold(Held("tool_calls"))
    exchange.conclude()
    assert [type(fact) for fact in facts_in(kept)] == [Received, FrameArrived, Held, ExchangeFinished]


async def test_another_end_may_come_in_its_place() -> None:
    kept: list[Entry] = []
    exchange = streams_with_calls(kept)
    exchange.end_response(FinishedEnd(Reply()))
    exchange.settle_response()
    exchange.end(DroppedEnd("no"))
    exchange.conclude()
    assert [type(fact) for fact in facts_in(kept)] == [Received, Dropped]


async def test_a_response_that_has_not_ended_concludes_nothing() -> None:
    kept: list[Entry] = []
    exchange = streams_with_calls(kept)
    exchange.settle_response()
    exchange.conclude()
    assert not kept
    exchange.end(FailedEnd(Fault(Code.NETWORK, "gone")))
    assert [type(fact) for fact in facts_in(kept)] == [Received, ExchangeFailed]


async def test_a_secret_that_came_in_pieces_is_hidden_before_a_hold_is_recorded() -> None:
    kept: list[Entry] = []
    exchange = streams_with_calls(kept, ("configured-key",))
    for chunk in (b"data: configu", b"data: red-key"):
        exchange.recorder.record_chunk(chunk)
    exchange.end_response(FinishedEnd(says("configured-key", "tool_calls")))
    exchange.settle_response()
    exchange.recorder.record_hold(Held("tool_calls"))
    exchange.conclude()
    frames = [fact.data for fact in facts_in(kept) if isinstance(fact, FrameArrived)]
    assert len(frames) == 1
    assert b"***" in frames[0]
    assert [each.n for each in kept if isinstance(each, FactEntry)] == [0, 1, 2, 3]
