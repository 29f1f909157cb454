import pytest

from sightline.errors import Fault
from sightline.evals.core.options import RunOptions, select_cases, targets_of
from sightline.evals.core.suite import Case, Execution, Suite

SUITE = Suite(
    name="s",
    cases=(
        Case(id="login", tags=("auth", "fast")),
        Case(id="logout", tags=("auth",), depends_on=("login",)),
        Case(id="billing/invoice", tags=("money", "slow"), depends_on=("logout", "gone")),
        Case(id="billing/refund", tags=("money",)),
    ),
)


def names(**options: object) -> list[str]:
    return [case.id for case in select_cases(SUITE, RunOptions(**options))]  # type: ignore[arg-type]


def test_without_a_wish_all_cases_are_wanted() -> None:
    assert names() == ["login", "logout", "billing/invoice", "billing/refund"]


def test_cases_are_chosen_by_tags_and_names() -> None:
    assert names(tags=("fast", "money"), exclude_tags=("slow",)) == ["login", "billing/refund"]
    assert names(cases=("log*",)) == ["login", "logout"]
    assert names(cases=("*refund", "login")) == ["login", "billing/refund"]


def test_what_a_case_depends_on_is_run_with_it() -> None:
    assert names(cases=("billing/invoice",)) == ["login", "logout", "billing/invoice"]
    assert names(cases=("logout",)) == ["login", "logout"]


def test_that_nothing_is_wanted_is_told_with_what_there_is() -> None:
    with pytest.raises(Fault, match="no case of s is wanted") as caught:
        names(cases=("logn",))
    assert caught.value.hint == "Its cases are: login, logout, billing/invoice, billing/refund."
    many = Suite(name="s", file="s.yaml", cases=tuple(Case(id=f"c{n}") for n in range(9)))
    with pytest.raises(Fault, match=r"s\.yaml") as caught:
        select_cases(many, RunOptions(tags=("x",)))
    assert caught.value.hint.endswith("c4, ….")


def test_a_case_is_run_on_the_targets_that_it_names_else_on_the_usual_ones() -> None:
    given = ("a", "b", "c")
    own = Case(id="x", execution=Execution(targets=("c", "elsewhere")))
    assert targets_of(own, given, RunOptions(targets=("a",))) == ("c",)
    assert targets_of(Case(id="x"), given, RunOptions(targets=("a", "b"))) == ("a", "b")
    assert targets_of(Case(id="x"), given, RunOptions()) == given
    assert targets_of(own, ("a",), RunOptions(targets=("b",))) == ("a",)
