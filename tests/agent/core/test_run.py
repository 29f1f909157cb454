"""Playbooks of the loop: what a model says, what people and tools do, and what the next request holds."""

from typing import Any

import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Denied, Policy
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.rounds import CANCELLED, FinishedRun
from sightline.agent.core.run import Loop, RunPlan, ToolLoop
from sightline.agent.core.steps import (
    Answer,
    Approve,
    AskModel,
    CallsDecided,
    Confirm,
    Confirmed,
    Replied,
    Rest,
    Rested,
    RunStopped,
    Use,
    Used,
)
from sightline.agent.core.tool import text_outcome
from sightline.catalog.facts import Prices
from sightline.errors import Code, Fault
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Finish, Reply, Usage
from sightline.model.request import FunctionTool, Message, Request
from tests.loop_stage import Driver, calls, count, limited, plan, question, reply, says


def results(request: Request) -> list[tuple[str, str]]:
    """The results in a request: the id and the words of each."""
    return [
        (part.id, "".join(each.text for each in part.parts if isinstance(each, Text)))
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolResult)
    ]


def begun(plan: RunPlan) -> Loop:
    """A run that waits for its first reply."""
    loop = ToolLoop(question(), plan).steps()
    next(loop)
    return loop


def finish(loop: Loop, answer: Answer) -> FinishedRun:
    """How the run ends with this answer."""
    with pytest.raises(StopIteration) as stop:
        loop.send(answer)
    return stop.value.value


def play(replies: list[Reply], plan: RunPlan, **driven: Any) -> tuple[Driver, FinishedRun]:
    """A run in which the model says this, and its driver."""
    driver = Driver(replies, **driven)
    return driver, driver.play(question(), plan)


# --- rounds -----------------------------------------------------------------------------------------


def test_a_model_that_calls_nothing_has_answered() -> None:
    driver, ended = play([says("Four.")], plan())
    assert (ended.why, len(driver.asked), ended.rounds[0].text) == ("answered", 1, "Four.")
    assert ended.request.messages[-1] == Message("assistant", (Text("Four."),), bare=True)
    assert ended.reply == says("Four.")
    assert [tool.name for tool in driver.asked[0].tools if isinstance(tool, FunctionTool)] == ["edit_file", "count"]


def test_results_follow_in_the_order_of_the_calls_however_they_were_completed() -> None:
    driver = Driver([calls(count(1, "a"), count(2, "b"), count(3, "c"))])
    loop = begun(plan())
    used = loop.send(Replied(driver.replies[0]))
    assert isinstance(used, Use)
    asked = loop.send(Used({call.key: text_outcome(call.key) for call in reversed(used.calls)}))
    assert results(asked.request) == [("a", "1.1"), ("b", "1.2"), ("c", "1.3")]


def test_thinking_and_its_signature_go_back_with_the_calls() -> None:
    thought = Thinking("Hm.", signature="c2VhbA==", signed_by="anthropic")
    driver, ended = play([reply(thought, Text("Look."), count(1))], plan("anthropic"))
    assert driver.asked[1].messages[1].parts[:2] == (thought, Text("Look."))
    assert ended.rounds[0].reply.choice.parts[0] == thought


