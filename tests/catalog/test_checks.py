from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sightline.catalog.catalog import Catalog, check, is_variable_name
from sightline.catalog.facts import Family, Model
from sightline.catalog.problem import (
    ConfigLocation,
    ConfigProblem,
    fault_of,
    format_path,
    nearest,
    problem_at,
    quote_word,
)
from sightline.catalog.provider import Provider, Route
from sightline.errors import Code

SOUND = Provider(base_url="https://acme.example/v1")


def nowhere(path: object) -> ConfigLocation:
    return ConfigLocation("t.toml", 1)


def problems_of(catalog: Catalog) -> list[ConfigProblem]:
    tree = {"routes": [{"provider": route.provider} for route in catalog.routes]}
    return check(catalog, tree, nowhere)


def told(provider: Provider, name: str = "acme") -> list[str]:
    return [problem.message for problem in problems_of(Catalog(providers={name: provider}))]


def test_a_sound_catalogue_has_no_problems() -> None:
    provider = Provider(
        base_url="${ACME_URL}/v1",
        also={"gemini": "", "anthropic": "http://[::1]:8080"},
        key_env="ACME_API_KEY",
        key_header="api-key",
        headers={"x-team": "blue one", "x-empty": "", "x-commit": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"},
        env_headers={"x-trace": "trace_id"},
        query={"api-version": "v1"},
    )
    catalog = Catalog(
        providers={"acme": provider, "local": Provider(embedded=True)},
        families={"f": Family(providers=("acme",))},
        models={"m": Model(providers=("acme",), family="f", aliases=("n", "o")), "p": Model()},
        routes=(Route(provider="acme"),),
    )
    assert problems_of(catalog) == []


URL, QUERY = "must be an http(s) URL, or begin with ${NAME}, a variable", "has a query or a fragment"
NO_URL = "is no URL: its host or port cannot be"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("acme.example/v1", URL), ("ftp://acme.example", URL), ("https://", URL), ("https:///v1", URL),
        ("https://a b/v1", URL), ("https://münchen.example", URL), ("https://a.example/\x7f\n", URL),
        ("file:///etc/passwd", URL), ("$NAME/v1", URL), ("x${NAME}/v1", URL),
        ("http://a.example:99999/v1", NO_URL), ("http://a.example:port", NO_URL), ("http://[::1/v1", NO_URL),
        ("https://a.example/v1?a=1", QUERY), ("https://a.example/#x", QUERY), ("https://a.example/v1?", QUERY),
    ],
)  # fmt: skip
def test_a_base_url_is_an_address_or_begins_with_a_variable(url: str, message: str) -> None:
    assert told(Provider(base_url=url)) == [f"providers.acme.base_url {message}"]


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    (problem,) = problems_of(Catalog(providers={"acme": Provider(base_url="https://me:hunter2@a.example/v1")}))
    assert problem.message == "providers.acme.base_url holds a user name or password"
    assert "hunter2" not in problem.text + problem.hint


NO_HEADER = "has characters that no header can have"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"base_url": ""}, " has no base_url"),
        ({"also": {"anthropic": "nowhere"}}, f".also.anthropic {URL}"),
        ({"dialect": "gemini", "also": {"gemini": ""}}, ".also.gemini is what the provider speaks anyway"),
        ({"headers": {"x team": "a"}}, '.headers."x team" is no name of a header'),
        ({"headers": {"": "a"}}, '.headers."" is no name of a header'),
        ({"headers": {"x-a": "a\r\nx-b: c"}}, f".headers.x-a {NO_HEADER}"),
        ({"headers": {"x-a": " a"}}, f".headers.x-a {NO_HEADER}"),
        ({"headers": {"x-a": "é"}}, f".headers.x-a {NO_HEADER}"),
        ({"headers": {"Content-Length": "1"}}, ".headers.Content-Length is a header that Sightline sets itself"),
        ({"env_headers": {"host": "NAME"}}, ".env_headers.host is a header that Sightline sets itself"),
        ({"key_header": "api key"}, ".key_header is no name of a header"),
        ({"query": {"key": "x"}}, ".query.key holds a secret"),
        ({"query": {"token": "sk-abcdef0123456789abcdef"}}, ".query.token holds a secret"),
    ],
)
def test_what_cannot_be_sent_is_named_by_its_key(table: dict[str, Any], message: str) -> None:
    assert told(msgspec.structs.replace(SOUND, **table)) == [f"providers.acme{message}"]


@pytest.mark.parametrize("name", ["", "a/b", " a"])
def test_invalid_provider_name_is_reported(name: str) -> None:
    (message,) = told(SOUND, name)
    assert message.endswith("is no name for a provider")


