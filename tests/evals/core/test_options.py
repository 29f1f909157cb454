from sightline.evals.core.options import (
    DEFAULT_WORKERS,
    RunOptions,
    budget_of,
    cost_limit_of,
    file_form_of,
    is_cached,
    threshold_of,
    trials_of,
    workers_of,
)
from sightline.evals.core.suite import Case, Execution, Suite, Trials
from sightline.evals.core.target import TargetSpec

CASE = Case(id="a")
SUITE = Suite(name="s")


def told(**fields: object) -> Execution:
    return Execution(**fields)  # type: ignore[arg-type]


def test_trials_are_those_of_the_command_the_case_or_the_suite() -> None:
    case = Case(id="a", execution=told(trials=Trials(count=3, cost_limit_usd=1.5)))
    suite = Suite(name="s", execution=told(trials=Trials(count=2)))
    assert trials_of(case, suite, RunOptions(trials=5)) == 5
    assert trials_of(case, suite, RunOptions(trials=0)) == 1
    assert trials_of(case, suite, RunOptions()) == 3
    assert trials_of(CASE, suite, RunOptions()) == 2
    assert trials_of(CASE, SUITE, RunOptions()) == 1
    assert (cost_limit_of(case, suite), cost_limit_of(CASE, suite), cost_limit_of(CASE, SUITE)) == (1.5, None, None)


def test_a_case_knows_its_own_threshold_best() -> None:
    suite = Suite(name="s", execution=told(threshold=0.5))
    assert threshold_of(Case(id="a", execution=told(threshold=0.9)), suite, RunOptions(threshold=0.7)) == 0.9
    assert threshold_of(CASE, suite, RunOptions(threshold=0.7)) == 0.7
    assert threshold_of(CASE, suite, RunOptions()) == 0.5
    assert threshold_of(CASE, SUITE, RunOptions()) == 0.8


def test_the_command_goes_before_the_suite() -> None:
    suite = Suite(name="s", execution=told(budget_usd=2.0, cache=False, workers=3))
    budgets = [
        budget_of(suite, RunOptions()),
        budget_of(suite, RunOptions(budget_usd=1.0)),
        budget_of(SUITE, RunOptions()),
    ]
    assert budgets == [2.0, 1.0, None]
    assert (is_cached(suite, RunOptions()), is_cached(suite, RunOptions(cache=True))) == (False, True)
    assert (is_cached(SUITE, RunOptions()), is_cached(SUITE, RunOptions(cache=False))) == (True, False)
    assert (workers_of(suite, RunOptions()), workers_of(suite, RunOptions(workers=9))) == (3, 9)
    assert workers_of(SUITE, RunOptions()) == DEFAULT_WORKERS


def test_the_form_of_files_is_that_of_the_command_the_case_the_suite_or_the_target() -> None:
    plain, seeded = TargetSpec(name="t", mock=""), TargetSpec(name="t", mock="", file_form="seed")
    case = Case(id="a", execution=told(file_form="xml"))
    suite = Suite(name="s", execution=told(file_form="seed"))
    assert file_form_of(CASE, SUITE, RunOptions(), plain) == "xml"
    assert file_form_of(CASE, SUITE, RunOptions(), seeded) == "seed"
    assert file_form_of(CASE, suite, RunOptions(), plain) == "seed"
    assert file_form_of(case, suite, RunOptions(), seeded) == "xml"
    assert file_form_of(case, suite, RunOptions(file_form="seed"), plain) == "seed"
