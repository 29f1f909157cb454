import msgspec
import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts
from sightline.errors import Code, Fault
from sightline.evals.service.cluster.messages import (
    Admit,
    Begin,
    CaseEnded,
    FindAnswer,
    HomeAnswer,
    HostFault,
    HostLeft,
    HostQuestion,
    Keys,
    RecordEntries,
    RunCase,
    batch,
    for_home,
    for_host,
    pack,
    value_of,
)
from sightline.model.exchange import FrameArrived, Received
from sightline.settings import Settings
from sightline.store.entries import BodyEntry, FactEntry


def test_what_a_host_is_told_arrives_as_it_was_said() -> None:
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
    assert HostFault.of(fault).again() == fault
