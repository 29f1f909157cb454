import asyncio

import pytest

from sightline.editing.operations import SetText
from sightline.errors import Fault
from sightline.evals.core.run_state import EvalBegan
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.case_worker import open_case_worker
from tests.eval_stage import ACME, EvalStage, knows, on_stage, replies, table
from tests.loop_stage import calls, count, says
from tests.upstream import Upstream, answer

TALK = """
tests:
  - id: talk
    mode: conversation
    criteria: It knows what was said.
    {more}
    input:
      - {{role: system, content: Be brief.}}
    turns:
      - input: My name is Ada.
        assertions: [{{type: contains, value: Ada}}]
      - input: What is my name?
        assertions: [{{type: contains, value: "{second}"}}]
      - input: And again?
        assertions: [{{type: contains, value: third}}]
"""
SAYS = {"My name": "Hello Ada", "What is": "Ada", "again": "third"}


def talk(second: str = "Ada", more: str = "aggregation: mean") -> str:
    return TALK.format(second=second, more=more)


@on_stage
async def test_conversation_continues_with_the_actual_replies_of_the_model(
    stage: EvalStage, upstream: Upstream
) -> None:
    upstream.script = [knows(upstream, SAYS)]
    standing = await stage.run(talk())
    (result,) = standing.results
    assert table(standing)[0][3:] == ("ok", "pass", 1.0)
    assert [(each["role"], each["content"]) for each in upstream.seen[2].json()["messages"]] == [
        ("system", "Be brief."),
        ("user", "My name is Ada."),
        ("assistant", "Hello Ada"),
        ("user", "What is my name?"),
        ("assistant", "Ada"),
        ("user", "And again?"),
    ]
    assert [turn.text for turn in result.turns] == ["Hello Ada", "Ada", "third"]
    assert [turn.verdict for turn in result.score.turns] == ["pass", "pass", "pass"]
    assert (len(result.observation.exchanges), result.observation.requests) == (3, 3)


@on_stage
async def test_words_that_were_edited_while_a_turn_was_held_stay_edited_in_the_next_turns(
    stage: EvalStage, upstream: Upstream
) -> None:
    upstream.script = [knows(upstream, SAYS)]
    holds = stage.stage.engine.relay.holds
    holds.set_mode("every")
    running = asyncio.ensure_future(stage.run(talk()))
    new = {"My name is Ada.": "My name is Ada, mind.", "What is my name?": "What is my first name?"}
    for _ in range(3):
        with stage.stage.hub.watch() as watch:
            while not holds.waiting:
                await anext(watch)
        (hold,) = holds.waiting
        for section in hold.draft.sections:
            if section.text in new:
                holds.edit(hold.exchange, SetText(section=section.id, text=new.pop(section.text)))
        holds.release(hold.exchange, hold.draft.sha256)
    standing = await running
    assert [each["content"] for each in upstream.seen[2].json()["messages"]] == [
        "Be brief.", "My name is Ada, mind.", "Hello Ada", "What is my first name?", "Ada", "And again?",
    ]  # fmt: skip
    (result,) = standing.results
    assert [message.parts[0].text for message in result.turns[1].asked][1::2] == [
        "My name is Ada, mind.", "What is my first name?",
    ]  # fmt: skip


