from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from sightline.catalog.catalog import Catalog
from sightline.catalog.environment import Setting, settings_in, variable_form
from sightline.catalog.problem import ConfigLocation, ConfigProblem
from sightline.catalog.reading import fields_of, type_of
from sightline.settings import Settings

SCHEMA = {
    name: field.type
    for struct in (Catalog, Settings)
    for name, field in fields_of(cast(inspect.StructType, type_of(struct))).items()
}
TREE = {
    "providers": {"acme": {"headers": {"x-team": "blue"}}, "acme-two": {}, "Odd.Name": {}},
    "models": {"gpt-5": {}, "gpt-5-mini": {}, "vendor/large": {}},
    "families": 3,
}


def found(environment: Mapping[str, str]) -> tuple[list[Setting], list[ConfigProblem]]:
    return settings_in(environment, SCHEMA, TREE)


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("SERVER_PORT", "7701", ("server", "port"), 7701),
        ("SERVER_HOST", "0.0.0.0", ("server", "host"), "0.0.0.0"),
        ("SERVER_ALLOWED_ORIGINS", '["http://a"]', ("server", "allowed_origins"), ["http://a"]),
        ("LOCAL_URL", "http://127.0.0.1:1", ("local", "url"), "http://127.0.0.1:1"),
        ("PROVIDERS_ACME_BASE_URL", "http://x", ("providers", "acme", "base_url"), "http://x"),
        ("PROVIDERS_ACME_TWO_TITLE", "2", ("providers", "acme-two", "title"), "2"),
        ("PROVIDERS_ODD_NAME_DIALECT", "gemini", ("providers", "Odd.Name", "dialect"), "gemini"),
        ("PROVIDERS_NEW_CO_BASE_URL", "http://x", ("providers", "new_co", "base_url"), "http://x"),
        (
            "PROVIDERS_ACME_QUIRKS_THINKING_FIELD",
            "reasoning",
            ("providers", "acme", "quirks", "thinking_field"),
            "reasoning",
        ),
        ("PROVIDERS_NEW_QUIRKS_STORE", "true", ("providers", "new", "quirks", "store"), True),
        ("PROVIDERS_ACME_HEADERS_X_TEAM", "red", ("providers", "acme", "headers", "x-team"), "red"),
        ("PROVIDERS_ACME_HEADERS_X_NEW", "1", ("providers", "acme", "headers", "x_new"), "1"),
        ("PROVIDERS_ACME_HEADERS", '{ "x-a" = "b" }', ("providers", "acme", "headers"), {"x-a": "b"}),
        ("PROVIDERS_ACME_ALSO_OPENAI_RESPONSES", "", ("providers", "acme", "also", "openai-responses"), ""),
        ("MODELS_GPT_5_MINI_CONTEXT_WINDOW", "8_000", ("models", "gpt-5-mini", "context_window"), 8000),
        ("MODELS_GPT_5_MAX_OUTPUT", "9", ("models", "gpt-5", "max_output"), 9),
        ("MODELS_VENDOR_LARGE_PRICES_INPUT", "0.5", ("models", "vendor/large", "prices", "input"), 0.5),
        ("FAMILIES_MINE_MATCH", '["m-*"]', ("families", "mine", "match"), ["m-*"]),
        ("ROUTES", '[{ provider = "acme" }]', ("routes",), [{"provider": "acme"}]),
    ],
)
def test_a_variable_sets_the_key_that_its_name_spells(
    variable: str, text: str, path: tuple[str, ...], value: object
) -> None:
    (setting,), problems = found({f"SIGHTLINE_{variable}": text})
    assert not problems
    assert (setting.path, setting.value) == (path, value)


def test_a_setting_is_the_users_and_comes_from_its_variable() -> None:
    (setting,), _ = found({"SIGHTLINE_SERVER_PORT": "1"})
    assert setting.tree == {"server": {"port": 1}}
    assert setting.place(("server", "port")) == ConfigLocation("environment", variable="SIGHTLINE_SERVER_PORT")
    assert not setting.builtin


def test_other_variables_and_reserved_ones_are_left_alone() -> None:
    others = {
        "PATH": "/bin",
        "SIGHTLINE": "x",
        "SIGHTLINE_CONFIG": "f",
        "SIGHTLINE_DATA": "d",
        "SIGHTLINE_LOCAL_KEY": "k",
    }
    assert found(others) == ([], [])


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("SIGHTLINE_SERVER_PROT", "SIGHTLINE_SERVER_PORT"),
        ("SIGHTLINE_server_port", "SIGHTLINE_SERVER_PORT"),
        ("SIGHTLINE_PROVIDERS_ACME_BASE_UR", "SIGHTLINE_PROVIDERS_ACME_BASE_URL"),
        ("SIGHTLINE_MODELS_GPT_5_CONTEXT_WINDO", "SIGHTLINE_MODELS_GPT_5_CONTEXT_WINDOW"),
        ("SIGHTLINE_PROVIDERS_ACME_ALSO_GEMINIX", ""),
        ("SIGHTLINE_SERVER_PORT_", "SIGHTLINE_SERVER_PORT"),
        ("SIGHTLINE_SERVER_PORT_X", "SIGHTLINE_SERVER_PORT"),
        ("SIGHTLINE_PROVIDERS__TITLE", ""),
        ("SIGHTLINE_PROVIDERS_NEW_", ""),
        ("SIGHTLINE_", ""),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(variable: str, nearest: str) -> None:
    settings, (problem,) = found({variable: "1"})
    assert not settings
    assert problem.text == f"environment {variable}: no key of the configuration has this name"
    assert nearest in problem.hint


@pytest.mark.parametrize("text", ["", "abc", "1\nother = 2", "[" * 3000, "9" * 5000])
def test_a_value_that_is_no_toml_is_told_and_not_repeated(text: str) -> None:
    settings, (problem,) = found({"SIGHTLINE_SERVER_PORT": text})
    assert not settings
    assert problem.path == "SIGHTLINE_SERVER_PORT"
    assert problem.message == "server.port must be a whole number from 0 to 65535, written as in the file"


def test_a_name_in_a_variable_is_in_capitals_and_plain() -> None:
    assert variable_form("vendor/large-2.5") == "VENDOR_LARGE_2_5"


@given(st.dictionaries(st.text(alphabet="ABCPROVIDERSQUKXHEAT_", max_size=30).map("SIGHTLINE_".__add__), st.text()))
def test_whatever_the_variables_each_is_a_setting_or_a_problem(environment: dict[str, str]) -> None:
    settings, problems = found(environment)
    told = [setting.variable for setting in settings] + [problem.path for problem in problems]
    assert sorted(told) == sorted(environment)
