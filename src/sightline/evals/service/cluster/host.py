"""A host: runs the cases that it is told to, with all that it needs opened for one run."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import replace_media
from sightline.evals.core.run_state import CaseDone, Key, write
from sightline.evals.service.cluster.line import HostLine
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
from sightline.evals.service.workers import Worker
from sightline.transport.clock import Clock

POLL = 5.0
"""Seconds after which whoever listens is told that there is nothing."""

SILENCE = 60.0
"""Seconds after which a host that nobody listens to takes it that home is gone, and ends."""

Opening: TypeAlias = Callable[[Begin, HostLine], AbstractAsyncContextManager[Worker]]
"""Opens what cases are run with."""


class Host:
    """`over` is set once everything is ended."""

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
        self._heard = clock.monotonic()

    def receive(self, data: bytes) -> None:
        """Home says this."""
        self._heard = self._clock.monotonic()
        try:
            messages = for_host(data)
        except Fault as fault:
            self.line.tell(HostReady(HostFault.of(fault)))
            return
        for message in messages:
            self._do(message)

    async def next(self, seconds: float = POLL) -> bytes:
        """What home should know. Somebody listens, or this would not be called."""
        self._heard = self._clock.monotonic()
        told = await self.line.next(seconds)
        self._heard = self._clock.monotonic()
        return told

    async def watch(self) -> None:
        """Return once nobody has listened for long, or everything is ended; it is ended then."""
        while not self.over.is_set() and self._clock.monotonic() - self._heard < SILENCE:
            await self._clock.sleep(SILENCE / 4)
        await self.leave()

    async def leave(self) -> None:
        """End everything."""
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
                    )  # who was to send something is gone, and its place is free
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
        assert self._worker is not None  # nobody is told to run before he is ready
        result = await self._worker.run(key)
        self.line.tell(CaseEnded(n, write(CaseDone(replace_media(result)))))

    def _ran(self, n: int, case: "asyncio.Task[None]") -> None:
        del self._cases[n]
        trouble = None if case.cancelled() else case.exception()
        if trouble is not None:
            self.line.tell(CaseEnded(n, broken=repr(trouble)))
