import pytest

from sightline.catalog.loading import own_names
from sightline.catalog.problem import ConfigProblem
from sightline.catalog.toml import TomlDocument, TomlText, read_toml


def renamed(text: str) -> tuple[TomlDocument, list[ConfigProblem]]:
    return own_names(read_toml(TomlText("sightline.toml", text)))


CODEX = """
[model_providers.acme]
name = "Acme"
base_url = "https://acme.example/v1"
env_key = "ACME_KEY"
env_key_instructions = "Ask Acme."
wire_api = "Responses"
query_params = { api-version = "v1" }
http_headers = { x-team = "blue" }
env_http_headers = { x-trace = "TRACE" }
request_max_retries = 3
[families.own]
family = "Own"
base_instructions = "Be brief."
"""


def test_a_table_that_was_written_for_codex_is_understood() -> None:
    document, problems = renamed(CODEX)
    assert not problems
    assert document.tree == {
        "providers": {
            "acme": {
                "title": "Acme",
                "base_url": "https://acme.example/v1",
                "key_env": "ACME_KEY",
                "key_help": "Ask Acme.",
                "dialect": "openai-responses",
                "query": {"api-version": "v1"},
                "headers": {"x-team": "blue"},
                "env_headers": {"x-trace": "TRACE"},
                "request_max_retries": 3,
            }
        },
        "families": {"own": {"title": "Own", "base_instructions": "Be brief."}},
    }


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("providers",), 2),
        (("providers", "acme"), 2),
        (("providers", "acme", "base_url"), 4),
        (("providers", "acme", "key_env"), 5),
        (("providers", "acme", "headers", "x-team"), 9),
        (("families", "own", "title"), 13),
    ],
)
def test_what_was_renamed_is_found_where_it_stands(path: tuple[str, ...], line: int) -> None:
    document, _ = renamed(CODEX)
    assert document.place(path).line == line


def test_chat_is_the_other_wire_api() -> None:
    document, _ = renamed('[providers.a]\nwire_api = "chat"\n')
    assert document.tree == {"providers": {"a": {"dialect": "openai-chat"}}}


def test_a_wire_api_that_does_not_exist_is_told() -> None:
    _, (problem,) = renamed('[model_providers.a]\nwire_api = "respones"\n')
    assert problem.text.startswith("sightline.toml:2: model_providers.a.wire_api must be one of")
    assert problem.hint == 'Did you mean "responses"?'


def test_a_synonym_beside_its_own_name_is_a_mistake() -> None:
    document, (problem,) = renamed('[providers.a]\nkey_env = "A"\nenv_key = "B"\n')
    assert problem.text == 'sightline.toml:3: providers.a has both "env_key" and "key_env"'
    assert document.tree == {"providers": {"a": {"key_env": "A"}}}


def test_one_provider_under_both_tables_is_a_mistake() -> None:
    document, (problem,) = renamed("[providers.a]\n[model_providers.a]\n[model_providers.b]\nenv_key = 'B'\n")
    assert problem.text == "sightline.toml:2: model_providers.a and providers.a are the same table"
    assert document.tree == {"providers": {"a": {}, "b": {"key_env": "B"}}}
    assert document.place(("providers", "b", "key_env")).line == 4


@pytest.mark.parametrize(
    "text",
    ["providers = 1\n[model_providers.a]\n", "model_providers = 1\n", "[providers]\na = 1\n", "families = []\n"],
)
def test_what_is_no_table_is_left_to_the_reader(text: str) -> None:
    _, problems = renamed(text)
    assert not problems


def test_a_wire_api_that_is_no_text_is_left_to_the_reader() -> None:
    document, problems = renamed("[providers.a]\nwire_api = 3\n")
    assert not problems
    assert document.tree == {"providers": {"a": {"dialect": 3}}}
