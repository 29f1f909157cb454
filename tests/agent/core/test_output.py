from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.output import NOTHING, Cap, ToolOutcome, cap_outcome, text_outcome, truncate, words_of
from sightline.model.parts import Audio, Image, Inline, Link, Text

SMALL = Image(Inline("image/png", "aGk="))


def test_what_fits_stays_as_it_is() -> None:
    outcome = ToolOutcome((Text("a"), SMALL, Text("b")), is_error=True)
    assert cap_outcome(outcome, Cap()) == outcome
    assert truncate("abc", 3) == "abc"


def test_a_long_text_keeps_its_head_and_more_of_its_tail_and_says_what_is_missing() -> None:
    text = "".join(chr(0x4E00 + n) for n in range(1000))
    short = truncate(text, 150)
    head, mark, tail = short.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 0 < len(head) < len(tail)
    assert mark == f"[{1000 - len(head) - len(tail)} of 1000 characters are left out here]"


@given(st.text(max_size=400), st.integers(0, 400))
def test_a_cut_text_is_no_longer_than_it_may_be_but_for_the_words_that_say_so(text: str, most: int) -> None:
    short = truncate(text, most)
    assert len(short) <= max(most, len(truncate("x" * len(text), 0)))
    assert (short == text) == (len(text) <= most)


def test_several_texts_are_cut_as_one() -> None:
    outcome = cap_outcome(ToolOutcome((Text("a" * 100), SMALL, Text("b" * 100))), Cap(characters=90))
    words, picture = outcome.parts
    assert isinstance(words, Text)
    assert words.text.startswith("aa")
    assert words.text.endswith("bb")
    assert picture is SMALL


def test_a_tool_that_says_nothing_is_answered_for() -> None:
    assert cap_outcome(ToolOutcome(), Cap()) == text_outcome(NOTHING)
    assert cap_outcome(ToolOutcome((Text(" \n"),)), Cap()) == text_outcome(NOTHING)
    assert cap_outcome(ToolOutcome(structured={"a": 1}), Cap()) == ToolOutcome(structured={"a": 1})


def test_an_object_that_is_too_large_is_cut_as_text() -> None:
    outcome = cap_outcome(ToolOutcome(structured={"a": "x" * 200}), Cap(characters=100))
    assert outcome.structured is None
    (words,) = outcome.parts
    assert isinstance(words, Text)
    assert len(words.text) <= 100


def test_pictures_beyond_their_bound_are_named_instead() -> None:
    linked = Image(Link("https://example.com/a.png"))
    parts = (SMALL, SMALL, linked, Audio(Inline("audio/wav", "aGk=")), Audio(id="a"))
    kept = cap_outcome(ToolOutcome(parts), Cap(media=6)).parts
    assert (kept[0], kept[2], kept[4]) == (SMALL, linked, Audio(id="a"))
    assert kept[1] == Text("[image of 4 characters left out: more than the 2 that are left]")
    assert kept[3] == Text("[audio of 4 characters left out: more than the 2 that are left]")


def test_an_outcome_in_words_is_its_text_or_its_json() -> None:
    assert words_of(ToolOutcome((Text("a"), Text("b")), structured={"n": 1})) == "a\nb"
    assert words_of(ToolOutcome(structured={"n": 1})) == '{"n":1}'
    assert words_of(ToolOutcome()) == ""