@pytest.mark.parametrize(
    "key",
    [
        "sk-abcdef0123456789abcdef",
        "sk-short",
        "gsk_abcdefghij0123456789ABCDEFG",
        "AIzaSyA0123456789abcdefghijklmn",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "MY KEY",
        "${ACME_API_KEY}",
    ],
)
def test_a_key_where_its_variable_belongs_is_refused_and_not_repeated(key: str) -> None:
    provider = Provider(base_url="http://a", key_env=key, env_headers={"x-trace": key})
    problems = problems_of(Catalog(providers={"acme": provider}))
    assert [problem.message for problem in problems] == [
        "providers.acme.key_env has to be the name of the variable, never the key itself",
        "providers.acme.env_headers.x-trace has to be the name of the variable, never the value itself",
    ]
    assert not any(key in problem.text + problem.hint for problem in problems)


def test_a_signed_request_carries_no_key_and_its_secrets_are_in_variables() -> None:
    provider = Provider(base_url="http://a", key_env="ACME", sign="x", sign_env=("ACME_SECRET", "sk-short"))
    assert [problem.message for problem in problems_of(Catalog(providers={"acme": provider}))] == [
        "providers.acme.sign stands beside key_env",
        "providers.acme.sign_env[1] has to be the name of the variable, never the secret itself",
    ]


def test_the_variables_of_signatures_are_secrets() -> None:
    bedrock = Provider(sign="aws-sigv4", env_headers={"x-team": "TEAM"})
    assert bedrock.has_credential
    assert bedrock.secret_variables == ("TEAM", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    assert Provider(key_env="A", sign_env=("B",)).secret_variables == ("A", "B")
    assert not Provider().has_credential


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "hf_token", "key2", "_x", "MY_VERY_LONG_VARIABLE_NAME_NUMBER_2"])
def test_ordinary_names_of_variables_are_taken(name: str) -> None:
    assert is_variable_name(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer x"),
        ("x-api-key", "hunter2"),
        ("API-Key", ""),
        ("cookie", "a=b"),
        ("x-own", "sk-abcdef0123456789abcdef"),
        ("x-own", "Token gsk_abcdefghij0123456789ABCDEFG"),
    ],
)
def test_a_secret_in_a_header_is_refused_and_not_repeated(name: str, value: str) -> None:
    (problem,) = problems_of(Catalog(providers={"acme": msgspec.structs.replace(SOUND, headers={name: value})}))
    assert problem.message == f"providers.acme.headers.{name} holds a secret"
    assert "env_headers" in problem.hint
    assert not value or value not in problem.text + problem.hint


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda name: Catalog(providers={"acme": SOUND}, routes=(Route(provider=name),)), "routes[0].provider"),
        (lambda name: Catalog(providers={"acme": SOUND}, models={"m": Model(providers=(name,))}), "models.m.providers"),
        (
            lambda name: Catalog(providers={"acme": SOUND}, families={"f": Family(providers=(name,))}),
            "families.f.providers",
        ),
    ],
)
def test_a_provider_that_does_not_exist_gets_the_nearest(build: Callable[[str], Catalog], path: str) -> None:
    (problem,) = problems_of(build("acne"))
    assert problem.path == path
    assert problem.message == f'{path} names a provider that does not exist: "acne"'
    assert problem.hint == 'Did you mean "acme"?'


def test_unknown_family_is_reported() -> None:
    (problem,) = problems_of(Catalog(models={"m": Model(family="gtp")}, families={"gpt": Family()}))
    assert problem.message == 'models.m.family names a family that does not exist: "gtp"'


@pytest.mark.parametrize("routes", [None, 3, [3], [{}], [{"provider": 3}]])
def test_routes_that_could_not_be_read_are_left_to_the_reader(routes: object) -> None:
    assert check(Catalog(), {"routes": routes}, nowhere) == []


def test_one_alias_is_one_model() -> None:
    models = {"a": Model(aliases=("x", "b")), "b": Model(aliases=("x",)), "c": Model(aliases=("c",))}
    assert [problem.message for problem in problems_of(Catalog(models=models))] == [
        'models.a.aliases has "b", which means "b" already',
        'models.b and "a" both have the name "b"',
        'models.b.aliases has "x", which means "a" already',
        'models.a and "b" both have the name "x"',
    ]


def test_problems_are_reported_with_their_location() -> None:
    (problem,) = check(Catalog(providers={"acme": Provider()}), {}, lambda path: ConfigLocation("x.toml", len(path)))
    assert problem.text.startswith("x.toml:2: ")


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
