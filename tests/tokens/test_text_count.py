from collections.abc import Callable

import pytest

from sightline.catalog.facts import Facts
from sightline.tokens import text_count
from sightline.tokens.estimate import NOTHING
from sightline.tokens.text_count import TextCounter, count_by_classes

EXACT = Facts(tokenizer="o200k_base")
TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that went to the tokenizer."""
    seen: list[str] = []
    real: Callable[[str, str], int] = text_count.count_tokens

    def counting(name: str, text: str) -> int:
        seen.append(text)
        return real(name, text)

    monkeypatch.setattr(text_count, "count_tokens", counting)
    return seen


def test_a_model_with_a_public_vocabulary_is_counted_exactly() -> None:
    counter = TextCounter(EXACT)
    assert counter.is_exact
    assert counter.frames_are_known
    estimate = counter.count(TEXT)
    assert (estimate.tokens, estimate.is_exact, estimate.how) == (10, True, "o200k_base")
    assert counter.count("") == NOTHING


def test_a_vocabulary_that_stands_in_leaves_a_doubt() -> None:
    counter = TextCounter(Facts(nearest_tokenizer="o200k_base", token_ratio=1.2, token_spread=0.1))
    estimate = counter.count(TEXT)
    assert not counter.is_exact
    assert not counter.frames_are_known
    assert estimate.low < 10 < estimate.tokens == 12 < 14 < estimate.high
    assert estimate.how == "like o200k_base"


def test_without_a_ratio_it_stands_in_as_it_is() -> None:
    estimate = TextCounter(Facts(nearest_tokenizer="o200k_base")).count(TEXT)
    assert estimate.low < estimate.tokens == 10 < estimate.high


def test_it_is_trusted_less_where_vocabularies_disagree() -> None:
    counter = TextCounter(Facts(nearest_tokenizer="o200k_base", token_spread=0.1))
    prose, digits = counter.count(TEXT * 20), counter.count("3141592653 " * 40)
    assert prose.high / prose.tokens < 1.5
    assert digits.high / digits.tokens > 1.6


def test_the_models_own_vocabulary_goes_before_a_near_one() -> None:
    assert TextCounter(Facts(tokenizer="llama3", nearest_tokenizer="o200k_base")).count(TEXT).how == "llama3"


@pytest.mark.parametrize("facts", [Facts(), Facts(tokenizer="local"), Facts(tokenizer="of-2031")])
def test_an_unknown_vocabulary_is_counted_by_characters(facts: Facts) -> None:
    assert TextCounter(facts).count(TEXT) == count_by_classes(TEXT)


def test_characters_for_a_token_are_taken_from_the_facts() -> None:
    assert TextCounter(Facts(chars_per_token=2.3)).count(TEXT) == count_by_classes(TEXT, 2.3)


def test_the_same_text_is_counted_once_however_often_it_was_read_anew(counted: list[str]) -> None:
    counter = TextCounter(EXACT)
    first = counter.count("one two three")
    assert counter.count(" ".join(["one", "two", "three"])) is first
    assert counted == ["one two three"]


def test_what_was_not_used_for_longest_is_forgotten_first(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_count, "_REMEMBERED_TEXTS", 2)
    counter = TextCounter(EXACT)
    for text in ("a", "b", "a", "c", "a", "b"):
        counter.count(text)
    assert counted == ["a", "b", "c", "b"]


def test_long_texts_do_not_pile_up(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_count, "_REMEMBERED_CHARACTERS", 10)
    counter = TextCounter(EXACT)
    for text in ("12345678", "abc", "12345678"):
        counter.count(text)
    assert counted == ["12345678", "abc", "12345678"]