@on_stage
async def test_a_window_leaves_out_what_is_old(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [knows(upstream, SAYS)]
    await stage.run(talk(more="window_size: 1"))
    assert [each["content"] for each in upstream.seen[2].json()["messages"]] == ["Be brief.", "Ada", "And again?"]


@on_stage
async def test_a_conversation_stops_at_a_turn_that_failed_if_it_says_so(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [knows(upstream, SAYS)]
    stopped = await stage.run(talk("Bob", "on_turn_failure: stop"), run="e_1")
    assert len(upstream.seen) == 2
    assert [turn.verdict for turn in stopped.results[0].score.turns] == ["pass", "fail", "skip"]
    assert table(stopped)[0][3:5] == ("quality_failure", "fail")
    went_on = await stage.run(talk("Bob", "aggregation: min"), run="e_2")
    assert [turn.verdict for turn in went_on.results[0].score.turns] == ["pass", "fail", "pass"]
    assert table(went_on)[0][3:] == ("quality_failure", "fail", 0.0)


@on_stage
async def test_the_whole_conversation_can_be_graded_too(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [knows(upstream, SAYS)]
    standing = await stage.run(talk(more="assertions: [{type: contains, value: My name is Ada}]"))
    (result,) = standing.results
    assert [score.verdict for score in result.score.scores] == ["pass"]
    assert result.score.score == 1.0


@on_stage
async def test_a_turn_without_an_answer_is_an_error_of_the_conversation(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [knows(upstream, SAYS), answer(400, b'{"error":{"message":"no"}}')]
    (result,) = (await stage.run(talk())).results
    assert (result.status, result.score.verdict, len(result.turns)) == ("execution_error", "not_graded", 2)
    assert result.observation.error_code == "invalid_request"


@on_stage
async def test_undeliverable_case_is_an_error_and_sends_no_request(stage: EvalStage, upstream: Upstream) -> None:
    text = """
tests:
  - id: a
    input: [{role: user, content: [{type: image, value: notes.md}]}]
    assertions: [{type: contains, value: x}]
"""
    (stage.root / "notes.md").write_text("no picture")
    (result,) = (await stage.run(text)).results
    assert result.status == "execution_error"
    assert "is not a picture" in result.observation.error
    assert upstream.seen == []


@on_stage
async def test_the_system_policy_is_that_of_the_target(stage: EvalStage, upstream: Upstream) -> None:
    text = """
tests:
  - id: a
    input:
      - {role: system, content: First.}
      - {role: user, content: Hi.}
      - {role: system, content: Later.}
      - {role: user, content: Go.}
    assertions: [{type: contains, value: x}]
"""
    upstream.script = [replies(upstream, lambda _: says("x"))]
    targets = [
        TargetSpec(name="kept", model="acme/m", concurrency=1),
        TargetSpec(name="merged", model="acme/m", system="merge_all", concurrency=1),
    ]
    for target in targets:
        await stage.run(text, (target,), run=target.name)
    roles = [[each["role"] for each in seen.json()["messages"]] for seen in upstream.seen]
    assert roles == [["system", "user", "system", "user"], ["system", "user", "user"]]


DECLARED = """
tests:
  - id: a
    {asked}
    tools: [{{name: count, description: Counts., parameters: {{type: object}}}}]
    {graders}
"""


def declared(asked: str = "input: Count.", graders: str = "") -> str:
    wanted = "assertions: [{type: tool-trajectory, mode: exact, expected: [{tool: count, args: {n: 3}}]}]"
    return DECLARED.format(asked=asked, graders=graders or wanted)


@on_stage
async def test_tools_declared_by_a_case_can_be_called_but_are_not_run(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda _: calls(count(3)))]
    (result,) = (await stage.run(declared())).results
    assert (result.status, result.score.verdict) == ("ok", "pass"), result.score
    (tool,) = upstream.seen[0].json()["tools"]
    assert tool["function"] == {"name": "count", "description": "Counts.", "parameters": {"type": "object"}}
    assert [(use.name, use.arguments, use.result) for use in result.observation.tools] == [("count", {"n": 3}, "")]
    assert len(upstream.seen) == 1


@on_stage
async def test_conversation_stops_after_an_unanswered_tool_call(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda _: calls(count(3)))]
    asked = "turns: [{input: Count., assertions: [{type: is-json}]}, {input: Again.}]"
    (result,) = (await stage.run(declared(asked, "criteria: it counts"))).results
    assert result.status == "execution_error"
    assert "it called count, and declared tools are not run" in result.observation.error
    assert len(upstream.seen) == 1
    one = declared(asked.replace(", {input: Again.}", ""), "window_size: 3")
    (result,) = (await stage.run(one, run="e_2")).results
    assert result.status != "execution_error"  # it may end so


@on_stage
async def test_command_target_rejects_a_case_that_declares_tools(stage: EvalStage) -> None:
    program = TargetSpec(name="program", cli=CommandSpec(command="echo hi"))
    (result,) = (await stage.run(declared(), (program,))).results
    assert result.status == "execution_error"
    assert "the case declares tools (count), and program is a program" in result.observation.error


@on_stage
async def test_a_turn_is_judged_by_what_it_expects_where_it_has_no_graders(
    stage: EvalStage, upstream: Upstream
) -> None:
    verdict = '{"reasoning": "", "assertions": [], "score": 0.9}'
    upstream.script = [replies(upstream, lambda body: says(verdict if "response_format" in body else "Paris it is"))]
    text = "tests: [{id: a, turns: [{input: Where?, expected_output: Paris}, {input: Thanks.}]}]"
    (result,) = (await stage.run(text)).results
    assert [(turn.verdict, turn.score) for turn in result.score.turns] == [("pass", 0.9), ("skip", None)]
    assert (result.score.verdict, result.score.score) == ("pass", 0.9)
    (judged,) = [seen.json() for seen in upstream.seen if "response_format" in seen.json()]
    assert "Paris it is" in str(judged["messages"][-1]["content"])


MOCK = TargetSpec(name="parrot", mock="Paris")


@on_stage
async def test_only_the_targets_that_are_wanted_are_opened(stage: EvalStage) -> None:
    broken = TargetSpec(name="broken", cli=CommandSpec(command="cat", cwd="nowhere"))
    began = EvalBegan(suite=stage.suite(), targets=(ACME, MOCK, broken))
    opening = stage.driven(began)
    async with open_case_worker(opening, (MOCK,)) as worker:
        assert list(worker.targets) == ["parrot"]
        assert (await worker.run(("france", "parrot", 0))).score.verdict == "pass"
    with pytest.raises(Fault, match="which is not a folder"):
        async with open_case_worker(opening, began.targets):
            pass
