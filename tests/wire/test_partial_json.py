"""A growing text says when it is whole, or can no longer become JSON."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.partial_json import PartialJson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.builds(
    lambda value, indent, ascii_only: json.dumps(value, indent=indent, ensure_ascii=ascii_only),
    VALUES,
    st.none() | st.integers(0, 2),
    st.booleans(),
)
SCRIBBLE = st.text('[]{}":,\\u0d8e1.-+ntrfals \n', max_size=16)


def fed(*fragments: str) -> PartialJson:
    partial = PartialJson()
    for fragment in fragments:
        partial.feed(fragment)
    return partial


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


@pytest.mark.parametrize(
    "text", ["{}", " [] ", '"a\\n\\u00e9"', "null", '{"a": [true, false, 1.5, {}]}\n', "12 ", "[1e400]"]
)
def test_a_whole_value_is_complete(text: str):
    assert fed(*text).is_complete


@pytest.mark.parametrize("text", ["", "{", "[1,", '"a', "tru", "12", "{}}"])
def test_less_or_more_than_a_value_is_not(text: str):
    assert not fed(text).is_complete


@pytest.mark.parametrize(
    "text",
    [
        "}", "{]", "[}", "{1", '{"a" 1', '{"a":,', '{"a":1 "b"', '{"a":1,}', "[1,]", "[01", "[1.x", "[-x", "[trux",
        '["a\nb', '["a\\x', '["a\\u00g', "{} {", "1,",
    ],
)  # fmt: skip
def test_a_broken_text_stays_broken(text: str):
    partial = fed(*text)
    assert partial.is_broken
    partial.feed('"}]')
    assert partial.is_broken
    assert not partial.is_complete


def test_nesting_is_no_limit_to_reading():
    assert fed("[" * 5000, "]" * 5000).is_complete


@given(TEXTS, st.data())
def test_no_beginning_of_a_valid_text_is_broken(text: str, data: st.DataObject):
    cut = data.draw(st.integers(0, len(text)))
    partial = fed(text[:cut])
    assert not partial.is_broken
    partial.feed(text[cut:] + " ")
    assert partial.is_complete


@given(TEXTS | SCRIBBLE, st.lists(st.integers(0, 40), max_size=4))
def test_any_split_says_the_same(text: str, cuts: list[int]):
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = fed(*(text[start:stop] for start, stop in pairwise(edges)))
    whole = fed(text)
    assert (pieces.is_complete, pieces.is_broken) == (whole.is_complete, whole.is_broken)


@given(TEXTS | SCRIBBLE)
def test_complete_means_that_a_parser_takes_it(text: str):
    partial = PartialJson()
    for end, char in enumerate(text, 1):
        partial.feed(char)
        is_number = text[:end].strip(" \n\t\r")[:1] in set("-0123456789")
        assert partial.is_complete == is_json(text[:end]) or is_number
        assert not (partial.is_broken and is_json(text[:end]))
