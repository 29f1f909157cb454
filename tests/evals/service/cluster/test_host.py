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
from sightline.evals.service.cluster import messages
from sightline.evals.service.cluster.host import SILENCE, HomeConnection, Host
from sightline.exchange.relay_messages import FaultMessage
from sightline.model.exchange import FrameArrived, Received
from sightline.settings import Settings
from sightline.store.entries import BodyEntry, FactEntry
from tests.cluster_stage import FakeWorker, opens, passed, said, stuck_worker
from tests.fake_clock import FakeClock


def test_messages_to_a_host_survive_a_round_trip() -> None:
    begin = messages.Begin(
        run="e_1",
        began=b'{"kind":"eval_began"}',
        catalog=Catalog(),
        settings=Settings(),
        targets=("acme",),
        variables={"KEY": "sk-1"},
    )
    given = (begin, messages.RunCase(1, ("a", "acme", 0)), messages.HomeAnswer(2, msgspec.Raw(b"true")))
    assert [messages.pack(each) for each in messages.for_host(messages.batch(map(messages.pack, given)))] == [
        messages.pack(each) for each in given
    ]


def test_keys_do_not_stand_in_what_is_shown_of_a_message() -> None:
    begin = messages.Begin(
        run="e_1", began=b"", catalog=Catalog(), settings=Settings(), targets=(), variables={"KEY": "sk-planted"}
    )
    assert "sk-planted" not in repr(begin)
    assert "sk-planted" not in repr(messages.Keys({"KEY": "sk-planted"}))


def test_entries_of_the_record_arrive_as_they_are() -> None:
    entries = (
        BodyEntry("ab", b"\x00\xff body"),
        FactEntry("x_1", 0, 1.5, Received("openai-chat", "m", "ab")),
        FactEntry("x_1", 1, 2.5, FrameArrived(b"\xfe\x00", 0.5)),
    )
    given = (
        messages.RecordEntries(entries),
        messages.HostQuestion(1, messages.Admit("acme", "m", 5, Facts(rpm=3))),
        messages.CaseEnded(1, b"{}"),
        messages.HostLeft(),
    )
    assert tuple(messages.for_home(messages.batch(map(messages.pack, given)))) == given


def test_half_a_character_of_a_model_arrives_too() -> None:
    told = messages.RecordEntries((FactEntry("x_\ud800", 0, 1.0, FrameArrived(b"\xff", 0.0)),))
    assert tuple(messages.for_home(messages.batch([messages.pack(told)]))) == (told,)
    findings = messages.FindAnswer("x_\udfff")
    assert messages.value_of(messages.pack(findings), messages.FindAnswer) == findings


def test_what_another_version_says_is_not_taken_for_something_else() -> None:
    with pytest.raises(Fault, match="a host is not understood"):
        messages.for_home(messages.batch([b'{"type":"sung"}']))


def test_a_fault_is_the_same_on_the_other_side() -> None:
    fault = Fault(Code.RATE_LIMITED, "used up", hint="Wait.", status=429)
    assert FaultMessage.of(fault).fault == fault


BEGIN = messages.Begin(run="e_1", began=b"", catalog=Catalog(), settings=Settings(), targets=("acme",))
KEY: Key = ("a", "acme", 0)


async def next_of(host: Host, wanted: type[messages.ToHome]) -> messages.ToHome:
    """The next message of this kind; others are passed over."""
    while True:
        for message in messages.for_home(await host.next(1)):
            if isinstance(message, wanted):
                return message


async def test_host_runs_assigned_cases_and_leaves() -> None:
    worker = FakeWorker()
    host = Host(opens(worker), FakeClock())
    host.receive(said(BEGIN))
    assert await next_of(host, messages.HostReady) == messages.HostReady()
    host.receive(said(messages.RunCase(7, KEY)))
    ended = await next_of(host, messages.CaseEnded)
    assert isinstance(ended, messages.CaseEnded)
    assert ended.n == 7
    assert read(ended.done) == CaseDone(passed(KEY))
    host.receive(said(messages.Leave()))
    assert await next_of(host, messages.HostLeft) == messages.HostLeft()
    assert worker.is_closed
    assert host.over.is_set()


def test_a_host_that_cannot_begin_says_why() -> None:
    async def tell(trouble: Exception) -> messages.HostReady:
        @asynccontextmanager
        async def refuses(_begin: messages.Begin, _line: HomeConnection) -> AsyncIterator[Worker]:
            raise trouble
            yield FakeWorker()

        host = Host(refuses, FakeClock())
        host.receive(said(BEGIN))
        ready = await next_of(host, messages.HostReady)
        assert isinstance(ready, messages.HostReady)
        return ready

    fault = Fault(Code.CONFIG, "no such model", hint="Name one.")
    assert asyncio.run(tell(fault)) == messages.HostReady(FaultMessage(Code.CONFIG, "no such model", "Name one."))
    assert asyncio.run(tell(ZeroDivisionError("oops"))) == messages.HostReady(
        FaultMessage(Code.CONFIG, "a host broke: ZeroDivisionError('oops')")
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
    await next_of(host, messages.HostReady)
    host.receive(said(messages.RunCase(1, KEY), messages.RunCase(2, ("broken", "acme", 0))))
    assert await next_of(host, messages.CaseEnded) == messages.CaseEnded(2, broken="ZeroDivisionError('oops')")
    await begun.wait()
    host.receive(said(messages.CutOff(1), messages.CutOff(99)))
    await cut.wait()
    await host.leave()


async def test_a_place_that_came_too_late_is_given_back() -> None:
    host = Host(opens(FakeWorker()), FakeClock())
    host.receive(said(messages.HomeAnswer(5, msgspec.Raw(b"true"))))
    assert await next_of(host, messages.RequestReleased) == messages.RequestReleased(5)


async def test_host_without_contact_stops_its_cases_and_ends() -> None:
    clock = FakeClock()
    worker, begun, cut = stuck_worker()
    host = Host(opens(worker), clock)
    host.receive(said(BEGIN))
    await next_of(host, messages.HostReady)
    host.receive(said(messages.RunCase(1, KEY)))
    await begun.wait()
    before = clock.monotonic()
    await host.watch()
    assert cut.is_set()
    assert worker.is_closed
    assert clock.monotonic() - before == SILENCE


async def test_keys_are_applied_at_begin_and_unknown_messages_are_reported() -> None:
    begun: list[messages.Begin] = []

    @asynccontextmanager
    async def opened(begin: messages.Begin, _line: HomeConnection) -> AsyncIterator[Worker]:
        begun.append(begin)
        yield FakeWorker()

    host = Host(opened, FakeClock())
    host.receive(said({"type": "sung"}))
    ready = await next_of(host, messages.HostReady)
    assert isinstance(ready, messages.HostReady)
    assert ready.fault is not None
    assert "is not understood" in ready.fault.message
    host.receive(said(messages.Keys({"KEY": "sk-1"})))
    host.receive(said(BEGIN))
    assert await next_of(host, messages.HostReady) == messages.HostReady()
    assert begun[0].variables == {"KEY": "sk-1"}
    await host.leave()
