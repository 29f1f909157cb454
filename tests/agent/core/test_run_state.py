"""Facts of runs, and the state that they fold to."""

import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Denied
from sightline.agent.core.facts import (
    Remarked,
    RequestStarted,
    RunBegan,
    RunEnded,
    RunFact,
    RunState,
    RunTaken,
    ToolFinished,
    ToolStarted,
    read,
    run_state_of,
    write,
)
from sightline.agent.core.rounds import FinishedRun, Round
from sightline.agent.core.steps import (
    AskModel,
    CallsDecided,
    Confirmed,
    Replied,
    Rested,
    RunnableCall,
    RunStopped,
    Use,
    Used,
    batches,
)
from sightline.agent.core.tool import text_outcome
from sightline.catalog.provider import Route
from sightline.errors import Code, Fault
from sightline.model.parts import Image, Inline, Opaque, Text, Thinking
from sightline.model.reply import Reply, Usage
from tests.loop_stage import Driver, calls, count, limited, plan, question, reply, says

BEGAN = RunBegan(question(), plan())
CALLED = Replied(calls(count(1, "a"), count(2, "b"), count(3, "c")))


def untouched(standing: RunState) -> list[RunnableCall]:
    """The calls that had not been started."""
    calls = standing.step.calls if isinstance(standing.step, Use) else ()
    return [call for call in calls if call.key not in standing.started]


def test_a_run_that_has_only_begun_waits_for_its_first_reply() -> None:
    standing = run_state_of([BEGAN])
    assert isinstance(standing.step, AskModel)
    assert (standing.ended, standing.mid_flight) == (None, ())


def test_a_driver_gets_the_steps_and_the_state_follows_its_answers() -> None:
    standing = run_state_of([BEGAN])
    steps = standing.steps()
    assert next(steps) is standing.step
    with pytest.raises(StopIteration) as end:
        steps.send(Replied(says()))
    assert end.value.value is standing.ended is not None


def test_a_request_that_was_under_way_is_named() -> None:
    assert run_state_of([BEGAN, RequestStarted(1, "x_7")]).exchange == "x_7"
    assert run_state_of([BEGAN, RequestStarted(1, "x_7"), CALLED]).exchange == ""


def test_driver_changes_and_remarks_do_not_affect_the_run_state() -> None:
    standing = run_state_of([BEGAN, RunTaken("one"), RequestStarted(1, "x_7"), RunTaken("two"), Remarked("odd")])
    assert (standing.exchange, standing.run.spent.requests) == ("x_7", 1)


def test_finished_interrupted_and_unstarted_calls_are_distinguished() -> None:
    standing = run_state_of(
        [BEGAN, CALLED, ToolStarted("1.1"), ToolFinished("1.1", text_outcome("one"), "Psst."), ToolStarted("1.2")]
    )
    assert isinstance(standing.step, Use)
    assert (standing.finished, standing.contexts) == ({"1.1": text_outcome("one")}, {"1.1": "Psst."})
    assert [call.key for call in standing.mid_flight] == ["1.2"]
    assert [call.key for call in untouched(standing)] == ["1.3"]


def test_a_tool_whose_end_is_known_had_a_beginning() -> None:
    standing = run_state_of([BEGAN, CALLED, ToolFinished("1.1", text_outcome("one"))])
    assert [call.key for call in untouched(standing)] == ["1.2", "1.3"]


def test_replay_of_an_ended_run_has_no_next_step() -> None:
    standing = run_state_of([BEGAN, Replied(says()), RunEnded("answered")])
    assert standing.step is None
    assert standing.ended.why == "answered"


def test_a_run_that_may_not_even_begin_has_ended() -> None:
    standing = run_state_of([RunBegan(question(), limited(requests=0))])
    assert standing.ended.why == "limit"


@pytest.mark.parametrize("facts", [[], [CALLED, BEGAN]])
def test_facts_without_a_beginning_are_no_run(facts: list[RunFact]) -> None:
    with pytest.raises(Fault, match="no beginning"):
        run_state_of(facts)


def test_facts_of_two_runs_are_no_run() -> None:
    with pytest.raises(Fault, match="began twice"):
        run_state_of([BEGAN, BEGAN])


def test_a_run_of_five_rounds_killed_at_every_fact_ends_the_same_and_runs_nothing_twice() -> None:
    replies = [calls(count(n, f"a{n}"), count(n + 10, f"b{n}")) for n in range(4)]
    driver = Driver(list(replies))
    whole = driver.play(BEGAN.request, BEGAN.plan)
    facts: list[RunFact] = [BEGAN]
    for answer in driver.answers:
        if isinstance(answer, Used):
            for key, outcome in answer.outcomes.items():
                facts += [ToolStarted(key), ToolFinished(key, outcome)]
        facts.append(answer)
    for length in range(1, len(facts) + 1):
        standing = run_state_of(facts[:length])
        done = [fact.key for fact in facts[:length] if isinstance(fact, ToolFinished)]
        again = Driver(replies[sum(isinstance(fact, Replied) for fact in facts[:length]) :])
        while standing.step is not None:
            if isinstance(standing.step, Use):
                # Whoever resumes asks a person about a call that was mid-flight; here it had not come to its effect.
                open_calls = (*standing.mid_flight, *untouched(standing))
                done += [call.key for call in open_calls]
                fresh = {call.key: again.tool(call) for call in open_calls}
                outcomes = standing.finished | {key: each for key, each in fresh.items() if each is not None}
                standing.answer(Used(outcomes))
            else:
                standing.answer(again.answer(standing.step))
        assert standing.ended == whole
        assert sorted(done) == sorted(call.key for call in driver.used)


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
    assert fact.reply.fault.hint == "Look."


@pytest.mark.parametrize("data", [b'{"kind":"unheard_of"}', b"[]", b'{"kind":"tool_started"}'])
def test_what_is_no_fact_is_refused_with_a_hint(data: bytes) -> None:
    with pytest.raises(Fault, match="not a fact of a run") as caught:
        read(data)
    assert caught.value.hint


def test_a_round_shows_what_its_reply_holds() -> None:
    done = Round(number=1, reply=reply(Thinking("Hm."), Text("a"), Opaque("anthropic", {"type": "x"}), Text("b")))
    assert (done.text, done.finish) == ("ab", "stop")


def test_the_last_reply_is_that_of_the_run() -> None:
    first, second = Round(number=1, reply=reply()), Round(number=2, reply=reply(Text("x")))
    assert FinishedRun(why="answered", request=question()).reply is None
    assert FinishedRun(why="answered", request=question(), rounds=(first, second)).reply == second.reply


def call(key: str, *, is_parallel: bool = False) -> RunnableCall:
    return RunnableCall(key=key, id=key, name="f", arguments={}, is_parallel=is_parallel)


def test_calls_that_may_run_beside_each_other_are_batched_and_the_order_stays() -> None:
    a, b, c, d, e = (call(key, is_parallel=key in "abe") for key in "abcde")
    assert batches((a, b, c, d, e)) == ((a, b), (c,), (d,), (e,))
    assert batches(()) == ()
