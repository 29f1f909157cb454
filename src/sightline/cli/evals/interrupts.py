"""The signals that end a command which drives runs of suites."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress

from sightline.cli.terminal import say

_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_KILLED = 128
"""What shells add to the number of a signal that ended a program."""


class Interrupts:
    """Cuts off the work of a command when it is asked to end, and lets it end what it has started. Whether it was
    is `is_cut`. Who asks twice is told what is waited for, and the third time the program is gone at once."""

    def __init__(self) -> None:
        self.is_cut = False
        self._asked: list[signal.Signals] = []
        # What is ignored stays so: `nohup` lets a program outlive its terminal.
        self._ending = [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]

    async def through(self, work: Coroutine[object, object, int]) -> int:
        """Do it; the exit code is its own, or tells of the signal that cut it off."""
        task = asyncio.get_running_loop().create_task(work)
        with self._handle_signals(task):
            try:
                return await task
            except asyncio.CancelledError:
                if not self._asked:
                    raise
                self.is_cut = True
                return _KILLED + self._asked[0]

    @contextmanager
    def _handle_signals(self, task: "asyncio.Task[int]") -> Iterator[None]:
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # not every system has them; Ctrl-C is an exception there
            for each in self._ending:
                loop.add_signal_handler(each, self._end, each, task)
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                for each in self._ending:
                    loop.remove_signal_handler(each)

    def _end(self, by: signal.Signals, task: "asyncio.Task[int]") -> None:
        self._asked.append(by)
        if len(self._asked) == 1:
            task.cancel()
            return
        # To cancel once more would break off the very steps that end what was started.
        say("ending what was started; once more leaves it behind")
        for each in self._ending:
            signal.signal(each, signal.SIG_DFL)
