import json

import msgspec

from sightline.evals.core.exports import row_of, to_index
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Check, Score
from sightline.model.reply import Usage
from tests.evals.core.rows import failed, row


def test_a_row_has_agentvs_names() -> None:
    grader = Score(
        name="exact",
        type="equals",
        verdict="pass",
        score=1.0,
        weight=2.0,
        checks=(Check("is 4", True), Check("is short", True, "1 letter")),
        usage=Usage(input_tokens=1, output_tokens=1, cached_tokens=1, reasoning_tokens=0),
        seconds=0.5,
        scores=(Score(name="inner", type="contains", verdict="pass", score=1.0),),
    )
    seen = CaseObservation(text="4", usage=Usage(input_tokens=9, output_tokens=2), cost=0.01, seconds=1.2345)
    (line,) = to_index([row("x", 1.0, group="talk", scores=(grader,), seen=seen)]).splitlines()
    assert json.loads(line) == {
        "timestamp": "2023-11-14T22:13:20.000Z",
        "test_id": "x",
        "suite": "demo",
        "conversation_id": "talk",
        "score": 1.0,
        "target": "a",
        "token_usage": {"input": 9, "output": 2},
        "cost_usd": 0.01,
        "duration_ms": 1234,
        "scores": [
            {
                "name": "exact",
                "type": "equals",
                "score": 1.0,
                "weight": 2.0,
                "verdict": "pass",
                "assertions": [
                    {"text": "is 4", "passed": True},
                    {"text": "is short", "passed": True, "evidence": "1 letter"},
                ],
                "token_usage": {"input": 1, "output": 1, "cached": 1, "reasoning": 0},
                "duration_ms": 500,
                "scores": [
                    {
                        "name": "inner",
                        "type": "contains",
                        "score": 1.0,
                        "weight": 1.0,
                        "verdict": "pass",
                        "assertions": [],
                    }
                ],
            }
        ],
        "execution_status": "ok",
    }


def test_a_poor_answer_is_a_quality_failure() -> None:
    made = row_of(row("x", 0.0, trial=2))
    assert (made["execution_status"], made["score"], made["sample_index"]) == ("quality_failure", 0.0, 2)
    assert "cost_usd" not in made
    assert "duration_ms" not in made


def test_what_was_not_measured_is_an_execution_error_which_agentv_leaves_out_of_its_means() -> None:
    lost = Score(name="judge", type="llm-grader", verdict="not_graded")
    cases = [
        (failed("x"), "agent", "provider_error", "connection reset"),
        (failed("x", ""), "agent", "provider_error", "the target gave no answer"),
        (row("x", None, scores=(lost,), reason="no JSON"), "evaluator", "evaluator_error", "no JSON"),
        (row("x", None), "evaluator", "evaluator_error", "the answer could not be graded"),
        (row("x", None, verdict="skip", status="skipped"), "setup", "dependency_failed", "not run"),
    ]
    for result, stage, code, error in cases:
        made = row_of(result)
        assert made["execution_status"] == "execution_error"
        assert (made["failure_stage"], made["failure_reason_code"], made["error"]) == (stage, code, error)
        assert made["score"] == 0
    (grader,) = row_of(cases[2][0])["scores"]
    assert (grader["verdict"], grader["score"]) == ("skip", 0)


def test_half_a_count_is_no_count() -> None:
    assert "token_usage" not in row_of(row("x", 1.0, seen=CaseObservation(usage=Usage(input_tokens=3))))


def graded(score: CaseScore) -> CaseResult:
    return msgspec.structs.replace(row("talk", 1.0), score=score)


def test_of_a_conversation_there_is_a_row_for_each_turn_and_one_for_the_whole() -> None:
    passed = Score(name="a", type="contains", verdict="pass", score=1.0, checks=(Check("says a", True),))
    poor = Score(name="b", type="contains", verdict="fail", score=0.0, checks=(Check("says b", False),))
    turns = (CaseScore(verdict="pass", score=1.0, scores=(passed,)), CaseScore(verdict="not_graded"))
    told = row_of(graded(CaseScore(verdict="fail", score=0.5, scores=(passed, poor), turns=turns)))
    assert [(each["name"], each["score"], each["verdict"]) for each in told["scores"]] == [
        ("turn-1", 1.0, "pass"),
        ("turn-2", 0, "skip"),
        ("conversation", 0.5, "fail"),
    ]
    assert told["scores"][2]["assertions"] == [{"text": "says a", "passed": True}, {"text": "says b", "passed": False}]
    alone = row_of(graded(CaseScore(verdict="pass", score=1.0, turns=turns[:1])))
    assert [each["name"] for each in alone["scores"]] == ["turn-1"]
    free = (Score(name="a", type="contains", verdict="pass", score=1.0, weight=0.0),)
    weightless = row_of(graded(CaseScore(verdict="pass", score=1.0, scores=free, turns=turns[:1])))
    assert weightless["scores"][1]["score"] == 0


def test_a_whole_that_could_not_be_graded_is_no_fail_and_no_pass() -> None:
    passed = Score(name="a", type="contains", verdict="pass", score=1.0)
    lost = Score(name="b", type="llm-grader", verdict="not_graded", reason="no judge")
    turn = CaseScore(verdict="pass", score=1.0, scores=(passed,))
    told = row_of(graded(CaseScore(verdict="not_graded", scores=(passed, lost), turns=(turn,))))
    whole = told["scores"][-1]
    assert (whole["name"], whole["score"], whole["verdict"]) == ("conversation", 1.0, "skip")
    light = Score(name="b", type="llm-grader", verdict="not_graded", weight=0.0)
    told = row_of(graded(CaseScore(verdict="pass", score=1.0, scores=(passed, light), turns=(turn,))))
    assert told["scores"][-1]["verdict"] == "pass"
