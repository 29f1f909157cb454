"""The pool: cases on the hosts of a cluster, and again on another where a host is lost."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from sightline.errors import Code, Fault
from sightline.evals.core.facts import EvalBegan, Key
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.result import CaseResult
from sightline.evals.core.score import CaseScore
from sightline.evals.service.cluster.home import Home
from sightline.evals.service.cluster.host_handle import HostHandle
from sightline.evals.service.cluster.messages import Begin, Introduction, value_of
from sightline.evals.service.cluster.remote import Fleet, LostError
from sightline.evals.service.workers import Worker

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
