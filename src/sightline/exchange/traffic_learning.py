"""Learning from the traffic of clients: what providers counted, beside what we would have estimated.

A client waits for none of it. Requests are looked at one after another in a thread of their own once they have been
answered. To look at one costs a few times what passing it on does (0.1 ms of CPU for a short one, 3 ms for 14 kB): so
of a model that many requests go to at once, one a second is looked at after the first ones. The pace of a person or of
an agent is well below that. Where more come than can be looked at, the oldest of those that wait are left out.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import RequestCounter
from sightline.model.request import Request
from sightline.model.usage import Usage
from sightline.tokens.counted_prefix import digest_chain
from sightline.tokens.estimate import Estimate
from sightline.wire.jsontext import decode

LARGEST_BODY = 2 * 1024 * 1024
"""A larger one takes longer to count than its lesson is worth."""

MOST_WAITING = 8
FIRST_LESSONS = 24
PAUSE_S = 1.0
_ESTIMATORS = 2
_MODELS = 256


class _Counted(NamedTuple):
    choice: ModelChoice
    body: bytes
    usage: Usage


class _Studied(NamedTuple):
    request: Request
    raw: Estimate
    chain: list[str]


class TrafficLearning:
    """Takes what providers counted, and teaches the memory with it."""

    def __init__(self, memory: Memory) -> None:
        self._counter = RequestCounter(memory, most=_ESTIMATORS)  # of its own, since it is used in another thread
        self._waiting: deque[_Counted] = deque(maxlen=MOST_WAITING)
        self._taken: dict[tuple[str, str], tuple[int, float]] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, choice: ModelChoice, body: bytes, usage: Usage | None) -> None:
        """The provider has counted this body, which is in the choice's dialect."""
        if usage is None or not usage.input_tokens or len(body) > LARGEST_BODY or not self._is_due(choice):
            return
        self._waiting.append(_Counted(choice, body, usage))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    def _is_due(self, choice: ModelChoice) -> bool:
        """Whether it is worth looking at another request to this model; so many were taken, the last one at that
        time."""
        now, key = asyncio.get_running_loop().time(), (choice.provider_name, choice.model)
        count, last = self._taken.get(key, (0, 0.0))
        if count >= FIRST_LESSONS and now - last < PAUSE_S:
            return False
        if len(self._taken) >= _MODELS:
            self._taken.clear()
        self._taken[key] = count + 1, now
        return True

    async def wait_until_idle(self) -> None:
        """Wait until everything that was noted has been learned."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """Learn nothing more."""
        self._waiting.clear()
        await self.wait_until_idle()

    async def _work(self) -> None:
        while self._waiting:
            counted = self._waiting.popleft()
            studied = await asyncio.to_thread(self._study, counted)
            if studied is not None:
                self._counter.take(counted.choice, studied.request, studied.raw, counted.usage, studied.chain)

    def _study(self, counted: _Counted) -> _Studied | None:
        """Everything that takes time; None where the body is no request that can be read."""
        choice = counted.choice
        try:
            document = decode(counted.body)
            request = dialect(choice.dialect).read_request(document) if isinstance(document, dict) else None
        except Fault:
            return None  # it was passed on all the same, and the provider made something of it
        if request is None:
            return None
        chain = digest_chain(choice.provider_name, choice.model, request)
        return _Studied(request, self._counter.raw_estimate(choice, request), chain)
