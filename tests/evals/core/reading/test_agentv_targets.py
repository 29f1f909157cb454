from collections.abc import Mapping

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.evals.core.reading.agentv_targets import AgentvTarget, read_targets, resolve_target
from sightline.evals.core.target import CommandSpec

CATALOG = Catalog(
    providers={
        "openai": Provider(
            dialect="openai-responses",
            base_url="https://api.example/v1",
            key_env="OPENAI_API_KEY",
            env_headers={"openai-organization": "OPENAI_ORG_ID"},
            home=("openai-chat",),
        ),
        "anthropic": Provider(dialect="anthropic", base_url="https://a.example", key_env="A_KEY", default_model="big"),
        "azure": Provider(dialect="openai-responses", base_url="${AZURE}/openai/v1", key_env="AZURE_KEY"),
        "taken": Provider(),
    }
)
ENVIRONMENT = {"URL": "http://127.0.0.1:9/v1", "MODEL": "m-1", "AGENT": "mine"}


def target(text: str, name: str = "mine", environment: Mapping[str, str] = ENVIRONMENT) -> AgentvTarget:
    """One target of a file in which these lines describe `mine`."""
    lines = "".join(f"    {line}\n" for line in text.strip().splitlines())
    data = f"targets:\n  - name: {name}\n{lines}".encode()
    targets = read_targets(data, "t.yaml")
    assert not targets.problems
    return resolve_target(targets, name, environment, CATALOG)


def told(found: AgentvTarget) -> list[tuple[str, str]]:
    return [(each.severity, each.message) for each in found.problems]


def test_a_model_at_an_address_comes_with_its_provider_and_the_name_of_its_key() -> None:
    found = target(
        """
provider: openai
base_url: ${{ URL }}/
api_key: ${{ MY_KEY }}
model: ${{ MODEL }}
temperature: 0.2
max_output_tokens: 100
workers: 2
max_retries: 1
grader_target: judge
"""
    )
    assert not found.problems
    assert found.spec is not None
    assert found.provider is not None
    assert found.spec.model == "mine/m-1"
    assert (found.spec.temperature, found.spec.max_tokens, found.spec.concurrency) == (0.2, 100, 2)
    assert found.spec.judge == "judge"
    provider = found.provider
    assert (provider.dialect, provider.base_url, provider.key_env) == ("openai-chat", ENVIRONMENT["URL"], "MY_KEY")
    assert (provider.request_max_retries, provider.stream_max_retries, provider.home) == (1, 1, ())


def test_a_key_is_never_looked_up_and_may_be_missing() -> None:
    found = target("provider: openai\nmodel: m\napi_key: ${{ NOT_SET }}\napi_format: responses")
    assert found.provider is not None
    assert (found.provider.key_env, found.provider.dialect) == ("NOT_SET", "openai-responses")
    bare = target("provider: openai\nmodel: m\nbase_url: http://127.0.0.1:1/v1\napi_format: chat")
    assert bare.provider is not None
    assert (bare.provider.key_env, bare.provider.env_headers) == ("", {})


def test_literal_key_in_the_file_is_refused_and_not_repeated() -> None:
    found = target("provider: openai\nmodel: m\napi_key: sk-123456789")
    assert found.spec is None
    assert told(found) == [("error", "a key does not belong into a file")]
    assert "sk-123" not in str(found.problems)
    assert target("provider: openai\nmodel: m\napi_key: 12").spec is None


def test_vendor_model_and_dialect_come_from_the_catalog() -> None:
    found = target("provider: anthropic\napi_key: ${{ K }}", name="taken")
    assert found.spec is not None
    assert found.provider is not None
    assert (found.spec.model, found.provider.dialect) == ("taken-target/big", "anthropic")
    unknown = target("provider: gemini")
    assert told(unknown) == [("error", "the target has no model")]


@pytest.mark.parametrize(
    ("lines", "url"),
    [
        ("endpoint: https://r.example/", "https://r.example/openai/v1"),
        ("endpoint: https://r.example/openai/v1", "https://r.example/openai/v1"),
        ("resource: mine", "https://mine.openai.azure.com/openai/v1"),
        ("version: v1", "${AZURE}/openai/v1"),
    ],
)
def test_azure_is_found_by_its_resource(lines: str, url: str) -> None:
    found = target(f"provider: azure\ndeployment_name: d\napi_key: ${{{{ K }}}}\n{lines}")
    assert found.provider is not None
    assert (found.provider.base_url, found.spec and found.spec.model) == (url, "mine/d")


@pytest.mark.parametrize(
    ("resource", "key"), [("mine", "AZURE_KEY"), ("https://r.example", ""), ("'r.example/x?'", ""), ("r.example/", "")]
)
def test_the_key_for_azure_goes_to_no_other_host(resource: str, key: str) -> None:
    found = target(f"provider: azure\nmodel: m\nresource: {resource}")
    assert found.provider is not None
    assert found.provider.key_env == key


