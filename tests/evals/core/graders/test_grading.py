import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.evals.core.graders.finding import (
    Executed,
    FileContent,
    GraderFinding,
    Grading,
    GradingSubject,
    Judge,
    NeedFile,
    UngradableError,
    ask,
    combine_scores,
    file_text,
    finding_without_score,
    floor_of,
    negate,
    of_one,
    reaches,
    score_of,
)
from sightline.evals.core.graders.grade import GRADERS, NOT_HELD, as_one, check_graders, grade, prepare, together
from sightline.evals.core.graders.grader import name_of, prepare_grader, run_grader
from sightline.evals.core.result import CaseObservation, CaseScore, Check, Score, ToolUse, Verdict
from sightline.evals.core.suite import CaseMessage, GraderSpec, SuitePlace
from sightline.model.reply import Usage
from tests.grading_stage import BROKEN, case, driven, message, problems, says, spec


def test_what_came_of_a_step_is_its_answer_or_why_there_is_none() -> None:
    assert driven(ask(NeedFile("a"), FileContent), [FileContent(b"x")]) == (FileContent(b"x"), [NeedFile("a")])
    with pytest.raises(UngradableError, match="it failed: nobody is there"):
        driven(ask(NeedFile("a"), FileContent, "it failed: "), [BROKEN])
    with pytest.raises(Fault, match="NeedFile was answered by Executed") as raised:
        driven(ask(NeedFile("a"), FileContent), [Executed(code=0)])
    assert raised.value.code is Code.USAGE


def test_a_files_text_has_plain_line_ends_and_no_mark() -> None:
    assert driven(file_text("a.md"), [FileContent(b"\xef\xbb\xbfone\r\ntwo")])[0] == "one\ntwo"


@pytest.mark.parametrize(("data", "words"), [(None, "there is no file a.md"), (b"\xff", "a.md is not UTF-8 text")])
def test_unreadable_file_is_reported_by_name(data: bytes | None, words: str) -> None:
    with pytest.raises(UngradableError, match=words):
        driven(file_text("a.md"), [FileContent(data)])


def test_default_names_match_agentvs() -> None:
    assert name_of("contains", {"value": "Paris"}) == "contains-Paris"
    assert name_of("contains-any", {"value": ["a", "b"]}) == "contains-any-2"
    assert name_of("regex", {"value": "x" * 40}) == f"regex-{'x' * 30}"
    assert name_of("skill-trigger", {"skill": "pdf"}) == "skill-trigger-pdf"
    assert name_of("latency", {"threshold": 5}) == "latency"


GUIDE = (Path(__file__).parents[4] / "docs/guide/evals.md").read_text("utf-8")
# Keys that AgentV's suites may have and that do nothing here, and the field for all other keys.
UNTOLD = {"max_steps", "preprocessors", "others"}


@pytest.mark.parametrize("kind", GRADERS)
def test_the_guide_lists_every_type_with_its_keys(kind: str) -> None:
    rows = [row for row in GUIDE.splitlines() if re.match(rf"\| (`[a-z-]+`, )*`{kind}`[ ,]", row)]
    assert len(rows) == 1, f"docs/guide/evals.md needs one row for {kind}"
    told = set(re.findall(r"`(\w+)`", rows[0].split(" | ")[1]))
    assert set(GRADERS[kind].config.__struct_fields__) - UNTOLD <= told


@pytest.mark.parametrize(
    ("kind", "suggestion"),
    [
        ("contians", 'Did you mean "contains"?'),
        ("llm-judge", 'Did you mean "llm-grader"?'),
        ("code_judge", 'Did you mean "code-grader"?'),
    ],
)
def test_unknown_grader_type_is_reported_with_a_suggestion(kind: str, suggestion: str) -> None:
    (problem,) = problems(spec(kind))
    assert (problem.path, problem.suggestion) == ("assertions[0].type", suggestion)


def test_a_grader_that_cannot_be_run_has_not_graded() -> None:
    for wrong in (spec("contians"), spec("contains")):
        score, _ = driven(
            run_grader(prepare_grader(wrong, "assertions[0]", GRADERS), GradingSubject(CaseObservation(), Grading())),
            [],
        )
        assert score.verdict == "not_graded"
        assert score.reason.startswith("it cannot be run: assertions[0]")


