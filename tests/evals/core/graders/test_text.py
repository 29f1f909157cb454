import re
import subprocess
import sys

import pytest

from sightline.evals.core.graders.finding import PYTHON, Execute, Executed
from sightline.evals.core.graders.text import is_bounded
from sightline.model.json import Json, JsonObject
from tests.grading_stage import BROKEN, seen, spec, told


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


def test_evidence_lists_found_and_missing_values() -> None:
    (check,) = seen(spec("contains-all", value=["It", "Rome"]), "It is Paris.").score.checks
    assert check.evidence == 'there: "It"; missing: "Rome"'


def test_what_to_look_for_has_to_be_a_text() -> None:
    assert told(spec("contains", value=42)) == [("value", "value must be text, not 42")]
    assert told(spec("contains")) == [("", 'the grader contains lacks the key "value"')]
    assert told(spec("contains-any", value="x")) == [("value", "value must be a list, each text, not text")]
    assert told(spec("equals", value="x", trim=True)) == [("trim", 'the grader equals has no key "trim"')]


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


def test_invalid_pattern_is_reported() -> None:
    assert told(spec("regex", value="(")) == [
        ("value", "this is no pattern: missing ), unterminated subpattern at position 0")
    ]
    assert told(spec("regex", value="a", flags="iy")) == [("flags", "there is no flag 'y'")]


ANSWER = "The total is 1,234.50 USD, due on 2025-01-15.\n" * 100


@pytest.mark.parametrize(
    "pattern",
    [
        r"total", r"\d{4}-\d{2}-\d{2}", r"Total:\s*\$?\d+", r"(?:USD|EUR|GBP)", r"[0-9,]+\.\d\d",
        r"(?P<amount>\d+)(?:\.\d+)?", r"^The .* USD", r"\x41+\u0042*", r"(ab)+", r"a{2,3}|b{1}", r"(?i)total",
        r"a{3,}b", r"]+", r"[[x]+", r"(?:a|b){1}",
    ],
)  # fmt: skip
def test_ordinary_patterns_are_bounded(pattern: str) -> None:
    assert is_bounded(pattern, re.NOFLAG, ANSWER)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a|aa)+$",
        r"(?:a*)*",
        r"((a?){25}){25}",
        r"(a{1,30}){1,30}",
        r".*.*.*.*=",
        r"(a)\1",
        r"(?P<x>a)(?P=x)",
        r"(a)?(?(1)b|c)",
        r"(?x) a # [",
        r"a++a++a++",
    ],
)
def test_patterns_that_may_never_end_are_not(pattern: str) -> None:
    assert not is_bounded(pattern, re.NOFLAG, "a" * 5000)


def test_what_a_pattern_costs_depends_on_the_runs_of_the_text() -> None:
    assert is_bounded(r"\s*\d+\s*\d+", re.NOFLAG, "x" * 5000)
    assert not is_bounded(r"\s*\d+\s*\d+", re.NOFLAG, " " * 5000 + "1" * 500)


def test_flags_inside_a_pattern_are_heeded() -> None:
    assert is_bounded(r"a+a+", re.NOFLAG, "A" * 3000)
    assert not is_bounded(r"(?i)a+a+", re.NOFLAG, "A" * 3000)


def test_a_bracket_that_closes_nothing_is_not_lost_in() -> None:
    assert is_bounded(r")", re.NOFLAG, "x")


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "s": {"pattern": "^a+$"}},
    "patternProperties": {"^x": {"anyOf": [{"type": "string"}]}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    ("answer", "score"),
    [('{"a": 1}', 1.0), (" [1, 2]\n", 1.0), ("5", 1.0), ("not JSON", 0.0), ('```json\n{"a": 1}\n```', 0.0), ("", 0.0)],
)
def test_an_answer_is_json_or_is_not(answer: str, score: float) -> None:
    assert seen(spec("is-json"), answer).score.score == score


def test_json_is_held_to_a_schema() -> None:
    grader = spec("is_json", schema=SCHEMA)
    assert seen(grader, '{"n": 1, "s": "aa"}').score.score == 1.0
    wrong = seen(grader, '{"n": "1"}').score
    assert (wrong.score, wrong.checks[1].evidence) == (0.0, "/n: '1' is not of type 'integer'")
    assert seen(grader, "{}").score.checks[1].evidence == "the whole: 'n' is a required property"


def test_a_schema_whose_pattern_may_never_end_is_not_followed() -> None:
    grader = spec("is-json", schema={"anyOf": [{"properties": {"s": {"pattern": "(a+)+$"}}}], "$schema": "urn:none"})
    assert seen(grader, '{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}').score.verdict == "not_graded"


def test_a_schema_that_leads_elsewhere_is_not_followed() -> None:
    grader = spec("is-json", schema={"$ref": "http://example.com/schema.json"})
    assert seen(grader, "{}").score.reason == "the schema refers to something that cannot be followed"


def test_invalid_schema_is_reported() -> None:
    ((path, message),) = told(spec("is-json", schema={"type": "objekt"}))
    assert path == "schema"
    assert message.startswith("this is no schema: /type: 'objekt' is not valid")
    assert told(spec("is-json", schema={"$schema": 5})) == [("schema", "$schema is no text")]
    deep: JsonObject = {}
    for _ in range(3000):
        deep = {"not": deep}
    assert told(spec("is-json", schema=deep)) == [("schema", "this schema is nested too deep")]
