"""Opens the worker of a run: this process, or the hosts of a cluster. A case runs again if its host is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from sightline.catalog.loading import variables_of
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import DEFAULT_WORKERS, CaseDone, EvalBegan, Key, read, result_of, workers_of, write
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import Worker, open_case_worker
from sightline.evals.service.cluster import messages
from sightline.evals.service.cluster.home import Home, HostService
from sightline.evals.service.cluster.host_pool import Elsewhere, HostPool, LostError, Needs, RemoteHost
from sightline.evals.service.context import EvalRun
from sightline.evals.service.suite_files import SuiteFiles

GOODBYE = 5.0
"""Seconds that a host gets to stop by itself before it is killed."""


class HostHandle:
    """Home's handle of one host. `lost` is called once if the host is lost before it was asked to leave, `freed`
    whenever a case ends."""

    def __init__(
        self, post: RemoteHost, home: Home, lost: Callable[["HostHandle"], None], freed: Callable[[], None]
    ) -> None:
        self._post = post
        self._lost = lost
        self._freed = freed
        self._outbox = messages.Outbox()
        self._desk = HostService(home, self._outbox.put)
        self._numbers = count(1)
        self._cases: dict[int, asyncio.Future[CaseResult]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = asyncio.Event()
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def load(self) -> int:
        return len(self._cases)

    async def begin(self, begin: messages.Begin) -> None:
        """Ask the host to open what the run needs. Raises a fault if it cannot."""
        await self._post.tell(messages.batch([messages.pack(messages.Keys(begin.variables))]))
        self._outbox.put(msgspec.structs.replace(begin, variables={}))
        loop = asyncio.get_running_loop()
        for work in (self._send_messages(), self._listen()):
            task = loop.create_task(work)
            task.add_done_callback(self._on_task_end)
            self._tasks.append(task)
        await self._ready

    async def run(self, key: Key) -> CaseResult:
        """Run a case on the host. Raises `LostError` if the host is lost meanwhile."""
        n = next(self._numbers)
        future: asyncio.Future[CaseResult] = asyncio.get_running_loop().create_future()
        self._cases[n] = future
        self._outbox.put(messages.RunCase(n, key))
        try:
            return await future
        except asyncio.CancelledError:
            self._outbox.put(messages.CutOff(n))
            raise
        finally:
            del self._cases[n]
            self._freed()

    async def close(self) -> None:
        """Ask the host to leave, then end it."""
        if self._tasks and not self._is_over:
            self._is_over = True
            self._outbox.put(messages.Leave())
            try:
                async with asyncio.timeout(GOODBYE):
                    await self._left.wait()
            except TimeoutError:
                pass  # the host is ended below in any case
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._desk.close()
        await self._post.end()

    async def _send_messages(self) -> None:
        while True:
            await self._post.tell(await self._outbox.next())

    async def _listen(self) -> None:
        while not self._left.is_set():
            for message in messages.for_home(await self._post.listen()):
                await self._receive_messages(message)

    async def _receive_messages(self, message: messages.ToHome) -> None:
        match message:
            case messages.HostReady(fault):
                if not self._ready.done():
                    if fault is None:
                        self._ready.set_result(None)
                    else:
                        self._ready.set_exception(fault.to_fault())
            case messages.CaseEnded(n, done, broken):
                future = self._cases.get(n)
                if future is not None and not future.done():
                    if broken:
                        future.set_exception(RuntimeError(f"a host broke at a case: {broken}"))
                    else:
                        fact = read(done)
                        assert isinstance(fact, CaseDone)
                        future.set_result(fact.result)
            case messages.HostLeft():
                self._left.set()
            case _:
                await self._desk.handle(message)

    def _on_task_end(self, task: "asyncio.Task[None]") -> None:
        """One of the two tasks has ended: fail everything that still waits for the host."""
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
"""How many hosts a case may lose before it is given up: it probably kills them."""

FIRST_HOST = 120.0
"""Seconds in which a cluster must start its first host."""


class ClusterWorker:
    """A worker that runs cases on hosts, which all receive `begin`. `ours` is this process's introduction; `own` runs
    the cases of targets that need no host."""

    def __init__(
        self,
        began: EvalBegan,
        begin: messages.Begin,
        ours: messages.Introduction,
        host_pool: HostPool,
        home: Home,
        own: Worker,
    ) -> None:
        self._began = began
        self._begin = begin
        self._ours = ours
        self._at_home = {spec.name for spec in began.targets if _is_here(spec)}
        self._host_pool = host_pool
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
        """Start as many hosts as there is room for, and return how many. At least one is ready when this returns."""
        size = await self._host_pool.open(files)
        self._losses_left = MOST_HOSTS * size
        for _ in range(size):
            self._start_host()
        try:
            async with asyncio.timeout(FIRST_HOST):
                while not self._hosts:
                    await self._wait_for_change()
        except TimeoutError:
            message = f"{self._host_pool.address} has not started a host in {FIRST_HOST:g} s"
            raise Fault(Code.NETWORK, message, hint="Are all of its CPUs in use by others? See `ray status`.") from None
        return size

    def set_capacity(self, widths: Mapping[str, int], hosts: int) -> None:
        """Limit the cases of each host to its share, so that hosts which start later get work too."""
        self._capacity = max(1, -(-sum(widths.values()) // max(1, hosts)))

    async def run(self, key: Key) -> CaseResult:
        """Run a case. If its host is lost it runs again on another, on at most `MOST_HOSTS` hosts."""
        if key[1] in self._at_home:
            return await self._own.run(key)
        for _ in range(MOST_HOSTS):
            host = await self._free()
            try:
                return await host.run(key)
            except LostError:
                continue
        return self._result_of_lost_case(key)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(host.close() for host in (*self._hosts, *self._gone)))
        self._hosts.clear()
        self._gone.clear()
        await self._host_pool.close()

    async def _free(self) -> HostHandle:
        """Wait for a host with room and return the one with the fewest cases."""
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

    def _start_host(self) -> None:
        self._keep(self._provision()).add_done_callback(self._on_provision_end)

    def _keep(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _provision(self) -> None:
        post = await self._host_pool.start_host()
        host = HostHandle(post, self._home, self._remove_host, self._news.set)
        self._gone.append(host)  # close it even if the next step fails
        _check(messages.value_of(await post.introduce(), messages.Introduction), self._ours)
        await post.unpack()
        await host.begin(self._begin)
        self._gone.remove(host)
        self._hosts.append(host)
        self._news.set()

    def _on_provision_end(self, task: "asyncio.Task[None]") -> None:
        trouble = None if task.cancelled() else task.exception()
        if isinstance(trouble, LostError):
            self._replace(trouble)
        elif trouble is not None:
            self._trouble = self._trouble or trouble
            self._news.set()

    def _remove_host(self, host: HostHandle) -> None:
        if host in self._hosts:
            self._hosts.remove(host)
            self._gone.append(host)
            self._keep(host.close()).add_done_callback(_consume_exception)
            self._replace(LostError("its process ended"))

    def _replace(self, lost: LostError) -> None:
        self._losses_left -= 1
        if self._losses_left < 0:
            hint = "See the logs of the cluster; what is done is kept: resume it with --resume."
            self._trouble = Fault(
                Code.NETWORK, f"hosts of {self._host_pool.address} end again and again: {lost}", hint=hint
            )
            self._news.set()
        else:
            self._start_host()

    def _result_of_lost_case(self, key: Key) -> CaseResult:
        case = self._cases[key[0]]
        why = f"{MOST_HOSTS} hosts of the cluster were lost while they ran it"
        score = CaseScore(verdict="not_graded", reason=why)
        seen = CaseObservation(error=why, error_code=Code.NETWORK.value, requests=0)
        return result_of(self._began.suite, case, key, score, seen, at=self._home.clock.now())


def _consume_exception(task: "asyncio.Task[None]") -> None:
    """Retrieve the exception of closing a lost host, which does not matter any more."""
    if not task.cancelled():
        task.exception()


def _check(theirs: messages.Introduction, ours: messages.Introduction) -> None:
    if theirs.sightline != ours.sightline:
        message = f"the cluster has Sightline {theirs.sightline}, and this is {ours.sightline}"
        raise Fault(Code.CONFIG, message, hint=f"Install sightline=={ours.sightline} on its machines.")
    if theirs.python != ours.python:
        message = f"the cluster runs Python {theirs.python}, and this is {ours.python}"
        raise Fault(Code.CONFIG, message, hint=f"Run Sightline with Python {theirs.python}.")


@asynccontextmanager
async def open_worker(run: EvalRun) -> AsyncIterator[tuple[Worker, dict[str, int]]]:
    """Open the worker of a run: this process, or a cluster if one is configured and any target needs it. With it comes
    how many cases each target takes at once."""
    began, there = run.began, run.context.elsewhere
    if there is None or all(_is_here(spec) for spec in began.targets):
        usual = workers_of(began.suite, began.options)
        async with open_case_worker(run, began.targets) as worker:
            yield worker, _widths(began, usual)
        return
    _check_judges(began)
    sharing = run.own_sharing()
    # Open the models here too, so that wrong names, keys and prices are reported before any host is started.
    specs = [spec for spec in began.targets if spec.kind != "cli" and not spec.toolsets]
    async with open_case_worker(run, specs, sharing) as own:
        home = Home(there.record, run.logbook, run.engine.memory, run.engine.clock, sharing, run.spending)
        pool = ClusterWorker(began, _begin(run, there), there.ours, there.host_pool, home, own)
        try:
            files = [path for needs in _needs(began, there) for path in needs.files]
            hosts = await pool.open(messages.pack_files(SuiteFiles(run.context.root), began, files))
            widths = _widths(began, began.suite.execution.workers or DEFAULT_WORKERS * hosts)
            far = {spec.name for spec in began.targets if not _is_here(spec)}
            pool.set_capacity({name: width for name, width in widths.items() if name in far}, hosts)
            yield pool, widths
        finally:
            await pool.close()


def _begin(run: EvalRun, there: Elsewhere) -> messages.Begin:
    began, context = run.began, run.context
    named = (name for spec in began.targets if spec.cli is not None for name in spec.cli.env)
    tools = (name for needs in _needs(began, there) for name in needs.variables)
    names = dict.fromkeys((*variables_of(context.catalog), *tools, *named))
    return messages.Begin(
        run=run.id,
        began=write(began),
        catalog=context.catalog,
        settings=there.settings,
        targets=tuple(spec.name for spec in began.targets if not _is_here(spec)),
        process=context.process,
        config=there.config,
        calibration=run.engine.memory.calibration.to_json(),
        variables={name: context.environment[name] for name in names if name in context.environment},
        masks=run.engine.relay.holds.masks,
    )


def _check_judges(began: EvalBegan) -> None:
    """Refuse replay targets as judges: judges run on hosts, which have no record."""
    named = {began.options.judge, *(spec.judge for spec in began.targets), *(spec.name for spec in began.judges)}
    for spec in (*began.judges, *began.targets):
        if spec.kind == "replay" and spec.name in named:
            message = f"{spec.name} judges out of the record, which a cluster does not have"
            raise Fault(Code.USAGE, message, hint="Name another judge, or run the suite without a cluster.")


def _needs(began: EvalBegan, there: Elsewhere) -> list[Needs]:
    names = dict.fromkeys(name for spec in began.targets for name in spec.toolsets)
    return [there.toolsets[name] for name in names if name in there.toolsets]


def _is_here(spec: TargetSpec) -> bool:
    """Whether a target runs at home: mock answers, and replayed answers, which need the record."""
    return spec.kind in ("mock", "replay")


def _widths(began: EvalBegan, usual: int) -> dict[str, int]:
    return {spec.name: spec.concurrency or usual for spec in began.targets}
