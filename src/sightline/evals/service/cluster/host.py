"""A host: a remote process that runs the cases home sends it."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import replace_media
from sightline.evals.core.run_state import CaseDone, Key, write
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster.host_services import HostLine
from sightline.evals.service.cluster.messages import (
    Begin,
    CaseEnded,
    CutOff,
    HomeAnswer,
    HostFault,
    HostLeft,
    HostReady,
    Keys,
    Leave,
    RequestReleased,
    RunCase,
    ToHost,
    for_host,
)
from sightline.transport.clock import Clock

POLL = 5.0
"""Seconds after which a poll without news returns an empty batch."""

SILENCE = 60.0
"""Seconds without a poll after which a host assumes that home is gone, and ends."""

Opening: TypeAlias = Callable[[Begin, HostLine], AbstractAsyncContextManager[Worker]]
"""Opens the worker of a run on a host."""


class Host:
    """Runs cases for home. `over` is set once everything has ended."""

    def __init__(self, opening: Opening, clock: Clock) -> None:
        self.line = HostLine()
        self.over = asyncio.Event()
        self._opening = opening
        self._clock = clock
        self._leaving = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._cases: dict[int, asyncio.Task[None]] = {}
        self._variables: dict[str, str] = {}
        self._last_poll = clock.monotonic()

    def receive(self, data: bytes) -> None:
        """Handle a batch of messages from home."""
        self._last_poll = self._clock.monotonic()
        try:
            messages = for_host(data)
        except Fault as fault:
            self.line.tell(HostReady(HostFault.of(fault)))
            return
        for message in messages:
            self._do(message)

    async def next(self, seconds: float = POLL) -> bytes:
        """The next batch for home. Each call is also home's sign of life."""
        self._last_poll = self._clock.monotonic()
        messages = await self.line.next(seconds)
        self._last_poll = self._clock.monotonic()
        return messages

    async def watch(self) -> None:
        """Wait until home has been silent for too long or everything has ended, then end everything."""
        while not self.over.is_set() and self._clock.monotonic() - self._last_poll < SILENCE:
            await self._clock.sleep(SILENCE / 4)
        await self.leave()

    async def leave(self) -> None:
        self._leaving.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    def _do(self, message: ToHost) -> None:
        match message:
            case Keys(variables):
                self._variables = variables
            case Begin():
                message = msgspec.structs.replace(message, variables={**message.variables, **self._variables})
                self._serving = asyncio.get_running_loop().create_task(self._serve(message))
                self._serving.add_done_callback(self._report_end)
            case RunCase(n, key):
                task = self._cases[n] = asyncio.get_running_loop().create_task(self._run(n, key))
                task.add_done_callback(lambda done: self._ran(n, done))
            case CutOff(n):
                if n in self._cases:
                    self._cases[n].cancel()
            case HomeAnswer():
                if not self.line.resolve(message):
                    self.line.tell(
                        RequestReleased(message.n)
                    )  # the request will not be sent, so its reservation is released
            case Leave():
                self._leaving.set()

    async def _serve(self, begin: Begin) -> None:
        async with self._opening(begin, self.line) as worker:
            self._worker = worker
            self.line.tell(HostReady())
            await self._leaving.wait()
            cases = list(self._cases.values())
            for task in cases:
                task.cancel()
            await asyncio.gather(*cases, return_exceptions=True)

    def _report_end(self, serving: "asyncio.Task[None]") -> None:
        trouble = None if serving.cancelled() else serving.exception()
        if isinstance(trouble, Fault):
            self.line.tell(HostReady(HostFault.of(trouble)))
        elif trouble is not None:
            self.line.tell(HostReady(HostFault(Code.CONFIG, f"a host broke: {trouble!r}")))
        self.line.tell(HostLeft())
        self.over.set()

    async def _run(self, n: int, key: Key) -> None:
        assert self._worker is not None  # home sends cases only after `HostReady`
        result = await self._worker.run(key)
        self.line.tell(CaseEnded(n, write(CaseDone(replace_media(result)))))

    def _ran(self, n: int, case: "asyncio.Task[None]") -> None:
        del self._cases[n]
        trouble = None if case.cancelled() else case.exception()
        if trouble is not None:
            self.line.tell(CaseEnded(n, broken=repr(trouble)))