def test_fixed_words_commands_and_agents() -> None:
    mock = target("provider: mock\nresponse: Yes.").spec
    assert mock is not None
    assert mock.mock == "Yes."
    plain = target("provider: mock").spec
    assert plain is not None
    assert plain.mock
    told = target(
        "provider: cli\ncommand: run {PROMPT}\ncwd: here\ntimeout_seconds: 5\nfiles_format: '-f {path}'\n"
        "healthcheck: {command: 'true', url: 'http://127.0.0.1:1', cwd: ../x, retries: 2}"
    )
    assert [each.message for each in told.problems] == ["retries of a healthcheck is not used"]
    line = told.spec
    assert line is not None
    assert line.cli == CommandSpec(
        command="run {PROMPT}",
        cwd="here",
        timeout_s=5.0,
        files_format="-f {path}",
        healthcheck_command="true",
        healthcheck_cwd="../x",
        healthcheck_url="http://127.0.0.1:1",
    )
    words = target("provider: cli\ncommand: [run, '{PROMPT}']\nattachments_format: '@{path}'").spec
    assert words is not None
    assert words.cli == CommandSpec(command=("run", "{PROMPT}"), files_format="@{path}")
    agent = target("provider: claude-cli\nmodel: opus").spec
    assert agent is not None
    assert agent.cli == CommandSpec(template="claude", model="opus")


def test_unusable_target_is_reported_with_a_suggestion() -> None:
    assert told(target("provider: cli")) == [("error", 'a target lacks the key "command"')]
    (problem,) = target("provider: opnai").problems
    assert (problem.message, problem.suggestion) == (
        '"opnai" is no provider that can be asked here',
        'Did you mean "openai"?',
    )
    assert "Write provider:" in target("model: m").problems[0].suggestion


@pytest.mark.parametrize(
    ("provider", "instead"),
    [
        ("vscode", "provider: cli"),
        ("vscode-insiders", "provider: cli"),
        ("copilot-cli", "command: copilot -s -p {PROMPT}"),
        ("pi-cli", "command: pi -p {PROMPT}"),
        ("replay", 'replay = "session:…"'),
        ("transcript", "sightline eval make"),
        ("agentv", "provider: openai"),
        ("cc-mirror", "provider: claude"),
    ],
)
def test_unsupported_provider_suggests_an_alternative(provider: str, instead: str) -> None:
    (problem,) = target(f"provider: {provider}").problems
    assert problem.message == f'"{provider}" cannot be asked here'
    assert instead in problem.suggestion


def test_a_target_may_say_how_files_are_written() -> None:
    found = target("provider: mock\nresponse: Yes.\nfile_form: seed")
    assert found.spec is not None
    assert (found.spec.file_form, told(found)) == ("seed", [])
    assert told(target("provider: mock\nresponse: Yes.\nfile_form: other"))[0][0] == "error"


def test_unused_keys_are_a_warning_and_not_an_error() -> None:
    found = target("provider: mock\nresponse: Yes.\nfallback_targets: [a]")
    assert found.spec is not None
    assert told(found) == [("warning", "fallback_targets of a target is not used")]


def test_one_target_may_stand_for_another() -> None:
    text = (
        b"targets:\n  - {name: default, use_target: '${{ AGENT }}'}\n  - {name: mine, provider: mock, response: Yes.}\n"
    )
    found = resolve_target(read_targets(text, "t.yaml"), "default", ENVIRONMENT, CATALOG)
    assert found.spec is not None
    assert (found.spec.name, found.spec.mock) == ("default", "Yes.")
    unset = resolve_target(read_targets(text, "t.yaml"), "default", {}, CATALOG)
    assert told(unset) == [("error", "the environment has no AGENT")]
    gone = resolve_target(read_targets(text, "t.yaml"), "default", {"AGENT": "mime"}, CATALOG)
    assert (gone.problems[0].message, gone.problems[0].suggestion) == (
        'there is no target "mime"',
        'Did you mean "mine"?',
    )
    number = resolve_target(read_targets(text, "t.yaml"), "default", {"AGENT": "7"}, CATALOG)
    assert told(number) == [("error", 'there is no target ""')]


def test_cycle_of_targets_is_reported() -> None:
    text = b"targets:\n  - {name: a, use_target: b}\n  - {name: b, use_target: a}\n"
    assert told(resolve_target(read_targets(text, "t.yaml"), "a", {}, CATALOG)) == [
        ("error", "use_target leads in a circle")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targets: [", "while parsing a flow node"),
        ("other: 1", "the file has no targets"),
        ("targets: {a: 1}", "targets must be a list"),
        ("targets: [word]", "a target must be a mapping"),
        ("targets: [{provider: mock}]", 'a target lacks the key "name"'),
        ("targets: [{name: a}, {name: a}]", 'there are two targets "a"'),
    ],
)
def test_file_without_valid_targets_is_an_error(text: str, message: str) -> None:
    (problem,) = read_targets(text.encode(), "t.yaml").problems
    assert message in problem.message
    assert problem.place.file == "t.yaml"


def test_the_variables_that_a_file_names_are_known() -> None:
    text = b"targets:\n  - {name: a, api_key: '${{ ONE }}', cwd: '${{ TWO }}', list: ['${{ONE}}']}\n"
    found = read_targets(text, "t.yaml")
    assert (found.variables, list(found.nodes)) == ({"ONE", "TWO"}, ["a"])
