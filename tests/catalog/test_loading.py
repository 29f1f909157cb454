from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

import sightline.catalog
from sightline.catalog.catalog import Catalog
from sightline.catalog.loading import LoadedConfig, Overlay, Setting, load, settings_in, variable_form, variables_of
from sightline.catalog.problem import ConfigLocation, ConfigProblem
from sightline.catalog.provider import Provider, Quirks
from sightline.catalog.reading import fields_of, type_of
from sightline.catalog.toml import TomlText
from sightline.dialects.registry import PROVIDER_DIALECTS
from sightline.errors import Code, Fault
from sightline.settings import ServerSettings, Settings
from tests.catalog.documented import PAGE
from tests.catalog.test_toml import read_toml

DATA = Path(sightline.catalog.__file__).parent / "data"
DETECTIONS = TomlText("detections.toml", (DATA / "detections.toml").read_text(), builtin=True)
OWN = TomlText(
    "providers.toml",
    """
[providers.openai]
title = "OpenAI"
dialect = "openai-responses"
base_url = "https://api.openai.example/v1"
key_env = "OPENAI_API_KEY"
headers = { x-one = "1" }
[providers.openai.quirks]
cache_key = true
store = false
[providers.local]
base_url = "${SIGHTLINE_LOCAL_URL}/v1"
key_env = "SIGHTLINE_LOCAL_KEY"
embedded = true
""",
    builtin=True,
)


def loaded(users: str = "", environment: dict[str, str] | None = None) -> LoadedConfig[Settings]:
    return load(
        [OWN, DETECTIONS, TomlText("sightline.toml", users)], environment or {}, Settings, dialects=PROVIDER_DIALECTS
    )


def texts(users: str, environment: dict[str, str] | None = None) -> list[str]:
    return [problem.text for problem in loaded(users, environment).problems]


def test_without_a_word_from_the_user_the_own_tables_hold() -> None:
    result = loaded().require_sound()
    assert list(result.catalog.providers) == ["openai", "local"]
    assert result.settings == Settings()


def test_own_tables_are_the_same_after_somebody_has_laid_others_over_them() -> None:
    before = loaded().require_sound().catalog
    users = '[providers.openai]\nheaders = { x-two = "2" }\n[providers.openai.quirks]\nstore = true\n'
    assert loaded(users).require_sound().catalog != before
    assert loaded().require_sound().catalog == before


def test_sightlines_own_tables_are_sound() -> None:
    documents = [TomlText(path.name, path.read_text(), builtin=True) for path in sorted(DATA.glob("*.toml"))]
    assert (
        load(documents, {}, Settings, dialects=PROVIDER_DIALECTS)
        .require_sound()
        .catalog.providers["azure"]
        .quirks.store
        is True
    )


def test_what_the_settings_say_of_themselves_has_its_place_too() -> None:
    users = TomlText("sightline.toml", "[server]\nport = 1\n\n[tools.mine]\ntimeout_s = 1\n[chat]\nmodl = 1\n")
    problems = load([OWN, users], {}, Settings, Settings.mistakes, dialects=PROVIDER_DIALECTS).problems
    assert [problem.text.partition(": ")[0] for problem in problems] == ["sightline.toml:4", "sightline.toml:7"]
    assert problems[0].message == "[tools.mine] names none of python, mcp, folder and plugin"
    assert 'python = "tools.py"' in problems[0].hint


def test_the_users_table_keeps_what_it_does_not_say() -> None:
    result = loaded('[providers.openai]\nbase_url = "http://127.0.0.1:1"\nheaders = { x-two = "2" }\n').require_sound()
    openai = result.catalog.providers["openai"]
    assert (openai.title, openai.base_url, openai.key_env) == ("OpenAI", "http://127.0.0.1:1", "OPENAI_API_KEY")
    assert openai.headers == {"x-one": "1", "x-two": "2"}


def test_the_environment_is_laid_over_the_file() -> None:
    result = loaded("[server]\nport = 1\nhost = '127.0.0.2'\n", {"SIGHTLINE_SERVER_PORT": "2"}).require_sound()
    assert result.settings.server == ServerSettings(host="127.0.0.2", port=2)


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("3", 3)])
def test_a_word_among_numbers_is_written_in_a_variable_without_quotes(text: str, value: object) -> None:
    assert loaded("", {"SIGHTLINE_SERVER_WORKERS": text}).require_sound().settings.server.workers == value
    (problem,) = texts("", {"SIGHTLINE_SERVER_WORKERS": "all"})
    assert 'must be a whole number from 1 to 256 or "auto"' in problem


