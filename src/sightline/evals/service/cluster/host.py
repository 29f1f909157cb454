"""A host: a remote process that runs the cases home sends it. Its ledger, rate limits, spending, record, logbook and
answer cache are kept at home."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts
from sightline.errors import Code, Fault
from sightline.evals.core.result import replace_media
from sightline.evals.core.run_state import CaseDone, Key, write
from sightline.evals.service.answer_cache import Found, answer_in
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster import messages
from sightline.evals.service.context import Release
from sightline.evals.service.target import Spending
from sightline.exchange.memory import Memory
from sightline.exchange.relay_messages import FaultMessage
from sightline.model.reply import Usage
from sightline.store.entries import KeptEntry
from sightline.store.store import Line, Log
from sightline.store.summary import PriceList
from sightline.tokens.account import lower_case
from sightline.tokens.calibration import Calibration
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Ledger, SentRequest, Wait
from sightline.tokens.rate_headers import allowances
from sightline.transport.waiting import Clock

Value = TypeVar("Value")


class HomeConnection:
    """The connection of a host to home. Messages arrive in the order in which they were sent."""

    def __init__(self) -> None:
        self._outbox = messages.Outbox()
        self.tell = self._outbox.put
        self._numbers = count(1)
        self._open_questions: dict[int, asyncio.Future[messages.HomeAnswer]] = {}

    async def ask(self, question: messages.Question, form: type[Value]) -> tuple[int, Value]:
        """Ask home a question. Returns its number and the answer. Raises the fault if home answers with one."""
        n = next(self._numbers)
        future = self._open_questions[n] = asyncio.get_running_loop().create_future()
        self.tell(messages.HostQuestion(n, question))
        try:
            answer = await future
        finally:
            del self._open_questions[n]
        if answer.fault is not None:
            raise answer.fault.fault
        return n, messages.value_of(bytes(answer.value), form)

    def resolve(self, answer: messages.HomeAnswer) -> bool:
        """Deliver an answer; false if no one waits for it any more."""
        future = self._open_questions.get(answer.n)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    async def next(self, seconds: float) -> bytes:
        """The messages queued since the last call; an empty batch after this many seconds without any."""
        try:
            async with asyncio.timeout(seconds):
                return await self._outbox.next()
        except TimeoutError:
            return messages.batch(())


_WAITS = frozenset({"retry-after", "retry-after-ms", "date"})


class FarSent(SentRequest, frozen=True):
    """A sent request that home counted under number `n`."""

    n: int = 0


class RemoteLedger(Ledger):
    """A ledger that also reports every change to home, which counts all hosts together."""

    def __init__(self, line: HomeConnection) -> None:
        super().__init__()
        self._line = line
        self._numbers = count(1)

    def add_request(self, provider: str, model: str, tokens: int, at: float) -> SentRequest:
        sent = super().add_request(provider, model, tokens, at)
        n = next(self._numbers)
        self._line.tell(messages.RequestCounted(n, provider, model, tokens))
        return FarSent(sent.provider, sent.model, sent.tokens, sent.at, sent.account, n)

    def settle(self, sent: SentRequest, tokens: int, at: float) -> SentRequest:
        assert isinstance(sent, FarSent)  # the ledger only returns `FarSent`
        self._line.tell(messages.Settled(sent.n, tokens))
        now = super().settle(sent, tokens, at)
        return FarSent(now.provider, now.model, now.tokens, now.at, now.account, sent.n)

    def unsent(self, sent: SentRequest, at: float) -> None:
        assert isinstance(sent, FarSent)  # the ledger only returns `FarSent`
        self._line.tell(messages.Uncounted(sent.n))
        super().unsent(sent, at)

    def observe_headers(self, provider: str, model: str, headers: Mapping[str, str], at: float) -> None:
        """Apply rate limit headers of a response and forward the relevant ones to home."""
        super().observe_headers(provider, model, headers, at)
        self._forward(provider, model, headers, at)

    def keep_headers(self, sent: SentRequest, names: tuple[bytes, ...], values: tuple[bytes, ...], at: float) -> None:
        """Keep the headers of an accepted response and forward the relevant ones to home, which admits all requests."""
        super().keep_headers(sent, names, values, at)
        self._forward(sent.provider, sent.model, lower_case(zip(names, values, strict=True)), at)

    def _forward(self, provider: str, model: str, headers: Mapping[str, str], at: float) -> None:
        relevant = {
            name: value for name, value in headers.items() if "limit" in name or "codex" in name or name in _WAITS
        }
        if allowances(relevant, at) or _WAITS & relevant.keys() - {"date"}:
            self._line.tell(messages.Observed(provider, model, relevant))


class RemoteRates:
    def __init__(self, line: HomeConnection) -> None:
        self._line = line

    def counts_tokens(self, choice: ModelChoice) -> bool:
        """Always true: another host may have learned of a token limit."""
        return True

    async def admit(self, provider: str, model: str, facts: Facts, tokens: int) -> Release:
        n, _ = await self._line.ask(messages.Admit(provider, model, tokens, facts), bool)
        admitted = [n]

        def release() -> None:
            if admitted:
                self._line.tell(messages.RequestReleased(admitted.pop()))

        return release

    async def wait(self, choice: ModelChoice, tokens: int) -> Wait:
        question = messages.HowLong(choice.provider_name, choice.model, tokens, choice.facts)
        return (await self._line.ask(question, Wait))[1]


class FarSpending(Spending):
    def __init__(self, line: HomeConnection) -> None:
        super().__init__()
        self._line = line

    def spend(self, cost: float | None) -> None:
        super().spend(cost)
        if cost is None or cost:
            self._line.tell(messages.CostSpent(cost))


class RemoteMemory(Memory):
    """Forwards estimate corrections to home and stores nothing locally."""

    def __init__(self, line: HomeConnection, calibration: bytes, folder: Path, now: Callable[[], float]) -> None:
        super().__init__(folder, now)
        self._line = line
        self.ledger = RemoteLedger(line)
        if calibration:
            self.calibration = Calibration.from_json(calibration)

    def learn(
        self,
        provider: str,
        model: str,
        raw: Estimate,
        usage: Usage,
        *,
        tools: bool,
        media: bool = False,
        window: int | None = None,
    ) -> None:
        """Report a provider's token count for an estimated request."""
        super().learn(provider, model, raw, usage, tools=tools, media=media, window=window)
        self._line.tell(messages.Learned(provider, model, raw, usage, tools, media, window))

    def save(self) -> None:
        """Does nothing."""


