"""Driving a generator core, and the signal to stop it."""

import asyncio
from collections.abc import Generator

import pytest

from sightline.journal.journal import StopSignal, drive
from sightline.transport.waiting import WorkInterrupted


def core(count: int) -> Generator[int, str, list[str]]:
    answers: list[str] = []
    for number in range(count):
        answer = yield number
        answers.append(answer)
    return answers


async def handle(step: int) -> str:
    return f"answer {step}"


async def test_each_step_is_handled_and_each_answer_recorded_before_it_is_sent() -> None:
    recorded: list[str] = []

    async def record(answer: str) -> None:
        recorded.append(answer)

    assert await drive(core(2), handle, record=record) == ["answer 0", "answer 1"] == recorded
    assert await drive(core(0), handle) == []


async def test_a_stopped_drive_sends_the_stop_and_carries_nothing_out() -> None:
    handled: list[int] = []

    async def once(step: int) -> str:
        handled.append(step)
        return f"answer {step}"

    result = await drive(core(3), once, lambda: "stopped" if handled else None)
    assert (result, handled) == (["answer 0", "stopped", "stopped"], [0])


async def test_a_generator_that_was_started_before_goes_on_from_its_step() -> None:
    steps = core(2)
    assert await drive(steps, handle, first=next(steps)) == ["answer 0", "answer 1"]


@pytest.mark.parametrize("now", [True, False])
async def test_a_stop_interrupts_waiting_and_only_a_stop_now_interrupts_work(*, now: bool) -> None:
    stop, gate = StopSignal(), asyncio.Event()
    working = asyncio.ensure_future(stop.unless_now(gate.wait()))
    waiting = asyncio.ensure_future(stop.unless_soon(gate.wait()))
    await asyncio.sleep(0)
    assert not stop.is_set
    stop.stop(now=now)
    await asyncio.wait({waiting})
    gate.set()
    await asyncio.wait({working})
    assert isinstance(waiting.exception(), WorkInterrupted)
    assert isinstance(working.exception(), WorkInterrupted) is now
    assert stop.is_set


def test_a_stop_wins_over_leaving() -> None:
    stop = StopSignal()
    stop.leave()
    stop.leave(now=True)
    assert (stop.is_set, stop.is_leaving) == (True, True)
    stop.stop(now=False)
    assert not stop.is_leaving
    stop.leave()
    assert not stop.is_leaving
