import asyncio
import os
import signal
import subprocess
import sys

import pytest

from sightline.cli.evals.running import Interrupts


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_cuts_off_the_work_and_lets_it_clear_up(sent: signal.Signals, code: int) -> None:
    cleared: list[str] = []

    async def work() -> int:
        try:
            os.kill(os.getpid(), sent)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleared.append("up")
        return 0

    before = signal.getsignal(sent)
    interrupts = Interrupts()
    assert asyncio.run(interrupts.through(work())) == code
    assert (interrupts.is_cut, cleared) == (True, ["up"])
    assert signal.getsignal(sent) == before


def test_work_that_nobody_interrupts_has_its_own_end() -> None:
    async def work() -> int:
        return 1

    interrupts = Interrupts()
    assert (asyncio.run(interrupts.through(work())), interrupts.is_cut) == (1, False)


def test_work_that_was_done_before_the_signal_came_through_keeps_its_exit_code() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    interrupts = Interrupts()
    assert (asyncio.run(interrupts.through(work())), interrupts.is_cut) == (0, False)


def test_who_cancels_without_a_signal_cancels() -> None:
    async def story() -> None:
        task = asyncio.ensure_future(Interrupts().through(endless()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def endless() -> int:
        await asyncio.Event().wait()
        return 0

    asyncio.run(story())


CLEARING = """
import asyncio, os, signal
from sightline.cli.evals.running import Interrupts

async def work():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    finally:
        for _ in range({times}):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(5):
                await asyncio.sleep(0)
        print("cleared", flush=True)

raise SystemExit(asyncio.run(Interrupts().through(work())))
"""


@pytest.mark.parametrize(("times", "code", "out"), [(1, 130, b"cleared\n"), (2, -signal.SIGINT, b"")])
def test_a_second_signal_is_told_what_is_waited_for_and_the_third_does_not_wait(
    times: int, code: int, out: bytes
) -> None:
    ended = subprocess.run([sys.executable, "-c", CLEARING.format(times=times)], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (code, out)
    assert ended.stderr == b"ending what was started; once more leaves it behind\n"


def test_what_is_ignored_stays_ignored() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return 0

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert asyncio.run(Interrupts().through(work())) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