def recording(line: HomeConnection, entries: Sequence[KeptEntry]) -> None:
    line.tell(messages.RecordEntries(tuple(entries)))


class FarLogbook:
    def __init__(self, line: HomeConnection) -> None:
        self._line = line

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        await self._line.ask(messages.Append(log, after, tuple(data), at), bool)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        _, lines = await self._line.ask(messages.ReadLines(log, after), tuple[Line, ...])
        return list(lines)

    async def logs(self, prefix: str = "") -> list[Log]:
        _, logs = await self._line.ask(messages.ListLogs(prefix), tuple[Log, ...])
        return list(logs)

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        raise _not_here(f"change the log {log!r}")

    async def forget(self, log: str) -> None:
        raise _not_here(f"forget the log {log!r}")


def _not_here(what: str) -> Fault:
    return Fault(Code.USAGE, f"a host does not {what}", hint="Do it on the machine that has the record.")


class FarAnswers:
    """The cached answers of one target, looked up at home."""

    def __init__(self, line: HomeConnection, target: str, prices: PriceList) -> None:
        self._line = line
        self._target = target
        self._prices = prices

    async def find(self, key: str, sha256: str) -> Found | None:
        _, found = await self._line.ask(messages.Find(self._target, key), messages.FindAnswer)
        return answer_in(found.exchange, found.facts, sha256, self._prices) if found.exchange else None

    def keep(self, key: str, exchange: str) -> None:
        self._line.tell(messages.Keep(self._target, key, exchange))