def test_a_value_of_the_environment_can_be_wrong_too() -> None:
    assert texts("", {"SIGHTLINE_SERVER_PORT": "70000"}) == [
        "environment SIGHTLINE_SERVER_PORT: server.port must be a whole number from 0 to 65535, not 70000"
    ]


def test_all_problems_are_reported_in_file_order() -> None:
    users = """[server]
prot = 1
[providers.acme]
base_ur = "http://x"
[[routes]]
model = "x"
[[routes]]
provider = "acne"
[route]
"""
    assert texts(users, {"SIGHTLINE_SERVER_PROT": "1"}) == [
        'sightline.toml:2: server has no key "prot"',
        "sightline.toml:3: providers.acme has no base_url",
        'sightline.toml:4: providers.acme has no key "base_ur"',
        'sightline.toml:5: routes[0] lacks the key "provider"',
        'sightline.toml:8: routes[1].provider names a provider that does not exist: "acne"',
        'sightline.toml:9: there is no table "route"',
        "environment SIGHTLINE_SERVER_PROT: no key of the configuration has this name",
    ]
    with pytest.raises(Fault) as caught:
        loaded(users).require_sound()
    assert caught.value.code is Code.CONFIG
    assert caught.value.message.startswith('sightline.toml:2: server has no key "prot" (and 5 more')
    assert caught.value.hint == 'Did you mean "port"?'


def test_a_file_that_is_no_toml_is_one_problem() -> None:
    result = loaded("[server\n")
    assert [problem.line for problem in result.problems] == [1]
    assert "openai" in result.catalog.providers


def test_codex_names_are_understood_and_checked() -> None:
    users = '[model_providers.acme]\nname = "Acme"\nbase_url = "http://x"\nenv_key = "A"\nwire_api = "chat"\n'
    assert loaded(users).require_sound().catalog.providers["acme"] == Provider(
        title="Acme", base_url="http://x", key_env="A"
    )
    assert texts('[model_providers.acme]\nbase_url = "http://x"\nenv_key = "sk-1"\n') == [
        "sightline.toml:3: providers.acme.key_env has to be the name of the variable, never the key itself"
    ]
    assert len(texts('[providers.acme]\nbase_url = "http://x"\nenv_key = "A"\nkey_env = "A"\n')) == 1


def test_the_example_of_the_reference_page_is_sound() -> None:
    example = PAGE.read_text().partition("```toml\n")[2].partition("```")[0]
    assert loaded(example).require_sound().catalog.routes[0].as_ == "acme-large"


@given(st.text())
def test_whatever_the_file_says_nothing_is_raised(users: str) -> None:
    assert isinstance(loaded(users).catalog, Catalog)


# --- detections -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://x.openai.azure.com/openai/v1",
        "https://x.cognitiveservices.azure.com/openai/v1",
        "https://x.aoai.azure.us/v1",
        "https://x.azure-api.net/v1",
        "https://x.azurefd.net/v1",
        "https://x.blob.core.windows.net/openai/v1",
    ],
)
def test_azure_is_recognised_by_its_address(url: str) -> None:
    provider = loaded(f'[providers.mine]\nbase_url = "{url}"\n').require_sound().catalog.providers["mine"]
    assert provider == Provider(base_url=url, key_header="api-key", quirks=Quirks(store=True))


def test_azure_is_recognised_by_its_name_too_and_others_are_not() -> None:
    users = '[providers.Azure]\nbase_url = "http://x"\n[providers.web]\nbase_url = "http://x.azurewebsites.net/azure-api."\n'
    providers = loaded(users).require_sound().catalog.providers
    assert providers["Azure"].key_header == "api-key"
    assert providers["web"].key_header == ""


def test_a_detection_wins_over_the_own_tables_and_not_over_the_user() -> None:
    users = '[providers.openai]\nbase_url = "https://x.openai.azure.com/openai/v1"\n'
    openai = loaded(users).require_sound().catalog.providers["openai"]
    assert openai.quirks == Quirks(cache_key=True, store=True)
    kept = loaded(f"{users}key_header = 'x-mine'\nquirks.store = false\n").require_sound().catalog.providers["openai"]
    assert (kept.key_header, kept.quirks.store) == ("x-mine", False)


