"""Estimates against the truth: OpenAI's tokenizer and published overhead, the formulas, public vocabularies."""

import statistics

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.tokens.estimate import Estimate
from sightline.tokens.estimator import Estimator
from sightline.tokens.text_count import count_by_classes, count_tokens
from tests.contract.sample_texts import FIT, HELD_OUT, WRITTEN
from tests.local_model import needs_model, serving
from tests.tiktoken_truth import true_count

GPT_4O = Facts(tokenizer="o200k_base", message_tokens=3, name_tokens=1, reply_tokens=3)
GPT_4 = Facts(tokenizer="cl100k_base", message_tokens=3, name_tokens=1, reply_tokens=3)
GPT_5 = Facts(tokenizer="o200k_base", message_tokens=3, name_tokens=1, reply_tokens=2, assistant_tokens=2)

STAND_INS = ("llama3", "qwen3", "deepseek_v3", "gemma3", "mistral_v3")
"""Vocabularies that play the unknown one: made by five vendors, none of them a child of another."""
UNFITTED = ("mistral_v1", "phi4", "gemma4")
"""Vocabularies that the weights were not fitted to; the first is unlike all that they were."""


def chat(*messages: tuple[str, str]) -> Request:
    listed: list[Json] = [{"role": role, "content": content} for role, content in messages]
    return dialect("openai-chat").read_request({"model": "gpt", "messages": listed})


def published(encoding: str, request: Request) -> int:
    """The count by OpenAI's cookbook: three tokens frame a message, its role and texts count, three begin the reply."""
    texts = sum(
        true_count(encoding, message.role) + sum(true_count(encoding, part.text) for part in message.parts)
        for message in request.messages
    )
    names = sum(1 + true_count(encoding, message.name) for message in request.messages if message.name)
    return 3 * len(request.messages) + texts + names + 3


@pytest.mark.parametrize("name", list(WRITTEN))
def test_texts_of_every_kind_are_exact_for_openai_models(name: str) -> None:
    for text in (FIT[name], HELD_OUT[name]):
        for facts in (GPT_4O, GPT_4):
            estimate = Estimator(facts, dialect="openai-chat").text(text)
            assert estimate.is_exact
            assert estimate.tokens == true_count(facts.tokenizer, text)


CONVERSATIONS = {
    "one word": chat(("user", "hello")),
    "system and question": chat(("system", "Answer in one word."), ("user", "What is the capital of Peru?")),
    "a developer's instructions": chat(("developer", "Be brief.\n\n- no lists"), ("user", "Why is the sky blue?")),
    "a few turns": chat(
        ("system", "You translate into French."),
        ("user", "Where is the station?"),
        ("assistant", "Où est la gare ?"),
        ("user", "And the harbour?"),
    ),
    "a stack trace and a fix": chat(
        ("user", f"What is wrong here?\n\n{WRITTEN['stack_trace'][0]}\n{WRITTEN['python'][0]}"),
        ("assistant", "The key is missing; use `.get(key)` and handle `None`."),
        ("user", "Danke! 🙏"),
    ),
    "many languages": chat(*[("user", WRITTEN[name][1]) for name in ("russian", "arabic", "hindi", "thai", "korean")]),
    "a pasted log": chat(("user", HELD_OUT["logs"]), ("assistant", "3 errors."), ("user", HELD_OUT["json"])),
    "control tokens as words": chat(("user", "What does <|im_end|> or <|endoftext|> mean?"), ("assistant", "<|x|>")),
    "empty content": chat(("user", "")),
    "a long one": chat(*[("user" if turn % 2 else "assistant", text) for turn, text in enumerate(FIT.values())]),
    "Chinese and code": chat(("system", WRITTEN["chinese"][0]), ("user", WRITTEN["rust"][1])),
    "whitespace": chat(("user", "   \n\n\t  indented\n\n\n\n"), ("user", " ")),
}


@pytest.mark.parametrize("name", list(CONVERSATIONS))
def test_conversations_are_exact_for_openai_models(name: str) -> None:
    request = CONVERSATIONS[name]
    for facts in (GPT_4O, GPT_4):
        estimate = Estimator(facts, dialect="openai-chat").request(request)
        assert estimate.is_exact
        assert estimate.tokens == published(facts.tokenizer, request)


def test_names_count_as_openais_cookbook_counts_them() -> None:
    request = dialect("openai-chat").read_request(
        {
            "model": "gpt-4o",
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "system", "name": "example_user", "content": "New synergies will help."},
                {"role": "system", "name": "example_assistant", "content": "Things working well together."},
                {"role": "user", "content": "Say it plainly."},
            ],
        }
    )
    for facts in (GPT_4O, GPT_4):
        assert Estimator(facts, dialect="openai-chat").request(request).tokens == published(facts.tokenizer, request)