class FarSharing:
    """What a host shares with all others through home."""

    def __init__(self, line: HomeConnection, prices: PriceList, *, is_cached: bool) -> None:
        self.rates = RemoteRates(line)
        self._line = line
        self._prices = prices
        self._is_cached = is_cached

    async def answers(self, target: str) -> FarAnswers | None:
        return FarAnswers(self._line, target, self._prices) if self._is_cached else None

    async def close(self) -> None:
        """Does nothing."""


POLL = 5.0
"""Seconds after which a poll without news returns an empty batch."""

SILENCE = 60.0
"""Seconds without a poll after which a host assumes that home is gone, and ends."""

Opening: TypeAlias = Callable[[messages.Begin, HomeConnection], AbstractAsyncContextManager[Worker]]
"""Opens the worker of a run on a host."""


class Host:
    """Runs cases for home. `over` is set once everything has ended."""

    def __init__(self, opening: Opening, clock: Clock) -> None:
        self.line = HomeConnection()
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
        self._last_poll = self._clock.monotonic()
        try:
            received = messages.for_host(data)
        except Fault as fault:
            self.line.tell(messages.HostReady(FaultMessage.of(fault)))
            return
        for message in received:
            self._do(message)

    async def next(self, seconds: float = POLL) -> bytes:
        """The next batch for home. Each call is also a sign that home is alive."""
        self._last_poll = self._clock.monotonic()
        sending = await self.line.next(seconds)
        self._last_poll = self._clock.monotonic()
        return sending

    async def watch(self) -> None:
        """Wait until home has been silent for too long or everything has ended, then end everything."""
        while not self.over.is_set() and self._clock.monotonic() - self._last_poll < SILENCE:
            await self._clock.sleep(SILENCE / 4)
        await self.leave()

    async def leave(self) -> None:
        self._leaving.set()
        if self._serving is not None:
            await asyncio.wait({self._serving})

    def _do(self, message: messages.ToHost) -> None:
        match message:
            case messages.Keys(variables):
                self._variables = variables
            case messages.Begin():
                message = msgspec.structs.replace(message, variables={**message.variables, **self._variables})
                self._serving = asyncio.get_running_loop().create_task(self._serve(message))
                self._serving.add_done_callback(self._report_end)
            case messages.RunCase(n, key):
                task = self._cases[n] = asyncio.get_running_loop().create_task(self._run(n, key))
                task.add_done_callback(lambda done: self._ran(n, done))
            case messages.CutOff(n):
                if n in self._cases:
                    self._cases[n].cancel()
            case messages.HomeAnswer():
                if not self.line.resolve(message):
                    # The request will not be sent, so its reservation is released.
                    self.line.tell(messages.RequestReleased(message.n))
            case messages.Leave():
                self._leaving.set()

    async def _serve(self, begin: messages.Begin) -> None:
        async with self._opening(begin, self.line) as worker:
            self._worker = worker
            self.line.tell(messages.HostReady())
            await self._leaving.wait()
            cases = list(self._cases.values())
            for task in cases:
                task.cancel()
            await asyncio.gather(*cases, return_exceptions=True)

    def _report_end(self, serving: "asyncio.Task[None]") -> None:
        trouble = None if serving.cancelled() else serving.exception()
        if isinstance(trouble, Fault):
            self.line.tell(messages.HostReady(FaultMessage.of(trouble)))
        elif trouble is not None:
            self.line.tell(messages.HostReady(FaultMessage(Code.CONFIG, f"a host broke: {trouble!r}")))
        self.line.tell(messages.HostLeft())
        self.over.set()

    async def _run(self, n: int, key: Key) -> None:
        assert self._worker is not None  # home sends cases only after `HostReady`
        result = await self._worker.run(key)
        self.line.tell(messages.CaseEnded(n, write(CaseDone(replace_media(result)))))

    def _ran(self, n: int, case: "asyncio.Task[None]") -> None:
        del self._cases[n]
        trouble = None if case.cancelled() else case.exception()
        if trouble is not None:
            self.line.tell(messages.CaseEnded(n, broken=repr(trouble)))
