import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.conduct import UNTRACED, ExpectedCall, fits, match_calls
from sightline.evals.core.result import CaseObservation, Score, ToolUse
from sightline.model.json import Json, JsonObject
from tests.grading_stage import seen, spec, told

OBJECTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))


@pytest.mark.parametrize(
    ("expected", "actual", "mode", "held"),
    [
        ({"a": 1}, {"a": 2}, "ignore", True),
        ({"a": 1}, "a=1", "exact", False),
        ({"a": 1}, {"a": 1.0}, "exact", True),
        ({"a": 1}, {"a": 1, "b": 2}, "exact", False),
        ({"a": 1}, {"a": 1, "b": 2}, "superset", True),
        ({"a": 1, "b": 2}, {"a": 1}, "superset", False),
        ({"a": 1, "b": 2}, {"a": 1}, "subset", True),
        ({"a": 1}, {"a": 1, "b": 2}, "subset", False),
        ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1}, "c": 9}, ("a.b", "z"), True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ("a.b",), False),
        ({"a": 1}, {}, ("a",), False),
    ],
)
def test_arguments_fit_in_the_sense_of_the_mode(expected: JsonObject, actual: Json, mode: object, held: bool) -> None:
    assert fits(expected, actual, mode) is held


@given(OBJECTS, OBJECTS)
def test_exact_is_subset_and_superset_together(expected: JsonObject, actual: JsonObject) -> None:
    assert fits(expected, actual, "exact") is (fits(expected, actual, "subset") and fits(expected, actual, "superset"))
    assert fits(expected, actual, "subset") is fits(actual, expected, "superset")


def uses(*names: str) -> tuple[ToolUse, ...]:
    """Calls such as `search:1`, whose number is their argument."""
    made = []
    for name in names:
        tool, _, number = name.partition(":")
        made.append(ToolUse(name=tool, arguments={"n": int(number)} if number else {}))
    return tuple(made)


def wanted(*names: str) -> list[Json]:
    found: list[Json] = []
    for name in names:
        tool, _, number = name.partition(":")
        found.append({"tool": tool, "args": {"n": int(number)}} if number else {"tool": tool})
    return found


def judged(mode: str, expected: list[Json], calls: tuple[ToolUse, ...], **config: Json) -> Score:
    grader = spec("tool-trajectory", mode=mode, expected=expected, **config)
    return seen(grader, CaseObservation(tools=calls)).score


def test_any_order_counts_calls() -> None:
    grader = spec("tool_trajectory", mode="any_order", minimums={"search": 2, "read": 1})
    assert seen(grader, CaseObservation(tools=uses("read", "search", "search"))).score.score == 1.0
    half = seen(grader, CaseObservation(tools=uses("search", "read"))).score
    assert (half.score, half.checks[0].evidence) == (0.5, "1 times")
    assert seen(grader, CaseObservation()).score.score == 0.0


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "score"),
    [
        ("in_order", ["a", "b"], ["a", "x", "b"], 1.0),
        ("in_order", ["a", "b"], ["b", "a"], 0.5),
        ("in_order", ["a", "b"], [], 0.0),
        ("in_order", ["a:2", "b"], ["a:1", "a:2", "b"], 0.5),
        ("exact", ["a", "b"], ["a", "b"], 1.0),
        ("exact", ["a", "b"], ["a", "x"], 0.5),
        ("exact", ["a:1"], ["a:2"], 0.0),
        ("exact", ["a", "b"], ["a"], 0.5),
        ("exact", ["a"], ["a", "b"], 0.5),
        ("exact", [], [], 1.0),
        ("exact", [], ["a"], 0.0),
        ("superset", ["b", "a"], ["a", "x", "b"], 1.0),
        ("superset", ["a", "a"], ["a", "b"], 0.5),
        ("superset", ["a", "a:1"], ["a:1", "a:2"], 1.0),
        ("subset", ["a", "b"], ["a", "a"], 1.0),
        ("subset", ["a"], ["a", "b"], 0.5),
        ("subset", ["a"], [], 1.0),
        ("subset", [], ["a"], 0.0),
        ("subset", [], [], 1.0),
    ],
)
def test_calls_are_as_expected_in_the_sense_of_the_mode(
    mode: str, expected: list[str], calls: list[str], score: float
) -> None:
    assert judged(mode, wanted(*expected), uses(*calls)).score == score


def test_arguments_are_looked_at_as_the_grader_or_the_call_says() -> None:
    calls = (ToolUse(name="a", arguments={"n": 1, "m": 2}),)
    expected = wanted("a:1")
    assert judged("exact", expected, calls).score == 0.0
    assert judged("exact", expected, calls, args_match="superset").score == 1.0
    assert judged("exact", expected, calls, args_match=["n"]).score == 1.0
    assert judged("exact", [{**expected[0], "args_match": "ignore"}], calls, args_match="exact").score == 1.0
    assert judged("exact", [{"tool": "a", "args": "any"}], calls).score == 1.0


@pytest.mark.parametrize("mode", ["in_order", "exact", "superset"])
def test_calls_are_held_to_their_time(mode: str) -> None:
    expected: list[Json] = [{"tool": "a", "max_duration_ms": 100}]
    assert judged(mode, expected, (ToolUse(name="a", seconds=0.1),)).score == 1.0
    slow = judged(mode, expected, (ToolUse(name="a", seconds=0.2),))
    assert (slow.score, slow.checks[1].evidence) == (0.5, "200 ms")
    assert judged(mode, expected, ()).score == 0.0


