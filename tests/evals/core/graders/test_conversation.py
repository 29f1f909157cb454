import pytest

from sightline.evals.core.graders.grade import NOT_HELD, as_one, together
from sightline.evals.core.result import CaseObservation, CaseScore, Score, ToolUse
from sightline.model.usage import Usage
from tests.grading_stage import message

GOOD, POOR = CaseScore(verdict="pass", score=1.0), CaseScore(verdict="fail", score=0.4)
NOBODY = CaseScore(verdict="skip")
SILENT = CaseScore(verdict="not_graded", reason="no judge")


@pytest.mark.parametrize(
    ("aggregation", "score", "verdict"), [("mean", 0.7, "fail"), ("min", 0.4, "fail"), ("max", 1.0, "pass")]
)
def test_turns_count_by_their_mean_or_by_the_worst_or_the_best(aggregation: str, score: float, verdict: str) -> None:
    found = together([GOOD, POOR], None, aggregation, 0.8)
    assert (found.score, found.verdict, found.turns) == (pytest.approx(score), verdict, (GOOD, POOR))


def test_the_whole_counts_as_one_more_turn() -> None:
    whole = CaseScore(verdict="pass", score=1.0, scores=(Score(name="a", type="b", verdict="pass", score=1.0),))
    found = together([GOOD, POOR], whole, "mean", 0.8)
    assert (found.score, found.verdict, found.scores) == (pytest.approx(0.8), "pass", whole.scores)


def test_a_turn_that_was_not_held_counts_as_nothing_reached_and_never_as_a_pass() -> None:
    found = together([GOOD, POOR], None, "mean", 0.8, not_held=2)
    assert found.score == pytest.approx(0.35)
    assert found.turns == (GOOD, POOR, NOT_HELD, NOT_HELD)
    assert found.reason == "2 turns were not held"
    assert together([GOOD], None, "max", 0.8, not_held=1).verdict == "fail"


def test_a_turn_that_nobody_wanted_to_grade_is_not_counted() -> None:
    assert together([NOBODY, POOR], None, "mean", 0.8).score == 0.4
    assert together([NOBODY], None, "mean", 0.8).verdict == "skip"


def test_a_turn_that_could_not_be_graded_leaves_the_conversation_not_graded() -> None:
    found = together([GOOD, SILENT], SILENT, "max", 0.8)
    assert (found.verdict, found.score, found.reason) == ("not_graded", None, "no judge; no judge")


FIRST = CaseObservation(
    asked=(message("system", "be kind"), message("user", "hi")),
    messages=(message("assistant", "ho"),),
    text="ho",
    tools=(ToolUse(name="a"),),
    usage=Usage(input_tokens=10, output_tokens=1),
    cost=0.1,
    seconds=1.0,
    exchanges=("e1",),
)
SECOND = CaseObservation(
    asked=(message("assistant", "ho"), message("user", "bye")),
    messages=(message("assistant", "see you"),),
    text="see you",
    usage=Usage(input_tokens=20),
    cost=0.2,
    seconds=2.0,
    requests=2,
    exchanges=("e2",),
)


def test_a_conversation_is_one_observation_whose_words_are_all_of_it() -> None:
    whole = as_one([FIRST, SECOND])
    assert whole.text == "system: be kind\n\nuser: hi\n\nassistant: ho\n\nuser: bye\n\nassistant: see you"
    assert (whole.requests, whole.exchanges, [use.name for use in whole.tools]) == (3, ("e1", "e2"), ["a"])
    assert (whole.cost, whole.seconds) == (pytest.approx(0.3), 3.0)
    assert whole.usage == Usage(input_tokens=30)


def test_what_is_not_known_of_a_turn_is_not_known_of_the_whole() -> None:
    whole = as_one([FIRST, CaseObservation(asked=(message("user", "bye"),), error="gone", error_code="network")])
    assert (whole.cost, whole.seconds, whole.usage, whole.error) == (None, None, None, "gone")
    assert whole.text.endswith("assistant: ho\n\nuser: bye")
    assert as_one([FIRST]).usage == FIRST.usage
