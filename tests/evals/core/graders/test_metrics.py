import pytest

from sightline.evals.core.result import CaseObservation, ToolUse
from sightline.model.usage import Usage
from tests.grading_stage import seen, spec, told

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


def test_who_calls_no_tool_explores_nothing() -> None:
    assert seen(spec("execution_metrics", target_exploration_ratio=0), CaseObservation()).score.score == 0.0


def test_what_is_not_known_is_not_graded() -> None:
    score = seen(
        spec("execution-metrics", max_tool_calls=1, max_cost_usd=1, max_duration_ms=1), CaseObservation()
    ).score
    assert (score.verdict, score.reason) == ("not_graded", "not known: cost_usd, duration_ms")


def test_a_limit_has_to_be_given() -> None:
    assert told(spec("execution-metrics", exploration_tolerance=0.1)) == [("", "no limit is given")]


def test_what_is_not_known_of_a_program_is_not_0() -> None:
    for limit in ({"max_tool_calls": 3}, {"max_llm_calls": 3}, {"target_exploration_ratio": 0}):
        score = seen(spec("execution-metrics", **limit), CaseObservation(is_traced=False, seconds=1.0)).score
        assert (score.verdict, score.reason[:10]) == ("not_graded", "not known:")
    timed = spec("execution-metrics", max_duration_ms=2000)
    assert seen(timed, CaseObservation(is_traced=False, seconds=1.0)).score.verdict == "pass"