def test_what_the_provider_ran_itself_is_recorded_and_not_run() -> None:
    search = Opaque("openai-responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    driver, ended = play([reply(search, count(1)), reply(search, Text("Done."))], plan("openai-responses"))
    assert [call.name for call in driver.used] == ["count"]
    assert all(search in done.reply.choice.parts for done in ended.rounds)


def test_a_turn_that_the_provider_paused_goes_on_where_it_was() -> None:
    driver, ended = play([reply(Text("Searching"), finish="pause"), says(" and found.")], plan("anthropic"))
    assert driver.asked[1].messages[-1].parts == (Text("Searching"),)
    assert ended.request.messages[-1].parts == (Text("Searching"), Text(" and found."))
    assert (ended.why, ended.spent.requests) == ("answered", 2)


def test_a_request_that_was_edited_goes_into_the_later_rounds() -> None:
    loop = ToolLoop(question(), plan()).steps()
    asked = next(loop)
    assert isinstance(asked, AskModel)
    edited = question(text="Do something else.")
    loop.send(Replied(calls(count(1)), sent=edited))
    later = loop.send(Used({"1.1": text_outcome("1")}))
    assert later.request.messages[0] == edited.messages[0]


def test_context_given_with_tool_results_is_sent_to_the_model() -> None:
    loop = begun(plan())
    loop.send(Replied(calls(count(1))))
    asked = loop.send(Used({"1.1": text_outcome("1")}, context="Hurry."))
    assert asked.request.messages[-1] == Message("user", (Text("Hurry."),))


# --- ids --------------------------------------------------------------------------------------------


def test_an_id_that_a_model_uses_again_is_echoed_where_the_provider_takes_it() -> None:
    driver, ended = play([calls(count(1, "a")), calls(count(2, "a"))], plan("openai-chat"))
    assert [call.key for call in driver.used] == ["1.1", "2.1"]
    assert results(driver.asked[2]) == [("a", "count 1.1 did it"), ("a", "count 2.1 did it")]
    assert not ended.amendments


def test_duplicate_call_id_is_renamed_and_reported_if_provider_refuses_it() -> None:
    driver, ended = play([calls(count(1, "a")), calls(count(2, "a"))], plan("anthropic"))
    assert [each for each, _ in results(driver.asked[2])] == ["a", "a_2"]
    record = ended.rounds[1].calls[0]
    assert (record.id, record.sent_id) == ("a", "a_2")
    assert [each.kind for each in ended.rounds[1].amendments] == ["id"]


# --- calls that cannot be run -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("c", "cuont", "{}"), "Tools that can be called: count"),
        (ToolCall("c", "format_disk", "{}"), "is disabled"),
        (ToolCall("c", "count", '{"n": '), "not JSON"),
        (ToolCall("c", "count", '{"n": "many"}'), '/n: expected integer, got string "many"'),
    ],
)
def test_a_call_that_cannot_be_run_is_answered_with_what_is_wrong(call: ToolCall, words: str) -> None:
    driver, ended = play([calls(call)], plan())
    assert not driver.used
    ((_, text),) = results(driver.asked[1])
    assert words in text
    assert "Attempt 1 of 5" in text
    assert (ended.rounds[0].calls[0].fate, ended.rounds[0].mistakes, ended.why) == ("refused", 1, "answered")


def test_invalid_call_does_not_prevent_a_valid_call_from_running() -> None:
    driver, _ = play([calls(ToolCall("x", "nope", "{}"), count(1, "y"))], plan())
    assert [each for each, _ in results(driver.asked[1])] == ["x", "y"]
    assert [call.id for call in driver.used] == ["y"]


def test_what_was_repaired_runs_and_the_model_sees_what_it_wrote() -> None:
    driver, ended = play([calls(count('"42"'))], plan())
    assert driver.used[0].arguments == {"n": 42}
    record = ended.rounds[0].calls[0]
    assert (record.arguments, record.ran) == ('{"n": "42"}', {"n": 42})
    assert [repair.pointer for repair in record.repairs] == ["/n"]
    assert driver.asked[1].messages[1].parts == (count('"42"'),)


# --- replies that are not whole ---------------------------------------------------------------------


def test_calls_of_a_truncated_reply_are_reported_and_not_run_and_no_hook_is_asked() -> None:
    cut = reply(Text("I will"), ToolCall("c", "count", '{"n": 1'), finish="length")
    driver, ended = play([cut], plan(is_hooked=True))
    assert (ended.why, driver.used) == ("length", [])
    assert (ended.rounds[0].finish, ended.rounds[0].calls[0].fate) == ("length", "cut")
    assert [each.kind for each in ended.amendments] == ["call_left_out"]
    assert ended.request.messages[-1].parts == (Text("I will"),)


