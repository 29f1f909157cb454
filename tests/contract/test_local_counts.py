"""The embedded model's counts are exact: what it counts before is what it reports afterwards, for any conversation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.app.configuration import configuration
from sightline.app.engine import make_embedded_model
from sightline.catalog.catalog import facts_of
from sightline.dialects.registry import dialect
from sightline.tokens.estimator import Estimator
from sightline.transport.embedded.child import MODEL
from tests.local_model import Served, needs_model, serving

pytestmark = needs_model
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model() -> Iterator[Served]:
    with serving(context_window=8192) as served:
        yield served


@pytest.fixture(scope="module", autouse=True)
def _vocabulary() -> None:
    make_embedded_model(configuration(None))


def estimate(spoken: str, body: Any) -> int:
    """What is counted here, without asking the model; it must be sure of it."""
    facts = facts_of(configuration(None).catalog, "local", MODEL)
    found = Estimator(facts, dialect=spoken).request(dialect(spoken).read_request(body))
    assert found.is_exact
    return found.tokens


def said(*texts: str, system: str | None = None) -> list[dict[str, Any]]:
    """A conversation in which user and assistant take turns, the user first."""
    opening = [{"role": "system", "content": system}] if system is not None else []
    roles = ("user", "assistant")
    return [*opening, *({"role": roles[n % 2], "content": text} for n, text in enumerate(texts))]


def items(*texts: str) -> list[dict[str, Any]]:
    """The same conversation as the Responses API has it; an assistant's text is known by its type only."""
    kinds = {"user": "input_text", "assistant": "output_text"}
    return [
        {**turn, "type": "message", "content": [{"type": kinds[turn["role"]], "text": turn["content"]}]}
        for turn in said(*texts)
    ]


def parts(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]


TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}

CONVERSATIONS: dict[str, dict[str, Any]] = {
    "one word": {"messages": said("Hello")},
    "nothing": {"messages": said("")},
    "white space only": {"messages": said(" \n\t  \n")},
    "a system prompt": {"messages": said("Hello", system="Answer in one word.")},
    "an empty system prompt": {"messages": said("Hello", system="")},
    "a system prompt in the middle": {
        "messages": [*said("Hello", "Hi"), {"role": "system", "content": "Be brief."}, *said("Bye")]
    },
    "three turns": {"messages": said("What is rain?", "Water that falls.", "And snow?")},
    "nine turns": {"messages": said(*(f"line {n} of a long talk" for n in range(9)))},
    "an answer that is to be continued": {"messages": said("Count to five.", "One, two,")},
    "two users in a row": {"messages": [*said("First."), *said("Second.")]},
    "several text parts": {"messages": parts("First,", " then second,", "", " then third.")},
    "code": {"messages": said("def f(x):\n    return {'a': [x ** 2 for x in range(10)]}  # why?\n" * 2)},
    "JSON": {"messages": said('{"a": [1, 2.50, -3e10, null, true], "b": {"c": "\\u00e9\\n"}}')},
    "numbers": {"messages": said("3.14159265358979 1000000 007 2^31-1 0xDEADBEEF 12:34:56")},
    "German": {"messages": said("Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.")},
    "Chinese, Japanese and Korean": {"messages": said("你好，世界。これはテストです。안녕하세요 세계")},
    "Arabic and Hebrew": {"messages": said("مرحبا بالعالم، كيف حالك؟ שלום עולם")},
    "emoji and joined signs": {"messages": said("👩‍👩‍👧‍👦 🏳️‍🌈 é é 🤷🏽‍♂️ ✨")},
    "the model's own marks, quoted": {
        "messages": said("What do <|im_start|>user and <|im_end|> and <|endoftext|> do?")
    },
    "control characters": {"messages": said("bell \x07, escape \x1b[31m, zero width \u200b, byte order \ufeff")},
    "Markdown": {"messages": said("# Title\n\n- [x] done\n- [ ] open\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted")},
    "a real document": {"messages": said((ROOT / "LICENSE").read_text()[:800], system="Summarise it.")},
    "a very long word": {"messages": said("a" * 200)},
    "tools, which it does not read": {"messages": said("Look around."), "tools": [TOOL], "tool_choice": "auto"},
    "options": {"messages": said("Say yes."), "temperature": 0, "top_p": 0.5, "stop": ["\n"], "seed": 7},
    "a schema": {
        "messages": said("Say yes."),
        "response_format": {"type": "json_schema", "json_schema": {"name": "yes", "schema": {"type": "boolean"}}},
    },
}


@pytest.mark.parametrize("request_body", [pytest.param(body, id=name) for name, body in CONVERSATIONS.items()])
def test_a_chat_request_is_counted_exactly(model: Served, request_body: dict[str, Any]) -> None:
    answer = model.ask("/v1/chat/completions", {**request_body, "max_tokens": 1})
    assert answer.status == 200, answer.body
    counted = model.count("openai-chat", request_body)
    assert counted == answer.json()["usage"]["prompt_tokens"]
    assert estimate("openai-chat", request_body) == counted


@pytest.mark.parametrize(
    "texts",
    [("Hello",), ("你好，世界。",), ("What is rain?", "Water that falls.", "And snow?")],
    ids=lambda texts: texts[0],
)
@pytest.mark.parametrize("system", ["", "Answer in one word."])
def test_the_other_dialects_are_counted_exactly(model: Served, texts: tuple[str, ...], system: str) -> None:
    anthropic = {"messages": said(*texts), "max_tokens": 1, **({"system": system} if system else {})}
    usage = model.ask("/v1/messages", anthropic).json()["usage"]
    counted = model.count("anthropic", anthropic)
    assert counted == usage["input_tokens"] + usage["cache_read_input_tokens"]
    responses = {"input": items(*texts), "max_output_tokens": 1, **({"instructions": system} if system else {})}
    reply = model.ask("/v1/responses", responses).json()
    assert model.count("openai-responses", responses) == reply["usage"]["input_tokens"]
    assert counted == reply["usage"]["input_tokens"]
    assert estimate("anthropic", anthropic) == estimate("openai-responses", responses) == counted


def test_a_request_that_is_too_long_is_counted_too(model: Served) -> None:
    body = {"messages": said("word " * 9000)}
    refusal = model.ask("/v1/chat/completions", body).json()["error"]
    assert model.count("openai-chat", body) == refusal["n_prompt_tokens"] > 8192