@pytest.mark.parametrize(
    ("facts", "roles", "words", "reported"),
    [
        # What the API reported for requests of these shapes, with so many tokens of text in them.
        (GPT_4O, "u", 7, 14),
        (GPT_4O, "su", 13, 24),
        (GPT_4O, "suau", 32, 51),
        (GPT_4O, "suaau", 47, 70),
        (GPT_4O, "au", 20, 31),
        (GPT_5, "u", 7, 13),
        (GPT_5, "su", 24, 34),
        (GPT_5, "uaau", 120, 142),
        (GPT_5, "uaau", 284, 306),
        (GPT_5, "u", 4014, 4020),
    ],
)
def test_frames_are_those_that_the_api_reports(facts: Facts, roles: str, words: int, reported: int) -> None:
    named = {"s": "system", "u": "user", "a": "assistant"}
    first, *others = roles
    # One token each: " a" repeated is one token a word.
    texts = [" a" * (words - len(others)), *([" a"] * len(others))]
    request = chat(*[(named[role], text) for role, text in zip([first, *others], texts, strict=True)])
    assert Estimator(facts, dialect="openai-chat").request(request).tokens == reported


def _held(estimate: Estimate, truth: int) -> bool:
    return estimate.low <= truth <= estimate.high


def test_the_band_of_an_unknown_vocabulary_holds_the_truth_for_texts_that_it_was_not_fitted_to() -> None:
    cases = [(count_by_classes(text), count_tokens(name, text)) for text in HELD_OUT.values() for name in STAND_INS]
    share = sum(_held(estimate, truth) for estimate, truth in cases) / len(cases)
    assert len(cases) >= 300
    assert share >= 0.95


@pytest.mark.parametrize("name", UNFITTED)
def test_so_it_does_for_vocabularies_that_it_was_not_fitted_to_either(name: str) -> None:
    held = [_held(count_by_classes(text), count_tokens(name, text)) for text in HELD_OUT.values()]
    assert sum(held) / len(held) >= 0.95


def test_classes_of_characters_are_nearer_than_a_flat_ratio() -> None:
    def median_error(guess: dict[str, float]) -> float:
        return statistics.median(
            abs(guess[name] / count_tokens(vocabulary, text) - 1)
            for name, text in HELD_OUT.items()
            for vocabulary in STAND_INS
        )

    flat = median_error({name: len(text) / 3.5 for name, text in HELD_OUT.items()})
    classes = median_error({name: count_by_classes(text).tokens for name, text in HELD_OUT.items()})
    assert classes < flat / 2


def test_substitute_vocabulary_estimates_contain_the_true_count() -> None:
    """o200k in place of each of the five, as it is in place of those that are not public."""
    cases = []
    for vocabulary in STAND_INS:
        pairs = [(count_tokens("o200k_base", text), count_tokens(vocabulary, text)) for text in FIT.values()]
        ratio = statistics.median(truth / counted for counted, truth in pairs)
        estimator = Estimator(Facts(nearest_tokenizer="o200k_base", token_ratio=ratio), dialect="openai-chat")
        cases += [(estimator.text(text), count_tokens(vocabulary, text)) for text in HELD_OUT.values()]
    assert len(cases) >= 300
    assert sum(_held(estimate, truth) for estimate, truth in cases) / len(cases) >= 0.95


HEARD = (
    "english",
    "python",
    "sql",
    "markdown",
    "emoji",
    "math",
    "shell",
    "short",
    "names",
    "shouting",
    "german",
    "korean",
)


@needs_model
def test_a_band_holds_until_the_embedded_model_counts_itself() -> None:
    """The estimate that is shown until the model runs holds for ASCII; of other scripts its small vocabulary knows so
    little that only its own count will do, which is exact: see test_local_counts.py."""
    talks = {name: request for name, request in CONVERSATIONS.items() if name not in ("a long one", "many languages")}
    talks |= {name: chat(("user", WRITTEN[name][1])) for name in HEARD}
    waiting = Estimator(Facts(tokenizer="local"), dialect="openai-chat")
    held = []
    with serving(context_window=2048) as model:
        for request in talks.values():
            body = dialect("openai-chat").write_request(request, Target(), Report())
            assert isinstance(body, dict)
            if str(body).isascii():
                held.append(_held(waiting.request(request), model.count("openai-chat", body)))
    assert len(held) >= 10
    assert sum(held) / len(held) >= 0.95