@pytest.mark.parametrize(("finish", "why"), [("error", "failed"), ("cancelled", "cancelled")])
def test_a_broken_reply_ends_the_run_and_leaves_the_conversation_as_it_was(finish: Finish, why: str) -> None:
    broken = reply(Text("I"), count(1), finish=finish)
    driver, ended = play([broken], plan())
    assert (ended.why, driver.used, ended.request.messages) == (why, [], question().messages)
    assert ended.reply == broken


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_limit_of_n_requests_means_n_requests(most: int) -> None:
    driver, ended = play([calls(count(n, f"c{n}")) for n in range(9)], limited(requests=most))
    assert (len(driver.asked), ended.why, ended.spent.requests) == (most, "limit", most)
    assert (ended.reached.name, ended.reached.limit) == ("requests", most)
    assert len(driver.used) == max(0, most - 1), "what nobody would see the result of is not run"


def test_calls_beyond_a_limit_get_a_result_that_says_so() -> None:
    driver, ended = play([calls(count(1, "a"), count(2, "b"), count(3, "c"))], limited(tool_calls=2))
    assert ([call.id for call in driver.used], ended.why) == (["a", "b"], "limit")
    assert results(ended.request)[2] == ("c", "This call was not run: the limit of 2 tool calls is reached.")
    assert [call.fate for call in ended.rounds[0].calls] == ["ran", "ran", "limit"]


def test_a_limit_of_calls_that_is_used_up_exactly_lets_the_model_answer() -> None:
    driver = Driver([calls(count(1, "a"))])
    assert driver.play(question(), limited(tool_calls=1)).why == "answered"


def test_a_limit_of_calls_that_is_used_up_keeps_the_next_call_from_running() -> None:
    driver, ended = play([calls(count(1, "a")), calls(count(2, "b"))], limited(tool_calls=1))
    assert ([call.id for call in driver.used], ended.why) == (["a"], "limit")


def test_tokens_stop_the_run_before_anything_else_is_done() -> None:
    driver, ended = play([calls(count(1, "a")), calls(count(2, "b"))], limited(tokens=30))
    assert (ended.spent.tokens, len(driver.asked), len(driver.used)) == (30, 2, 1)


def test_cost_stops_the_run() -> None:
    prices = Prices(input=1.0, output=2.0)
    driver, ended = play(
        [calls(count(1, "a")), calls(count(2, "b"))], plan(limits=RunLimits(cost=0.00003), prices=prices)
    )
    assert (ended.why, len(driver.asked), ended.rounds[0].cost) == ("limit", 2, pytest.approx(0.00002))


def test_time_stops_the_run() -> None:
    driver, ended = play([calls(count(1, "a")), calls(count(2, "b"))], limited(seconds=4.0), seconds_a_step=2.0)
    assert (ended.why, ended.spent.seconds, len(driver.asked)) == ("limit", 4.0, 1)


def test_what_is_cut_off_once_the_time_is_up_is_cut_off_by_the_limit() -> None:
    late = finish(begun(limited(seconds=4.0)), RunStopped(4.0))
    assert late.why == "limit"
    assert late.reached.words == "the limit of 4 seconds is reached"
    assert finish(begun(limited(seconds=4.0)), RunStopped(3.9)).why == "cancelled"
    assert finish(begun(plan(limits=RunLimits(seconds=4.0, behaviour="confirm"))), RunStopped(4.0)).why == "cancelled"


def test_calls_that_the_end_of_the_time_cuts_off_say_so() -> None:
    loop = begun(limited(seconds=4.0))
    loop.send(Replied(calls(count(1, "a"), count(2, "b")), elapsed=1.0))
    ended = finish(loop, RunStopped(4.0, {"1.1": text_outcome("in time")}))
    done, cut_off = ended.rounds[0].calls
    assert (ended.why, done.fate, cut_off.fate) == ("limit", "ran", "limit")
    assert cut_off.outcome == text_outcome(
        "This call was not run to its end: the limit of 4 seconds is reached.", is_error=True
    )


