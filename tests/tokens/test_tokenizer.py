import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.tokens.tokenizer import NAMES, count_tokens, join_surrogates
from tests.tiktoken_truth import true_count

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


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_vocabulary_loads_and_adds_nothing_of_its_own(name: str) -> None:
    assert count_tokens(name, "") == 0
    assert count_tokens(name, "a") == 1
    assert 2 <= count_tokens(name, "Hello, world!") <= 6
    assert count_tokens(name, "<|endoftext|>") > 1, "control tokens are ordinary text"


def test_the_library_is_not_loaded_before_something_is_counted() -> None:
    script = "import sys, sightline.tokens.estimator; sys.exit('splintr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
