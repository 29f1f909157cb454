import pytest

from sightline.evals.core.reading.document import SuiteFindings, node_of
from sightline.evals.core.reading.promptfoo_sources import PromptfooProviders
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import Json
from tests.grading_stage import HERE


def named(*written: Json) -> tuple[list[str], PromptfooProviders]:
    providers = PromptfooProviders(SuiteFindings())
    return [providers.name_of(node_of(each, HERE, ())) for each in written], providers


def target(written: Json) -> SuiteTarget:
    (name,), providers = named(written)
    assert not providers.findings.has_errors, [each.message for each in providers.findings.problems]
    return providers.targets[name]


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("openai:gpt-4o-mini", "openai/gpt-4o-mini"),
        ("openai:ft:gpt-4o:acme::id", "openai/ft:gpt-4o:acme::id"),
        ("anthropic:messages:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("google:gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("ollama:chat:llama3.3:8b", "ollama/llama3.3:8b"),
        ("ollama:llama3", "ollama/llama3"),
        ("openrouter:meta/llama", "openrouter/meta/llama"),
        ("togetherai:x", "together/x"),
        ("acme/m", "acme/m"),
        ("mine", "mine"),
        ({"id": "openai:gpt-4o"}, "openai/gpt-4o"),
    ],
)
def test_a_plain_id_is_a_name_of_ours(written: Json, ours: str) -> None:
    names, providers = named(written)
    assert (names, providers.targets, providers.findings.problems) == ([ours], {}, ())


def test_an_id_may_name_the_api() -> None:
    assert target("openai:chat:gpt-4o") == SuiteTarget(
        name="openai:chat:gpt-4o", model="openai/gpt-4o", dialect="openai-chat"
    )
    assert target("azure:responses:mine").dialect == "openai-responses"


def test_a_config_is_carried() -> None:
    config: Json = {
        "apiBaseUrl": "https://relay.example/v1/",
        "apiKeyEnvar": "RELAY_KEY",
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 10,
        "seed": 3,
        "reasoning_effort": "low",
        "headers": {"x-team": "blue"},
    }
    assert target({"id": "openai:gpt-4o", "label": "mine", "config": config}) == SuiteTarget(
        name="mine",
        model="openai/gpt-4o",
        dialect="openai-chat",
        base_url="https://relay.example/v1",
        key_env="RELAY_KEY",
        temperature=0.0,
        top_p=0.5,
        max_tokens=10,
        seed=3,
        effort="low",
        headers={"x-team": "blue"},
    )
    assert target({"openai:gpt-4o": {"config": {"reasoning": {"effort": "high"}}}}).effort == "high"
    gemini = target({"id": "google:gemini", "config": {"generationConfig": {"temperature": 1, "maxOutputTokens": 5}}})
    assert (gemini.temperature, gemini.max_tokens) == (1.0, 5)


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ({"id": "openai:x", "config": {"apiHost": "relay.example"}}, "https://relay.example/v1"),
        ({"id": "openai:x", "config": {"apiHost": "http://relay.example/v2"}}, "http://relay.example/v2"),
        ({"id": "anthropic:x", "config": {"apiHost": "relay.example"}}, "https://relay.example"),
        ({"id": "ollama:x", "config": {"apiBaseUrl": "http://box:11434"}}, "http://box:11434/v1"),
        ({"id": "ollama:x", "config": {"apiBaseUrl": "http://box:11434/v1"}}, "http://box:11434/v1"),
    ],
)
def test_addresses_are_as_the_dialect_wants_them(written: Json, url: str) -> None:
    assert target(written).base_url == url


