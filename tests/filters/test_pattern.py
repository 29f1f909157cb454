import sys
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from sightline.filters.pattern import canonical, fits, fold_case, letters, like, literal, literals, occurs, plain
from tests.filters.expressions import PATTERNS, TEXTS


def test_a_star_stands_for_any_run_and_a_question_mark_for_one() -> None:
    assert fits("claude-*", "claude-sonnet-5")
    assert fits("gpt-?", "gpt-5")
    assert not fits("gpt-?", "gpt-55")
    assert not fits("claude", "claude-sonnet-5")


def test_capital_and_small_letters_are_the_same() -> None:
    assert fits("GPT*", "gpt-5")
    assert fits("ärger", "ÄRGER")
    assert fits("ΟΔΟΣ*", "οδοσα")


def test_a_backslash_takes_the_meaning_away() -> None:
    assert fits(r"a\*", "a*")
    assert not fits(r"a\*", "ab")
    assert fits("a\\", "a\\")


def test_a_star_asks_for_something_and_an_empty_pattern_for_nothing() -> None:
    assert fits("*", "rate_limited")
    assert not fits("*", "")
    assert fits("", "")
    assert not fits("", "rate_limited")


def test_segments_do_not_overlap() -> None:
    assert fits("ab*ba", "abba")
    assert not fits("ab*ba", "aba")
    assert not fits("a*b*c", "a-c")
    assert not fits("x*a", "a")
    assert not fits("a*longer", "a")


def test_words_are_looked_for_anywhere_and_in_their_order() -> None:
    assert occurs("dad*joke", "Tell me a DAD\njoke.")
    assert not occurs("joke*dad", "Tell me a dad joke.")


def test_many_stars_take_no_time() -> None:
    assert not fits("a*" * 200 + "b", "a" * 20_000)


def test_one_form_for_what_means_the_same() -> None:
    assert canonical("a**b") == "a*b"
    assert canonical(r"\a\*") == r"a\*"
    assert canonical("why?", "*") == r"why\?"
    assert canonical("**") == "*"
    assert canonical(r"*\**") == r"*\**"


def test_what_must_stand_in_a_text() -> None:
    assert literals(r"dad*jo\*ke?") == ["dad", "jo*ke"]
    assert literals("*") == []


def test_a_pattern_without_wildcards_is_one_text() -> None:
    assert plain(literal("50 % of *?\\")) == "50 % of *?\\"
    assert plain("a*") is None


def test_like_has_its_own_signs() -> None:
    assert like("a*b?") == ("a%b_", True)
    assert like(r"50%_!\*") == ("50!%!_!!*", True)


def test_like_leaves_letters_of_other_alphabets_open() -> None:
    assert like("ä*") == ("_%", False)


def test_folding_keeps_lengths_and_never_makes_an_ascii_letter() -> None:
    for code in range(sys.maxunicode + 1):
        small = fold_case(chr(code))
        assert len(small) == 1
        assert small.isascii() == (code < 128)


@given(PATTERNS)
def test_the_one_form_stays_as_it_is(pattern: str) -> None:
    assert canonical(pattern) == pattern
    assert list(letters(canonical(pattern))) == list(letters(pattern))


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab", min_size=1, max_size=8))
def test_globs_mean_what_they_mean_to_a_shell(pattern: str, value: str) -> None:
    assert fits(pattern, value) == fnmatchcase(value, pattern)


@given(PATTERNS, TEXTS.filter(bool))
def test_to_occur_is_to_fit_with_something_around(pattern: str, text: str) -> None:
    assert occurs(pattern, text) == fits(canonical(f"*{pattern}*"), text)
