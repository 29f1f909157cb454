import pytest

from sightline.catalog.provider import Provider
from sightline.errors import Fault
from sightline.evals.core.target import CommandSpec, SuiteTarget, TargetSpec

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
def test_a_target_says_who_answers(spec: TargetSpec, kind: str) -> None:
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


def test_a_provider_may_be_asked_in_another_dialect() -> None:
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
