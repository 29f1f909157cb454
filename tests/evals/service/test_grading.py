import asyncio
import json
import os
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.target import TargetSpec
from sightline.evals.service import processes as module
from sightline.evals.service.processes import Process, ProcessResult, PythonGraders
from tests.agent.tools.processes import is_gone
from tests.eval_stage import ACME, EvalStage, on_stage, open_evals, replies
from tests.fake_clock import FakeClock
from tests.loop_stage import says
from tests.upstream import Upstream, answer

PARROT = TargetSpec(name="parrot", mock="Paris")
JUDGED = """
tests:
  - id: a
    criteria: It names the capital.
    input: France?
    assertions: [{{type: llm-grader, {more}}}]
"""


def case(*graders: str, file: str = "") -> str:
    lines = "".join(f"      - {each}\n" for each in graders)
    return f"tests:\n  - id: a\n    input: France?\n    assertions:\n{lines}"


def verdict(score: float) -> str:
    return json.dumps({"score": score, "assertions": [{"text": "it does", "passed": True, "evidence": "Paris"}]})


@on_stage
async def test_judge_requests_use_the_same_engine(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda body: says(verdict(1.0) if len(body["messages"]) > 1 else "Paris"))]
    (result,) = (await stage.run(JUDGED.format(more="name: judge"))).results
    (score,) = result.score.scores
    assert (score.verdict, score.score) == ("pass", 1.0)
    assert score.cost
    asked = upstream.seen[1].json()
    assert asked["response_format"]["type"] == "json_schema"
    await stage.stage.store.settle()
    (received, *_) = await stage.stage.store.facts(score.exchanges[0])
    assert received.fact.session == "eval:e_1"  # type: ignore[union-attr]
    assert stage.told[-1].cost == (result.observation.cost or 0) + score.cost


@on_stage
async def test_another_target_or_model_can_judge(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda _: says(verdict(1.0)))]
    judge = TargetSpec(name="judge", mock=verdict(0.9))
    for run, (more, judges, worth) in enumerate(
        [
            ("target: judge", (judge,), 0.9),
            ("target: acme/m", (), 1.0),
            ("target: acme/m, model: acme/other, temperature: 0", (), 1.0),
        ]
    ):
        (result,) = (await stage.run(JUDGED.format(more=more), (PARROT,), judges=judges, run=f"e_{run}")).results
        assert result.score.score == worth
    assert [seen.json()["model"] for seen in upstream.seen] == ["m", "other"]
    assert upstream.seen[1].json()["temperature"] == 0
    (result,) = (
        await stage.run(JUDGED.format(more="name: x"), (PARROT,), judges=(judge,), judge="judge", run="e")
    ).results
    assert result.score.score == 0.9
    own = TargetSpec(name="parrot", mock="Paris", judge="judge")
    (result,) = (await stage.run(JUDGED.format(more="name: x"), (own,), judges=(judge,), run="e_8")).results
    assert result.score.score == 0.9


@on_stage
async def test_recorded_judgements_judge_again(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda _: says(verdict(0.9)))]
    text = JUDGED.format(more="target: judge")
    await stage.run(text, (PARROT,), judges=(TargetSpec(name="judge", model="acme/m"),), cache=False)
    recorded = TargetSpec(name="judge", model="acme/m", replay="session:eval:e_1")
    (result,) = (await stage.run(text, (PARROT,), judges=(recorded,), run="e_2")).results
    assert (result.score.score, result.score.reason, len(upstream.seen)) == (0.9, "", 1)


@on_stage
async def test_a_judge_that_is_not_there_fails_or_talks_nonsense_leaves_a_case_ungraded(
    stage: EvalStage, upstream: Upstream
) -> None:
    (result,) = (await stage.run(JUDGED.format(more="name: x"), (PARROT,))).results
    assert (result.status, result.score.verdict) == ("not_graded", "not_graded")
    assert "there is no judge for what parrot says" in result.score.reason
    upstream.script = [answer(400, b'{"error":{"message":"not today"}}')]
    (result,) = (await stage.run(JUDGED.format(more="target: acme/m"), (PARROT,), run="e_2")).results
    assert "not today" in result.score.reason
    upstream.script = [replies(upstream, lambda _: says("It is fine, I think."))]
    (result,) = (await stage.run(JUDGED.format(more="target: acme/m"), (PARROT,), run="e_3")).results
    assert "not understood, twice" in result.score.reason
    assert len(result.score.scores[0].exchanges) == 2
    assert stage.told[-1].not_graded == 1


