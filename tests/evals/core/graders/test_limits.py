import pytest

from sightline.evals.core.result import CaseObservation
from sightline.model.usage import Usage
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
