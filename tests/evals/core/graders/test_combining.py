import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.finding import combine_scores
from sightline.evals.core.result import Score, Verdict


def score(
    value: float | None, weight: float = 1.0, required: float | None = None, verdict: Verdict | None = None
) -> Score:
    said = verdict or ("not_graded" if value is None else "pass" if value >= 0.8 else "fail")
    return Score(name="g", type="t", verdict=said, score=value, weight=weight, required=required, reason="why")


@pytest.mark.parametrize(
    ("scores", "verdict", "value"),
    [
        ([score(1.0), score(0.5)], "fail", 0.75),
        ([score(1.0, 3.0), score(0.5)], "pass", 0.875),
        ([score(1.0), score(0.5, required=0.6)], "fail", 0.0),
        ([score(1.0), score(0.6, required=0.6)], "pass", 0.8),
        ([score(1.0), score(None)], "not_graded", None),
        ([score(0.0), score(None)], "not_graded", None),
        ([score(1.0), score(None, 0.0)], "pass", 1.0),
        ([score(1.0), score(None, 0.0, required=0.8)], "not_graded", None),
        ([score(1.0), score(None, 0.0, required=0.0)], "not_graded", None),
        ([score(0.1, required=0.8), score(None, required=0.8)], "not_graded", None),
        ([score(None, 0.0)], "skip", None),
        ([score(None)], "not_graded", None),
        ([score(None), score(None, verdict="skip")], "not_graded", None),
        ([score(None, verdict="skip")], "skip", None),
        ([], "skip", None),
        ([score(1.0, 0.0)], "skip", None),
        ([score(0.0, 0.0, required=0.5)], "fail", 0.0),
        ([score(0.2, 0.0), score(1.0)], "pass", 1.0),
    ],
)
def test_what_graders_say_together(scores: list[Score], verdict: str, value: float | None) -> None:
    found = combine_scores(scores, 0.8)
    assert (found.verdict, found.score, found.scores) == (verdict, value, tuple(scores))


def test_the_reason_names_who_could_not_tell() -> None:
    assert combine_scores([score(1.0), score(None, 0.0)], 0.8).reason == "left out: g: why"
    assert combine_scores([score(None, 0.0)], 0.8).reason == "no grader has any weight; left out: g: why"
    assert combine_scores([score(None)], 0.8).reason == "g: why"
    assert combine_scores([score(None), score(0.1, required=0.5)], 0.8).reason == "g: why; required and not reached: g"
    assert combine_scores([], 0.8).reason == "there is nothing to grade it by"
    assert combine_scores([score(0.1, required=0.5)], 0.8).reason == "required and not reached: g"


PART = st.floats(0, 1)
SCORES = st.lists(st.builds(score, st.none() | PART, st.floats(0, 1e6), st.none() | PART))


@given(SCORES, PART)
def test_a_score_is_from_0_to_1_and_a_case_passes_only_with_one(scores: list[Score], threshold: float) -> None:
    found = combine_scores(scores, threshold)
    assert (found.score is not None) is (found.verdict in ("pass", "fail"))
    assert found.score is None or 0 <= found.score <= 1
    counting = [each for each in scores if each.weight or each.required is not None]
    assert found.verdict != "pass" or all(each.score is not None for each in counting)
    assert (found.verdict == "not_graded") is any(each.score is None for each in counting)
