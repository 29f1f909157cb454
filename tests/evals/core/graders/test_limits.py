import pytest

from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.model.reply import Usage
from tests.grading_stage import seen, spec, told

TOOK = CaseObservation(seconds=1.5, cost=0.02, usage=Usage(input_tokens=100, output_tokens=20, cached_tokens=80))


@pytest.mark.parametrize(
    ("grader", "score"),
    [
        (spec("latency", threshold=1500), 1.0),
        (spec("latency", threshold=1499), 0.0),
        (spec("cost", budget=0.02), 1.0),
        (spec("cost", budget=0.01), 0.0),
        (spec("token-usage", max_total=120), 1.0),
        (spec("token-usage", max_total=119), 0.0),
        (spec("token_usage", max_input=100, max_output=20), 1.0),
        (spec("token-usage", max_input=99, max_output=20), 0.0),
    ],
)
def test_what_an_answer_took_is_held_to_its_limit(grader: object, score: float) -> None:
    assert seen(grader, TOOK).score.score == score


@pytest.mark.parametrize(
    ("grader", "observation", "reason"),
    [
        (spec("latency", threshold=1), CaseObservation(), "how long the answer took is not known"),
        (spec("cost", budget=1), CaseObservation(), "what the answer cost is not known"),
        (spec("token-usage", max_total=5), CaseObservation(), "not known: total"),
        (
            spec("token-usage", max_total=9, max_output=9),
            CaseObservation(usage=Usage(output_tokens=1)),
            "not known: total",
        ),
    ],
)
def test_what_is_not_known_is_not_graded(grader: object, observation: CaseObservation, reason: str) -> None:
    score = seen(grader, observation).score
    assert (score.verdict, score.score, score.reason) == ("not_graded", None, reason)


def test_what_is_over_its_limit_fails_whatever_else_is_not_known() -> None:
    score = seen(spec("token-usage", max_total=9, max_output=9), CaseObservation(usage=Usage(output_tokens=10))).score
    assert (score.verdict, score.score) == ("fail", 0.0)


def test_a_limit_has_to_be_given() -> None:
    assert told(spec("latency")) == [("", 'the grader latency lacks the key "threshold"')]
    assert told(spec("cost", budget=-1)) == [("budget", "budget must be a number, 0 or more, not -1")]
    assert told(spec("token-usage")) == [("", "no limit is given")]
    assert told(spec("execution-metrics", exploration_tolerance=0.1)) == [("", "no limit is given")]


RUN = CaseObservation(
    tools=(ToolUse(name="read"), ToolUse(name="Edit"), ToolUse(name="Grep"), ToolUse(name="Bash")),
    usage=Usage(input_tokens=100, output_tokens=20),
    cost=0.5,
    seconds=2.0,
    requests=3,
)


def test_the_score_is_the_part_of_the_limits_that_held() -> None:
    grader = spec(
        "execution-metrics", max_tool_calls=4, max_llm_calls=2, max_tokens=120, max_cost_usd=0.1, max_duration_ms=2000
    )
    score = seen(grader, RUN).score
    assert (score.score, score.verdict) == (0.6, "fail")
    assert score.details["tool_calls"] == 4


@pytest.mark.parametrize(
    ("wanted", "tolerance", "held"), [(0.5, None, 1.0), (0.8, None, 0.0), (0.8, 0.31, 1.0), (0.5, 0, 1.0)]
)
def test_the_part_of_calls_that_explore(wanted: float, tolerance: float | None, held: float) -> None:
    config = {"target_exploration_ratio": wanted}
    if tolerance is not None:
        config["exploration_tolerance"] = tolerance
    assert seen(spec("execution-metrics", **config), RUN).score.score == held


def test_no_tool_calls_scores_zero_exploration() -> None:
    assert seen(spec("execution_metrics", target_exploration_ratio=0), CaseObservation()).score.score == 0.0


def test_what_is_not_known_of_a_run_is_not_graded() -> None:
    score = seen(
        spec("execution-metrics", max_tool_calls=1, max_cost_usd=1, max_duration_ms=1), CaseObservation()
    ).score
    assert (score.verdict, score.reason) == ("not_graded", "not known: cost_usd, duration_ms")


def test_what_is_not_known_of_a_program_is_not_0() -> None:
    for limit in ({"max_tool_calls": 3}, {"max_llm_calls": 3}, {"target_exploration_ratio": 0}):
        score = seen(spec("execution-metrics", **limit), CaseObservation(is_traced=False, seconds=1.0)).score
        assert (score.verdict, score.reason[:10]) == ("not_graded", "not known:")
    timed = spec("execution-metrics", max_duration_ms=2000)
    assert seen(timed, CaseObservation(is_traced=False, seconds=1.0)).score.verdict == "pass"
