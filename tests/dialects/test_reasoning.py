"""Reasoning asked for in the way of the provider that is to do it."""

import msgspec
import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import ask_for_reasoning, is_wanted, translate_request
from sightline.model.request import Options, Reasoning, Request, ToolChoice
from sightline.wire.jsontext import decode, encode
from tests.dialects.reports import losses

ENCRYPTED = "reasoning.encrypted_content"


def asked(
    source: str, target: str, options: Options, facts: Facts | None = None, choice: ToolChoice | None = None
) -> Options:
    request = Request("m", options=options, tool_choice=choice, dialect=source)
    asking = ask_for_reasoning(request, dialect(source), dialect(target), facts).options
    if asking.reasoning is None:
        return asking
    # what was added has a place of its own
    return msgspec.structs.replace(asking, reasoning=msgspec.structs.replace(asking.reasoning, places={}))


@pytest.mark.parametrize(
    ("reasoning", "wanted"),
    [
        (Reasoning(), False),
        (Reasoning(summary="auto"), False),
        (Reasoning(mode="off"), False),
        (Reasoning(effort="none"), False),
        (Reasoning(budget=0), False),
        (Reasoning(mode="adaptive"), True),
        (Reasoning(effort="low"), True),
        (Reasoning(budget=-1), True),
    ],
)
def test_what_asks_for_reasoning(reasoning: Reasoning, wanted: bool) -> None:
    assert is_wanted(reasoning) is wanted


def test_a_responses_provider_is_asked_for_reasoning_that_can_come_back() -> None:
    options = asked("gemini", "openai-responses", Options(reasoning=Reasoning(effort="low")))
    assert options.include == (ENCRYPTED,)
    again = asked("raw", "openai-responses", Options(reasoning=Reasoning(effort="low"), include=("x", ENCRYPTED)))
    assert again.include == ("x", ENCRYPTED)


@pytest.mark.parametrize(
    ("facts", "options", "include"),
    [
        (None, Options(), None),
        (Facts(reasoning=True), Options(), (ENCRYPTED,)),
        (Facts(), Options(), None),
        (Facts(reasoning=True, reasons_unasked=False), Options(), None),
        (Facts(reasoning=True, efforts=("none", "low")), Options(reasoning=Reasoning(mode="off")), None),
        (Facts(reasoning=True, efforts=("low",)), Options(reasoning=Reasoning(mode="off")), (ENCRYPTED,)),
    ],
)
def test_a_model_that_reasons_unasked_gives_its_reasoning_too(
    facts: Facts | None, options: Options, include: tuple[str, ...] | None
) -> None:
    assert asked("openai-chat", "openai-responses", options, facts).include == include


def test_a_client_that_shows_thinking_gets_words_to_show() -> None:
    thinking = Options(reasoning=Reasoning(mode="adaptive"))
    for target in ("openai-responses", "gemini"):
        reasoning = asked("anthropic", target, thinking).reasoning
        assert reasoning is not None
        assert reasoning.summary == "auto"
    for source, target, options in (
        ("anthropic", "openai-chat", thinking),
        ("gemini", "openai-responses", thinking),
        ("anthropic", "openai-responses", Options(reasoning=Reasoning(mode="off"))),
    ):
        reasoning = asked(source, target, options).reasoning
        assert reasoning is not None
        assert reasoning.summary is None
    omitted = asked("anthropic", "openai-responses", Options(reasoning=Reasoning(mode="adaptive", summary="none")))
    assert omitted.reasoning == Reasoning(mode="adaptive", summary="none")


@pytest.mark.parametrize(
    ("thinking", "effort", "expected"),
    [
        (None, "high", Reasoning(effort="high", mode="adaptive")),
        (("adaptive", "budget"), "high", Reasoning(effort="high", mode="adaptive")),
        (("budget", "off"), "medium", Reasoning(effort="medium", budget=8192)),
        (("budget", "off"), "xhigh", Reasoning(effort="xhigh", budget=24_576)),
        (("off",), "low", Reasoning(effort="low")),
    ],
)
def test_an_effort_makes_a_claude_model_think(
    thinking: tuple[str, ...] | None, effort: str, expected: Reasoning
) -> None:
    facts = Facts(thinking=thinking)  # type: ignore[arg-type] # the words of the case
    assert (
        asked("openai-responses", "anthropic", Options(reasoning=Reasoning(effort=effort)), facts).reasoning == expected
    )


