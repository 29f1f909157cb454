import pytest

from sightline.model.json import Json
from tests.grading_stage import seen, spec, told


@pytest.mark.parametrize(
    ("kind", "value", "answer", "score"),
    [
        ("contains", "Paris", "It is Paris.", 1.0),
        ("contains", "paris", "It is Paris.", 0.0),
        ("contains", "\n", "two\nlines", 1.0),
        ("icontains", "pARIS", "It is Paris.", 1.0),
        ("icontains", "Rome", "It is Paris.", 0.0),
        ("starts-with", " It is", "\n It is Paris.", 1.0),
        ("starts-with", "Paris", "It is Paris.", 0.0),
        ("ends-with", "Paris. ", "It is Paris.\n", 1.0),
        ("ends-with", "It", "It is Paris.", 0.0),
        ("equals", " four ", "four\n", 1.0),
        ("equals", "four", "four.", 0.0),
        ("contains-any", ["Rome", "Paris"], "It is Paris.", 1.0),
        ("contains-any", ["Rome", "paris"], "It is Paris.", 0.0),
        ("contains-all", ["It", "Paris"], "It is Paris.", 1.0),
        ("contains-all", ["It", "Rome"], "It is Paris.", 0.0),
        ("icontains-any", ["rome", "paris"], "It is Paris.", 1.0),
        ("icontains-any", ["rome"], "It is Paris.", 0.0),
        ("icontains-all", ["it", "PARIS"], "It is Paris.", 1.0),
        ("icontains-all", ["it", "rome"], "It is Paris.", 0.0),
    ],
)
def test_words_that_are_there_or_are_not(kind: str, value: Json, answer: str, score: float) -> None:
    result = seen(spec(kind, value=value), answer).score
    assert (result.score, result.verdict) == (score, "pass" if score else "fail")
    assert [check.passed for check in result.checks] == [bool(score)]


def test_what_is_there_and_what_is_missing_is_told() -> None:
    (check,) = seen(spec("contains-all", value=["It", "Rome"]), "It is Paris.").score.checks
    assert check.evidence == 'there: "It"; missing: "Rome"'


def test_an_answer_without_words_contains_nothing() -> None:
    assert seen(spec("contains", value="x"), "").score.score == 0.0


def test_what_to_look_for_has_to_be_a_text() -> None:
    assert told(spec("contains", value=42)) == [("value", "value must be text, not 42")]
    assert told(spec("contains")) == [("", 'the grader contains lacks the key "value"')]
    assert told(spec("contains-any", value="x")) == [("value", "value must be a list, each text, not text")]
    assert told(spec("equals", value="x", trim=True)) == [("trim", 'the grader equals has no key "trim"')]
