import subprocess
import sys

import pytest

from sightline.errors import Fault
from sightline.evals.core.graders.steps import PYTHON, Execute, Executed, FileContent
from tests.grading_stage import BROKEN, seen, spec, told

NEVER_ENDS = "(a+)+$"


def run(step: Execute) -> Executed:
    """What the command of a step really does."""
    assert step.argv[0] == PYTHON
    ended = subprocess.run([sys.executable, *step.argv[1:]], input=step.stdin, capture_output=True, check=False)
    return Executed(code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr, seconds=0.1)


@pytest.mark.parametrize(
    ("value", "flags", "answer", "score"),
    [
        (r"\d{4}-\d{2}", "", "due 2025-01", 1.0),
        ("PARIS", "", "Paris", 0.0),
        ("PARIS", "i", "Paris", 1.0),
        ("^b$", "", "a\nb\nc", 0.0),
        ("^b$", "mg", "a\nb\nc", 1.0),
        ("a.b", "s", "a\nb", 1.0),
        (r"(?<year>\d{4})", "u", "in 2025", 1.0),
        (r"(?<=\$)\d+", "", "for $5", 1.0),
    ],
)
def test_patterns_that_fit_or_do_not(value: str, flags: str, answer: str, score: float) -> None:
    config = {"value": value, "flags": flags} if flags else {"value": value}
    assert seen(spec("regex", **config), answer).score.score == score


def test_what_fitted_is_the_evidence() -> None:
    assert seen(spec("regex", value=r"\d+"), "in 2025").score.checks[0].evidence == "2025"


def test_a_pattern_that_may_never_end_is_looked_for_by_a_command_that_can_be_stopped() -> None:
    assert (
        seen(spec("regex", value=NEVER_ENDS), "b" * 10_000 + "\udc00é", answers=[BROKEN]).score.verdict == "not_graded"
    )


@pytest.mark.parametrize(("answer", "score"), [("aaa", 1.0), ("aab", 0.0), ("é\udc00\naa", 1.0)])
def test_the_command_finds_what_would_have_been_found_here(answer: str, score: float) -> None:
    grader = spec("regex", value=NEVER_ENDS)
    (step,) = seen(grader, answer, answers=[BROKEN]).steps
    assert isinstance(step, Execute)
    assert (step.timeout, seen(grader, answer, answers=[run(step)]).score.score) == (5.0, score)


@pytest.mark.parametrize(
    "ended", [Executed(code=1, stderr=b"boom"), Executed(code=0, stdout=b"?"), Executed(code=0, stdout=b"5")]
)
def test_a_command_that_breaks_down_leaves_it_not_graded(ended: Executed) -> None:
    score = seen(spec("regex", value=NEVER_ENDS), "aaa", answers=[ended]).score
    assert (score.verdict, score.score) == ("not_graded", None)


def test_another_answer_is_the_drivers_mistake() -> None:
    with pytest.raises(Fault, match="Execute was answered by FileContent"):
        seen(spec("regex", value=NEVER_ENDS), "aaa", answers=[FileContent(b"")])


def test_what_is_no_pattern_is_told() -> None:
    assert told(spec("regex", value="(")) == [
        ("value", "this is no pattern: missing ), unterminated subpattern at position 0")
    ]
    assert told(spec("regex", value="a", flags="iy")) == [("flags", "there is no flag 'y'")]
