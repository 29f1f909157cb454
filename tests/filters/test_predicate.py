"""Whether an expression matches one thing."""

import sys
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression, Latest, TopicTerm, both, either, negate
from sightline.filters.fields import FilterField, FilterScope, Kind, add_field, remove_field
from sightline.filters.parsing import completions, parse
from sightline.filters.predicate import (
    Known,
    alone,
    canonical,
    find_word,
    fits,
    fold_case,
    is_filed,
    like,
    literal,
    literals,
    matches,
    occurs,
    pattern_characters,
    plain,
    sought_words,
    without_context,
)
from sightline.filters.sql import Columns, condition
from tests.filters.expressions import CHAT_TERMS, NOW, PATTERNS, SINGLE_TERMS, SUBJECTS, TEXTS, joined

CLAUDE = Known(
    {
        "model": "claude-sonnet-5",
        "dialect": "anthropic",
        "session": "foo",
        "status": 200,
        "state": "finished",
        "tool": ("Bash", "Read"),
        "input": 60_000,
        "output": 400,
        "cost": 0.12,
        "losses": 0,
        "stream": True,
        "side": False,
        "fault": "",
        "at": NOW - 3600,
    },
    text="Tell me a dad joke.",
)
REFUSED = Known({"model": "gpt-5", "status": 429, "state": "finished", "fault": "rate_limited", "at": NOW - 9 * 86400})
WAITING = Known({"model": "gpt-5", "state": "held", "at": NOW})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "model:claude-* & tokens>50k & status:ok",
        "tool:Bash",
        "tool:read",
        'text:"dad joke"',
        '"DAD*joke"',
        "age<7d",
        "session:foo",
        "cost>0.10",
        "dialect:anthropic",
        "losses=0",
        "stream !side",
        "side:no",
        "tokens=60400",
        "model:gpt* | model:claude*",
        "!tool:Write",
        'fault:"" & !fault:*',
        'origin:"" & !origin:*',
        "date=2027-01-15",
        "m'CLAUDE*'",
    ],
)
def test_it_is_taken(text: str) -> None:
    assert matches(parse(text), CLAUDE, now=NOW)
    assert not matches(parse(f"!({text or '*'})"), CLAUDE, now=NOW)


@pytest.mark.parametrize(
    "text", ["model:gpt* | tool:Write", "age>7d", "cost>1", "first>1s", "cached>=0", "e", 'tool:""', "date<2027-01-15"]
)
def test_it_is_not_taken(text: str) -> None:
    assert not matches(parse(text), CLAUDE, now=NOW)


ODD = Known({"input": "1", "model": 5, "topic": "x"})


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        # A refused request is an error though its exchange is finished; what is under way is neither ok nor an error.
        (REFUSED, "e & status:error & !status:ok & status:4xx & fault:rate_limited & d>1w"),
        (WAITING, "!status:ok & !status:error & !(status<400) & !(status>=400)"),
        # No tool is what an empty value asks for, and of tokens what is known counts.
        (WAITING, "tool:''"),
        (Known({"tool": ()}), "tool:''"),
        (Known({"input": 60}), "tokens>50"),
        (Known(), "!(tokens>=0)"),
        # A value of another kind does not match.
        (ODD, "!(tokens>0 | model:* | stream | t'x')"),
    ],
)
def test_what_is_odd_or_missing(subject: Known, text: str) -> None:
    assert matches(parse(text), subject, now=NOW)


@pytest.mark.parametrize(
    ("text", "path", "taken"),
    [
        ("t'AI'", ("AI",), True),
        ("t'ai'", ("Work", "AI"), True),
        ("t'AI'", ("AI", "Research"), False),
        ("t'AI...'", ("AI", "Research"), True),
        ("t'*Research'", ("AI", "Old Research"), True),
        ("t'AI > Research'", ("AI", "Research"), True),
        ("t'/AI/Research'", ("AI", "Research"), True),
        ("t'/AI/Research'", ("Work", "AI", "Research"), False),
        ("t'/AI'", ("AI", "Research"), False),
        ("t'/AI...'", ("AI", "Research", "2026"), True),
        ("t'/AI/Research...'", ("AI",), False),
        ("t'A > *'", ("A", "B"), True),
        ("t'AI'", (), False),
    ],
)
def test_topics(text: str, path: tuple[str, ...], *, taken: bool) -> None:
    assert matches(parse(text), Known({"topic": path}), now=NOW) is taken
    term = parse(text)
    assert isinstance(term, TopicTerm)
    assert is_filed(term, path) is taken


def test_a_place_in_a_list_is_not_known_to_one_thing_alone() -> None:
    with pytest.raises(Fault) as caught:
        matches(parse("r20"), CLAUDE, now=NOW)
    assert caught.value.code is Code.USAGE
    assert "Leave out" in caught.value.hint
    with pytest.raises(Fault):
        alone(Latest(1))


def test_list_term_is_decided_by_the_given_callback() -> None:
    assert matches(parse("r20 & !r1"), CLAUDE, now=NOW, belongs=lambda term: term == Latest(20))


