"""Rows of a run."""

import msgspec

from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore


def test_case_target_and_trial_make_a_row_one_of_a_kind() -> None:
    result = CaseResult(
        case="a", target="t", trial=2, status="ok", score=CaseScore(verdict="pass"), observation=CaseObservation()
    )
    assert result.key == ("a", "t", 2)


def test_a_row_is_read_back_as_it_was_written() -> None:
    result = CaseResult(
        case="a",
        target="t",
        status="ok",
        score=CaseScore(verdict="pass", score=1.0),
        observation=CaseObservation(text="x"),
    )
    assert msgspec.json.decode(msgspec.json.encode(result), type=CaseResult) == result
