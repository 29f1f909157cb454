import asyncio
import hashlib
from pathlib import Path

from sightline.agent.core.limits import RunUsage
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.facts import Model, Prices
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.target import (
    CaseQuestion,
    arguments_of,
    describe_fault,
    no_answer,
    observe_reply,
    observe_run,
)
from sightline.model.exchange import Received
from sightline.model.parts import Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice as Answer
from sightline.model.reply import Reply, Usage
from sightline.model.request import Request
from tests.eval_stage import ACME, CAPITALS, EvalStage, knows, on_stage, open_evals, table, verdicts
from tests.fake_clock import FakeClock
from tests.loop_stage import calls, count, says
from tests.running_stage import begins, plays
from tests.stepping_clock import SteppingClock
from tests.upstream import Talk, Upstream, answer

USAGE = Usage(input_tokens=1_000_000, output_tokens=0, at="/usage", extras={"x": 1})


PRICES = Prices(input=3.0, output=15.0)


def choice(prices: Prices | None = PRICES) -> ModelChoice:
    catalog = Catalog(
        providers={"acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:1")},
        models={"m": Model(providers=("acme",), prices=prices)},
    )
    return choose(catalog, "acme/m", has_key=lambda _: True)


def reply(*parts: object, **more: object) -> Reply:
    return Reply(choices=(Answer(parts=parts, finish="stop"),), **more)  # type: ignore[arg-type]


def test_a_reply_is_seen_with_what_it_cost() -> None:
    call = ToolCall("1", "t", '{"a": 1}', at="/choices/0")
    seen = observe_reply(reply(Thinking("hm"), Text("Pa"), Text("ris"), call, usage=USAGE, model="m-1"), choice())
    assert (seen.text, seen.cost, seen.model, seen.finish) == ("Paris", 3.0, "m-1", "stop")
    assert seen.usage == Usage(input_tokens=1_000_000, output_tokens=0)
    assert [(use.name, use.arguments) for use in seen.tools] == [("t", {"a": 1})]
    assert seen.messages[0].parts[-1] == ToolCall("1", "t", '{"a": 1}')


def test_what_is_not_known_is_not_nothing() -> None:
    seen = observe_reply(reply(Text("x")), choice())
    assert (seen.usage, seen.cost, seen.model) == (None, None, "m")
    assert observe_reply(reply(Text("x"), usage=USAGE), choice(None)).cost is None
    assert observe_reply(Reply(), choice()).messages == ()
    assert observe_reply(reply(Refusal("I will not.")), choice()).text == "I will not."


def test_fault_is_described_with_its_hint() -> None:
    seen = observe_reply(reply(Text("Pa"), fault=Fault(Code.NETWORK, "cut", hint="Again.")), choice())
    assert (seen.text, seen.error, seen.error_code) == ("Pa", "cut (Again.)", "network")
    assert (describe_fault(None), describe_fault(Fault(Code.NETWORK, "cut"))) == ("", "cut")


def test_arguments_that_are_no_json_are_their_text() -> None:
    assert (arguments_of(""), arguments_of("[1]"), arguments_of("{half")) == ({}, [1], "{half")


def record(key: str, outcome: ToolOutcome | None, **more: object) -> CallRecord:
    settings = {"id": key, "name": "t", "arguments": "{}", "fate": "ran", **more}
    return CallRecord(key=key, outcome=outcome, **settings)  # type: ignore[arg-type]


def test_a_run_is_seen_with_all_its_rounds() -> None:
    calls = (
        record("1.1", text_outcome("one"), ran={"n": 1}),
        record("1.2", ToolOutcome(structured={"k": 2})),
        record("1.3", None, arguments='{"x": 3}'),
    )
    asked = reply(*(ToolCall(call.id, "t", call.arguments) for call in calls))
    rounds = (
        Round(number=1, reply=asked, calls=calls, usage=Usage(input_tokens=5, output_tokens=2, cached_tokens=1)),
        Round(number=2, reply=reply(Text("done")), usage=Usage(input_tokens=7, output_tokens=3)),
    )
    ended = FinishedRun(why="answered", request=Request(), rounds=rounds, spent=RunUsage(cost=0.5, seconds=4.0))
    seen = observe_run(ended, "r_1", choice(), {"1.1": 0.25})
    assert (seen.text, seen.requests, seen.cost, seen.seconds, seen.run) == ("done", 2, 0.5, 4.0, "r_1")
    assert seen.usage == Usage(input_tokens=12, output_tokens=5, cached_tokens=1)
    assert [(use.arguments, use.result, use.is_error, use.seconds) for use in seen.tools] == [
        ({"n": 1}, "one", False, 0.25),
        ({}, '{"k":2}', False, None),
        ({"x": 3}, "", True, None),
    ]
    assert [message.role for message in seen.messages] == ["assistant", "tool", "assistant"]