def test_a_grader_without_a_name_is_named_for_what_it_looks_for() -> None:
    assert (
        prepare_grader(GraderSpec(type="contains", name="contains", config={"value": "x"}), "", GRADERS).spec.name
        == "contains-x"
    )
    assert (
        prepare_grader(GraderSpec(type="contains", name="mine", config={"value": "x"}), "", GRADERS).spec.name == "mine"
    )


PART = st.floats(0, 1)
SPECS = st.builds(
    GraderSpec,
    type=st.just("contains"),
    required=st.none() | st.booleans() | PART,
    min_score=st.none() | PART,
    negate=st.booleans(),
)
FINDINGS = st.builds(
    GraderFinding,
    score=st.none() | PART,
    checks=st.lists(st.builds(Check, st.text(), st.booleans())).map(tuple),
    passed=st.none() | st.booleans(),
)


def plain(**settings: object) -> GraderSpec:
    return GraderSpec(type="contains", **settings)


def test_what_adding_up_fractions_loses_does_not_fail_an_answer() -> None:
    assert sum([1.0, 0.4, 1.0]) / 3 < 0.8
    assert reaches(sum([1.0, 0.4, 1.0]) / 3, 0.8)
    assert not reaches(0.799, 0.8)


@pytest.mark.parametrize(
    ("settings", "floor"),
    [
        ({}, None),
        ({"min_score": 0.5}, None),
        ({"required": 0.7}, 0.7),
        ({"required": 0.7, "min_score": 0.5}, 0.5),
        ({"required": 0.0}, 0.0),
        ({"required": True}, 0.9),
        ({"required": True, "min_score": 0.0}, 0.0),
        ({"required": False}, None),
    ],
)
def test_what_a_case_needs_of_a_grader(settings: dict[str, float], floor: float | None) -> None:
    assert floor_of(plain(**settings), 0.9) == floor


@pytest.mark.parametrize(
    ("settings", "score", "verdict"),
    [
        ({}, 0.8, "pass"),
        ({}, 0.79, "fail"),
        ({"min_score": 0.5}, 0.6, "pass"),
        ({"required": 0.9}, 0.85, "fail"),
        ({"negate": True}, 0.0, "pass"),
        ({"negate": True}, 1.0, "fail"),
        ({"negate": True, "min_score": 0.9}, 0.5, "fail"),
        ({"negate": True, "min_score": 0.9}, 0.05, "pass"),
    ],
)
def test_the_verdict_of_one_grader(settings: dict[str, object], score: float, verdict: str) -> None:
    assert score_of(plain(**settings), GraderFinding(score=score), 0.8).verdict == verdict


def test_a_grader_may_have_its_own_word() -> None:
    assert score_of(plain(), GraderFinding(score=0.9, passed=False), 0.8).verdict == "fail"


def test_missing_score_is_not_graded_even_when_negated() -> None:
    for is_negated in (False, True):
        score = score_of(plain(negate=is_negated, required=0.5), finding_without_score("no judge"), 0.8)
        assert (score.verdict, score.score, score.reason) == ("not_graded", None, "no judge")


def test_a_negated_check_says_so() -> None:
    score = negate(score_of(plain(), of_one("contains x", held=True), 0.8))
    assert score.checks == (Check("not: contains x", False),)
    assert score.score == 0.0


@given(SPECS, FINDINGS, PART)
def test_a_score_is_from_0_to_1_or_there_is_none(spec: GraderSpec, finding: GraderFinding, threshold: float) -> None:
    score = score_of(spec, finding, threshold)
    assert (score.score is None) is (score.verdict == "not_graded")
    assert score.score is None or 0 <= score.score <= 1


@given(SPECS, FINDINGS, PART)
def test_negating_twice_changes_nothing(spec: GraderSpec, finding: GraderFinding, threshold: float) -> None:
    score = score_of(spec, finding, threshold)
    again = negate(negate(score))
    assert again.score == (score.score if score.score is None else pytest.approx(score.score))
    assert again.verdict == score.verdict
    assert [check.passed for check in again.checks] == [check.passed for check in score.checks]


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


