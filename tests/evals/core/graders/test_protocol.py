import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.command import checks_of, from_command, from_value, score_of
from sightline.evals.core.graders.steps import Executed
from sightline.evals.core.result import Check
from sightline.model.json import Json


def test_a_command_says_its_score_with_what_it_looked_at() -> None:
    found = from_command(
        Executed(
            code=0,
            stdout=b'{"score": 0.5, "assertions": [{"text": "a", "passed": true, "evidence": "e"}, '
            b'{"text": "b", "passed": false}], "reasoning": "so", "details": {"n": 1}}\n',
            seconds=0.2,
        )
    )
    assert (found.score, found.reason, found.details, found.spent.seconds) == (0.5, "so", {"n": 1}, 0.2)
    assert found.checks == (Check("a", True, "e"), Check("b", False))


@pytest.mark.parametrize(
    ("ended", "score", "text"),
    [
        (Executed(code=0, stdout=b"looks fine"), 1.0, "looks fine"),
        (Executed(code=0), 1.0, "exit 0"),
        (Executed(code=0, stdout=b'"fine"'), 1.0, '"fine"'),
        (Executed(code=1, stdout=b"too long"), 0.0, "too long"),
        (Executed(code=3), 0.0, "exit 3"),
    ],
)
def test_plain_words_are_judged_by_the_exit_code(ended: Executed, score: float, text: str) -> None:
    found = from_command(ended)
    assert (found.score, found.checks[0].text) == (score, text)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (Executed(code=1, stderr=b"Traceback"), "the command ended with 1: Traceback"),
        (Executed(code=2, stdout=b'{"score": 1}'), 'the command ended with 2: {"score": 1}'),
        (Executed(code=-9), "the command was ended by signal 9"),
        (Executed(code=137), "the command was ended by signal 9"),
        (Executed(code=0, stdout=b"0.2"), 'an object is expected, not 0.2: write {"score": …}'),
        (Executed(code=0, stdout=b"false"), 'an object is expected, not false: write {"score": …}'),
        (Executed(code=0, stdout=b'{"score": 50}'), "a score from 0 to 1 is expected, not 50"),
        (Executed(code=0, stdout=b"{}"), "a score from 0 to 1 is expected, not nothing"),
        (Executed(code=0, stdout=b'{"score": "1"}'), "a score from 0 to 1 is expected, not '1'"),
        (
            Executed(code=0, stdout=b'{"assertions": [{"text": "a"}]}'),
            "its assertions are not a list of {text, passed}",
        ),
        (Executed(code=0, stdout=b'{"score": 1, "assertions": 5}'), "its assertions are not a list of {text, passed}"),
    ],
)
def test_what_a_command_says_and_nobody_understands_is_not_graded(ended: Executed, reason: str) -> None:
    found = from_command(ended)
    assert (found.score, found.reason) == (None, reason)


@pytest.mark.parametrize(
    "said",
    [b'loading the model\n{"score": 0}', b'{"score": 0.', b'{"score": NaN}', b'{"score": 0} {"score": 1}', b"[1"],
)
def test_a_verdict_that_cannot_be_read_is_no_plain_words_that_pass(said: bytes) -> None:
    found = from_command(Executed(code=0, stdout=said))
    assert found.score is None
    assert found.reason.startswith("its output is no JSON alone")


def test_without_a_score_it_is_the_part_of_assertions_that_held() -> None:
    value: Json = {"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}
    assert from_value(value).score == 0.5


@pytest.mark.parametrize(("value", "score"), [(True, 1.0), (False, 0.0), (0.25, 0.25), (1, 1.0), ({"score": 0}, 0.0)])
def test_a_function_may_return_a_truth_a_score_or_an_object(value: Json, score: float) -> None:
    assert from_value(value).score == score


def test_a_function_that_returns_something_else_is_not_graded() -> None:
    assert from_value("good").reason == "a score is expected, not 'good'"


def test_a_verdict_may_be_said_apart_from_the_score() -> None:
    assert from_value({"score": 1, "verdict": "fail"}).passed is False
    assert from_value({"score": 0, "verdict": "pass"}).passed is True
    assert from_value({"score": 0, "verdict": "maybe", "reason": "r", "metadata": {"a": 1}}).passed is None


def test_assertions_are_all_or_none() -> None:
    assert checks_of("x") is None
    assert checks_of([]) == ()


@given(st.floats() | st.integers() | st.booleans() | st.text())
def test_a_score_is_from_0_to_1_or_none(value: Json) -> None:
    score = score_of(value)
    assert score is None or 0 <= score <= 1


def test_a_score_that_is_off_by_a_rounding_is_one() -> None:
    assert score_of(1.0000000001) == 1.0