def test_thinking_is_left_as_it_is_where_it_is_set_or_refused() -> None:
    for reasoning in (Reasoning(mode="adaptive", effort="low"), Reasoning(budget=2000), Reasoning(mode="off")):
        assert asked("gemini", "anthropic", Options(reasoning=reasoning)).reasoning == reasoning
    effort = Options(reasoning=Reasoning(effort="low"))
    for mode in ("required", "named"):
        choice = ToolChoice(mode, ("f",))
        assert asked("openai-chat", "anthropic", effort, choice=choice).reasoning == Reasoning(effort="low")
    on = asked("openai-chat", "anthropic", effort, choice=ToolChoice("auto")).reasoning
    assert on == Reasoning(effort="low", mode="adaptive")


def test_all_of_it_is_listed_as_additions() -> None:
    thinking = encode({"model": "m", "max_tokens": 9000, "thinking": {"type": "adaptive"},
                       "messages": [{"role": "user", "content": "a"}]})  # fmt: skip
    written = translate_request(thinking, "anthropic", "openai-responses")
    body = decode(written.data)
    assert isinstance(body, dict)
    assert (body["include"], body["reasoning"]) == ([ENCRYPTED], {"summary": "auto"})
    assert [(each.pointer, each.what) for each in written.report.additions] == [
        ("/include", ENCRYPTED),
        ("/reasoning/summary", "reasoning summary 'auto'"),
    ]
    written = translate_request(thinking, "anthropic", "gemini")
    assert [each.pointer for each in written.report.additions] == ["/generationConfig/thinkingConfig/includeThoughts"]
    shown = encode({"model": "m", "reasoning": {"effort": "low", "summary": "auto"}, "input": "a"})
    assert translate_request(shown, "openai-responses", "gemini").report.additions == ()
    effort = encode({"model": "m", "reasoning": {"effort": "low"}, "input": "a"})
    written = translate_request(effort, "openai-responses", "anthropic", settings=Target(max_tokens=9))
    assert [(each.pointer, each.what) for each in written.report.additions] == [
        ("/max_tokens", "max_tokens 24585"),
        ("/thinking", "thinking adaptive"),
    ]


def test_a_model_without_efforts_gets_a_budget() -> None:
    facts = Facts(thinking=("budget", "off"), efforts=(), reasoning=True)
    effort = encode({"model": "m", "reasoning": {"effort": "low"}, "input": "a", "max_output_tokens": 9000})
    written = translate_request(effort, "openai-responses", "anthropic", settings=Target(facts=facts))
    body = decode(written.data)
    assert isinstance(body, dict)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert "output_config" not in body
    assert losses(written.report) == [("/reasoning/effort", "option")]


def turn(*blocks: dict[str, object]) -> dict[str, object]:
    return {"role": "assistant", "content": None, **{key: value for block in blocks for key, value in block.items()}}


@pytest.mark.parametrize(
    ("history", "is_kept"),
    [
        ([], True),
        ([{"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], True),
        ([turn({"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
          {"role": "tool", "tool_call_id": "c", "content": "r"}], False),
        ([turn({"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "reasoning_content": "t", "reasoning_opaque": "sightline:anthropic::s"}),
          {"role": "tool", "tool_call_id": "c", "content": "r"}], True),
        ([turn({"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "reasoning_opaque": "sightline:anthropic:redacted:s"}),
          {"role": "tool", "tool_call_id": "c", "content": "r"}], True),
    ],
)  # fmt: skip
def test_a_turn_that_began_without_thinking_goes_on_without_a_budget(
    history: list[dict[str, object]], is_kept: bool
) -> None:
    facts = Facts(thinking=("budget", "off"), efforts=(), reasoning=True)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asking = {"model": "m", "reasoning_effort": "low", "max_completion_tokens": 9000, "tools": [tool],
              "messages": [{"role": "user", "content": "a"}, *history]}  # fmt: skip
    written = translate_request(encode(asking), "openai-chat", "anthropic", settings=Target(facts=facts))
    body = decode(written.data)
    assert isinstance(body, dict)
    assert ("thinking" in body) is is_kept
    why = "the turn that goes on has begun without thinking"
    assert any(loss.why == why for loss in written.report.losses) is not is_kept
