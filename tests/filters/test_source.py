import pytest

from sightline.errors import Code, Fault
from sightline.filters.source import Piece, Source


def test_words_end_at_signs() -> None:
    source = Source("model:gpt")
    assert source.word() == Piece("model", 0, 5)
    assert source.sign() == ":"
    assert source.value() == Piece("gpt", 6, 9)
    assert source.word() is None
    assert source.next == ""


@pytest.mark.parametrize(
    ("text", "sign"),
    [(":", ":"), (" >= ", ">="), (":>", ">"), ("==", "="), ("<>", "!="), ("!=", "!="), ("=<", "<="), ("=>", ">=")],
)
def test_signs_in_many_hands(text: str, sign: str) -> None:
    assert Source(text).sign() == sign


def test_no_sign() -> None:
    assert Source("!b").sign() is None


def test_joints_may_be_doubled() -> None:
    assert Source("&&b").take("&") == Piece("&", 0, 2)
    assert Source("((b").take("(") == Piece("(", 0, 1)
    assert Source("b").take("&") is None
    assert Source("").take("&") is None


def test_blanks_are_skipped() -> None:
    source = Source(" \t b")
    source.skip_space()
    assert source.next == "b"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'dad joke' b", "dad joke"),
        ('"it\'s"', "it's"),
        (r"'it\'s'", r"it\'s"),
        (r'"a\nb\tc\rd"', "a\nb\tc\rd"),
        (r'"C:\Users"', r"C:\\Users"),
        (r'"\*\\"', r"\*\\"),
        ("don't stop", "don't"),
        ("a&b", "a"),
        (r"a\ b", r"a\ b"),
        ("a\\", "a\\\\"),
        ("''", ""),
    ],
)
def test_values(text: str, value: str) -> None:
    piece = Source(text).value()
    assert piece is not None
    assert piece.text == value


def test_a_value_can_be_missing() -> None:
    assert Source(" b").value() is None
    assert Source("&").value() is None


def test_a_quote_must_be_closed() -> None:
    source = Source("c'bug")
    source.word()
    with pytest.raises(Fault) as caught:
        source.value()
    assert caught.value.message == "filter, column 2: the quote ' is not closed"
    assert caught.value.hint == "Put a ' behind the words.\n  c'bug\n   ^"


def pointed(text: str, start: int, end: int) -> list[str]:
    fault = Source(text).wrong(start, end, "message", "Hint.")
    assert fault.code is Code.USAGE
    assert fault.details == {"column": start + 1, "length": max(1, end - start)}
    return fault.hint.split("\n")[1:]


def test_carets_stand_below_the_mistake() -> None:
    assert pointed("b & modle:x", 4, 9) == ["  b & modle:x", "      ^^^^^"]


def test_a_caret_stands_behind_the_end() -> None:
    assert pointed("b &", 3, 3) == ["  b &", "     ^"]


def test_of_a_long_text_the_part_around_is_shown() -> None:
    line, carets = pointed("a" * 100 + "XY" + "b" * 100, 100, 102)
    assert line.startswith("  …a")
    assert line.endswith("b…")
    assert line[carets.index("^") :].startswith("XY")
    assert carets.count("^") == 2
    line, carets = pointed("a" * 100, 90, 100)
    assert line.startswith("  …a")
    assert not line.endswith("…")
    assert pointed("a" * 100, 0, 100)[1] == "  " + "^" * 72


def test_wide_letters_and_control_characters_keep_the_carets_in_place() -> None:
    assert pointed("話:x", 2, 3) == ["  話:x", "     ^"]
    assert pointed("話", 0, 1) == ["  話", "  ^^"]
    assert pointed("\x1b[31mred", 5, 8) == ["   [31mred", "       ^^^"]
