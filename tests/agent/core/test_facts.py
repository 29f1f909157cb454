import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Denied
from sightline.agent.core.facts import (
    Remarked,
    RequestStarted,
    RunBegan,
    RunEnded,
    RunFact,
    RunTaken,
    ToolFinished,
    ToolStarted,
    read,
    write,
)
from sightline.agent.core.output import text_outcome
from sightline.agent.core.steps import CallsDecided, Confirmed, Replied, Rested, RunStopped, Used
from sightline.catalog.provider import Route
from sightline.errors import Code, Fault
from sightline.model.parts import Image, Inline, Text
from sightline.model.reply import Reply
from sightline.model.usage import Usage
from tests.loop_stage import calls, count, plan, question

FACTS: list[RunFact] = [
    RunBegan(question(), plan()),
    RunBegan(question(), plan(is_hooked=True), "acme", "chat", {"pair": "p_1"}),
    RunTaken("here:12"),
    RequestStarted(1, "x_1"),
    Replied(calls(count(1)), 1.5, question(), Usage(input_tokens=1)),
    Replied(Reply(fault=Fault(Code.NETWORK, "reset", hint="Look."))),
    CallsDecided({"1.1": Allowed({"n": 2}, ApprovalRule("f", "allow", {"/n": "*"})), "1.2": Denied("No.")}, 2.0),
    CallsDecided({"1.1": AnsweredByHand((Text("x"), Image(Inline("image/png", "aGk="))))}),
    ToolStarted("1.1"),
    ToolFinished("1.1", text_outcome("ok \ud800")),
    Used({"1.1": text_outcome("ok")}, 3.0, "By the way."),
    Confirmed(goes_on=True),
    Rested("Go on.", 3.5),
    Remarked("a hook failed"),
    RunStopped(4.0, {"1.1": text_outcome("ok")}),
    RunEnded("answered"),
    RunBegan(question(), plan(), "acme", route=Route(provider="acme", as_="n", system="merge_all", strict=True)),
]


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_can_be_kept_and_read_again(fact: RunFact) -> None:
    assert read(write(fact)) == fact


def test_a_fault_keeps_its_hint() -> None:
    fact = read(write(FACTS[5]))
    assert isinstance(fact, Replied)
    assert fact.reply.fault is not None
    assert fact.reply.fault.hint == "Look."


@pytest.mark.parametrize("data", [b'{"kind":"unheard_of"}', b"[]", b'{"kind":"tool_started"}'])
def test_what_is_no_fact_is_refused_with_a_hint(data: bytes) -> None:
    with pytest.raises(Fault, match="not a fact of a run") as caught:
        read(data)
    assert caught.value.hint
