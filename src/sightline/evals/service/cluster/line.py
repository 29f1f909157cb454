"""A host's end of the line: what it tells home, and the questions that wait for their answers."""

import asyncio
from itertools import count
from typing import TypeVar

from sightline.evals.service.cluster.messages import HomeAnswer, HostQuestion, Question, ToHome, batch, pack, value_of

Value = TypeVar("Value")

MOST_AT_ONCE = 8 << 20
"""Bytes after which what waits is told the next time."""


class HostLine:
    """Everything arrives in the order in which it was told."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._news = asyncio.Event()
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[HomeAnswer]] = {}

    def tell(self, message: ToHome) -> None:
        """Tell home this."""
        self._waiting.append(pack(message))
        self._news.set()

    async def ask(self, question: Question, form: type[Value]) -> tuple[int, Value]:
        """The answer to a question, and the question's number; a fault where home says so."""
        n = next(self._numbers)
        future = self._asked[n] = asyncio.get_running_loop().create_future()
        self.tell(HostQuestion(n, question))
        try:
            answer = await future
        finally:
            del self._asked[n]
        if answer.fault is not None:
            raise answer.fault.again()
        return n, value_of(bytes(answer.value), form)

    def resolve(self, answer: HomeAnswer) -> bool:
        """Whether somebody still waited for this answer."""
        future = self._asked.get(answer.n)
        if future is None or future.done():
            return False
        future.set_result(answer)
        return True

    async def next(self, seconds: float) -> bytes:
        """What was told since; where nothing is for so long, an empty batch."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return batch(())
        size = taken = 0
        while taken < len(self._waiting) and (not taken or size < MOST_AT_ONCE):
            size += len(self._waiting[taken])
            taken += 1
        told, self._waiting = self._waiting[:taken], self._waiting[taken:]
        if not self._waiting:
            self._news.clear()
        return batch(told)
