import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.clients import BASE_URLS, CLIENTS, CREDENTIALS, Stage, client_in, outfit, own_upstreams, version_of
from sightline.errors import Code, Fault
from sightline.exchange.routing import PLACEHOLDER

SERVER = "http://127.0.0.1:7700"
KEYS = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-ant-1", "GEMINI_API_KEY": "g-1"}


def stage(tmp_path: Path, environment: dict[str, str] | None = None, **others: Any) -> Stage:
    given: dict[str, Any] = {"server": SERVER, "session": "s1", "home": tmp_path, "folder": tmp_path / "private"}
    return Stage(environment=environment or {}, **(given | others))


def keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- which client it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "client", "place"),
    [
        (["codex", "exec"], "codex", 0),
        (["/opt/bin/claude", "-p", "codex"], "claude", 0),
        (["Gemini.CMD"], "gemini", 0),
        (["npx", "-y", "@openai/codex@latest", "exec"], "codex", 2),
        (["npx", "@anthropic-ai/claude-code"], "claude", 1),
        (["bunx", "opencode-ai@1.2"], "opencode", 1),
        (["node", "gemini.js"], "gemini", 1),
        (["npx", "cowsay"], "npx", 0),
        (["python", "codex.py"], "python", 0),
        (["./agent.py", "codex"], "agent", 0),
    ],
)
def test_a_client_is_known_by_its_name(command: list[str], client: str, place: int) -> None:
    assert client_in(command) == (client, place)


# --- what every command gets ------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["python", *CLIENTS])
def test_every_command_gets_base_urls_with_its_session(tmp_path: Path, client: str) -> None:
    given = outfit(client, stage(tmp_path, KEYS, session="my task/1"))
    label = "/s/my%20task%2F1"
    assert {name: given.variables[name] for name, _, _ in BASE_URLS} == {
        "OPENAI_BASE_URL": f"{SERVER}{label}/v1",
        "OPENAI_API_BASE": f"{SERVER}{label}/v1",
        "ANTHROPIC_BASE_URL": f"{SERVER}{label}",
        "ANTHROPIC_API_BASE": f"{SERVER}{label}",
        "GOOGLE_GEMINI_BASE_URL": f"{SERVER}{label}",
        "GEMINI_API_BASE": f"{SERVER}{label}/v1beta",
    }


@pytest.mark.parametrize("client", ["python", *CLIENTS])
def test_keys_that_are_there_stay_as_they_are(tmp_path: Path, client: str) -> None:
    given = outfit(client, stage(tmp_path, KEYS))
    assert not {name for names in CREDENTIALS.values() for name in names} & given.variables.keys()


def test_missing_keys_get_a_placeholder(tmp_path: Path) -> None:
    given = outfit("python", stage(tmp_path, {"OPENAI_API_KEY": " "})).variables
    assert [given[name] for name in KEYS] == [PLACEHOLDER] * 3
    some = outfit("python", stage(tmp_path, {"GOOGLE_API_KEY": "g", "ANTHROPIC_AUTH_TOKEN": "t"})).variables
    assert some.keys() & KEYS.keys() == {"OPENAI_API_KEY"}


def test_claude_code_gets_it_as_a_token_because_it_asks_about_keys(tmp_path: Path) -> None:
    given = outfit("claude", stage(tmp_path)).variables
    assert given["ANTHROPIC_AUTH_TOKEN"] == PLACEHOLDER
    assert "ANTHROPIC_API_KEY" not in given


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".claude/.credentials.json", "{}"),
        (".claude.json", '{"oauthAccount": {"emailAddress": "a@example.com"}}'),
        (".claude/settings.json", '{"apiKeyHelper": "print-key"}'),
    ],
)
def test_existing_claude_login_is_kept(tmp_path: Path, file: str, text: str) -> None:
    keep(tmp_path / file, text)
    for client in ("claude", "bash"):
        given = outfit(client, stage(tmp_path)).variables
        assert not {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} & given.keys()


def test_vendors_of_the_same_api_are_named_where_their_key_is(tmp_path: Path) -> None:
    environment = {"GROQ_API_KEY": "k", "XAI_API_KEY": "k", "XAI_API_BASE": "http://own", "MISTRAL_API_KEY": "k"}
    given = outfit("python", stage(tmp_path, environment, providers=frozenset({"groq", "xai"}))).variables
    assert given["GROQ_API_BASE"] == f"{SERVER}/p/groq/s/s1/v1"
    assert not {"XAI_API_BASE", "MISTRAL_API_BASE", "CEREBRAS_API_BASE"} & given.keys()


