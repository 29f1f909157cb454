from sightline.evals.core.reading.suites import check_dependencies
from sightline.evals.core.suite import Case
from tests.evals.core.reading.stage import problem


def cases(**waits: list[str]) -> list[Case]:
    return [Case(id=name, depends_on=tuple(others)) for name, others in waits.items()]


def told(found: list[Case]) -> list[str]:
    return [each.message for each in check_dependencies(found)]


def test_cases_may_wait_for_each_other_in_an_order() -> None:
    assert told(cases(a=[], b=["a"], c=["a", "b"])) == []


def test_an_id_that_stands_twice_names_both_places() -> None:
    found = problem("tests:\n  - {id: a, input: x, criteria: y}\n  - {id: a, input: x, criteria: y}\n")
    assert (found.place.line, found.path) == (3, "tests[1]")
    assert found.message == 'the id "a" is used twice, first at suites/a.eval.yaml:2:5'


def test_a_dependency_on_nothing_suggests_the_nearest() -> None:
    (found,) = check_dependencies(cases(alpha=[], b=["alhpa"]))
    assert found.suggestion == 'Did you mean "alpha"?'


def test_a_circle_is_told_with_all_of_its_cases() -> None:
    assert told(cases(a=["b"], b=["c"], c=["a"], d=["a"])) == ["cases wait for each other: a → b → c → a"]
    assert told(cases(a=["a"])) == ["cases wait for each other: a → a"]


def test_every_circle_is_told_and_no_more_than_a_person_reads() -> None:
    assert len(told(cases(a=["b"], b=["a"], c=["d"], d=["c"]))) == 2
    assert len(told(cases(**{f"n{number}": [f"n{number}"] for number in range(50)}))) == 20