@given(joined(SINGLE_TERMS | CHAT_TERMS), joined(SINGLE_TERMS), SUBJECTS)
def test_joining_means_what_it_means_in_logic(one: Expression, other: Expression, subject: Known) -> None:
    def holds(expression: Expression) -> bool:
        return matches(expression, subject, now=NOW, belongs=lambda term: hash(term) % 2 == 0)

    assert holds(both(one, other)) == (holds(one) and holds(other))
    assert holds(either(one, other)) == (holds(one) or holds(other))
    assert holds(negate(one)) == (not holds(one))


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("claude-*", ["claude-sonnet-5"], []),
        ("gpt-?", ["gpt-5"], ["gpt-55"]),
        ("claude", [], ["claude-sonnet-5"]),
        # case is ignored
        ("GPT*", ["gpt-5"], []),
        ("ärger", ["ÄRGER"], []),
        ("ΟΔΟΣ*", ["οδοσα"], []),
        # a backslash escapes
        (r"a\*", ["a*"], ["ab"]),
        ("a\\", ["a\\"], []),
        # a star asks for something, and an empty pattern for nothing
        ("*", ["rate_limited"], [""]),
        ("", [""], ["rate_limited"]),
        # segments do not overlap
        ("ab*ba", ["abba"], ["aba"]),
        ("a*b*c", [], ["a-c"]),
        ("x*a", [], ["a"]),
        ("a*longer", [], ["a"]),
    ],
)
def test_what_fits_a_pattern(pattern: str, fitting: list[str], others: list[str]) -> None:
    assert all(fits(pattern, value) for value in fitting)
    assert not any(fits(pattern, value) for value in others)


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


def test_like_has_its_own_signs_and_leaves_letters_of_other_alphabets_open() -> None:
    assert like("a*b?") == ("a%b_", True)
    assert like(r"50%_!\*") == ("50!%!_!!*", True)
    assert like("ä*") == ("_%", False)


def test_folding_keeps_lengths_and_never_makes_an_ascii_letter() -> None:
    for code in range(sys.maxunicode + 1):
        small = fold_case(chr(code))
        assert len(small) == 1
        assert small.isascii() == (code < 128)


@given(PATTERNS)
def test_the_one_form_stays_as_it_is(pattern: str) -> None:
    assert canonical(pattern) == pattern
    assert list(pattern_characters(canonical(pattern))) == list(pattern_characters(pattern))


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab", min_size=1, max_size=8))
def test_globs_mean_what_they_mean_to_a_shell(pattern: str, value: str) -> None:
    assert fits(pattern, value) == fnmatchcase(value, pattern)


@given(PATTERNS, TEXTS.filter(bool))
def test_to_occur_is_to_fit_with_something_around(pattern: str, text: str) -> None:
    assert occurs(pattern, text) == fits(canonical(f"*{pattern}*"), text)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("o", ""), ("!o1", ""), ("b & o", "b"), ("b & !o", "b"), ("(s>=2 | b) & o1", "s>=2 | b"), ("g | o", "g"),
        ("!(b & o)", "!b"), ("r3 & o", "r3"), ("t & !m", "t & !m"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_filter_without_its_terms_about_what_is_sent(text: str, rest: str) -> None:
    assert without_context(parse(text)) == parse(rest)


def test_a_field_that_was_added_is_read_from_the_others() -> None:
    team = FilterField("team", Kind.TEXT, "the team", read=lambda each: str(each.value("session")).partition(".")[0])
    late = FilterField("late", Kind.YES_NO, "it was slow", read=lambda each: each.value("time") == 9)
    size = FilterField("size", Kind.NUMBER, "how much was said", read=lambda each: 3 if each.says("a*") else None)
    for field in (team, late, size):
        add_field(field)
    add_field(team)  # a plug-in may be loaded again
    try:
        subject = Known({"session": "billing.x", "time": 9}, "abc")
        for text, is_taken in (("team:bill*", True), ("team:shop", False), ("late:yes", True), ("size>2", True)):
            assert matches(parse(text, scope=FilterScope.TRAFFIC), subject, now=0.0) is is_taken
        assert not matches(parse("late:yes | size>2"), Known(), now=0.0)
        assert condition(parse("team:x"), Columns({}), now=0.0).is_complete is False
        assert [each.text for each in completions("tea", 3, scope=FilterScope.TRAFFIC)] == ["team:"]
    finally:
        for field in (team, late, size):
            remove_field(field.name)
    with pytest.raises(Fault, match="there is no field"):
        parse("team:x")


@pytest.mark.parametrize(("name", "words"), [("model", "built in"), ("b", "built in"), ("Team", "not a valid name")])
def test_a_field_with_a_name_that_is_taken_or_cannot_be_written_is_refused(name: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        add_field(FilterField(name, Kind.TEXT, "the team", read=lambda _: None))


def test_where_a_word_is_whatever_its_case() -> None:
    assert find_word("WALRUS", "The Walrus sings") == (4, 10)
    assert find_word("zebra", "The Walrus sings") is None


def test_what_a_filter_looks_for_is_what_it_must_find() -> None:
    wanted = parse('dad (joke | "knock*who") model:m !secret dad')
    assert sought_words(wanted) == ["dad", "joke", "knock", "who"]
    assert sought_words(parse("")) == []
