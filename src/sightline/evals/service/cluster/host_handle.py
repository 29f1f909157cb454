"""Home's end of the line to one host: cases go out, results come back, and all else is done at the desk."""

import asyncio
from collections.abc import Callable
from itertools import count

import msgspec

from sightline.evals.core.facts import CaseDone, Key, read
from sightline.evals.core.result import CaseResult
from sightline.evals.service.cluster.home import Home, HostService
from sightline.evals.service.cluster.messages import (
    Begin,
    CaseEnded,
    CutOff,
    HostLeft,
    HostReady,
    Keys,
    Leave,
    RunCase,
    ToHome,
    ToHost,
    batch,
    for_home,
    pack,
)
from sightline.evals.service.cluster.remote import LostError, RemoteHost

GOODBYE = 5.0
"""Seconds in which a host ends what it has begun, before it is ended."""


class HostHandle:
    """`lost` hears once, if the host is gone before it was told to leave; `freed` whenever it has one case less."""

    def __init__(
        self, post: RemoteHost, home: Home, lost: Callable[["HostHandle"], None], freed: Callable[[], None]
    ) -> None:
        self._post = post
        self._desk = HostService(home, self._say)
        self._lost = lost
        self._freed = freed
        self._saying: list[bytes] = []
        self._news = asyncio.Event()
        self._numbers = count(1)
        self._cases: dict[int, asyncio.Future[CaseResult]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = asyncio.Event()
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def load(self) -> int:
        """How many cases it has."""
        return len(self._cases)

    async def begin(self, begin: Begin) -> None:
        """Have it open what it needs. A fault where it cannot."""
        await self._post.tell(batch([pack(Keys(begin.variables))]))
        self._say(msgspec.structs.replace(begin, variables={}))
        loop = asyncio.get_running_loop()
        for work in (self._speak(), self._listen()):
            task = loop.create_task(work)
            task.add_done_callback(self._on_task_end)
            self._tasks.append(task)
        await self._ready

    async def run(self, key: Key) -> CaseResult:
        """The result of a case, or that the host was lost with it."""
        n = next(self._numbers)
        future: asyncio.Future[CaseResult] = asyncio.get_running_loop().create_future()
        self._cases[n] = future
        self._say(RunCase(n, key))
        try:
            return await future
        except asyncio.CancelledError:
            self._say(CutOff(n))
            raise
        finally:
            del self._cases[n]
            self._freed()

    async def close(self) -> None:
        """Have it leave, and end it."""
        if self._tasks and not self._is_over:
            self._is_over = True
            self._say(Leave())
            try:
                async with asyncio.timeout(GOODBYE):
                    await self._left.wait()
            except TimeoutError:
                pass  # it is ended all the same
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._desk.close()
        await self._post.end()

    def _say(self, message: ToHost) -> None:
        self._saying.append(pack(message))
        self._news.set()

    async def _speak(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            saying, self._saying = self._saying, []
            await self._post.tell(batch(saying))

    async def _listen(self) -> None:
        while not self._left.is_set():
            for message in for_home(await self._post.listen()):
                await self._hear(message)

    async def _hear(self, message: ToHome) -> None:
        match message:
            case HostReady(fault):
                if not self._ready.done():
                    if fault is None:
                        self._ready.set_result(None)
                    else:
                        self._ready.set_exception(fault.again())
            case CaseEnded(n, done, broken):
                future = self._cases.get(n)
                if future is not None and not future.done():
                    if broken:
                        future.set_exception(RuntimeError(f"a host broke at a case: {broken}"))
                    else:
                        fact = read(done)
                        assert isinstance(fact, CaseDone)
                        future.set_result(fact.result)
            case HostLeft():
                self._left.set()
            case _:
                await self._desk.hear(message)

    def _on_task_end(self, task: "asyncio.Task[None]") -> None:
        """Either of both tasks is over: what still waits for the host waits in vain."""
        trouble = None if task.cancelled() else task.exception() or LostError("it has left")
        self._left.set()
        if trouble is None or self._is_over:
            return
        self._is_over = True
        if not self._ready.done():
            self._ready.set_exception(trouble)
        for future in self._cases.values():
            if not future.done():
                future.set_exception(trouble)
        self._lost(self)
