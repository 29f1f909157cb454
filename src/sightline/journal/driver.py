"""Running a generator core: the pure half decides step by step, the other half carries the steps out."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from sightline.transport.race import run_unless

Step = TypeVar("Step")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


def _never() -> None:
    return None


async def _keep_nothing(_answer: object) -> None:
    return None


async def drive(
    steps: Generator[Step, Answer, Result],
    handle: Callable[[Step], Awaitable[Answer]],
    stop: Callable[[], Answer | None] = _never,
    *,
    record: Callable[[Answer], Awaitable[Any]] = _keep_nothing,
    first: Step | None = None,
) -> Result:
    """Run the generator to its end and return its result.

    Each step goes to `handle`, and the answer back to the generator. Once `stop` returns an answer, that is sent and
    the step is not carried out. `record` gets each answer before the generator does, so that a process that takes over
    can send it again. `first` is the step that a generator which was started before waits at.
    """
    try:
        step = next(steps) if first is None else first
        while True:
            answer = stop()
            if answer is None:
                answer = await handle(step)
            await record(answer)
            step = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


class StopSignal:
    """The request to stop what is driven: after the step that is under way, or at once. It may come at any time and
    more than once. `is_leaving` means that the work is not ended, so that it can be resumed."""

    def __init__(self) -> None:
        self.is_leaving = False
        self._soon = asyncio.Event()
        self._now = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether no new step is to be carried out."""
        return self._soon.is_set()

    def stop(self, *, now: bool) -> None:
        """End the work after the step that is under way, or `now`. This overrides an earlier `leave`."""
        self.is_leaving = False
        self._set(now=now)

    def leave(self, *, now: bool = False) -> None:
        """Interrupt the work after the step that is under way, or `now`. An earlier `stop` wins."""
        self.is_leaving = not self.is_set or self.is_leaving
        self._set(now=now)

    def _set(self, *, now: bool) -> None:
        self._soon.set()
        if now:
            self._now.set()

    async def unless_now(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of the work; `WorkInterrupted` if all has to stop at once."""
        return await run_unless(self._now, work)

    async def unless_soon(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of work that only waits, such as for a person; `WorkInterrupted` on any request to stop."""
        return await run_unless(self._soon, work)