def test_what_one_round_does_not_tell_is_not_known_of_the_run() -> None:
    rounds = (Round(number=1, reply=reply(Text("done"))),)
    spent = RunUsage(unmeasured=("cost",))
    seen = observe_run(FinishedRun(why="answered", request=Request(), rounds=rounds, spent=spent), "r", choice(), {})
    assert (seen.usage, seen.cost) == (None, None)


def test_tokens_that_one_round_does_not_tell_are_not_0() -> None:
    rounds = (
        Round(number=1, reply=reply(Text("a")), usage=Usage(output_tokens=2)),
        Round(number=2, reply=reply(Text("b")), usage=Usage(input_tokens=7, output_tokens=3)),
    )
    seen = observe_run(
        FinishedRun(why="answered", request=Request(), rounds=rounds, spent=RunUsage()), "r", choice(), {}
    )
    assert seen.usage == Usage(output_tokens=5)


def test_missing_answer_is_described_with_its_cause_and_hint() -> None:
    wanted = CaseQuestion(case="a", messages=(), question="France?")
    seen = no_answer(wanted, Fault(Code.AUTH, "no key", hint="Set it.")).observation
    assert (seen.error, seen.error_code, seen.question, seen.requests) == ("no key (Set it.)", "auth", "France?", 0)
    assert no_answer(wanted, Fault(Code.AUTH, "no key")).observation.error == "no key"


@on_stage
async def test_a_storm_of_429_costs_what_the_one_budget_allows_and_no_more(
    stage: EvalStage, upstream: Upstream
) -> None:
    upstream.script = [answer(429, b'{"error":{"message":"slow down","type":"rate_limit_error"}}')]
    standing = await stage.run(trials=4)
    retries = stage.stage.catalog.providers["acme"].retries(is_stream=False, is_own=True)
    assert len(upstream.seen) == 12 * (1 + retries)
    assert {result.status for result in standing.results} == {"execution_error"}
    assert {result.observation.error_code for result in standing.results} == {"rate_limited"}
    assert {result.score.verdict for result in standing.results} == {"not_graded"}
    assert stage.told[-1].errors == 12


@on_stage
async def test_an_answer_says_what_was_sent_and_where_it_is_on_record(stage: EvalStage, upstream: Upstream) -> None:
    spec = TargetSpec(name="acme", model="acme/m", temperature=0.5, max_tokens=77, top_p=0.9, seed=4)
    (result, *_) = (await stage.run(targets=(spec,), cases=("france",))).results
    sent = upstream.seen[0].json()
    assert sent["messages"] == [{"role": "user", "content": "What is the capital of France?"}]
    assert (sent["temperature"], sent["top_p"], sent["seed"], sent["max_completion_tokens"]) == (0.5, 0.9, 4, 77)
    await stage.stage.store.settle()
    facts = await stage.stage.store.facts(result.observation.exchanges[0])
    received = facts[0].fact
    assert isinstance(received, Received)
    assert result.observation.request_sha256 == received.sha256
    assert (result.observation.finish, result.observation.requests) == ("stop", 1)


@on_stage
async def test_the_preview_the_result_and_the_cache_have_the_hash_of_the_body_after_masks(
    stage: EvalStage, upstream: Upstream
) -> None:
    holds = stage.stage.engine.relay.holds
    hunks = [{"old": "capital of France", "new": "largest city of France"}]
    mask = {"scope": "all", "kind": "patch", "anchor": {"kind": "user"}, "hunks": hunks}
    names = (f"e_{number}" for number in range(9))

    async def sent() -> str:
        preview = stage.evaluation.preview(stage.suite(), "france", ACME, RunOptions()).prepared
        assert preview is not None
        (result,) = (await stage.run(cases=("france",), cache=True, run=next(names))).results
        assert result.observation.request_sha256 == preview.sha256
        return preview.sha256

    first = await sent()
    holds.set_masks([mask])
    assert await sent() != first
    assert len(upstream.seen) == 2, "the answer to another body is no answer to this one"
    assert hashlib.sha256(upstream.seen[1].body).hexdigest() == await sent()
    holds.set_masks([])
    assert await sent() == first
    assert len(upstream.seen) == 2, "both were asked before"


