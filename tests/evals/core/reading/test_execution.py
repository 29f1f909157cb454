import pytest

from sightline.evals.core.suite import Execution, Trials
from tests.evals.core.reading.stage import messages_of, read

TESTS = "tests: [{id: a, input: x, criteria: y}]\n"


def execution(head: str) -> Execution:
    reading = read(head + TESTS)
    assert reading.suite is not None, messages_of(reading)
    return reading.suite.execution


def test_all_of_it_is_read() -> None:
    head = """execution:
  targets: [fast, {name: slow, use_target: slower}, {name: third}]
  workers: 4
  trials: {count: 3, strategy: pass_at_k, cost_limit_usd: 1.5}
  budget_usd: 2
  threshold: 0.7
  cache: false
  fail_on_error: true
  skip_defaults: true
"""
    assert execution(head) == Execution(
        targets=("fast", "slower", "third"),
        workers=4,
        trials=Trials(count=3, strategy="pass_at_k", cost_limit_usd=1.5),
        budget_usd=2,
        threshold=0.7,
        cache=False,
        fail_on_error=True,
        skip_defaults=True,
    )


def test_a_target_may_stand_beside_and_twice() -> None:
    assert execution("target: a\nexecution: {target: b, targets: [a, b]}\n").targets == ("a", "b")
    assert execution("target: a\n").targets == ("a",)
    assert execution("") == Execution()


def test_a_number_of_trials_is_enough() -> None:
    assert execution("execution: {trials: 5}\n").trials == Trials(count=5)
    assert execution("execution: {trials: {strategy: mean}}\n").trials == Trials()


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("execution: x\n", "execution must be a mapping"),
        ("execution: {worker: 3}\n", 'execution has no key "worker"'),
        ("execution: {workers: 51}\n", "workers must be a whole number from 1 to 50"),
        ("execution: {trials: true}\n", "trials must be a whole number from 1 to 10000 or a mapping"),
        ("execution: {trials: {count: 0}}\n", "count must be"),
        ("execution: {trials: {strategy: best}}\n", "strategy must be one of"),
        ("execution: {targets: [3]}\n", "targets[0] must be text or a mapping"),
        ("execution: {targets: [{hooks: {}}]}\n", "the target has no name"),
        ("execution: {targets: x}\n", "targets must be a list"),
    ],
)
def test_what_makes_no_sense_is_refused(head: str, words: str) -> None:
    assert any(words in each for each in messages_of(read(head + TESTS)))


def test_names_with_capitals_are_read_as_agentv_reads_them() -> None:
    head = "execution: {budgetUsd: 2, failOnError: true, trials: {count: 2, costLimitUsd: 1}}\n"
    found = execution(head)
    assert (found.budget_usd, found.fail_on_error) == (2, True)
    assert found.trials == Trials(count=2, cost_limit_usd=1)


def test_a_strategy_is_told_to_make_no_difference() -> None:
    reading = read("execution: {trials: {count: 2, strategy: pass_at_k}}\n" + TESTS)
    assert [each.severity for each in reading.problems] == ["warning"]
    assert "all trials are shown" in reading.problems[0].message
    assert str(reading.problems[0].place).endswith(":1:42")


def test_two_names_for_one_target_are_told_of() -> None:
    head = "execution: {targets: [{name: a, use_target: t}, {name: b, use_target: t}, c]}\n"
    assert execution(head).targets == ("t", "c")
    assert "is named twice" in messages_of(read(head + TESTS))[0]


def test_hooks_of_a_target_are_told_of() -> None:
    reading = read("execution: {targets: [{name: a, hooks: {before: x}}]}\n" + TESTS)
    assert reading.suite is not None
    assert messages_of(reading) == ["hooks of a target are not run"]
