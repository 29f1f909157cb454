import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.exports import to_junit
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Check, Score
from sightline.model.reply import Usage
from tests.evals.core.rows import failed, row

SUITE_ATTRIBUTES = {
    "id", "package", "name", "hostname", "timestamp", "tests", "failures", "errors", "skipped", "time"
}  # fmt: skip


def parsed(results: list[CaseResult]) -> ElementTree.Element:
    return ElementTree.fromstring(to_junit(results))


def check(root: ElementTree.Element) -> None:
    """Hold a document to the schema of Ant's reports."""
    assert (root.tag, root.attrib) == ("testsuites", {})
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite"
        assert set(suite.attrib) == SUITE_ATTRIBUTES
        assert suite.get("id") == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert suite.get("tests") == str(len(cases))
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(plural) == str(len(suite.findall(f"testcase/{tag}")))
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            for child in case:
                assert child.tag == "skipped" or child.get("type")
        for each in suite.findall("properties/property"):
            assert set(each.attrib) == {"name", "value"}


def test_each_target_is_a_suite_and_each_try_a_test() -> None:
    root = parsed([row("x", 1.0), row("x", 1.0, trial=1), row("x", 0.2, target="b")])
    check(root)
    assert [(suite.get("package"), suite.get("name"), suite.get("tests")) for suite in root] == [
        ("demo", "a", "2"),
        ("demo", "b", "1"),
    ]
    assert [case.get("name") for case in root[0].findall("testcase")] == ["x", "x [2]"]
    assert root[0].findall("testcase")[0].get("classname") == "demo.a"


def test_cases_of_two_suites_may_have_the_same_name() -> None:
    root = parsed([row("x", 1.0), row("x", 0.2, suite="other"), row("x", 0.4, suite="other")])
    check(root)
    assert [(suite.get("package"), suite.get("name"), suite.get("failures")) for suite in root] == [
        ("demo", "a", "0"),
        ("other", "a", "1"),
    ]
    assert [case.get("classname") for case in root.iter("testcase")] == ["demo.a", "other.a"]


def test_a_failure_tells_what_did_not_hold_and_the_answer() -> None:
    inner = Score(name="short", type="contains", verdict="fail", score=0.0, checks=(Check("has 4", False),))
    scores = (
        Score(name="fine", type="equals", verdict="pass", score=1.0),
        Score(name="all", type="composite", verdict="fail", score=0.2, reason="one failed", scores=(inner,)),
        Score(name="tone", type="rubrics", verdict="fail", checks=(Check("kind", False, "rude"), Check("ok", True))),
    )
    seen = CaseObservation(text="five", exchanges=("x_1", "x_2"))
    turn = CaseScore(verdict="fail", score=0.0, scores=(inner,))
    result = CaseResult(
        case="x",
        target="a",
        status="quality_failure",
        score=CaseScore(verdict="fail", score=0.2, scores=scores, turns=(turn,), reason="below 0.8"),
        observation=seen,
    )
    root = parsed([result, row("y", 0.1, seen=CaseObservation())])
    check(root)
    failure, silent = root.findall(".//failure")
    assert failure.get("message") == "score 0.200: below 0.8"
    assert failure.text == "\n".join(
        [
            "all (composite): fail - one failed",
            "  short (contains): fail",
            "  failed: has 4",
            "tone (rubrics): fail",
            "  failed: kind (rude)",
            "turn 1: short (contains): fail",
            "  failed: has 4",
            "exchanges: x_1, x_2",
            "",
            "answer:",
            "five",
        ]
    )
    assert (silent.get("message"), silent.text) == ("score 0.100", None)


def test_errors_and_ungraded_answers_do_not_leave_the_build_green() -> None:
    root = parsed(
        [
            failed("x"),
            row("y", None, reason="no JSON"),
            row("z", None),
            row("w", None, verdict="skip", status="skipped", reason="x failed"),
            row("v", None, status="execution_error"),
        ]
    )
    check(root)
    errors = [(error.get("type"), error.get("message")) for error in root.findall(".//error")]
    assert errors == [
        ("network", "connection reset"),
        ("not_graded", "no JSON"),
        ("not_graded", "not graded"),
        ("error", "not graded"),
    ]
    assert root[0].get("failures") == "0"
    assert [each.get("message") for each in root.findall(".//skipped")] == ["x failed"]


def test_cost_and_tokens_are_suite_properties() -> None:
    seen = CaseObservation(usage=Usage(input_tokens=9, output_tokens=2), cost=0.01)
    root = parsed([row("x", 1.0, seen=seen), row("y", 0.5, seen=CaseObservation(usage=Usage(input_tokens=1)))])
    assert {each.get("name"): each.get("value") for each in root.findall(".//property")} == {
        "target": "a",
        "mean_score": "0.750",
        "cost_at_least_usd": "0.010000",
        "cost_unknown": "1",
        "input_tokens": "10",
        "output_tokens_at_least": "2",
        "output_tokens_unknown": "1",
    }
    assert [each.get("name") for each in parsed([failed("x")]).findall(".//property")] == [
        "target",
        "cost_unknown",
        "input_tokens_unknown",
        "output_tokens_unknown",
    ]


def test_a_case_that_was_not_sent_leaves_the_sums_known() -> None:
    seen = CaseObservation(usage=Usage(input_tokens=9, output_tokens=2), cost=0.01)
    unsent = CaseObservation(requests=0, cost=0.0, error="there is no file")
    root = parsed([row("x", 1.0, seen=seen), row("y", None, status="execution_error", seen=unsent)])
    assert {each.get("name"): each.get("value") for each in root.findall(".//property")} == {
        "target": "a",
        "mean_score": "1.000",
        "cost_usd": "0.010000",
        "input_tokens": "9",
        "output_tokens": "2",
    }


def test_an_answer_of_the_cache_costs_nothing_again() -> None:
    asked, cached = (row(name, 1.0, seen=CaseObservation(cost=0.25), cached=name == "y") for name in "xy")
    spent = [each.get("value") for each in parsed([asked, cached]).findall(".//property[@name='cost_usd']")]
    assert spent == ["0.250000"]


def test_a_very_long_answer_full_of_marks_is_whole() -> None:
    answer = "]]> <![CDATA[ &amp; \U0001f600 " * 40_000
    (failure,) = parsed([row("x", 0.0, seen=CaseObservation(text=answer))]).findall(".//failure")
    assert failure.text is not None
    assert failure.text.endswith(answer)


def test_a_name_can_be_given_and_no_results_are_no_suites() -> None:
    assert ElementTree.fromstring(to_junit([row("x", 1.0)], name="nightly"))[0].get("package") == "nightly"
    assert len(ElementTree.fromstring(to_junit([]))) == 0


@given(st.text(st.characters()), st.text(st.sampled_from("\x00\x01\x0b\x1b\ufffe\uffff\ud800<&>]\"'\r\n\t é")))
def test_whatever_models_say_the_document_can_be_read(text: str, odd: str) -> None:
    seen = CaseObservation(text=text + odd)
    results = [row(odd or "x", 0.1, seen=seen, reason=text), failed(text + "y", odd), row("z", None, target=odd)]
    check(parsed(results))
