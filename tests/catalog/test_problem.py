from sightline.catalog.problem import (
    ConfigLocation,
    ConfigProblem,
    fault_of,
    format_path,
    nearest,
    problem_at,
    quote_word,
)
from sightline.errors import Code


def test_a_problem_begins_with_its_place() -> None:
    problem = problem_at(ConfigLocation("sightline.toml", 7), ("providers", "acme", "base_ur"), "no such key")
    assert problem.path == "providers.acme.base_ur"
    assert problem.text == "sightline.toml:7: no such key"


def test_a_variable_has_no_line() -> None:
    problem = problem_at(
        ConfigLocation("environment", variable="SIGHTLINE_SERVER_PORT"), ("server", "port"), "is no number"
    )
    assert problem == ConfigProblem("environment", 0, "SIGHTLINE_SERVER_PORT", "is no number")
    assert problem.text == "environment SIGHTLINE_SERVER_PORT: is no number"


def test_a_path_is_shown_as_one_would_write_it() -> None:
    assert format_path(("models", "acme/large", "prices")) == 'models."acme/large".prices'
    assert format_path(("routes", 0, "provider")) == "routes[0].provider"
    assert format_path(("a b",)) == '"a b"'


def test_the_fault_is_the_first_problem_and_the_count_of_the_others() -> None:
    first, second = (
        ConfigProblem("a.toml", 1, "x", "is wrong", "Do this."),
        ConfigProblem("a.toml", 2, "y", "is wrong too"),
    )
    fault = fault_of([first, second])
    assert fault.code is Code.CONFIG
    assert fault.message == "a.toml:1: is wrong (and 1 more: `sightline config check` shows all)"
    assert fault.hint == "Do this."
    assert fault.details == ["a.toml:1: is wrong", "a.toml:2: is wrong too"]
    assert fault_of([first]).message == "a.toml:1: is wrong"


def test_a_word_in_quotes_cannot_upset_a_terminal() -> None:
    assert quote_word("a\x1b[31m") == '"a?[31m"'
    assert quote_word("x" * 100) == f'"{"x" * 57}..."'


def test_the_nearest_name_is_offered_else_all() -> None:
    assert nearest("OpenAy", ["openai", "azure"]) == 'Did you mean "openai"?'
    assert nearest("zzz", ["openai", "azure"]) == "Known: openai, azure."
    assert nearest("zzz", []) == ""
