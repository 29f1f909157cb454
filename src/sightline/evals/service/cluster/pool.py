"""The pool: cases on the hosts of a cluster, and again on another where a host is lost."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import CaseDone, EvalBegan, Key, read
from sightline.evals.service.cluster.home import Home, HostService
from sightline.evals.service.cluster.messages import (
    Begin,
    CaseEnded,
    CutOff,
    HostLeft,
    HostReady,
    Introduction,
    Keys,
    Leave,
    RunCase,
    ToHome,
    ToHost,
    batch,
    for_home,
    pack,
    value_of,
)
from sightline.evals.service.cluster.remote import Fleet, LostError, RemoteHost
from sightline.evals.service.workers import Worker

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


MOST_HOSTS = 3
"""On so many hosts a case is tried; whoever loses all of them is likely to lose the next."""

FIRST_HOST = 120.0
"""Seconds in which a cluster must have started one host."""


@dataclass(frozen=True, slots=True)
class ClusterOrders:
    """What all hosts of a run are told. `ours` is who we are; `is_here` are the targets that need no cluster."""

    begin: Begin
    ours: Introduction
    is_here: frozenset[str]


class ClusterWorker:
    """Runs cases on hosts, which it hires and ends. `own` runs those that need none."""

    def __init__(self, began: EvalBegan, orders: ClusterOrders, fleet: Fleet, home: Home, own: Worker) -> None:
        self._began = began
        self._orders = orders
        self._fleet = fleet
        self._home = home
        self._own = own
        self._cases = {case.id: case for case in began.suite.cases}
        self._hosts: list[HostHandle] = []
        self._gone: list[HostHandle] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._trouble: BaseException | None = None
        self._capacity = 1
        self._losses_left = 0

    async def open(self, files: bytes) -> int:
        """Hire as many hosts as there is room for; how many that are. There is one when this returns."""
        size = await self._fleet.open(files)
        self._losses_left = MOST_HOSTS * size
        for _ in range(size):
            self._hire()
        try:
            async with asyncio.timeout(FIRST_HOST):
                while not self._hosts:
                    await self._wait_for_change()
        except TimeoutError:
            message = f"{self._fleet.address} has not started a host in {FIRST_HOST:g} s"
            raise Fault(Code.NETWORK, message, hint="Are all of its CPUs in use by others? See `ray status`.") from None
        return size

    def set_capacity(self, widths: Mapping[str, int], hosts: int) -> None:
        """Give each host its share of so many cases at once, so that those who come later have something to do."""
        self._capacity = max(1, -(-sum(widths.values()) // max(1, hosts)))

    async def run(self, key: Key) -> CaseResult:
        """The result of one case. It is run again where a host is lost with it, but not for ever."""
        if key[1] in self._orders.is_here:
            return await self._own.run(key)
        for _ in range(MOST_HOSTS):
            host = await self._free()
            try:
                return await host.run(key)
            except LostError:
                continue
        return self._lost_result(key)

    async def close(self) -> None:
        """End all hosts."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(host.close() for host in (*self._hosts, *self._gone)))
        self._hosts.clear()
        self._gone.clear()
        await self._fleet.close()

    async def _free(self) -> HostHandle:
        """The host with the fewest cases, once one has room."""
        while True:
            host = min(self._hosts, key=lambda each: each.load, default=None)
            if self._trouble is None and host is not None and host.load < self._capacity:
                return host
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        if self._trouble is not None:
            raise self._trouble
        self._news.clear()
        await self._news.wait()

    def _hire(self) -> None:
        self._keep(self._provision()).add_done_callback(self._on_provision_end)

    def _keep(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _provision(self) -> None:
        post = await self._fleet.hire()
        host = HostHandle(post, self._home, self._lose, self._stir)
        self._gone.append(host)  # closed whatever comes next
        _check(value_of(await post.introduce(), Introduction), self._orders.ours)
        await post.unpack()
        await host.begin(self._orders.begin)
        self._gone.remove(host)
        self._hosts.append(host)
        self._stir()

    def _on_provision_end(self, task: "asyncio.Task[None]") -> None:
        trouble = None if task.cancelled() else task.exception()
        if isinstance(trouble, LostError):
            self._replace(trouble)
        elif trouble is not None:
            self._trouble = self._trouble or trouble
            self._stir()

    def _lose(self, host: HostHandle) -> None:
        if host in self._hosts:
            self._hosts.remove(host)
            self._gone.append(host)
            self._keep(host.close()).add_done_callback(_consume_exception)
            self._replace(LostError("its process ended"))

    def _replace(self, lost: LostError) -> None:
        self._losses_left -= 1
        if self._losses_left < 0:
            hint = "See the logs of the cluster; what is done is kept: go on with --resume."
            self._trouble = Fault(
                Code.NETWORK, f"hosts of {self._fleet.address} end again and again: {lost}", hint=hint
            )
            self._stir()
        else:
            self._hire()

    def _stir(self) -> None:
        self._news.set()

    def _lost_result(self, key: Key) -> CaseResult:
        case = self._cases[key[0]]
        why = f"{MOST_HOSTS} hosts of the cluster were lost while they ran it"
        return CaseResult(
            case=key[0],
            target=key[1],
            trial=key[2],
            suite=self._began.suite.name,
            group=case.group,
            tags=case.tags,
            status="execution_error",
            score=CaseScore(verdict="not_graded", reason=why),
            observation=CaseObservation(error=why, error_code=Code.NETWORK.value, requests=0),
            at=self._home.clock.now(),
        )


def _consume_exception(task: "asyncio.Task[None]") -> None:
    """Nothing is left to be done for a host that is lost, whether or not its end could be seen to."""
    if not task.cancelled():
        task.exception()


def _check(theirs: Introduction, ours: Introduction) -> None:
    if theirs.sightline != ours.sightline:
        message = f"the cluster has Sightline {theirs.sightline}, and this is {ours.sightline}"
        raise Fault(Code.CONFIG, message, hint=f"Install sightline=={ours.sightline} on its machines.")
    if theirs.python != ours.python:
        message = f"the cluster runs Python {theirs.python}, and this is {ours.python}"
        raise Fault(Code.CONFIG, message, hint=f"Run Sightline with Python {theirs.python}.")
