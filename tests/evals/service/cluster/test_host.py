import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.errors import Code, Fault
from sightline.evals.core.facts import CaseDone, Key, read
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster.host import SILENCE, Host
from sightline.evals.service.cluster.host_services import HostLine
from sightline.evals.service.cluster.messages import (
    Begin,
    CaseEnded,
    CutOff,
    HomeAnswer,
    HostFault,
    HostLeft,
    HostReady,
    Keys,
    Leave,
    RequestReleased,
    RunCase,
    ToHome,
    for_home,
)
from sightline.settings import Settings
from tests.cluster_stage import FakeWorker, opens, passed, said
from tests.fake_clock import FakeClock

BEGIN = Begin(run="e_1", began=b"", catalog=Catalog(), settings=Settings(), targets=("acme",))
KEY: Key = ("a", "acme", 0)


async def next_of(host: Host, wanted: type[ToHome]) -> ToHome:
    """The next message of this kind; others are passed over."""
    while True:
        for message in for_home(await host.next(1)):
            if isinstance(message, wanted):
                return message


def test_a_host_runs_what_it_is_told_to_and_leaves() -> None:
    async def story() -> None:
        worker = FakeWorker()
        host = Host(opens(worker), FakeClock())
        host.receive(said(BEGIN))
        assert await next_of(host, HostReady) == HostReady()
        host.receive(said(RunCase(7, KEY)))
        ended = await next_of(host, CaseEnded)
        assert isinstance(ended, CaseEnded)
        assert ended.n == 7
        assert read(ended.done) == CaseDone(passed(KEY))
        host.receive(said(Leave()))
        assert await next_of(host, HostLeft) == HostLeft()
        assert worker.is_closed
        assert host.over.is_set()

    asyncio.run(story())


def test_a_host_that_cannot_begin_says_why() -> None:
    async def tell(trouble: Exception) -> HostReady:
        @asynccontextmanager
        async def refuses(_begin: Begin, _line: HostLine) -> AsyncIterator[Worker]:
            raise trouble
            yield FakeWorker()

        host = Host(refuses, FakeClock())
        host.receive(said(BEGIN))
        ready = await next_of(host, HostReady)
        assert isinstance(ready, HostReady)
        return ready

    fault = Fault(Code.CONFIG, "no such model", hint="Name one.")
    assert asyncio.run(tell(fault)) == HostReady(HostFault(Code.CONFIG, "no such model", "Name one."))
    assert asyncio.run(tell(ZeroDivisionError("oops"))) == HostReady(
        HostFault(Code.CONFIG, "a host broke: ZeroDivisionError('oops')")
    )


def test_a_case_is_cut_off_or_breaks_by_itself() -> None:
    async def story() -> None:
        begun, cut = asyncio.Event(), asyncio.Event()

        async def act(key: Key) -> None:
            if key[0] == "broken":
                raise ZeroDivisionError("oops")
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cut.set()

        host = Host(opens(FakeWorker(act)), FakeClock())
        host.receive(said(BEGIN))
        await next_of(host, HostReady)
        host.receive(said(RunCase(1, KEY), RunCase(2, ("broken", "acme", 0))))
        assert await next_of(host, CaseEnded) == CaseEnded(2, broken="ZeroDivisionError('oops')")
        await begun.wait()
        host.receive(said(CutOff(1), CutOff(99)))
        await cut.wait()
        await host.leave()

    asyncio.run(story())


def test_a_place_that_came_too_late_is_given_back() -> None:
    async def story() -> None:
        host = Host(opens(FakeWorker()), FakeClock())
        host.receive(said(HomeAnswer(5, msgspec.Raw(b"true"))))
        assert await next_of(host, RequestReleased) == RequestReleased(5)

    asyncio.run(story())


def test_a_host_that_nobody_listens_to_ends_with_all_that_it_does() -> None:
    async def story() -> None:
        clock, begun, cut = FakeClock(), asyncio.Event(), asyncio.Event()

        async def act(_key: Key) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cut.set()

        worker = FakeWorker(act)
        host = Host(opens(worker), clock)
        host.receive(said(BEGIN))
        await next_of(host, HostReady)
        host.receive(said(RunCase(1, KEY)))
        await begun.wait()
        before = clock.monotonic()
        await host.watch()
        assert cut.is_set()
        assert worker.is_closed
        assert clock.monotonic() - before == SILENCE

    asyncio.run(story())


def test_keys_come_before_the_beginning_and_what_is_not_understood_is_told() -> None:
    async def story() -> None:
        begun: list[Begin] = []

        @asynccontextmanager
        async def opened(begin: Begin, _line: HostLine) -> AsyncIterator[Worker]:
            begun.append(begin)
            yield FakeWorker()

        host = Host(opened, FakeClock())
        host.receive(said({"type": "sung"}))
        ready = await next_of(host, HostReady)
        assert isinstance(ready, HostReady)
        assert ready.fault is not None
        assert "is not understood" in ready.fault.message
        host.receive(said(Keys({"KEY": "sk-1"})))
        host.receive(said(BEGIN))
        assert await next_of(host, HostReady) == HostReady()
        assert begun[0].variables == {"KEY": "sk-1"}
        await host.leave()

    asyncio.run(story())
