"""A cluster without machines: hosts in this process, which can be lost at any moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import Key
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster.host import HomeConnection, Host, Opening
from sightline.evals.service.cluster.host_pool import Elsewhere, LostError
from sightline.evals.service.cluster.messages import Begin, Introduction, ToHome, batch, for_home, pack, unpack
from sightline.settings import Settings
from tests.fake_clock import FakeClock

OURS = Introduction("1.0", "3.11", "here")


class NearPost:
    """A host in this process. `lose` is what `kill -9` is to a real one."""

    def __init__(self, host: Host, introduction: Introduction, unpacked: Callable[[], None]) -> None:
        self.host = host
        self.is_lost = asyncio.Event()
        self.is_ended = False
        self._introduction = introduction
        self._unpacked = unpacked

    def lose(self) -> None:
        self.is_lost.set()

    async def introduce(self) -> bytes:
        self._check()
        return pack(self._introduction)

    async def unpack(self) -> None:
        self._check()
        self._unpacked()

    async def tell(self, data: bytes) -> None:
        self._check()
        self.host.receive(data)

    async def listen(self) -> bytes:
        loop = asyncio.get_running_loop()
        told, lost = loop.create_task(self.host.next()), loop.create_task(self.is_lost.wait())
        try:
            await asyncio.wait({told, lost}, return_when=asyncio.FIRST_COMPLETED)
            self._check()
            return told.result()
        finally:
            for task in (told, lost):
                task.cancel()
            await asyncio.gather(told, lost, return_exceptions=True)

    async def end(self) -> None:
        self.is_ended = True
        self.is_lost.set()
        await self.host.leave()

    def _check(self) -> None:
        if self.is_lost.is_set():
            raise LostError("it was killed")


@dataclass
class NearHostPool:
    """`openings` opens what a host runs cases with; below `folder` each has its files."""

    opening: Callable[[Path], Opening]
    folder: Path
    size: int = 2
    introduction: Introduction = OURS
    posts: list[NearPost] = field(default_factory=list)
    is_open: bool = False
    address: str = "near://here"
    hired: Callable[[NearPost], None] = lambda _post: None
    _files: bytes = b""

    async def open(self, files: bytes) -> int:
        self._files = files
        self.is_open = True
        return self.size

    async def start_host(self) -> NearPost:
        root = self.folder / f"host{len(self.posts)}"
        root.mkdir(parents=True)
        host = Host(self.opening(root), FakeClock(holds=True))
        post = NearPost(host, self.introduction, lambda: unpack(self._files, root))
        self.posts.append(post)
        self.hired(post)
        return post

    async def close(self) -> None:
        self.is_open = False


def elsewhere(host_pool: NearHostPool, record: Any) -> Elsewhere:
    return Elsewhere(host_pool, record, Settings(), OURS)


@dataclass
class FakeWorker:
    """Runs cases as `act` says; by itself each passes at once."""

    act: Callable[[Key], Any] | None = None
    ran: list[Key] = field(default_factory=list)
    is_closed: bool = False

    async def run(self, key: Key) -> CaseResult:
        self.ran.append(key)
        if self.act is not None:
            await self.act(key)
        return passed(key)

    async def close(self) -> None:
        self.is_closed = True


def stuck_worker() -> tuple[FakeWorker, asyncio.Event, asyncio.Event]:
    """A worker that comes to no end, with the events that it has begun, and that it was cut off."""
    begun, cut = asyncio.Event(), asyncio.Event()

    async def act(_key: Key) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    return FakeWorker(act), begun, cut


def passed(key: Key) -> CaseResult:
    case, target, trial = key
    score = CaseScore(verdict="pass", score=1.0)
    return CaseResult(case=case, target=target, trial=trial, status="ok", score=score, observation=CaseObservation())


def opens(worker: Worker) -> Opening:
    """Has this worker, and closes it."""

    @asynccontextmanager
    async def opened(_begin: Begin, _line: HomeConnection) -> AsyncIterator[Worker]:
        try:
            yield worker
        finally:
            await worker.close()

    return opened


async def heard(line: HomeConnection) -> list[ToHome]:
    """What was told by now."""
    return list(for_home(await line.next(0.01)))


def said(*messages: object) -> bytes:
    """A batch of messages."""
    return batch(pack(message) for message in messages)
