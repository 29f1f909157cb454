"""What a run needs from the program, and what its targets share: rate limits and cached answers."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from sightline.agent.service.runner import Runner
from sightline.agent.tools.opening import ToolOpener
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalBegan, is_cached
from sightline.evals.service.answer_cache import AnswerCache, Answers
from sightline.evals.service.cluster.host_pool import Elsewhere
from sightline.evals.service.target import Spending
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.store.store import Logbook, Store
from sightline.store.summary import PriceList
from sightline.tokens.ledger import Ledger, SentRequest
from sightline.transport.http.client import HttpClient
from sightline.transport.retry import format_duration
from sightline.transport.waiting import Clock


@dataclass(frozen=True, slots=True)
class EvalContext:
    """`root` is the folder below which suites and their files are. `environment` is the whole environment; commands get
    it without the variables in `secrets`. `make_id` names exchanges, `make_token` makes tokens for grading commands.
    `process` is the name of this process; `is_alive` returns whether the process with a name still runs. `elsewhere` is
    the cluster, if there is one."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    make_id: Callable[[], str]
    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    default_model: str = ""
    process: str = ""
    is_alive: Callable[[str], bool] = lambda _process: False
    store: Store | None = None
    prices: PriceList = lambda _provider, _model: None
    hub: Hub | None = None
    runner: Runner | None = None
    open_tools: ToolOpener | None = None
    client: HttpClient | None = None
    make_token: Callable[[], str] | None = None
    elsewhere: Elsewhere | None = None

    def choice(self, model: str) -> ModelChoice:
        """The choice for a model's name, or for the default model."""
        name = model or self.default_model
        return choose(self.catalog, name, has_key=self.has_key) if name else default_choice(self.catalog, self.has_key)

    def require_store(self, why: str) -> Store:
        """The record's store. Raises a fault with this reason if there is none."""
        if self.store is None:
            raise Fault(Code.USAGE, f"there is no record, and {why}", hint="Name the data folder with --data.")
        return self.store


LONGEST = 900.0
"""The most seconds to wait for a limit. After that the case fails, and the run can be resumed later."""


Release: TypeAlias = Callable[[], None]
"""Gives up the reservation of an admitted request: it is sent now and counted by its sender, or never will be. Only the
first call has an effect."""


class Rates:
    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def counts_tokens(self, choice: ModelChoice) -> bool:
        limits = self._ledger.limits(choice.provider_name, choice.model, choice.facts)
        return limits.tpm is not None or limits.tpd is not None

    async def admit(self, provider: str, model: str, facts: Facts, tokens: int) -> Release:
        """The ledger counts the request as reserved until it is sent, so that no other request takes its place."""
        while True:
            now = self._clock.now()
            wait = self._ledger.wait(provider, model, tokens, now, facts)
            if wait.is_over:
                reserved = [self._ledger.add_request(provider, model, tokens, now)]
                return lambda: self._release(reserved)
            if wait.is_endless:
                message = f"about {tokens} tokens are more than the {wait.limit} of {model} ({wait.allowed:g})"
                raise Fault(Code.REQUEST_TOO_LARGE_FOR_RATE, message, hint="Make the case smaller.")
            if wait.seconds > LONGEST:
                message = f"the limit {wait.limit} of {provider} is used up for {format_duration(wait.seconds)}"
                raise Fault(Code.RATE_LIMITED, message, hint="Rerun it then: --rerun-failed.")
            await self._clock.sleep(wait.seconds)

    def _release(self, reserved: list[SentRequest]) -> None:
        if reserved:
            self._ledger.unsent(reserved.pop(), self._clock.now())


def limit_choice(choice: ModelChoice, rpm: int | None, tpm: int | None) -> ModelChoice:
    """The choice with a target's own limits if they are lower than the model's."""
    facts = msgspec.structs.replace(choice.facts, rpm=_lower(choice.facts.rpm, rpm), tpm=_lower(choice.facts.tpm, tpm))
    return replace(choice, facts=facts)


def _lower(known: int | None, wanted: int | None) -> int | None:
    return min((each for each in (known, wanted) if each is not None), default=None)


class RateGate(Protocol):
    """Admits requests when their provider's limits allow it."""

    def counts_tokens(self, choice: ModelChoice) -> bool:
        """Whether there is a token limit, so that the size of a request matters."""

    async def admit(self, provider: str, model: str, facts: Facts, tokens: int) -> Release:
        """Wait until a request of this size may be sent. Raises a fault if it never may, or not within `LONGEST`."""


class Sharing(Protocol):
    """What the targets of a run share."""

    @property
    def rates(self) -> RateGate:
        """Admits their requests."""

    async def answers(self, target: str) -> Answers | None:
        """The answer cache of a target; None if caching is off."""

    async def close(self) -> None:
        """Flush the caches."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """What a run needs: its id, its first fact, and what it may use and spend."""

    id: str
    began: EvalBegan
    engine: Engine
    logbook: Logbook
    context: EvalContext
    spending: Spending


class LocalSharing:
    """What the targets of a run share within this process."""

    def __init__(self, run: EvalRun) -> None:
        self.rates = Rates(run.engine.memory.ledger, run.engine.clock)
        self._run = run
        self._caches: dict[str, AnswerCache] = {}
        self._opening = asyncio.Lock()

    async def answers(self, target: str) -> AnswerCache | None:
        run, store = self._run, self._run.context.store
        if store is None or not is_cached(run.began.suite, run.began.options):
            return None
        async with self._opening:
            cache = self._caches.get(target)
            if cache is None:
                cache = AnswerCache(run.logbook, store, target, run.context.prices, run.engine.clock)
                await cache.load()
                self._caches[target] = cache
            return cache

    async def close(self) -> None:
        for cache in self._caches.values():
            await cache.flush()
