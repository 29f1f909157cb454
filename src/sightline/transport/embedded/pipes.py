"""One child process as its parent hears it: what it said, what it complained about, and that it has ended."""

import asyncio
import os
from typing import cast

import msgspec

from sightline.errors import Fault
from sightline.transport.embedded.causes import Cause, cause_of_exit, unavailable
from sightline.transport.embedded.messages import Answer, ChildFailed, ChildStarted

COMPLAINTS_KEPT = 4096
ANSWER_LIMIT = 65536
_PATIENCE = 2.0


class ChildPipes(asyncio.SubprocessProtocol):
    """The three pipes of a child. `settled` is set when it has answered or cannot any more, `ended` when it is gone."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self.answer: Answer | None = None
        self.exit_code: int | None = None
        self._said = bytearray()
        self._complaints = bytearray()
        self._given_up: Cause | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._transport: asyncio.SubprocessTransport | None = None

    # --- what asyncio tells ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaints += data
            del self._complaints[:-COMPLAINTS_KEPT]
        elif not self.settled.is_set():
            self._said += data
            line, newline, _ = self._said.partition(b"\n")
            if newline or len(line) > ANSWER_LIMIT:
                self._settle(bytes(line))

    def process_exited(self) -> None:
        assert self._transport is not None
        self.exit_code = self._transport.get_returncode()

    def connection_lost(self, exc: Exception | None) -> None:
        # Only now has everything been heard: its end can be noticed before its last words.
        self._finish_start()
        self.ended.set()

    # --- what the parent does -------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as can be known."""
        assert self._transport is not None
        return self.exit_code is None and not self.ended.is_set() and not _has_ended(self._transport.get_pid())

    @property
    def address(self) -> str:
        """Where it listens; empty if it never did."""
        return self.answer.address if isinstance(self.answer, ChildStarted) else ""

    def write(self, line: bytes) -> None:
        """Say something to it."""
        self._input().write(line)

    def limit(self, seconds: float) -> None:
        """Give it up if it has not answered by then."""
        if self.settled.is_set():
            return
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.give_up, "timeout")

    def give_up(self, cause: Cause) -> None:
        """Wait no longer for an answer."""
        if not self.settled.is_set():
            self._given_up = cause
            self.kill()
            self._finish_start()

    def kill(self) -> None:
        """End it at once."""
        assert self._transport is not None
        if self._transport.get_returncode() is None:
            self._transport.kill()

    async def end(self) -> None:
        """Let it end, then make it: it is gone when this returns."""
        assert self._transport is not None
        try:
            self._input().close()
            for insist in (self._transport.terminate, self._transport.kill):
                if await self.ends_within(_PATIENCE):
                    return
                if self.exit_code is None:
                    insist()
            await self.ended.wait()
        finally:
            self._transport.close()

    async def ends_within(self, seconds: float) -> bool:
        """Whether it is gone before so many seconds are."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    async def fault(self) -> Fault:
        """Why there is no address, once it has ended."""
        if isinstance(self.answer, ChildFailed):
            return unavailable(self.answer.cause, self.answer.detail)
        if self._given_up:
            return unavailable(self._given_up, self.last_complaint)
        await self.ended.wait()
        return unavailable(*self.end_in_words())

    def end_in_words(self) -> tuple[Cause, str]:
        """What its exit means, and what is known of it."""
        code = 0 if self.exit_code is None else self.exit_code
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return cause_of_exit(code), "; ".join(filter(None, (how, self.last_complaint)))

    @property
    def last_complaint(self) -> str:
        """The last line of its standard error: of a traceback, the one that says what it was."""
        lines = self._complaints.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _settle(self, line: bytes) -> None:
        try:
            self.answer = msgspec.json.decode(line, type=Answer)
        except msgspec.DecodeError:
            self.answer = ChildFailed("start_failed", "what it said is not understood")
        self._finish_start()

    def _finish_start(self) -> None:
        self.settled.set()
        if self._deadline is not None:
            self._deadline.cancel()

    def _input(self) -> asyncio.WriteTransport:
        assert self._transport is not None
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))


def _has_ended(pid: int) -> bool:
    """Whether a child is dead, by the system itself: asyncio hears of it a moment later, when its port is gone."""
    if not hasattr(os, "waitid"):
        return False  # not every system tells it without taking the exit code away from asyncio
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