def test_an_address_from_the_environment_is_recognised() -> None:
    environment = {"SIGHTLINE_PROVIDERS_MINE_BASE_URL": "https://x.openai.azure.com/openai/v1"}
    assert loaded("", environment).require_sound().catalog.providers["mine"].quirks.store is True


def test_a_detection_of_the_users_own() -> None:
    users = """[detections.gate]
url_contains = ["gate.example"]
[detections.bare]
names = ["local"]
[providers.mine]
base_url = "https://gate.example/v1"
[detections.gate.provider]
headers = { x-team = "blue" }
request_max_retries = 0
"""
    provider = loaded(users).require_sound().catalog.providers["mine"]
    assert (provider.headers, provider.request_max_retries) == ({"x-team": "blue"}, 0)


def test_mistake_in_a_detection_is_reported_only_once() -> None:
    users = '[detections.gate]\nnames = ["openai"]\nprovider = { dialct = "gemini", title = 3, default_model = "m" }\n'
    assert len(texts(users)) == 2
    assert loaded(users).catalog.providers["openai"].default_model == "m"
    assert texts('[detections.gate]\nnames = ["openai"]\nprovider = 3\n') == [
        "sightline.toml:3: detections.gate.provider must be a table, not 3"
    ]


# --- what the user does to a built-in provider ----------------------------------------------------


SEVERAL = TomlText(
    "providers.toml",
    """
[providers.several]
dialect = "gemini"
base_url = "https://several.example"
also = { openai-chat = "https://several.example/openai", anthropic = "" }
[models.m]
providers = ["several"]
aliases = ["n"]
""",
    builtin=True,
)


def several(users: str) -> LoadedConfig[Settings]:
    return load([SEVERAL, DETECTIONS, TomlText("sightline.toml", users)], {}, Settings, dialects=PROVIDER_DIALECTS)


def test_another_dialect_of_a_built_in_provider_can_be_chosen_and_has_its_own_address() -> None:
    chosen = several('[providers.several]\ndialect = "openai-chat"\n').require_sound().catalog.providers["several"]
    assert (chosen.dialect, chosen.base_url) == ("openai-chat", "https://several.example/openai")
    assert chosen.also == {"anthropic": "", "gemini": "https://several.example"}
    chosen = several('[providers.several]\ndialect = "anthropic"\n').require_sound().catalog.providers["several"]
    assert (chosen.dialect, chosen.base_url) == ("anthropic", "https://several.example")
    assert chosen.also == {"openai-chat": "https://several.example/openai", "gemini": ""}


def test_an_address_of_the_users_stays() -> None:
    users = '[providers.several]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    chosen = several(users).require_sound().catalog.providers["several"]
    assert (chosen.base_url, chosen.also) == ("http://127.0.0.1:9/v1", {"anthropic": "", "gemini": ""})


def test_a_dialect_that_the_user_names_twice_is_their_mistake() -> None:
    users = '[providers.several]\ndialect = "openai-chat"\nalso = { openai-chat = "http://x/v1" }\n'
    [problem] = several(users).problems
    assert problem.text == "sightline.toml:3: providers.several.also.openai-chat is what the provider speaks anyway"


@pytest.mark.parametrize(
    ("users", "text"),
    [
        ("providers.several = 3\n", "sightline.toml:1: providers.several must be a table, not 3"),
        ("[models.n]\nrpm = 1\n", 'sightline.toml:1: models.n and "m" both have the name "n"'),
    ],
)
def test_what_only_follows_from_the_users_mistake_is_not_blamed_on_our_own_tables(users: str, text: str) -> None:
    assert [problem.text for problem in several(users).problems] == [text]


# --- variables ------------------------------------------------------------------------------------


def test_a_variable_that_a_provider_names_may_begin_like_ours() -> None:
    users = '[providers.acme]\nbase_url = "${SIGHTLINE_ACME}/v1"\nkey_env = "SIGHTLINE_MY_KEY"\n'
    names = {"SIGHTLINE_ACME": "http://x", "SIGHTLINE_MY_KEY": "k", "SIGHTLINE_LOCAL_KEY": "k"}
    assert texts(users, names) == []
    assert len(texts("", names)) == 2


def test_every_variable_that_a_provider_needs_is_known() -> None:
    provider = Provider(
        base_url="${A}/v1", also={"gemini": "${B}", "anthropic": ""}, key_env="C", env_headers={"x": "D"}
    )
    assert sorted(variables_of(Catalog(providers={"x": provider}))) == ["A", "B", "C", "D"]