def test_proxies_are_for_other_machines(tmp_path: Path) -> None:
    assert "no_proxy" not in outfit("python", stage(tmp_path)).variables
    given = outfit("python", stage(tmp_path, {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "corp"})).variables
    assert given["no_proxy"] == given["NO_PROXY"] == "corp,127.0.0.1,localhost"
    elsewhere = stage(tmp_path, {"all_proxy": "http://proxy:1"}, server="http://10.0.0.5:7700")
    assert outfit("python", elsewhere).variables["no_proxy"] == "127.0.0.1,localhost,10.0.0.5"


# --- Codex ------------------------------------------------------------------------------------------


def overrides(given: Any) -> dict[str, Any]:
    assert given.words[::2] == ("-c",) * (len(given.words) // 2)
    return {key: json.loads(value) for key, _, value in (word.partition("=") for word in given.words[1::2])}


def test_codex_without_a_login_gets_a_provider_of_its_own(tmp_path: Path) -> None:
    assert overrides(outfit("codex", stage(tmp_path))) == {
        "model_provider": "sightline",
        "model_providers.sightline.name": "Sightline",
        "model_providers.sightline.base_url": f"{SERVER}/s/s1/v1",
        "model_providers.sightline.wire_api": "responses",
        "model_providers.sightline.env_key": "OPENAI_API_KEY",
        "model_providers.sightline.supports_websockets": True,
    }
    assert outfit("python", stage(tmp_path)).words == ()


def test_claude_code_keeps_tool_search(tmp_path: Path) -> None:
    name = "ENABLE_TOOL_SEARCH"
    assert outfit("claude", stage(tmp_path)).variables[name] == "true"
    assert outfit("claude", stage(tmp_path, version="2.1.197")).variables[name] == "true"
    assert name not in outfit("claude", stage(tmp_path, version="2.1.69")).variables
    assert name not in outfit("claude", stage(tmp_path, {name: "auto:5"})).variables
    assert name not in outfit("claude", stage(tmp_path, routes=True)).variables
    assert name not in outfit("gemini", stage(tmp_path)).variables


def test_the_version_of_a_client_is_that_of_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "package" / "bin" / "agent.js"
    keep(program, "")
    program.chmod(0o755)
    keep(tmp_path / "package" / "package.json", '{"version": "2.1.197"}')
    (tmp_path / "agent").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert version_of("agent") == "2.1.197"
    assert version_of("nothing-of-this-name") == ""


def test_codex_with_a_key_of_its_own_keeps_its_provider(tmp_path: Path) -> None:
    keep(tmp_path / ".codex/auth.json", '{"OPENAI_API_KEY": "sk-2"}')
    given = outfit("codex", stage(tmp_path))
    assert overrides(given) == {"openai_base_url": f"{SERVER}/s/s1/v1"}
    assert "OPENAI_API_KEY" not in given.variables
    by_variable = outfit("codex", stage(tmp_path / "other", {"CODEX_API_KEY": "sk-3"}))
    assert overrides(by_variable) == {"openai_base_url": f"{SERVER}/s/s1/v1"}


@pytest.mark.parametrize(
    ("file", "text"),
    [("auth.json", '{"tokens": {"access_token": "t"}}'), ("config.toml", 'cli_auth_credentials_store = "keyring"')],
)
def test_codex_signed_in_with_chatgpt_goes_to_where_that_login_is_good(tmp_path: Path, file: str, text: str) -> None:
    keep(tmp_path / "own" / file, text)
    environment = {"CODEX_HOME": str(tmp_path / "own")}
    known = stage(tmp_path, environment, providers=frozenset({"chatgpt"}))
    assert overrides(outfit("codex", known)) == {"openai_base_url": f"{SERVER}/p/chatgpt/s/s1/v1"}
    routed = stage(tmp_path, environment, providers=frozenset({"chatgpt"}), routes=True)
    for other, notes in ((routed, 0), (stage(tmp_path, environment), 1)):
        given = outfit("codex", other)
        assert overrides(given) == {"openai_base_url": f"{SERVER}/s/s1/v1"}
        assert len(given.notes) == notes


def test_a_provider_that_codex_is_set_to_is_kept_where_it_is_known(tmp_path: Path) -> None:
    keep(tmp_path / ".codex/config.toml", 'model_provider = "acme"')
    known = stage(tmp_path, providers=frozenset({"acme"}))
    assert overrides(outfit("codex", known)) == {"model_providers.acme.base_url": f"{SERVER}/p/acme/s/s1/v1"}
    with pytest.raises(Fault, match="'acme'") as caught:
        outfit("codex", stage(tmp_path))
    assert caught.value.code is Code.CONFIG
    assert "[providers.acme]" in caught.value.hint


def test_a_broken_configuration_of_codex_is_for_codex_to_tell(tmp_path: Path) -> None:
    keep(tmp_path / ".codex/config.toml", "model_provider = ")
    keep(tmp_path / ".codex/auth.json", "{")
    assert overrides(outfit("codex", stage(tmp_path)))["model_provider"] == "sightline"


# --- Gemini CLI, opencode ---------------------------------------------------------------------------


def test_gemini_cli_gets_a_private_home_with_api_key_login(tmp_path: Path) -> None:
    keep(
        tmp_path / ".gemini/settings.json",
        '{// mine\n"security": {"auth": {"useExternal": true}}, /* so */ "ui": {"theme": "http://x"}}',
    )
    keep(tmp_path / ".gemini/history/a", "")
    given = outfit("gemini", stage(tmp_path, KEYS))
    private = tmp_path / "private" / ".gemini"
    assert given.variables["GEMINI_CLI_HOME"] == str(private.parent)
    assert {path: json.loads(text) for path, text in given.files.items()} == {
        private / "settings.json": {
            "security": {"auth": {"useExternal": True, "selectedType": "gemini-api-key"}},
            "ui": {"theme": "http://x"},
        }
    }
    assert given.links == {private / "history": tmp_path / ".gemini/history"}
    assert given.notes == ()


def test_gemini_cli_without_settings_gets_some(tmp_path: Path) -> None:
    ((_, text),) = outfit("bash", stage(tmp_path)).files.items()
    assert json.loads(text) == {"security": {"auth": {"selectedType": "gemini-api-key"}}}


def test_existing_gemini_key_login_keeps_its_own_home(tmp_path: Path) -> None:
    keep(tmp_path / "own/.gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    given = outfit("gemini", stage(tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "own")}))
    assert (given.files, given.links, given.notes) == ({}, {}, ())
    assert "GEMINI_CLI_HOME" not in given.variables


def test_unusable_google_login_is_noted(tmp_path: Path) -> None:
    keep(tmp_path / ".gemini/settings.json", '{"security": {"auth": {"selectedType": "oauth-personal"}}}')
    (note,) = outfit("gemini", stage(tmp_path)).notes
    assert "GEMINI_API_KEY" in note
    assert outfit("gemini", stage(tmp_path, KEYS)).notes == ()


def test_opencode_gets_its_base_urls_over_what_it_has(tmp_path: Path) -> None:
    content = {"provider": {"openai": {"options": {"timeout": 1}}}, "theme": "x"}
    given = outfit("opencode", stage(tmp_path, {"OPENCODE_CONFIG_CONTENT": json.dumps(content)}))
    assert json.loads(given.variables["OPENCODE_CONFIG_CONTENT"]) == {
        "provider": {
            "openai": {"options": {"timeout": 1, "baseURL": f"{SERVER}/s/s1/v1"}},
            "anthropic": {"options": {"baseURL": f"{SERVER}/s/s1/v1"}},
            "google": {"options": {"baseURL": f"{SERVER}/s/s1/v1beta"}},
        },
        "theme": "x",
    }
    other = outfit("opencode", stage(tmp_path, {"OPENCODE_CONFIG_CONTENT": "[1]"}))
    assert json.loads(other.variables["OPENCODE_CONFIG_CONTENT"]).keys() == {"provider"}


# --- where clients go without Sightline -------------------------------------------------------------


def test_addresses_in_the_environment_are_remembered_as_providers() -> None:
    own = frozenset({("127.0.0.1", 7700)})
    environment = {
        "OPENAI_BASE_URL": "https://corp.example/v1",
        "OPENAI_API_BASE": "https://older.example/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:7700/s/outer",
        "GOOGLE_GEMINI_BASE_URL": "nonsense",
        "GEMINI_API_BASE": "http://host:port/",
    }
    assert own_upstreams(environment, own) == {"openai": "https://corp.example/v1"}