def test_time_that_a_person_took_counts_before_the_tool_runs() -> None:
    driver, ended = play(
        [calls(count(1, "a"))],
        plan(policy=Policy(), limits=RunLimits(seconds=4.0)),
        decisions=[{"1.1": Allowed()}],
        seconds_a_step=2.0,
    )
    assert (ended.why, driver.used) == ("limit", [])


def test_a_limit_that_cannot_be_held_ends_the_run() -> None:
    driver, ended = play([reply(count(1), usage=None)], plan(limits=RunLimits(tokens=1000, behaviour="confirm")))
    assert (ended.why, driver.used) == ("limit", [])
    assert ended.reached.is_unmeasured
    assert "cannot be held" in results(ended.request)[0][1]


def test_an_estimate_holds_where_the_provider_tells_nothing() -> None:
    loop = begun(limited(tokens=1000))
    estimate = Usage(input_tokens=1, output_tokens=2)
    assert isinstance(loop.send(Replied(reply(count(1), usage=None), estimate=estimate)), Use)


def test_confirming_raises_the_limit_by_half_and_the_run_goes_on() -> None:
    driver, ended = play(
        [calls(count(n, f"c{n}")) for n in range(9)],
        limited(requests=3, behaviour="confirm"),
        confirmations=[True, False],
    )
    confirms = [step.reached for step in driver.steps if isinstance(step, Confirm)]
    assert [(each.limit, each.raised) for each in confirms] == [(3, 5), (5, 8)]
    assert (len(driver.asked), len(driver.used), ended.why) == (5, 4, "limit")


def test_confirming_makes_room_for_all_calls_of_a_reply() -> None:
    asked = calls(count(1, "a"), count(2, "b"), count(3, "c"))
    driver, ended = play([asked], limited(tool_calls=1, behaviour="confirm"), confirmations=[True, True])
    assert (len(driver.used), ended.why) == (3, "answered")


def test_the_same_call_with_the_same_result_ends_the_run() -> None:
    driver, ended = play(
        [calls(count(1, f"c{n}")) for n in range(9)], limited(repeats=3), tool=lambda _: text_outcome("pending")
    )
    assert (len(driver.used), ended.why) == (3, "limit")
    assert ended.reached.name == "repeats"


def test_the_same_call_with_another_result_is_progress() -> None:
    driver = Driver([calls(count(1, f"c{n}")) for n in range(9)])
    assert driver.play(question(), limited(repeats=2)).why == "answered"


def test_mistakes_in_a_row_end_the_run_and_a_good_round_forgives_them() -> None:
    wrong = calls(ToolCall("c", "nope", "{}"))
    driver, ended = play([wrong, calls(count(1)), wrong, wrong], limited(mistakes=2))
    assert (ended.why, len(driver.asked)) == ("limit", 4)
    assert [done.mistakes for done in ended.rounds] == [1, 0, 1, 2]
    assert "Attempt 2 of 2" in results(ended.request)[-1][1]


def test_without_a_limit_of_mistakes_no_attempts_are_counted() -> None:
    _, ended = play([calls(ToolCall("c", "nope", "{}"))], limited(mistakes=None))
    assert "Attempt" not in results(ended.request)[0][1]


# --- approval ---------------------------------------------------------------------------------------

ASKING = Policy((ApprovalRule("edit_file", "deny", reason="Read only."),))