def test_reason_names_the_grader_without_a_score() -> None:
    assert combine_scores([score(1.0), score(None, 0.0)], 0.8).reason == "left out: g: why"
    assert combine_scores([score(None, 0.0)], 0.8).reason == "no grader has any weight; left out: g: why"
    assert combine_scores([score(None)], 0.8).reason == "g: why"
    assert combine_scores([score(None), score(0.1, required=0.5)], 0.8).reason == "g: why; required and not reached: g"
    assert combine_scores([], 0.8).reason == "there is nothing to grade it by"
    assert combine_scores([score(0.1, required=0.5)], 0.8).reason == "required and not reached: g"


COMBINING_PART = st.floats(0, 1)
SCORES = st.lists(st.builds(score, st.none() | COMBINING_PART, st.floats(0, 1e6), st.none() | COMBINING_PART))


@given(SCORES, COMBINING_PART)
def test_a_score_is_from_0_to_1_and_a_case_passes_only_with_one(scores: list[Score], threshold: float) -> None:
    found = combine_scores(scores, threshold)
    assert (found.score is not None) is (found.verdict in ("pass", "fail"))
    assert found.score is None or 0 <= found.score <= 1
    counting = [each for each in scores if each.weight or each.required is not None]
    assert found.verdict != "pass" or all(each.score is not None for each in counting)
    assert (found.verdict == "not_graded") is any(each.score is None for each in counting)


CONTAINS = spec("contains", value="Paris")


def test_a_case_is_graded_by_all_its_graders_in_turn() -> None:
    found = case([CONTAINS, spec("llm-grader", weight=3.0)], "Paris", answers=[says({"score": 0.6})])
    assert (found.verdict, found.score) == ("fail", pytest.approx(0.7))
    assert [score.name for score in found.scores] == ["contains-Paris", "llm-grader"]


def test_failed_answer_is_not_graded_and_no_judge_is_called() -> None:
    observation = CaseObservation(error="429 for an hour", error_code="rate_limited")
    score, steps = driven(grade(prepare([CONTAINS, spec("llm-grader")]), observation, Grading()), [])
    assert (score.verdict, score.score, steps) == ("not_graded", None, [])
    assert score.reason == "there is no answer: 429 for an hour"


def test_a_grader_that_could_not_run_leaves_the_case_not_graded_unless_it_has_no_weight() -> None:
    for judge in (spec("llm-grader"), spec("llm-grader", required=True), spec("llm-grader", weight=0.0, required=0.0)):
        assert case([CONTAINS, judge], "Paris", answers=[BROKEN]).verdict == "not_graded"
    assert case([CONTAINS, spec("llm-grader", weight=0.0)], "Paris", answers=[BROKEN]).verdict == "pass"


def test_the_threshold_is_that_of_the_case() -> None:
    half = [CONTAINS, spec("contains", value="Rome")]
    assert case(half, "Paris").verdict == "fail"
    assert case(half, "Paris", Grading(threshold=0.5)).verdict == "pass"


@pytest.mark.parametrize(
    ("grading", "is_judged"),
    [
        (Grading(criteria="be right"), True),
        (Grading(criteria="be right", is_turn=True), False),
        (Grading(expected_value="four", is_turn=True), True),
        (Grading(expected=(CaseMessage(role="assistant"),)), True),
        (Grading(), False),
    ],
)
def test_a_case_without_graders_is_judged_by_what_it_wants(grading: Grading, is_judged: bool) -> None:
    score, steps = driven(grade([], CaseObservation(text="4"), grading), [says({"score": 1})] if is_judged else [])
    assert [type(step) for step in steps] == ([Judge] if is_judged else [])
    assert score.verdict == ("pass" if is_judged else "skip")


def test_all_problems_are_reported_before_anything_runs() -> None:
    wrong = [CONTAINS, GraderSpec(type="contains", config={"valeu": "x"}, place=SuitePlace("suite.yaml", 9, 3))]
    assert [
        (str(each.place), each.path, each.message, each.suggestion)
        for each in check_graders(wrong, "tests[0].assertions")
    ] == [
        (
            "suite.yaml:9:3",
            "tests[0].assertions[1].valeu",
            'the grader contains has no key "valeu"',
            'Did you mean "value"?',
        ),
        (
            "suite.yaml:9:3",
            "tests[0].assertions[1]",
            'the grader contains lacks the key "value"',
            "Give the text to look for, in quotes.",
        ),
    ]
    assert check_graders([CONTAINS]) == ()


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


def test_turn_without_graders_is_not_counted() -> None:
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