async def test_a_command_grades_with_the_case_on_its_input(tmp_path: Path) -> None:
    grader = """
import json, os, sys
case = json.load(sys.stdin)
assert "ACME_KEY" not in os.environ
checks = [{"text": case["question"], "passed": True}]
print(json.dumps({"score": float(case["output"] == "Paris"), "assertions": checks}))
"""

    environment = {"PATH": "/usr/bin:/bin", "ACME_KEY": "k"}
    async with open_evals(tmp_path, environment=environment, secrets=frozenset({"ACME_KEY"})) as (stage, _):
        (stage.root / "grade.py").write_text(grader)
        text = case('{type: code-grader, command: ["{python}", grade.py]}')
        (result,) = (await stage.run(text, (PARROT,))).results
        (score,) = result.score.scores
        assert (score.score, score.checks[0].text) == (1.0, "France?"), score.reason


ASKING = """
import json, os, sys, urllib.error, urllib.request
case = json.load(sys.stdin)
assert "ACME_KEY" not in os.environ
url, token = os.environ["AGENTV_TARGET_PROXY_URL"], os.environ["AGENTV_TARGET_PROXY_TOKEN"]
def ask(question, target=None):
    body = json.dumps({"question": question, "systemPrompt": "Be brief.", "target": target}).encode()
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + "/invoke", body, headers)) as told:
        return json.load(told)["rawText"]
answers = [ask("Is " + case["output"] + " right?"), ask("x", "parrot")]
checks = [{"text": each, "passed": True} for each in answers]
try:
    ask("once too often")
except urllib.error.HTTPError as error:
    checks.append({"text": str(error.code), "passed": True})
print(json.dumps({"score": 1, "assertions": checks}))
"""


async def test_a_command_asks_the_judge_through_the_same_engine_and_never_sees_its_key(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "ACME_KEY": "k"}
    secrets = frozenset({"ACME_KEY"})
    async with open_evals(tmp_path, environment=environment, secrets=secrets, make_token=lambda: "t") as (
        stage,
        upstream,
    ):
        upstream.script = [replies(upstream, lambda body: says("It is." if len(body["messages"]) > 1 else "Paris"))]
        (stage.root / "grade.py").write_text(ASKING)
        text = case('{type: code-grader, command: ["{python}", grade.py], target: {max_calls: 2}}')
        (result,) = (await stage.run(text, (PARROT,), judges=(ACME,), judge="acme")).results
        (score,) = result.score.scores
        assert [check.text for check in score.checks] == ["It is.", "Paris", "429"], score.reason
        (body,) = [seen.json() for seen in upstream.seen]
        assert [each["role"] for each in body["messages"]] == ["system", "user"]
        assert str(body["messages"][1]["content"]) == "Is Paris right?"
        await stage.stage.store.settle()
        (received, *_) = await stage.stage.store.facts(score.exchanges[0])
        assert received.fact.session == "eval:e_1"  # type: ignore[union-attr]
        assert stage.told[-1].cost > 0
        (result,) = (await stage.run(text, (PARROT,), run="e_2")).results
        assert "there is no judge for what parrot says" in result.score.reason


@on_stage
async def test_what_goes_wrong_with_a_grader_leaves_that_one_alone_without_a_word(stage: EvalStage) -> None:
    (stage.root / "g.py").write_text("def broken(case): raise ValueError('no')\nasync def good(case): return 1\n")
    text = case(
        "{type: contains, value: Paris}",
        "{type: code-grader, name: slow, command: sleep 600, timeout_seconds: 0.2}",
        "{type: code-grader, name: proxy, command: 'true', target: true}",
        "{type: code-grader, name: folder, command: 'true', cwd: nowhere}",
        "{type: code-grader, name: broken, python: 'g.py:broken'}",
        "{type: code-grader, name: good, python: 'g.py:good'}",
        "{type: code-grader, name: missing, python: 'no.py:good'}",
        "{type: llm-grader, name: prompt, prompt: 'file://no.md', target: parrot}",
    )
    (result,) = (await stage.run(text, (PARROT,))).results
    told = {score.name: (score.verdict, score.reason) for score in result.score.scores}
    assert [name for name, (verdict, _) in told.items() if verdict == "pass"] == ["contains-Paris", "good"]
    for name, words in (
        ("slow", "took longer than 0.2 s"),
        ("proxy", "cannot call a model from here"),
        ("folder", "there is no folder 'nowhere'"),
        ("broken", "ValueError: no"),
        ("missing", "there is no file no.py"),
        ("prompt", "there is no file no.md"),
    ):
        assert told[name][0] == "not_graded"
        assert words in told[name][1]
    assert (result.score.verdict, result.status) == ("not_graded", "not_graded")


