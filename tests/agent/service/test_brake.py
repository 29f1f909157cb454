import asyncio

import pytest

from sightline.agent.service.stop_signal import Brake


def test_work_that_nobody_stops_is_done() -> None:
    async def story() -> None:
        brake = Brake()

        async def work() -> str:
            return "done"

        assert (await brake.unless_now(work()), await brake.unless_soon(work()), brake.is_pulled) == (
            "done",
            "done",
            False,
        )

    asyncio.run(story())


@pytest.mark.parametrize("now", [True, False])
def test_who_wants_to_stop_soon_cuts_off_waiting_and_only_who_wants_it_now_cuts_off_work(*, now: bool) -> None:
    async def story() -> None:
        brake, gate, ended = Brake(), asyncio.Event(), list[str]()

        async def work(name: str) -> str:
            try:
                await gate.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # to clean up takes a turn, and is waited for
                ended.append(name)
                raise
            return name

        async with asyncio.TaskGroup() as group:
            working = group.create_task(brake.unless_now(work("work")))
            waiting = group.create_task(brake.unless_soon(work("wait")))
            await asyncio.sleep(0)
            brake.pull(now=now)
            await asyncio.wait({waiting})
            gate.set()
        assert (waiting.result(), working.result()) == (None, None if now else "work")
        assert sorted(ended) == (["wait", "work"] if now else ["wait"])
        assert brake.is_pulled

    asyncio.run(story())


def test_what_goes_wrong_in_the_work_is_told() -> None:
    async def story() -> None:
        async def work() -> None:
            raise ValueError("odd")

        with pytest.raises(ValueError, match="odd"):
            await Brake().unless_now(work())

    asyncio.run(story())


def test_who_is_cancelled_takes_the_work_along() -> None:
    async def story() -> None:
        begun, ended = asyncio.Event(), list[bool]()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        task = asyncio.ensure_future(Brake().unless_now(work()))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        assert (task.cancelled(), ended) == (True, [True])

    asyncio.run(story())


def test_to_leave_is_to_stop_soon_without_an_end() -> None:
    brake = Brake()
    brake.leave()
    assert (brake.is_pulled, brake.is_leaving) == (True, True)
    brake.leave()
    assert brake.is_leaving


def test_who_wants_the_end_gets_it_whoever_wants_to_leave() -> None:
    brake = Brake()
    brake.leave()
    brake.pull(now=False)
    assert not brake.is_leaving
    brake.leave()
    assert not brake.is_leaving


def test_to_leave_now_cuts_off_work() -> None:
    async def story() -> None:
        brake = Brake()
        async with asyncio.TaskGroup() as group:
            working = group.create_task(brake.unless_now(asyncio.Event().wait()))
            await asyncio.sleep(0)
            brake.leave(now=True)
        assert working.result() is None
        assert brake.is_leaving

    asyncio.run(story())