def test_approval_is_requested_and_decisions_are_applied() -> None:
    asked = calls(count(1, "a"), count(2, "b"), count(3, "c"), count(4, "d"))
    driver, ended = play(
        [asked],
        plan(policy=ASKING),
        decisions=[{"1.1": Allowed(), "1.2": Denied("Too many."), "1.3": AnsweredByHand((Text("Three."),))}],
    )
    assert [call.id for call in driver.used] == ["a"]
    assert [call.fate for call in ended.rounds[0].calls] == ["ran", "denied", "answered", "cancelled"]
    assert [text for _, text in results(driver.asked[1])] == [
        "count 1.1 did it",
        "The user does not allow this call. Too many.",
        "Three.",
        CANCELLED,
    ]


def test_deny_rule_rejects_the_call_without_requesting_approval() -> None:
    driver, ended = play([calls(ToolCall("a", "edit_file", '{"filePath": "x"}'))], plan(policy=ASKING))
    assert results(ended.request) == [("a", "A rule of this run does not allow this call. Read only.")]
    assert not any(isinstance(step, Approve | Use) for step in driver.steps)


def test_arguments_that_were_edited_run_and_the_model_sees_them() -> None:
    driver, ended = play([calls(count('"1"', "a"))], plan(policy=ASKING), decisions=[{"1.1": Allowed({"n": 7})}])
    assert driver.used[0].arguments == {"n": 7}
    (echo,) = driver.asked[1].messages[1].parts
    assert echo.arguments == '{"n":7}'
    record = ended.rounds[0].calls[0]
    assert (record.arguments, record.ran, record.is_edited) == ('{"n": "1"}', {"n": 7}, True)


def test_invalid_edited_arguments_are_submitted_for_approval_again() -> None:
    driver = Driver([calls(count(1, "a"), count(2, "b"))])
    driver.decisions = [{"1.1": Allowed({"n": "x"}), "1.2": Allowed()}, {"1.1": Allowed({"n": 2})}]
    driver.play(question(), plan(policy=ASKING))
    approvals = [step for step in driver.steps if isinstance(step, Approve)]
    assert [[call.key for call in step.calls] for step in approvals] == [["1.1", "1.2"], ["1.1"]]
    assert "expected integer" in approvals[1].objections["1.1"]
    assert [call.arguments for call in driver.used] == [{"n": 2}, {"n": 2}]


# --- stopping ---------------------------------------------------------------------------------------


def test_a_run_that_is_stopped_while_it_asks_ends_with_what_it_had() -> None:
    loop = begun(plan())
    ended = finish(loop, RunStopped(1.5))
    assert (ended.why, ended.spent.seconds) == ("cancelled", 1.5)
    assert ended.reply is None


def test_a_run_that_is_stopped_while_tools_run_keeps_what_was_complete() -> None:
    loop = begun(plan())
    loop.send(Replied(calls(count(1, "a"), count(2, "b"))))
    ended = finish(loop, RunStopped(outcomes={"1.1": text_outcome("one")}))
    assert (ended.why, results(ended.request)) == ("cancelled", [("a", "one"), ("b", CANCELLED)])
    assert [call.fate for call in ended.rounds[0].calls] == ["ran", "cancelled"]


def test_a_run_that_is_stopped_at_an_approval_runs_nothing() -> None:
    loop = begun(plan(policy=ASKING))
    assert isinstance(loop.send(Replied(calls(count(1, "a")))), Approve)
    ended = finish(loop, RunStopped(outcomes={"1.1": text_outcome("never ran")}))
    assert results(ended.request) == [("a", CANCELLED)]


def test_one_call_can_be_cancelled_and_the_run_goes_on() -> None:
    _, ended = play(
        [calls(count(1, "a"), count(2, "b"))], plan(), tool=lambda call: text_outcome("ok") if call.id == "b" else None
    )
    assert (ended.why, results(ended.request)) == ("answered", [("a", CANCELLED), ("b", "ok")])


