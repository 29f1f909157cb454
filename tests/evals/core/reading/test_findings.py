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


def test_values_of_another_type_are_told_and_not_bent() -> None:
    findings = SuiteFindings()
    node = owner(text=1.10, flag="yes", list="x", map=[], texts=["a", 1], wrong_texts=3, many="one")
    assert findings.text(node, "text") == ""
    assert findings.flag(node, "flag") is None
    assert findings.items(node.members["list"], "list") == []
    assert not findings.is_mapping(node.members["map"], "map")
    assert findings.texts(node, "texts") == ("a",)
    assert findings.texts(node, "wrong_texts") == ()
    assert findings.texts(node, "many") == ("one",)
    assert len(findings.problems) == 6


def test_what_is_not_there_is_nothing() -> None:
    findings = SuiteFindings()
    node = owner()
    assert findings.text(node, "x") == ""
    assert findings.texts(node, "x") == ()
    assert findings.flag(node, "x") is None
    assert findings.number(node, "x", least=0) is None
    assert findings.choice(node, "x", ("a",)) == ""
    assert not findings.problems


def test_numbers_are_held_to_their_bounds() -> None:
    findings = SuiteFindings()
    node = owner(low=-1, high=2, half=0.5, true=True, word="3", ok=1, open=7.5)
    assert findings.number(node, "low", least=0, most=1) is None
    assert findings.number(node, "high", least=0, most=1) is None
    assert findings.number(node, "half", least=0, is_whole=True) is None
    assert findings.number(node, "true", least=0) is None
    assert findings.number(node, "word", least=0) is None
    assert findings.number(node, "ok", least=0, most=1) == 1
    assert findings.number(node, "open", least=1) == 7.5
    assert sorted(each.message for each in findings.problems) == [
        "half has to be a whole number of at least 0",
        "high has to be a number from 0 to 1, and this is 2",
        "low has to be a number from 0 to 1, and this is -1",
        "true has to be a number of at least 0",
        "word has to be a number of at least 0",
    ]


def test_a_choice_suggests_the_nearest_word() -> None:
    findings = SuiteFindings()
    node = owner(one="maen", other=3, fine="min", flag=True)
    assert findings.choice(node, "one", ("mean", "min")) == ""
    assert findings.choice(node, "other", ("mean", "min")) == ""
    assert findings.choice(node, "fine", ("mean", "min")) == "min"
    assert findings.flag(node, "flag") is True
    assert [each.suggestion for each in findings.problems] == ['Did you mean "mean"?', ""]