@on_stage
async def test_files_of_a_prompt_are_found_beside_the_suite_or_above(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda _: says(verdict(1.0)))]
    (stage.root / "judge.md").write_text("Is this good: {{ output }}?")
    text = case("{type: llm-grader, prompt: 'file://judge.md', target: acme}")
    (result,) = (await stage.run(text, (PARROT,), judges=(ACME,))).results
    assert result.score.verdict == "pass"
    assert "Is this good:" in str(upstream.seen[0].json()["messages"][-1]["content"])


@on_stage
async def test_cached_judgement_costs_nothing(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [replies(upstream, lambda body: says(verdict(1.0) if len(body["messages"]) > 1 else "Paris"))]
    await stage.run(JUDGED.format(more="name: judge"))
    (result,) = (await stage.run(JUDGED.format(more="name: judge"), run="e_2")).results
    assert (len(upstream.seen), result.score.scores[0].cost, stage.told[-1].cost) == (2, 0.0, 0.0)
    await stage.resume("e_2")
    assert stage.told[-1].cost == 0.0


FILE = """
import os
from dataclasses import dataclass
print("words for people")
calls = 0

@dataclass
class Verdict:
    score: float
    reason: str

def count(case):
    global calls
    calls += 1
    return {"score": 1, "details": {"calls": calls, "pid": os.getpid(), "got": case["x"]}}

async def verdict(case):
    return Verdict(0.5, "half")

def true(case): return True
def wrong(case): return object()
def slow(case):
    import time
    time.sleep(600)
def ends(case): os._exit(3)
"""


async def test_functions_are_called_in_a_process_that_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "g.py"
    file.write_text(FILE)
    graders = PythonGraders({"PATH": "/usr/bin:/bin"})
    try:
        first = await graders.call(file, "count", {"x": [1]}, 60)
        second = await graders.call(file, "count", {"x": None}, 60)
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert (first["details"]["calls"], second["details"]["calls"]) == (1, 2)  # type: ignore[call-overload,index]
        assert first["details"]["got"] == [1]  # type: ignore[call-overload,index]
        assert await graders.call(file, "verdict", {}, 60) == {"score": 0.5, "reason": "half"}
        assert await graders.call(file, "true", {}, 60) is True
        for function, words in (
            ("wrong", "TypeError"),
            ("ends", "its process is gone"),
            ("none", "no function none"),
        ):
            with pytest.raises(Fault, match=words):
                await graders.call(file, function, {}, 60)
        with pytest.raises(Fault, match=r"took longer than 0\.3 s"):
            await graders.call(file, "slow", {}, 0.3)
    finally:
        await graders.close()


async def test_a_file_that_cannot_be_loaded_says_where(tmp_path: Path) -> None:
    file = tmp_path / "g.py"
    file.write_text("x = 1\nimport nothing_like_it\n")
    graders = PythonGraders({"PATH": "/usr/bin:/bin"})
    with pytest.raises(Fault, match=r"g\.py:2: ModuleNotFoundError"):
        await graders.call(file, "f", {}, 60)
    await graders.close()


ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def ran(argv: tuple[str, ...], folder: Path, **more: object) -> ProcessResult:
    async def run() -> ProcessResult:
        settings = {"timeout": 30.0, "environment": ENVIRONMENT, **more}
        return await Process(FakeClock()).run(argv, folder=folder, **settings)  # type: ignore[arg-type]

    return asyncio.run(run())


def test_complete_output_of_a_command_is_read(tmp_path: Path) -> None:
    ended = ran(("sh", "-c", "cat; head -c 200000 /dev/zero; echo no >&2; exit 3"), tmp_path, given=b"hi")
    assert (ended.code, len(ended.output), ended.output[:2], ended.complaints) == (3, 200_002, b"hi", b"no\n")


def test_missing_command_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="no-such-program cannot be run: No such file") as caught:
        ran(("no-such-program",), tmp_path)
    assert caught.value.code is Code.CONFIG
    with pytest.raises(Fault, match="null byte"):
        ran(("sh", "a\0b"), tmp_path)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > child; wait"
    with pytest.raises(Fault, match=r"took longer than 2 s"):
        ran(("sh", "-c", script), tmp_path, timeout=2.0)
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_command_that_writes_without_end_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OUTPUT", 1000)
    with pytest.raises(Fault, match="writes more than"):
        ran(("sh", "-c", "head -c 5000 /dev/zero"), tmp_path)


async def test_what_runs_is_ended_by_closing(tmp_path: Path) -> None:
    process = Process(FakeClock())
    os.mkfifo(tmp_path / "begun")
    task = asyncio.ensure_future(
        process.run(("sh", "-c", "echo > begun; sleep 600"), folder=tmp_path, environment=ENVIRONMENT, timeout=600)
    )
    await asyncio.to_thread((tmp_path / "begun").read_text)
    await process.close()
    assert (await task).code < 0