@pytest.mark.parametrize(
    ("written", "dialect"),
    [
        ({"id": "openai:x", "config": {"apiBaseUrl": "http://box/v1"}}, "openai-chat"),
        ({"id": "openai:x", "config": {"apiHost": "box"}}, "openai-chat"),
        ({"id": "openai:responses:x", "config": {"apiBaseUrl": "http://box/v1"}}, "openai-responses"),
        ({"id": "openai:x", "config": {"temperature": 0}}, None),
        ({"id": "groq:x", "config": {"apiBaseUrl": "http://box/v1"}}, None),
    ],
)
def test_custom_base_url_uses_chat_completions_as_promptfoo_does(written: Json, dialect: str | None) -> None:
    assert target(written).dialect == dialect


def test_a_key_is_named_and_never_written() -> None:
    for reference in ("{{ env.MY_KEY }}", "${{ MY_KEY }}"):
        assert target({"id": "openai:x", "config": {"apiKey": reference}}).key_env == "MY_KEY"
    _, providers = named({"id": "openai:x", "config": {"apiKey": "sk-123"}})
    assert [each.message for each in providers.findings.problems] == ["a key does not belong in a file"]
    assert "sk-123" not in str(providers.targets)


@pytest.mark.parametrize(
    ("written", "words", "severity"),
    [
        ("file://provider.py", "is a program, which promptfoo runs itself", "error"),
        ("exec: python chain.py", "is a program, which promptfoo runs itself", "error"),
        ({"exec": "python chain.py"}, '"exec: python chain.py" is a program', "error"),
        ("python:chain.py", "is a program, which promptfoo runs itself", "error"),
        ("https://example.com/generate", "is an address, and nothing says what is spoken there", "error"),
        ("bedrock:us.anthropic.claude", 'promptfoo\'s provider "bedrock" is not known here', "error"),
        ("openai:embeddings:x", "names an API without conversations", "error"),
        ("echo", '"echo" is promptfoo\'s own, and not here', "error"),
        (5, "a provider must be a mapping", "error"),
        ({"config": {}}, 'a provider lacks the key "id"', "error"),
        ({"label": "x"}, 'a provider lacks the key "id"', "error"),
        ({"id": "openai:x", "config": 3}, "config must be a mapping", "error"),
        ({"id": "openai:x", "transform": "y"}, 'a provider has no key "transform"', "error"),
        ({"id": "openai:x", "delay": 5}, "delay of a provider is not used", "warning"),
        ({"id": "openai:x", "config": {"stop": ["a"]}}, "stop of a provider's config is not used", "warning"),
        (
            {"id": "google:x", "config": {"generationConfig": {"topK": 1}}},
            "topK of generationConfig is not used",
            "warning",
        ),
        (
            {"id": "openai:x", "config": {"reasoning": {"summary": "auto"}}},
            "summary of reasoning is not used",
            "warning",
        ),
        ({"id": "openai:x", "config": {"reasoning": 3}}, "reasoning must be a mapping", "error"),
        ({"id": "openai:x", "config": {"temperature": "hot"}}, "temperature must be a number", "error"),
        ({"id": "openai:x", "config": {"apiBaseUrl": "relay"}}, '"relay" is no http(s) address', "error"),
        ({"id": "openai:x", "config": {"apiBaseUrl": "http://relay"}}, "no key is sent to http://relay", "warning"),
        ({"id": "openai:x", "config": {"headers": {"X-Api-Key": "s"}}}, "looks like a key", "error"),
        ({"id": "openai:x", "config": {"headers": 3}}, "headers must be a mapping", "error"),
    ],
)
def test_unsupported_providers_and_settings_are_reported(written: Json, words: str, severity: str) -> None:
    _, providers = named(written)
    found = [each for each in providers.findings.problems if words in each.message]
    assert found, [each.message for each in providers.findings.problems]
    assert found[0].severity == severity


def test_two_of_one_name_need_labels() -> None:
    one: Json = {"id": "openai:x", "config": {"temperature": 0}}
    other: Json = {"id": "openai:x", "config": {"temperature": 1}}
    names, providers = named(one, one)
    assert (names, providers.findings.problems) == (["openai:x", "openai:x"], ())
    _, providers = named(one, other)
    assert [each.message for each in providers.findings.problems] == ['two providers are called "openai:x"']
