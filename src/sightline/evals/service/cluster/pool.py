"""Opens the worker of a run: this process, or the hosts of a cluster. A case runs again if its host is lost. For its
hosts, home keeps the record, rate limits, cached answers, logs and spending of the run."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import msgspec

from sightline.catalog.loading import variables_of
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import DEFAULT_WORKERS, CaseDone, EvalBegan, Key, read, result_of, workers_of, write
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import Worker, open_case_worker
from sightline.evals.service.cluster import messages
from sightline.evals.service.cluster.host_pool import Elsewhere, HostPool, LostError, Needs, RemoteHost
from sightline.evals.service.context import EvalRun, LocalSharing, Release
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import Spending
from sightline.exchange.hub import Record
from sightline.exchange.memory import Memory
from sightline.exchange.relay_messages import FaultMessage
from sightline.store.entries import KeptEntry
from sightline.store.store import Logbook
from sightline.tokens.ledger import SentRequest
from sightline.transport.waiting import Clock
from sightline.wire.cache import BoundedCache

_LOG = logging.getLogger(__name__)

MOST_REMEMBERED = 4096
"""How many requests of a host are remembered to be settled; older ones have been settled by then."""


_ENDLESS = 1e12


@dataclass(frozen=True, slots=True)
class Home:
    """What all hosts of a run share. `record` stores entries."""

    record: Record
    logbook: Logbook
    memory: Memory
    clock: Clock
    sharing: LocalSharing
    spending: Spending


@dataclass
class HostService:
    """Serves one host. `reply` sends a message to it."""

    home: Home
    reply: Callable[[messages.HomeAnswer], None]
    _reserved: dict[int, Release] = field(default_factory=dict)
    _sent: BoundedCache[int, SentRequest] = field(default_factory=lambda: BoundedCache(MOST_REMEMBERED))
    _questions: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def handle(self, message: messages.Business) -> None:
        """Handle a message of the host. Questions are answered in the background."""
        home = self.home
        match message:
            case messages.RecordEntries(entries):
                self._record(entries)
            case messages.CostSpent(cost):
                home.spending.spend(cost)
            case messages.Learned(provider, model, raw, usage, tools, media, window):
                home.memory.learn(provider, model, raw, usage, tools=tools, media=media, window=window)
            case messages.Keep(target, key, exchange):
                answers = await home.sharing.answers(target)
                if answers is not None:
                    answers.keep(key, exchange)
            case messages.HostQuestion(n, question):
                task = asyncio.get_running_loop().create_task(self._answer(n, question))
                self._questions.add(task)
                task.add_done_callback(self._questions.discard)
            case _:
                self._count(message)

    def _record(self, entries: Sequence[KeptEntry]) -> None:
        try:
            self.home.record(entries)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, cases are run, as they are here
            _LOG.error("entries of a host could not be recorded: %r", error)

    def _count(self, message: messages.Counting) -> None:
        ledger, now = self.home.memory.ledger, self.home.clock.now()
        match message:
            case messages.RequestReleased(n):
                if n in self._reserved:
                    self._reserved.pop(n)()
            case messages.RequestCounted(n, provider, model, tokens):
                self._sent.put(n, ledger.add_request(provider, model, tokens, now))
            case messages.Settled(n, tokens):
                if (sent := self._sent.get(n)) is not None:
                    self._sent.put(n, ledger.settle(sent, tokens, now))
            case messages.Uncounted(n):
                if (sent := self._sent.pop(n)) is not None:
                    ledger.unsent(sent, now)
            case messages.Observed(provider, model, headers):
                ledger.observe_headers(provider, model, headers, now)

    async def close(self) -> None:
        """Cancel unanswered questions and release the reservations of a host that is gone."""
        tasks = list(self._questions)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for release in self._reserved.values():
            release()
        self._reserved.clear()

    async def _answer(self, n: int, question: messages.Question) -> None:
        try:
            value = await self._answer_to(n, question)
        except Fault as fault:
            self.reply(messages.HomeAnswer(n, fault=FaultMessage.of(fault)))
        else:
            self.reply(messages.HomeAnswer(n, msgspec.Raw(messages.pack(value))))

    async def _answer_to(self, n: int, question: messages.Question) -> object:
        home = self.home
        match question:
            case messages.Admit(provider, model, tokens, facts):
                self._reserved[n] = await home.sharing.rates.admit(provider, model, facts, tokens)
                return True
            case messages.HowLong(provider, model, tokens, facts):
                wait = home.memory.ledger.wait(provider, model, tokens, home.clock.now(), facts)
                return replace(wait, seconds=min(wait.seconds, _ENDLESS))
            case messages.Find(target, key):
                answers = await home.sharing.answers(target)
                exchange, entries = ("", ()) if answers is None else await answers.facts(key)
                return messages.FindAnswer(exchange, tuple(entries))
            case messages.Append(log, after, data, at):
                await home.logbook.append(log, after, data, at)
                return True
            case messages.ReadLines(log, after):
                return tuple(await home.logbook.lines(log, after))
            case messages.ListLogs(prefix):
                return tuple(await home.logbook.logs(prefix))


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
                        self._ready.set_exception(fault.fault)
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
        """Called when one of the two tasks has ended: fail everything that still waits for the host."""
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
"""How many hosts a case may lose before it is given up: it probably crashes them."""

FIRST_HOST = 120.0
"""Seconds in which a cluster must start its first host."""


@dataclass
class ClusterWorker:
    """A worker that runs cases on hosts, which all receive `begin`. `ours` is this process's introduction; `own` runs
    the cases of targets that need no host."""

    began: EvalBegan
    begin: messages.Begin
    ours: messages.Introduction
    host_pool: HostPool
    home: Home
    own: Worker
    _hosts: list[HostHandle] = field(default_factory=list)
    _gone: list[HostHandle] = field(default_factory=list)
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _trouble: BaseException | None = None
    _capacity: int = 1
    _losses_left: int = 0

    @property
    def _at_home(self) -> set[str]:
        return {spec.name for spec in self.began.targets if _is_here(spec)}

    async def open(self, files: bytes) -> int:
        """Start as many hosts as there is room for, and return how many. At least one is ready when this returns."""
        size = await self.host_pool.open(files)
        self._losses_left = MOST_HOSTS * size
        for _ in range(size):
            self._start_host()
        try:
            async with asyncio.timeout(FIRST_HOST):
                while not self._hosts:
                    await self._wait_for_change()
        except TimeoutError:
            message = f"{self.host_pool.address} has not started a host in {FIRST_HOST:g} s"
            raise Fault(Code.NETWORK, message, hint="Are all of its CPUs in use by others? See `ray status`.") from None
        return size

    def set_capacity(self, widths: Mapping[str, int], hosts: int) -> None:
        """Limit the cases of each host to its share, so that hosts which start later get work too."""
        total = sum(width for name, width in widths.items() if name not in self._at_home)
        self._capacity = max(1, -(-total // max(1, hosts)))

    async def run(self, key: Key) -> CaseResult:
        """Run a case. If its host is lost it runs again on another, on at most `MOST_HOSTS` hosts."""
        if key[1] in self._at_home:
            return await self.own.run(key)
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
        await self.host_pool.close()

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
        post = await self.host_pool.start_host()
        host = HostHandle(post, self.home, self._remove_host, self._news.set)
        self._gone.append(host)  # close it even if the next step fails
        _check(messages.value_of(await post.introduce(), messages.Introduction), self.ours)
        await post.unpack()
        await host.begin(self.begin)
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
                Code.NETWORK, f"hosts of {self.host_pool.address} end again and again: {lost}", hint=hint
            )
            self._news.set()
        else:
            self._start_host()

    def _result_of_lost_case(self, key: Key) -> CaseResult:
        case = next(each for each in self.began.suite.cases if each.id == key[0])
        why = f"{MOST_HOSTS} hosts of the cluster were lost while they ran it"
        score = CaseScore(verdict="not_graded", reason=why)
        seen = CaseObservation(error=why, error_code=Code.NETWORK.value, requests=0)
        return result_of(self.began.suite, case, key, score, seen, at=self.home.clock.now())


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
    """Open the worker of a run: this process, or a cluster if one is configured and any target needs it. Also yields
    how many cases each target takes at once."""
    began, there = run.began, run.context.elsewhere
    if there is None or all(_is_here(spec) for spec in began.targets):
        usual = workers_of(began.suite, began.options)
        async with open_case_worker(run, began.targets) as worker:
            yield worker, _widths(began, usual)
        return
    _check_judges(began)
    sharing = LocalSharing(run)
    # Open the models here too, so that wrong names, keys and prices are reported before any host is started.
    specs = [spec for spec in began.targets if spec.kind != "cli" and not spec.toolsets]
    async with open_case_worker(run, specs, sharing) as own:
        home = Home(there.record, run.logbook, run.engine.memory, run.engine.clock, sharing, run.spending)
        pool = ClusterWorker(began, _begin(run, there), there.ours, there.host_pool, home, own)
        try:
            files = [path for needs in _needs(began, there) for path in needs.files]
            hosts = await pool.open(messages.pack_files(SuiteFiles(run.context.root), began, files))
            widths = _widths(began, began.suite.execution.workers or DEFAULT_WORKERS * hosts)
            pool.set_capacity(widths, hosts)
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
