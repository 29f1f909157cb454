import asyncio
import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import sys
import termios

import pytest

from sightline.cli.evals.running import Interrupts, ProgressLine, clock_time, line_of
from sightline.evals.service.eval_log import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_has_rate_cost_and_time_left() -> None:
    told = Progress(
        run="e", done=10, of=40, passed=7, failed=1, errors=1, not_graded=1, cost=0.0123, rate=2.5, seconds=4, left_s=12
    )
    assert line_of(told) == (
        "[#####---------------] 10/40  7 passed, 1 failed, 1 error, 1 not graded  2.5/s  $0.0123  0:12 left"
    )
    assert "  $0.5000 + 2 unknown" in line_of(Progress(run="e", done=1, of=2, cost=0.5, cost_unknown=2))
    assert line_of(Progress(run="e", done=1, of=2, cost_unknown=1)).endswith("1/2  1 of unknown cost")
    assert line_of(Progress(run="e", done=0, of=0)) == f"[{'#' * 20}] 0/0"
    assert line_of(Progress(run="e", done=2, of=2, errors=2, left_s=0.0)) == f"[{'#' * 20}] 2/2  2 errors"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (42, "0:42"), (725, "12:05"), (3723, "1:02:03")])
def test_elapsed_time_is_formatted_as_clock_time(seconds: float, text: str) -> None:
    assert clock_time(seconds) == text


def test_it_is_written_seldom_and_at_the_end_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, times = Terminal(), iter((0.0, 0.05, 0.2, 0.21))
    monkeypatch.setattr(sys, "stderr", stream)
    line = ProgressLine(lambda: next(times))
    for done in (0, 1, 2, 3):
        line.update(Progress(run="e", done=done, of=3))
    assert [part.split()[1] for part in stream.getvalue().split("\r\x1b[K") if part] == ["0/3", "2/3", "3/3"]
    line.close()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_progress_is_silent_when_quiet_or_not_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    line = ProgressLine(lambda: 0.0, is_quiet=stream.isatty())
    line.update(Progress(run="e", done=1, of=3))
    line.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("columns", "line"), [(120, f"[{'#' * 20}] 9/9  9 passed"), (20, "9/9  9 passed"), (6, "9/9  ")]
)
def test_a_narrow_terminal_is_not_left(monkeypatch: pytest.MonkeyPatch, columns: int, line: str) -> None:
    """The report goes elsewhere: the width is that of the terminal which shows the line."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        ProgressLine(lambda: 0.0).update(Progress(run="e", done=9, of=9, passed=9))
        assert os.read(ours, 4096).decode() == f"\r\x1b[K{line}"
    os.close(ours)


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
    assert asyncio.run(interrupts.run_work(work())) == code
    assert (interrupts.is_cut, cleared) == (True, ["up"])
    assert signal.getsignal(sent) == before


def test_uninterrupted_work_returns_its_own_result() -> None:
    async def work() -> int:
        return 1

    interrupts = Interrupts()
    assert (asyncio.run(interrupts.run_work(work())), interrupts.is_cut) == (1, False)


def test_work_that_was_done_before_the_signal_came_through_keeps_its_exit_code() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    interrupts = Interrupts()
    assert (asyncio.run(interrupts.run_work(work())), interrupts.is_cut) == (0, False)


async def test_cancellation_without_a_signal_is_propagated() -> None:
    async def endless() -> int:
        await asyncio.Event().wait()
        return 0

    task = asyncio.ensure_future(Interrupts().run_work(endless()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


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

raise SystemExit(asyncio.run(Interrupts().run_work(work())))
"""


@pytest.mark.parametrize(("times", "code", "out"), [(1, 130, b"cleared\n"), (2, -signal.SIGINT, b"")])
def test_second_signal_prints_what_is_pending_and_third_quits_at_once(times: int, code: int, out: bytes) -> None:
    ended = subprocess.run([sys.executable, "-c", CLEARING.format(times=times)], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (code, out)
    assert ended.stderr == b"ending what was started; press Ctrl-C once more to leave it running\n"


def test_what_is_ignored_stays_ignored() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return 0

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert asyncio.run(Interrupts().run_work(work())) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
