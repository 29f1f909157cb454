"""JSON pointers name places as RFC 6901 says, and a place that is not there is named in the refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire.pointer import covers, join, parse_pointer, resolve

TOKENS = st.lists(st.text("ab/~01é", max_size=4), max_size=4)

RFC_DOCUMENT: Json = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC_DOCUMENT), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2),
        ("/e^f", 3), ("/g|h", 4), ("/i\\j", 5), ('/k"l', 6), ("/ ", 7), ("/m~0n", 8),
    ],
)  # fmt: skip
def test_the_examples_of_the_rfc(pointer: str, value):
    assert resolve(RFC_DOCUMENT, pointer) == value


def test_escapes_are_undone_in_the_right_order():
    assert parse_pointer("/~01") == ("~1",)


def test_positions_and_keys_are_joined_alike():
    assert join("/messages", 40, "content", "a/b~c") == "/messages/40/content/a~1b~0c"


@pytest.mark.parametrize(
    "pointer",
    [
        "foo", "/foo/~2", "/foo~", "/nope", "/foo/2", "/foo/-", "/foo/01", "/foo/-1", "/foo/+1", "/foo/1.0", "/foo/٣",
        "/foo/", "/foo/0/x", "/foo/" + "9" * 5000,
    ],
)  # fmt: skip
def test_a_place_that_is_not_there_is_refused_by_name(pointer: str):
    with pytest.raises(Fault) as caught:
        resolve(RFC_DOCUMENT, pointer)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.pointer == pointer
    assert caught.value.hint


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("", "", True), ("", "/a", True), ("/a", "/a", True), ("/a", "/a/b", True), ("/a", "/ab", False),
        ("/a/b", "/a", False), ("/a", "/b/a", False),
    ],
)  # fmt: skip
def test_a_place_covers_itself_and_what_is_within(outer: str, inner: str, expected: bool):
    assert covers(outer, inner) is expected


@given(TOKENS)
def test_split_undoes_join(tokens: list[str]):
    assert parse_pointer(join("", *tokens)) == tuple(tokens)


@given(TOKENS, TOKENS)
def test_covers_is_having_the_same_beginning(outer: list[str], inner: list[str]):
    assert covers(join("", *outer), join("", *inner)) == (inner[: len(outer)] == outer)
