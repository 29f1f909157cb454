"""Waiting for the first of two things, and work that survives or yields to cancellation."""

import asyncio

import pytest

from sightline.transport.waiting import WorkInterrupted, run_to_end, run_unless, wait_either, wait_started


async def test_the_first_of_two_ends_the_wait() -> None:
    """A coroutine does not outlive the wait, a future is left as it is."""

    loop = asyncio.get_running_loop()
    first: asyncio.Future[int] = loop.create_future()
    await wait_either(first, asyncio.sleep(0))
    assert not first.done()
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    loop.call_soon(loop.call_soon, first.set_result, 1)
    await wait_either(first, forever())
    assert ended == ["cancelled"]
    second: asyncio.Future[int] = loop.create_future()
    await wait_either(first, second)
    assert not second.done()


async def test_work_is_cancelled_when_its_event_is_set() -> None:
    """It is waited for until it has cleaned up. Work that ends with a result nevertheless returns it."""

    event, ended = asyncio.Event(), list[str]()

    async def work(result: str = "") -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("cleaned up")
            if not result:
                raise
        return result

    assert await run_unless(event, asyncio.sleep(0, "done")) == "done"
    event.set()
    with pytest.raises(WorkInterrupted):
        await run_unless(event, asyncio.Event().wait())
    event.clear()
    running = asyncio.ensure_future(run_unless(event, work()))
    kept = asyncio.ensure_future(run_unless(event, work("partial")))
    await asyncio.sleep(0.001)
    event.set()
    with pytest.raises(WorkInterrupted):
        await running
    assert await kept == "partial"
    assert ended == ["cleaned up"] * 2


async def test_a_fault_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        await run_unless(asyncio.Event(), work())
    with pytest.raises(ValueError, match="odd"):
        await run_to_end(work())


async def test_a_cancelled_caller_takes_its_work_along() -> None:
    begun, ended = asyncio.Event(), list[bool]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.ensure_future(run_unless(asyncio.Event(), work()))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), ended) == (True, [True])


@pytest.mark.parametrize("fails", [True, False])
async def test_work_that_must_end_outlives_the_cancellation_of_its_caller(*, fails: bool) -> None:
    gate, ended = asyncio.Event(), list[bool]()

    async def work() -> None:
        await gate.wait()
        ended.append(True)
        if fails:
            raise ValueError("odd")

    task = asyncio.ensure_future(run_to_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    await asyncio.wait({task})
    assert (task.cancelled(), ended) == (True, [True])


async def test_a_background_task_is_waited_for_until_it_reports_its_start() -> None:
    loop = asyncio.get_running_loop()
    started: asyncio.Future[str] = loop.create_future()
    task = asyncio.ensure_future(asyncio.Event().wait())
    loop.call_soon(started.set_result, "x_1")
    assert await wait_started(started, task) == "x_1"
    assert not task.done()
    task.cancel()

    async def fail() -> None:
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        await wait_started(loop.create_future(), asyncio.ensure_future(fail()))