# --- drivers that answer something else -------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "before", "answer", "words"),
    [
        (plan(), [], Used(), "AskModel was answered by Used"),
        (plan(policy=Policy()), [calls(count(1))], Used(), "Approve was answered by Used"),
        (plan(), [calls(count(1))], CallsDecided(), "Use was answered by CallsDecided"),
        (limited(requests=1, behaviour="confirm"), [calls(count(1))], Used(), "Confirm was answered by Used"),
        (plan(is_hooked=True), [says()], Used(), "Rest was answered by Used"),
    ],
)
def test_an_answer_to_another_question_is_refused(
    wanted: RunPlan, before: list[Reply], answer: Answer, words: str
) -> None:
    loop = begun(wanted)
    for each in before:
        loop.send(Replied(each))
    with pytest.raises(Fault, match=words):
        loop.send(answer)


# --- hooks ------------------------------------------------------------------------------------------


def test_where_hooks_look_at_every_call_those_that_a_rule_allows_are_marked() -> None:
    policy = Policy((ApprovalRule("count", "allow"), ApprovalRule("edit*", "deny")))
    loop = begun(plan(policy=policy, is_hooked=True))
    edit, shell = ToolCall("e", "edit_file", '{"filePath": "x"}'), ToolCall("s", "shell", "ls")
    step = loop.send(Replied(calls(count(1, "a"), edit, shell)))
    assert isinstance(step, Approve)
    assert ([call.key for call in step.calls], step.allowed) == (["1.1", "1.3"], ("1.1",))
    again = loop.send(CallsDecided({"1.1": Allowed({"n": "x"}), "1.3": Allowed()}))
    assert isinstance(again, Approve)
    assert (list(again.objections), again.allowed) == (["1.1"], ("1.1",))
    used = loop.send(CallsDecided({"1.1": Allowed({"n": 2})}))
    assert isinstance(used, Use)
    assert [call.arguments for call in used.calls] == [{"n": 2}, "ls"]


def test_a_rule_for_the_rest_of_the_run_keeps_no_hook_from_looking() -> None:
    loop = begun(plan(policy=Policy(), is_hooked=True))
    loop.send(Replied(calls(count(1))))
    loop.send(CallsDecided({"1.1": Allowed(rule=ApprovalRule("count", "allow"))}))
    loop.send(Used({"1.1": text_outcome("1")}))
    step = loop.send(Replied(calls(count(2))))
    assert isinstance(step, Approve)
    assert step.allowed == ("2.1",)


def test_a_hook_can_keep_the_run_from_ending() -> None:
    loop = begun(plan(is_hooked=True))
    assert loop.send(Replied(says())) == Rest(1)
    asked = loop.send(Rested("Run the tests first."))
    assert asked.request.messages[-1] == Message("user", (Text("Run the tests first."),))
    loop.send(Replied(says("All green.")))
    ended = finish(loop, Rested(" "))
    assert (ended.why, len(ended.rounds)) == ("answered", 2)


def test_an_end_that_could_not_be_judged_is_a_failure_that_keeps_the_words() -> None:
    loop = begun(plan(is_hooked=True))
    loop.send(Replied(says("Done.")))
    ended = finish(loop, Rested(failure="a hook could not judge the end"))
    assert (ended.why, ended.rounds[-1].text, ended.reply.fault.code) == ("failed", "Done.", Code.PERMISSION)


def test_a_run_can_be_looked_at_while_it_is_driven() -> None:
    looked = ToolLoop(question(), plan(limits=RunLimits(tool_calls=1, behaviour="confirm")))
    loop = looked.steps()
    next(loop)
    loop.send(Replied(calls(count(1), count(2), ToolCall("u", "unknown", "{}"))))
    assert [(each.key, each.fate) for each in looked.pending] == [("1.1", None), ("1.2", None), ("1.3", "refused")]
    assert (looked.rounds, looked.spent.requests, looked.limits.tool_calls) == ((), 1, 1)
    loop.send(Confirmed(goes_on=True))
    loop.send(Used({}))
    assert ([each.number for each in looked.rounds], looked.pending, looked.limits.tool_calls) == ([1], [], 2)
