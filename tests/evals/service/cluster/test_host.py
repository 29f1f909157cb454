import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import CaseDone, Key, read
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.cluster.host import SILENCE, Host, HostLine
from sightline.evals.service.cluster.messages import (
    Admit,
    Begin,
    CaseEnded,
    CutOff,
    FindAnswer,
    HomeAnswer,
    HostFault,
    HostLeft,
    HostQuestion,
    HostReady,
    Keys,
    Leave,
    RecordEntries,
    RequestReleased,
    RunCase,
    ToHome,
    batch,
    for_home,
    for_host,
    pack,
    value_of,
)
from sightline.model.exchange import FrameArrived, Received
from sightline.settings import Settings
from sightline.store.entries import BodyEntry, FactEntry
from tests.cluster_stage import FakeWorker, opens, passed, said
from tests.fake_clock import FakeClock


def test_messages_to_a_host_survive_a_round_trip() -> None:
    begin = Begin(
        run="e_1",
        began=b'{"kind":"eval_began"}',
        catalog=Catalog(),
        settings=Settings(),
        targets=("acme",),
        variables={"KEY": "sk-1"},
    )
    messages = (begin, RunCase(1, ("a", "acme", 0)), HomeAnswer(2, msgspec.Raw(b"true")))
    assert [pack(each) for each in for_host(batch(map(pack, messages)))] == [pack(each) for each in messages]


def test_keys_do_not_stand_in_what_is_shown_of_a_message() -> None:
    begin = Begin(
        run="e_1", began=b"", catalog=Catalog(), settings=Settings(), targets=(), variables={"KEY": "sk-planted"}
    )
    assert "sk-planted" not in repr(begin)
    assert "sk-planted" not in repr(Keys({"KEY": "sk-planted"}))


def test_entries_of_the_record_arrive_as_they_are() -> None:
    entries = (
        BodyEntry("ab", b"\x00\xff body"),
        FactEntry("x_1", 0, 1.5, Received("openai-chat", "m", "ab")),
        FactEntry("x_1", 1, 2.5, FrameArrived(b"\xfe\x00", 0.5)),
    )
    messages = (
        RecordEntries(entries),
        HostQuestion(1, Admit("acme", "m", 5, Facts(rpm=3))),
        CaseEnded(1, b"{}"),
        HostLeft(),
    )
    assert tuple(for_home(batch(map(pack, messages)))) == messages


def test_half_a_character_of_a_model_arrives_too() -> None:
    told = RecordEntries((FactEntry("x_\ud800", 0, 1.0, FrameArrived(b"\xff", 0.0)),))
    assert tuple(for_home(batch([pack(told)]))) == (told,)
    findings = FindAnswer("x_\udfff")
    assert value_of(pack(findings), FindAnswer) == findings


def test_what_another_version_says_is_not_taken_for_something_else() -> None:
    with pytest.raises(Fault, match="a host is not understood"):
        for_home(batch([b'{"type":"sung"}']))


def test_a_fault_is_the_same_on_the_other_side() -> None:
    fault = Fault(Code.RATE_LIMITED, "used up", hint="Wait.", status=429)
    assert HostFault.of(fault).to_fault() == fault


BEGIN = Begin(run="e_1", began=b"", catalog=Catalog(), settings=Settings(), targets=("acme",))
KEY: Key = ("a", "acme", 0)


async def next_of(host: Host, wanted: type[ToHome]) -> ToHome:
    """The next message of this kind; others are passed over."""
    while True:
        for message in for_home(await host.next(1)):
            if isinstance(message, wanted):
                return message


async def test_host_runs_assigned_cases_and_leaves() -> None:
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


async def test_a_case_is_cut_off_or_breaks_by_itself() -> None:
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


async def test_a_place_that_came_too_late_is_given_back() -> None:
    host = Host(opens(FakeWorker()), FakeClock())
    host.receive(said(HomeAnswer(5, msgspec.Raw(b"true"))))
    assert await next_of(host, RequestReleased) == RequestReleased(5)


async def test_host_without_contact_stops_its_cases_and_ends() -> None:
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


async def test_keys_are_applied_at_begin_and_unknown_messages_are_reported() -> None:
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