def test_a_time_that_is_not_known_is_not_graded_unless_it_fails_anyway() -> None:
    expected: list[Json] = [{"tool": "a", "maxDurationMs": 100}, {"tool": "b"}]
    score = judged("superset", expected, uses("a", "b"))
    assert (score.verdict, score.reason) == ("not_graded", "how long it took is not known of: a")
    assert judged("superset", expected, uses("a")).verdict == "fail"


def test_as_many_of_the_expected_get_a_call_as_can() -> None:
    expected = [ExpectedCall(tool="a"), ExpectedCall(tool="a", args={"n": 1}), ExpectedCall(tool="b")]
    assert match_calls(expected, uses("a:1", "a:2", "c")) == {0: 1, 1: 0}


NAMES = st.lists(st.sampled_from(["a", "b", "a:1", "a:2"]), max_size=5)


@given(NAMES, NAMES)
def test_how_the_modes_relate(expected: list[str], calls: list[str]) -> None:
    passed = {
        mode: judged(mode, wanted(*expected), uses(*calls)).score == 1.0
        for mode in ("exact", "in_order", "superset", "subset")
    }
    assert not passed["exact"] or (passed["in_order"] and passed["subset"])
    assert not passed["in_order"] or passed["superset"]


@given(NAMES, NAMES, st.sampled_from(["exact", "in_order", "superset", "subset"]))
def test_a_score_is_from_0_to_1_and_1_only_if_every_check_held(
    expected: list[str], calls: list[str], mode: str
) -> None:
    score = judged(mode, wanted(*expected), uses(*calls))
    assert score.score is not None
    assert 0 <= score.score <= 1
    assert (score.score == 1.0) is all(check.passed for check in score.checks)


def test_invalid_configuration_is_reported_with_its_path() -> None:
    assert told(spec("tool-trajectory", mode="in-order", expected=[])) == [
        ("mode", 'mode must be one of "any_order", "exact", "in_order", "subset", "superset", not "in-order"')
    ]
    assert told(spec("tool-trajectory", mode="any_order", expected=[{"tool": "a"}])) == [
        ("minimums", "minimums is missing"),
        ("expected", "any_order looks at minimums only"),
    ]
    assert told(spec("tool-trajectory", mode="exact", minimums={"a": 1.5})) == [
        ("minimums.a", "a must be a whole number, 0 or more, not 1.5")
    ]
    assert told(spec("tool-trajectory", mode="exact", minimums={"b": 1})) == [
        ("minimums", "minimums are for any_order only"),
        ("expected", "expected is missing"),
    ]
    assert told(spec("tool-trajectory", mode="superset", expected=[5, {"args": 5, "args_match": "exat", "n": 1}])) == [
        ("expected[0]", "expected[0] must be a mapping, not 5"),
        ("expected[1].args", 'args must be "any" or a mapping, not 5'),
        (
            "expected[1].args_match",
            'args_match must be one of "exact", "ignore", "subset", "superset" or a list, each text, not "exat"',
        ),
        ("expected[1].n", 'expected[1] has no key "n"'),
        ("expected[1]", 'expected[1] lacks the key "tool"'),
    ]
    assert told(spec("tool-trajectory", mode="exact", expected=[{"tool": "a", "input": {}}])) == [
        ("expected[0].input", "it is not looked at")
    ]
    assert told(spec("tool-trajectory", mode="superset", expected=[])) == [
        ("expected", "superset expects nothing and always passes")
    ]
    assert told(spec("tool-trajectory", mode="subset", expected=[{"tool": "a", "max_duration_ms": 1}])) == [
        ("expected", "subset does not look at max_duration_ms")
    ]


def test_calls_that_are_not_known_are_not_none() -> None:
    expected = spec("tool-trajectory", mode="subset", expected=[{"tool": "search"}])
    assert seen(expected, CaseObservation()).score.verdict == "pass"
    assert seen(expected, CaseObservation(is_traced=False)).score.verdict == "not_graded"


@pytest.mark.parametrize(
    ("use", "is_used"),
    [
        (ToolUse(name="Skill", arguments={"skill": "office:pdf"}), True),
        (ToolUse(name="skill", arguments={"skill": "docx"}), False),
        (ToolUse(name="Read", arguments={"file_path": "/skills/pdf/SKILL.md"}), True),
        (ToolUse(name="read", arguments={"path": "skills/pdf/x"}), True),
        (ToolUse(name="read", arguments={"path": "skills/docx/x"}), False),
        (ToolUse(name="Bash", arguments="ls", result="skills/pdf/SKILL.md"), True),
        (ToolUse(name="Bash", arguments={"path": "skills/pdf/x"}), False),
    ],
)
def test_a_skill_is_used_by_its_name_or_its_files(use: ToolUse, is_used: bool) -> None:
    observation = CaseObservation(tools=(ToolUse(name="other"), use))
    assert seen(spec("skill-trigger", skill="pdf"), observation).score.score == float(is_used)
    assert seen(spec("skill-trigger", skill="pdf", should_trigger=False), observation).score.score == float(not is_used)


def test_evidence_gives_the_number_of_calls_searched() -> None:
    (check,) = seen(spec("skill-trigger", skill="pdf"), CaseObservation()).score.checks
    assert (check.text, check.evidence) == ('skill "pdf" is used', "not in 0 tool calls")


def test_a_program_that_tells_only_its_last_words_may_have_used_it() -> None:
    for wanted in (True, False):
        score = seen(spec("skill-trigger", skill="pdf", should_trigger=wanted), CaseObservation(is_traced=False)).score
        assert (score.verdict, score.reason) == ("not_graded", UNTRACED)
