import gc
import json
import subprocess
import sys
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.tokens import text_count
from sightline.tokens.estimate import NOTHING, exactly
from sightline.tokens.text_count import (
    ENGLISH,
    NAMES,
    WEIGHTS,
    TextCounter,
    count_by_classes,
    count_tokens,
    features,
    has_vocabulary,
    join_surrogates,
    kind_of,
    read_vocabulary_from,
)
from tests.contract.sample_texts import FIT, WRITTEN
from tests.tiktoken_truth import true_count

EXACT = Facts(tokenizer="o200k_base")
TEXT = "The quick brown fox jumps over the lazy dog."


def test_a_model_with_a_public_vocabulary_is_counted_exactly() -> None:
    counter = TextCounter(EXACT)
    assert counter.is_exact
    assert counter.frames_are_known
    estimate = counter.count(TEXT)
    assert (estimate.tokens, estimate.is_exact, estimate.how) == (10, True, "o200k_base")
    assert counter.count("") == NOTHING


def test_substitute_tokenizer_makes_the_estimate_inexact() -> None:
    counter = TextCounter(Facts(nearest_tokenizer="o200k_base", token_ratio=1.2, token_spread=0.1))
    estimate = counter.count(TEXT)
    assert not counter.is_exact
    assert not counter.frames_are_known
    assert estimate.low < 10 < estimate.tokens == 12 < 14 < estimate.high
    assert estimate.how == "like o200k_base"


def test_substitute_tokenizer_without_a_ratio_uses_its_own_count() -> None:
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


class Text(str):
    """A text that can be seen to be gone."""

    __slots__ = ("__weakref__",)


def test_a_text_that_was_counted_is_not_kept() -> None:
    counter, text = TextCounter(Facts()), Text("a long text")
    kept = weakref.ref(text)
    first = counter.count(text)
    del text
    gc.collect()
    assert kept() is None
    assert counter.count("a long text") is first


PROSE = WRITTEN["english"][0] + " " + WRITTEN["technical"][0]


def test_classes_are_read_off_the_bytes() -> None:
    found = features("Ab1 c++\n  é Ж 漢 😀")
    seen = {name: times for name, times in found.items() if times}
    assert seen == {
        "letter": 3,
        "capital": 1,
        "switch": 1,
        "digit": 1,
        "mark": 2,
        "run": 1,
        "line": 1,
        "indent": 1,
        "accented": 1,
        "cyrillic": 1,
        "han": 1,
        "pictograph": 1,
    }


def test_switches_and_runs_are_counted_where_one_kind_begins_after_another() -> None:
    found = features("camelCase UPPer x1Y2z 3.14 ...(a) é- 9é")
    assert (found["switch"], found["run"]) == (5, 4)


def test_plain_ascii_is_not_searched_for_other_scripts() -> None:
    assert "han" not in features("plain")
    assert set(features("ünplain")) == set(WEIGHTS)


def test_the_three_weights_of_a_class_are_in_order() -> None:
    assert all(0 <= low <= likely <= high for low, likely, high in WEIGHTS.values())


def test_nothing_is_nothing_and_anything_is_a_token() -> None:
    assert count_by_classes("") == NOTHING
    estimate = count_by_classes(" ")
    assert (estimate.low, estimate.tokens) == (1, 1)


def test_english_prose_has_the_documented_characters_per_token() -> None:
    assert len(PROSE) / count_by_classes(PROSE).tokens == pytest.approx(ENGLISH, rel=0.05)


def test_a_model_with_fewer_characters_for_a_token_has_more_tokens() -> None:
    usual, dense = count_by_classes(PROSE), count_by_classes(PROSE, chars_per_token=ENGLISH / 2)
    assert dense.tokens == pytest.approx(2 * usual.tokens, abs=1)
    assert len(PROSE) / count_by_classes(PROSE, chars_per_token=3.5).tokens == pytest.approx(3.5, rel=0.05)


def test_scripts_and_noise_are_counted_differently_from_prose() -> None:
    for name in ("chinese", "base64", "greek", "digits"):
        truth = count_tokens("qwen3", FIT[name])
        plain, classes = len(FIT[name]) / 3.5, count_by_classes(FIT[name])
        assert abs(classes.tokens - truth) < abs(plain - truth), name
        assert classes.low <= truth <= classes.high


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert count_by_classes("a\ud800b").tokens >= 1


