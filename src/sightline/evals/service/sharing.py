"""What all who run cases of a run share: the limits of providers, and the answers that were given before."""

import asyncio
from typing import Protocol

from sightline.catalog.choose import ModelChoice
from sightline.evals.service.answer_cache import AnswerCache, Answers
from sightline.evals.service.context import EvalContext
from sightline.evals.service.rates import Rates
from sightline.exchange.engine import Engine
from sightline.store.store import Logbook


class Admitted(Protocol):
    """A request that may go."""

    def release(self) -> None:
        """It goes now and is counted by whoever sends it, or it never will."""
        ...


class Admitting(Protocol):
    """Lets requests go when their provider's limits allow it."""

    def counts_tokens(self, choice: ModelChoice) -> bool:
        """Whether it matters how large a request is."""
        ...

    async def admit(self, choice: ModelChoice, tokens: int) -> Admitted:
        """Wait until a request of this size can go. One that never can, or not for long, is a fault."""
        ...


class Sharing(Protocol):
    """What targets use together."""

    @property
    def rates(self) -> Admitting:
        """Who lets their requests go."""
        ...

    async def answers(self, target: str) -> Answers | None:
        """The earlier answers of a target; None where everything is asked anew."""
        ...

    async def close(self) -> None:
        """Keep what is to be remembered."""
        ...


class OwnSharing:
    """All of it in this process."""

    def __init__(self, engine: Engine, logbook: Logbook, around: EvalContext, *, is_cached: bool) -> None:
        self.rates = Rates(engine.memory.ledger, engine.clock)
        self._engine = engine
        self._logbook = logbook
        self._around = around
        self._is_cached = is_cached
        self._caches: dict[str, AnswerCache] = {}
        self._opening = asyncio.Lock()

    async def answers(self, target: str) -> AnswerCache | None:
        """The earlier answers of a target, of which all who ask for them have the same."""
        store = self._around.store
        if not self._is_cached or store is None:
            return None
        async with self._opening:
            cache = self._caches.get(target)
            if cache is None:
                cache = AnswerCache(self._logbook, store, target, self._around.prices, self._engine.clock)
                await cache.load()
                self._caches[target] = cache
            return cache

    async def close(self) -> None:
        """Write down what is not yet."""
        for cache in self._caches.values():
            await cache.flush()