ANYTHING = st.recursive(
    st.integers(-5, 5).map(str) | st.sampled_from(["true", '"x"', '"http://x"', "[]", "1979-05-27"]),
    lambda inner: st.lists(inner, max_size=2).map(lambda each: f"[{', '.join(each)}]"),
    max_leaves=3,
)
TABLES = st.sampled_from(
    ["providers.a", "models.b", "families.c", "detections.d", "server", "a.b", "detections.d.provider"]
)
KEYS = st.sampled_from(["base_url", "names", "provider", "quirks", "port", "match", "env_key", "key_env", "also", "x"])


@given(st.dictionaries(TABLES, st.dictionaries(KEYS, ANYTHING, max_size=3), max_size=4))
def test_arbitrary_user_configuration_never_raises(tables: dict[str, dict[str, str]]) -> None:
    users = "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items()) for name, table in tables.items()
    )
    result = loaded(users)
    assert isinstance(result.catalog, Catalog)
    assert isinstance(result.settings, Settings)


def test_a_value_where_a_table_belongs_does_not_take_our_own_tables_with_it() -> None:
    builtin = TomlText("own.toml", '[providers.maker]\nbase_url = "http://127.0.0.1:1"\n', builtin=True)
    read = load([builtin, TomlText("mine.toml", "providers = 3\n")], {}, Settings, dialects=PROVIDER_DIALECTS)
    assert [problem.text for problem in read.problems] == ["mine.toml:1: providers must be a table, not 3"]
    assert list(read.catalog.providers) == ["maker"]


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
    return settings_in(environment, SCHEMA, TREE, PROVIDER_DIALECTS)


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
def test_invalid_toml_value_is_reported_without_echoing_it(text: str) -> None:
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


def laid(*texts: tuple[str, str]) -> Overlay:
    """Texts over each other; those of `own.toml` are built in."""
    overlay = Overlay()
    for file, text in texts:
        document = read_toml(TomlText(file, text, builtin=file == "own.toml"))
        overlay.lay(document.tree, document)
    return overlay


OVERLAY_OWN = ("own.toml", '[p.a]\nurl = "x"\nlist = [1, 2]\nheaders = { one = "1" }\n')
USERS = ("users.toml", '\n[p.a]\nlist = [3]\nheaders = { two = "2" }\n')


def test_tables_are_merged_and_anything_else_is_replaced() -> None:
    overlay = laid(OVERLAY_OWN, USERS)
    assert overlay.tree == {"p": {"a": {"url": "x", "list": [3], "headers": {"one": "1", "two": "2"}}}}


def test_each_value_keeps_the_location_that_set_it() -> None:
    overlay = laid(OVERLAY_OWN, USERS)
    assert overlay.place(("p", "a", "url")) == ConfigLocation("own.toml", 2)
    assert overlay.place(("p", "a", "list", 0)) == ConfigLocation("users.toml", 3)
    assert overlay.place(("p", "a", "missing")) == ConfigLocation("users.toml", 2)
    assert overlay.is_users(("p", "a", "headers", "two"))
    assert not overlay.is_users(("p", "a", "headers", "one"))
    assert not overlay.is_users(("p", "b"))


def test_a_document_is_not_changed_by_what_is_laid_over_it() -> None:
    first = read_toml(TomlText("own.toml", OVERLAY_OWN[1], builtin=True))
    overlay = Overlay()
    overlay.lay(first.tree, first)
    second = read_toml(TomlText(*USERS))
    overlay.lay(second.tree, second)
    assert first.tree == read_toml(TomlText(*OVERLAY_OWN)).tree


def test_a_table_over_something_else_and_back() -> None:
    assert laid(("own.toml", "a = 1"), ("users.toml", "[a]\nb = 2")).tree == {"a": {"b": 2}}
    assert laid(("own.toml", "[a]\nb = 2"), ("users.toml", "a = 1")).tree == {"a": 1}


def test_what_goes_below_the_users_values_goes_above_the_own_ones() -> None:
    overlay = laid(OVERLAY_OWN, USERS)
    overlay.lay_below_the_users({"url": "y", "list": [9], "headers": {"one": "9", "two": "9"}, "new": 1}, "p", "a")
    assert overlay.tree["p"] == {"a": {"url": "y", "list": [3], "headers": {"one": "9", "two": "2"}, "new": 1}}