OPENAI = ("o200k_base", "cl100k_base")

TRICKY = [
    "",
    " ",
    "\n",
    "  \n\n   \t\r\n x",
    "a" * 500,
    "ab " * 700,
    " " * 400,
    "\n" * 129,
    "-" * 300 + "=" * 81,
    "<|endoftext|>",
    "before <|endoftext|> after <|im_start|>user<|im_sep|>",
    "<|think|> <|fim_prefix|> <|endofprompt|> [INST] <s> <start_of_turn>",
    "it's they'RE we'll I'd O'CLOCK",
    "1234567890 3.14159 0x1F 1e-9 12,345",
    "camelCaseAndPascalCase SCREAMING_SNAKE kebab-case",
    "https://example.com/a/b?c=d&e=%20f#g//h",
    "漢字とかな交じり文、中文字符和한국어",
    "שלום עולם, مرحبا بالعالم",
    "🏳️‍🌈👩‍👩‍👧‍👦🇩🇪 é",
    "e\u0301\u0327 zero\u200bwidth\ufeff \u2028 nbsp\u00a0here",
    "\x00\x01\x7f\x85",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﷽ ௵",
    '{"a": [1, 2, {"b": null}], "c": "\\u00e9\\n"}',
]


@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize("text", TRICKY)
def test_openai_encodings_count_as_openai_does(name: str, text: str) -> None:
    assert count_tokens(name, text) == true_count(name, text)


@given(text=st.text(max_size=400))
def test_so_they_do_for_any_text(text: str) -> None:
    for name in OPENAI:
        assert count_tokens(name, text) == true_count(name, text)


@given(text=st.text(st.characters(categories=["Lu", "Ll", "Lo", "Mn", "Nd", "No", "Po", "Zs", "Cc", "So", "Cs"])))
def test_a_lone_surrogate_counts_as_the_sign_that_replaces_it(text: str) -> None:
    for name in OPENAI:
        assert count_tokens(name, text) == count_tokens(name, join_surrogates(text)) == true_count(name, text)


def test_a_pair_of_surrogates_is_the_character_that_it_spells() -> None:
    assert join_surrogates("\ud83d\ude00") == "\U0001f600"
    assert join_surrogates("a\ud800b") == "a\ufffdb"
    assert count_tokens("o200k_base", "\ud83d\ude00") == count_tokens("o200k_base", "\U0001f600")


@pytest.mark.parametrize("name", sorted(NAMES - {"smollm2"}))
def test_every_vocabulary_loads_and_adds_nothing_of_its_own(name: str) -> None:
    assert count_tokens(name, "") == 0
    assert count_tokens(name, "a") == 1
    assert 2 <= count_tokens(name, "Hello, world!") <= 6
    assert count_tokens(name, "<|endoftext|>") > 1, "control tokens are ordinary text"


def test_the_library_is_not_loaded_before_something_is_counted() -> None:
    script = "import sys, sightline.tokens.estimator; sys.exit('splintr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        ((), "words"),
        ((TEXT, "def f(x): return x"), "words"),
        (("2026-11-16 10:47:14 200 6000", "a few"), "figures"),
        (("Съешь ещё этих мягких булок", TEXT), "scripts"),
        (("naïve café", TEXT), "words"),
    ],
)
def test_texts_are_of_words_of_figures_or_of_other_scripts(texts: tuple[str, ...], kind: str) -> None:
    assert kind_of(texts) == kind


LETTERS = {"model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "hi": 2, "<|x|>": 3}, "merges": ["h i"]}}
MARK = {"id": 3, "content": "<|x|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False}


def test_a_vocabulary_that_is_elsewhere_is_read_when_it_is_there() -> None:
    facts = Facts(tokenizer="smollm2", chars_per_token=4.0)
    read_vocabulary_from("smollm2", lambda: b"")
    assert not has_vocabulary("smollm2")
    assert not TextCounter(facts).count("hihi").is_exact
    document = {**LETTERS, "added_tokens": [{**MARK, "normalized": False}], "pre_tokenizer": {"type": "ByteLevel"}}
    try:
        read_vocabulary_from("smollm2", lambda: json.dumps(document).encode())
        assert TextCounter(facts).count("hi<|x|>hi") == exactly(3, "smollm2"), "its marks are marks"
    finally:
        read_vocabulary_from("smollm2", lambda: b"")
