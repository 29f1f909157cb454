import pytest

from sightline.catalog.provider import Provider
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob, is_glob
from sightline.evals.core.run_state import (
    DEFAULT_WORKERS,
    RunOptions,
    budget_of,
    cost_limit_of,
    file_form_of,
    is_cached,
    select_cases,
    targets_of,
    threshold_of,
    trials_of,
    workers_of,
)
from sightline.evals.core.suite import Case, Execution, Suite, SuitePlace, Trials
from sightline.evals.core.target import CommandSpec, SuiteTarget, TargetSpec


def test_a_place_is_file_line_and_column() -> None:
    assert str(SuitePlace("suite.yaml", 3, 7)) == "suite.yaml:3:7"
    assert str(SuitePlace("suite.yaml")) == "suite.yaml"


RUNS = CommandSpec(command="agent {PROMPT}")


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (TargetSpec(name="t", model="acme/m"), "model"),
        (TargetSpec(name="t", model="acme/m", replay=""), "replay"),
        (TargetSpec(name="t", mock=""), "mock"),
        (TargetSpec(name="t", cli=RUNS), "cli"),
    ],
)
def test_target_kind_follows_from_its_settings(spec: TargetSpec, kind: str) -> None:
    spec.check()
    assert spec.kind == kind


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (TargetSpec(name="t", mock="a", replay=""), "names mock and replay"),
        (TargetSpec(name="t", mock="a", toolsets=("x",)), "has toolsets and mock"),
        (TargetSpec(name="t", cli=CommandSpec()), "has not one command to run"),
        (TargetSpec(name="t", cli=CommandSpec(command="x", template="codex")), "has not one command to run"),
        (TargetSpec(name="t", concurrency=0), "has concurrency = 0"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(spec: TargetSpec, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        spec.check()
    assert caught.value.hint


OPENAI = Provider(
    dialect="openai-responses",
    base_url="https://api.openai.com/v1",
    also={"openai-chat": ""},
    key_env="OPENAI_API_KEY",
    env_headers={"OpenAI-Project": "PROJECT"},
    home=("openai-chat",),
)


def test_a_target_of_a_suite_is_another_with_its_options() -> None:
    described = SuiteTarget(name="cold", model="mine", temperature=0.0, max_tokens=5)
    used = TargetSpec(name="mine", mock="x", temperature=1.0, top_p=0.5)
    assert not described.has_own_provider
    assert described.spec(used) == TargetSpec(name="cold", mock="x", temperature=0.0, top_p=0.5, max_tokens=5)


def test_target_can_use_another_dialect_of_its_provider() -> None:
    chat = SuiteTarget(name="t", model="openai/x", dialect="openai-chat")
    found = chat.provider(OPENAI)
    assert chat.has_own_provider
    assert (found.dialect, found.base_url, found.key_env) == ("openai-chat", OPENAI.base_url, "OPENAI_API_KEY")
    assert (found.home, found.also) == ((), {})
    same = SuiteTarget(name="t", model="openai/x", dialect="openai-responses").provider(OPENAI)
    assert same.base_url == OPENAI.base_url
    other = Provider(dialect="openai-chat", base_url="https://a/v1", also={"openai-responses": "https://b/v1"})
    assert SuiteTarget(name="t", model="x", dialect="openai-responses").provider(other).base_url == "https://b/v1"


def test_a_key_goes_only_to_the_address_that_it_is_named_for() -> None:
    elsewhere = SuiteTarget(name="t", model="openai/x", base_url="http://relay/v1", headers={"x-team": "blue"})
    found = elsewhere.provider(OPENAI)
    assert (found.base_url, found.key_env, found.env_headers) == ("http://relay/v1", "", {})
    assert found.headers == {"x-team": "blue"}
    keyed = SuiteTarget(name="t", model="openai/x", base_url="http://relay/v1", key_env="RELAY_KEY").provider(OPENAI)
    assert keyed.key_env == "RELAY_KEY"
    assert SuiteTarget(name="t", model="openai/x", key_env="OTHER").provider(OPENAI).base_url == OPENAI.base_url


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


SELECTION_SUITE = Suite(
    name="s",
    cases=(
        Case(id="login", tags=("auth", "fast")),
        Case(id="logout", tags=("auth",), depends_on=("login",)),
        Case(id="billing/invoice", tags=("money", "slow"), depends_on=("logout", "gone")),
        Case(id="billing/refund", tags=("money",)),
    ),
)


def names(**options: object) -> list[str]:
    return [case.id for case in select_cases(SELECTION_SUITE, RunOptions(**options))]  # type: ignore[arg-type]


def test_all_cases_are_selected_by_default() -> None:
    assert names() == ["login", "logout", "billing/invoice", "billing/refund"]


def test_cases_are_chosen_by_tags_and_names() -> None:
    assert names(tags=("fast", "money"), exclude_tags=("slow",)) == ["login", "billing/refund"]
    assert names(cases=("log*",)) == ["login", "logout"]
    assert names(cases=("*refund", "login")) == ["login", "billing/refund"]


def test_what_a_case_depends_on_is_run_with_it() -> None:
    assert names(cases=("billing/invoice",)) == ["login", "logout", "billing/invoice"]
    assert names(cases=("logout",)) == ["login", "logout"]


def test_empty_case_selection_is_reported_with_the_available_cases() -> None:
    with pytest.raises(Fault, match="no case of s is selected") as caught:
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


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.instructions.md", "a.instructions.md", True),
        ("**/*.instructions.md", "x/y/a.instructions.md", True),
        ("**/*.instructions.md", "x/a.md", False),
        ("*.md", "x/a.md", False),
        ("./*.md", "a.md", True),
        ("docs/**", "docs/a/b.md", True),
        ("a**b", "a/x/b", True),
        ("x/**/y.md", "x/y.md", True),
        ("x/**/y.md", "x/a/b/y.md", True),
        ("?.md", "a.md", True),
        ("?.md", "/.md", False),
        ("[a-c]*.md", "b1.md", True),
        ("[!a-c].md", "b.md", False),
        ("[!a-c].md", "d.md", True),
        ("[]x].md", "].md", True),
        ("*.{md,txt}", "a.txt", True),
        ("{**/a,b}.md", "x/a.md", True),
        ("*.{md,txt}", "a.rst", False),
        ("a,b}.md", "a,b}.md", True),
        ("a.md", "aXmd", False),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str, fits: bool) -> None:
    assert compile_glob(pattern).matches(path) is fits


def test_many_stars_of_a_path_pattern_take_no_time() -> None:
    for pattern in ("*a*a*a*a*a*b", "*a" * 200 + "b", "**a" * 100 + "b", "{*a,*aa,*}" * 40 + "b"):
        assert not compile_glob(pattern).matches("a" * 2_000)
        assert compile_glob(pattern).matches("a" * 2_000 + "b")
    assert not compile_glob("**/" * 100 + "b").matches("a/" * 1_000)


@pytest.mark.parametrize("pattern", ["", " ", "[a", "{a", "/a", "../a", "a\\b", "[!]", "[z-a]", "x" * 501])
def test_a_pattern_that_makes_no_sense_is_refused(pattern: str) -> None:
    with pytest.raises(Fault) as caught:
        compile_glob(pattern)
    assert caught.value.hint


def test_glob_patterns_are_distinguished_from_paths() -> None:
    assert is_glob("a/*.md")
    assert not is_glob("a/b.md")