@on_stage
async def test_calls_of_undeclared_tools_are_observed(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(3)), stream=False)]
    (result, *_) = (await stage.run(cases=("france",))).results
    (use,) = result.observation.tools
    assert (use.name, use.arguments) == ("count", {"n": 3})


@on_stage
async def test_an_answer_that_breaks_off_is_an_error_with_what_had_come(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [begins(says("Paris is"))]
    spec = TargetSpec(name="acme", model="acme/m", stream=True)
    (result, *_) = (await stage.run(targets=(spec,), cases=("france",))).results
    assert result.status == "execution_error"
    assert result.observation.error
    assert result.observation.exchanges


@on_stage
async def test_unsupported_request_is_an_error_before_anything_is_sent(stage: EvalStage, upstream: Upstream) -> None:
    spec = TargetSpec(name="acme", model="acme/m", effort="sideways", max_tokens=1)
    text = "tests: [{id: a, input: [{role: system, content: x}], assertions: [{type: contains, value: x}]}]"
    (result,) = (await stage.run(text, (spec,))).results
    assert (result.status, upstream.seen) == ("execution_error", [])
    assert result.observation.error_code == Code.INVALID_REQUEST.value


@on_stage
async def test_identical_request_is_answered_from_the_cache(stage: EvalStage, upstream: Upstream) -> None:
    first = await stage.run(trials=2, run="e_1")
    assert len(upstream.seen) == 6
    second = await stage.run(trials=2, run="e_2")
    assert len(upstream.seen) == 6
    assert verdicts(second) == verdicts(first)
    assert all(result.cached for result in second.results)
    assert stage.told[-1].cached == 6
    assert stage.told[-1].cost == 0
    pairs = zip(first.results, second.results, strict=True)
    assert all(one.observation.exchanges == two.observation.exchanges for one, two in pairs)
    assert second.results[0].observation.cost == first.results[0].observation.cost
    await stage.run(trials=3, run="e_3")
    assert len(upstream.seen) == 9


@on_stage
async def test_changed_model_temperature_target_or_cache_option_skips_the_cache(
    stage: EvalStage, upstream: Upstream
) -> None:
    await stage.run(run="e_0")
    others = [
        TargetSpec(name="acme", model="acme/other"),
        TargetSpec(name="acme", model="acme/m", temperature=0.1),
        TargetSpec(name="twin", model="acme/m"),
    ]
    for number, spec in enumerate(others, 1):
        await stage.run(targets=(spec,), run=f"e_{number}")
        assert len(upstream.seen) == 3 + 3 * number
    await stage.run(run="e_4", cache=False)
    assert len(upstream.seen) == 15
    await stage.run(CAPITALS + "execution: {cache: false}\n", run="e_5")
    assert len(upstream.seen) == 18


@on_stage
async def test_failed_request_is_not_cached(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [answer(400, b'{"error":{"message":"no"}}')]
    await stage.run(run="e_1")
    upstream.script = [knows(upstream, {"France": "Paris"})]
    second = await stage.run(run="e_2")
    assert not any(result.cached for result in second.results)
    assert second.results[0].status == "ok"


async def test_a_rate_is_held_however_many_cases_are_under_way(tmp_path: Path) -> None:
    clock = SteppingClock()

    async with open_evals(tmp_path, clock=clock) as (stage, upstream):
        five = asyncio.Event()

        async def noting(talk: Talk) -> None:
            if len(upstream.seen) % 5 == 0:
                five.set()
            await knows(upstream, {})(talk)

        upstream.script = [noting]
        spec = TargetSpec(name="acme", model="acme/m", rpm=5, concurrency=20)
        task = asyncio.ensure_future(stage.run(targets=(spec,), trials=5, cache=False))
        for left in (10, 5, 0):
            await five.wait()
            five.clear()
            await clock.asleep(left)
            assert (len(upstream.seen), len(clock.sleepers)) == (15 - left, left)
            await clock.forward(61)
        assert len((await task).results) == 15


@on_stage
async def test_two_runs_at_once_do_not_disturb_each_other(stage: EvalStage, upstream: Upstream) -> None:
    runs = await asyncio.gather(stage.run(run="e_1", targets=(ACME,)), stage.run(run="e_2", targets=(ACME,)))
    assert verdicts(runs[0]) == verdicts(runs[1])
    third = await stage.run(run="e_3")
    assert all(result.cached for result in third.results)


async def test_a_provider_that_asks_for_a_minute_gets_it_and_no_case_is_lost(tmp_path: Path) -> None:
    clock = FakeClock()

    async with open_evals(tmp_path, clock=clock) as (stage, upstream):
        storm = answer(429, b'{"error":{"message":"slow down"}}', [("Retry-After", "60")])
        upstream.script = [storm, knows(upstream, {"France": "Paris", "Italy": "Rome", "Spain": "Madrid"})]
        standing = await stage.run(workers=1)
        assert (verdicts(standing), len(upstream.seen)) == (dict.fromkeys(("france", "italy", "spain"), "pass"), 4)
        assert clock.waits == [60]


async def test_a_cached_answer_took_as_long_as_its_own_attempt(tmp_path: Path) -> None:
    clock = FakeClock()

    async with open_evals(tmp_path, clock=clock) as (stage, upstream):
        storm = answer(429, b'{"error":{"message":"slow down"}}', [("Retry-After", "60")])
        upstream.script = [storm, knows(upstream, {"France": "Paris", "Italy": "Rome", "Spain": "Madrid"})]
        first = await stage.run(workers=1)
        again = await stage.run(workers=1, run="e_2")
        assert all(result.cached for result in again.results)
        took = [[result.observation.seconds or 0.0 for result in run.results] for run in (first, again)]
        assert max(map(max, took)) < 5
        assert clock.waits == [60]


async def test_retry_after_of_an_hour_is_not_waited_for(tmp_path: Path) -> None:
    clock = FakeClock()

    async with open_evals(tmp_path, clock=clock) as (stage, upstream):
        upstream.script = [answer(429, b'{"error":{"message":"come back"}}', [("Retry-After", "3600")])]
        standing = await stage.run(workers=1)
        assert {result.observation.error_code for result in standing.results} == {"rate_limited"}
        assert (len(upstream.seen), clock.waits) == (1, [])


async def test_a_storm_on_one_target_does_not_keep_another_waiting(tmp_path: Path) -> None:
    clock = SteppingClock()

    async with open_evals(tmp_path, clock=clock) as (stage, upstream):
        calm = asyncio.Event()

        async def model(talk: Talk) -> None:
            is_stormy = upstream.seen[-1].json()["model"] == "storm"
            refused = answer(429, b'{"error":{"message":"slow down"}}', [("Retry-After", "60")])
            await (refused if is_stormy else knows(upstream, {}))(talk)
            if [seen.json()["model"] for seen in upstream.seen].count("m") == 3:
                calm.set()

        upstream.script = [model]
        storm = TargetSpec(name="storm", model="acme/storm", concurrency=1)
        task = asyncio.ensure_future(stage.run(targets=(storm, ACME), cache=False))
        await calm.wait()  # all that the other one has, while this one still waits for its first
        await clock.asleep(1)
        assert [seen.json()["model"] for seen in upstream.seen].count("storm") == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def replay(**more: object) -> TargetSpec:
    return TargetSpec(name="acme", model="acme/m", **{"replay": "session:eval:e_1", **more})  # type: ignore[arg-type]


@on_stage
async def test_replay_target_answers_from_the_record_without_requests(stage: EvalStage, upstream: Upstream) -> None:
    first = await stage.run(trials=2, workers=1, cache=False)
    asked = len(upstream.seen)
    again = await stage.run(targets=(replay(),), trials=2, run="e_2")
    assert table(again) == table(first)
    assert len(upstream.seen) == asked
    pairs = zip(first.results, again.results, strict=True)
    assert all(one.observation.exchanges == two.observation.exchanges for one, two in pairs)
    assert all(result.cached for result in again.results)


@on_stage
async def test_a_miss_is_loud_and_names_the_nearest_recording(stage: EvalStage, upstream: Upstream) -> None:
    await stage.run()
    asked = len(upstream.seen)
    changed = CAPITALS.replace("What is the capital of France?", "Which is the capital of France?")
    france, *others = (await stage.run(changed, (replay(),), run="e_2")).results
    assert (france.status, {each.status for each in others} <= {"ok", "quality_failure"}) == ("execution_error", True)
    assert "+user: Which is the capital of France?" in france.observation.error
    assert len(upstream.seen) == asked


@on_stage
async def test_replayed_trials_use_recordings_in_order_on_every_run(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [knows(upstream, {"France": f"Paris {number}"}) for number in (1, 2)]
    await stage.run(trials=2, workers=1, cases=("france",), cache=False)
    for run in ("e_2", "e_3"):
        again = await stage.run(targets=(replay(replay=""),), trials=3, cases=("france",), run=run)
        assert [each.observation.text for each in again.results] == ["Paris 1", "Paris 2", "Paris 2"]
