from sightline.evals.core.reading.document import Node, SuiteFindings, node_of
from sightline.evals.core.suite import SuitePlace, SuiteProblem

HERE = SuitePlace("a.yaml", 1, 1)


def owner(**members: object) -> Node:
    return node_of(dict(members), HERE, ())  # type: ignore[arg-type]


def test_the_same_problem_is_kept_once_and_lines_are_in_order() -> None:
    findings = SuiteFindings()
    late, early = Node("x", SuitePlace("a.yaml", 9, 1)), Node("y", SuitePlace("a.yaml", 2, 1))
    findings.odd(late, "late")
    findings.odd(late, "late")
    findings.odd(early, "early")
    assert [each.message for each in findings.problems] == ["early", "late"]
    assert not findings.has_errors
    findings.add([SuiteProblem(place=HERE, path="", message="wrong")])
    assert findings.has_errors


def test_a_problem_that_does_not_know_its_way_is_told_it() -> None:
    findings = SuiteFindings()
    lost = SuiteProblem(place=HERE, path="", message="lost")
    findings.add([lost, SuiteProblem(place=HERE, path="here", message="known")], ("tests", 2))
    assert [each.path for each in findings.problems] == ["tests[2]", "here"]


def test_an_unknown_key_is_an_error_with_the_nearest_known_one() -> None:
    findings = SuiteFindings()
    node = owner(inptu="x", **{"x-mine": 1, "id": "a", "other": 2})
    findings.check_keys(node, ("id", "input"), "a test", {"other": "Use id."})
    assert [(each.path, each.suggestion) for each in findings.problems] == [
        ("inptu", 'Did you mean "input"?'),
        ("other", "Use id."),
    ]


def test_lists_and_mappings_are_wanted_by_name() -> None:
    findings = SuiteFindings()
    node = owner(list="x", map=[])
    assert findings.items(node.members["list"], "list") == []
    assert not findings.is_mapping(node.members["map"], "map")
    assert [each.message for each in findings.problems] == [
        "list must be a list, not text",
        "map must be a mapping, not a list",
    ]
