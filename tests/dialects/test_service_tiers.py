import json

import pytest

from sightline.dialects.option_values import OF_ANTHROPIC, OF_CHAT, OF_GEMINI, OF_RESPONSES, fit_tier
from sightline.dialects.translate import translate_request
from sightline.model.options import Options
from sightline.model.report import Report

REQUESTS = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
FIELDS = {"gemini": "serviceTier"}
TAKEN = {
    "openai-chat": {"auto", "default", "flex", "priority", "scale", "fast"},
    "openai-responses": {"auto", "default", "flex", "priority", "scale", "fast", "ultrafast"},
    "anthropic": {"auto", "standard_only"},
    "gemini": {"standard", "flex", "priority", "unspecified"},
}


def translated(source: str, target: str, tier: str) -> tuple[object, list[str]]:
    body = {**REQUESTS[source], FIELDS.get(source, "service_tier"): tier}
    result = translate_request(json.dumps(body).encode(), source, target)
    field = FIELDS.get(target, "service_tier")
    losses = [loss.severity for loss in result.report.losses if "tier" in loss.pointer.lower()]
    return json.loads(result.data).get(field), losses


@pytest.mark.parametrize("source", TAKEN)
@pytest.mark.parametrize("target", TAKEN)
def test_every_tier_is_one_that_the_target_takes_or_is_reported(source: str, target: str) -> None:
    if source == target:
        return
    for tier in TAKEN[source]:
        written, losses = translated(source, target, tier)
        assert written in TAKEN[target] if not losses else written is None


@pytest.mark.parametrize(
    ("source", "target", "tier", "written", "losses"),
    [
        ("anthropic", "openai-chat", "standard_only", "default", []),
        ("anthropic", "openai-responses", "standard_only", "default", []),
        ("anthropic", "gemini", "standard_only", "standard", []),
        ("anthropic", "openai-chat", "auto", "auto", []),
        ("anthropic", "gemini", "auto", None, ["identity"]),
        ("openai-chat", "anthropic", "default", "standard_only", []),
        ("openai-chat", "anthropic", "priority", None, ["option"]),
        ("openai-responses", "openai-chat", "ultrafast", None, ["option"]),
        ("openai-chat", "gemini", "fast", "priority", []),
        ("gemini", "openai-chat", "STANDARD", "default", []),
        ("gemini", "anthropic", "unspecified", None, ["identity"]),
        ("gemini", "anthropic", "flex", None, ["option"]),
    ],
)
def test_a_tier_keeps_its_meaning(source: str, target: str, tier: str, written: str | None, losses: list[str]) -> None:
    assert translated(source, target, tier) == (written, losses)


def test_options_without_a_tier_stay_as_they_are() -> None:
    options = Options(temperature=1)
    for tiers in (OF_ANTHROPIC, OF_CHAT, OF_GEMINI, OF_RESPONSES):
        assert fit_tier(options, tiers, Report(), "x") is options
