"""Values are found in the bytes at C speed, and by the patient scanner where that does not work out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.wire.spans import find, layout_of, parent

VALUES = st.recursive(
    st.integers() | st.text('a"\\]}', max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"\\', max_size=2), inner, max_size=4),
    max_leaves=12,
)


def text_at(data: bytes, pointer: str) -> bytes:
    start, stop = find(data, pointer)
    return data[start:stop]


@pytest.mark.parametrize(
    "data", [b'{"a":[1,22,{"b":3}]}', b' { "a" : [ 1, 22 ,{ "b":3 } ] } ', b'\xef\xbb\xbf{"a":[1, 22,{"b":3}]}']
)
def test_spacing_does_not_matter(data: bytes):
    assert text_at(data, "/a/1") == b"22"
    assert text_at(data, "/a/2/b") == b"3"


@pytest.mark.parametrize("data", [b"7", b" 7\n", b"\xef\xbb\xbf7"])
def test_the_whole_document_is_its_value_without_the_space_around(data: bytes):
    assert text_at(data, "") == b"7"


def test_a_lone_surrogate_anywhere_leads_to_the_scanner():
    data = b'{"a": {"b": "]}"}, "c": [[], "\\"", true, -1.5e3 , "\\ud800"]}'
    assert text_at(data, "/a/b") == b'"]}"'
    assert [text_at(data, f"/c/{i}") for i in range(5)] == [b"[]", b'"\\""', b"true", b"-1.5e3", b'"\\ud800"']


def test_the_scanner_sees_an_empty_array():
    assert parent(b'[[ ], "\\ud800"]', "/0/-")[0].starts == []
    assert parent(b'[[ "\\ud800" ]]', "/0/0")[0].starts == [3]


def test_a_container_is_laid_out_where_it_is_known_to_stand():
    data = b'{"a": {"b": [1, 2]}}'
    assert layout_of(data, find(data, "/a/b"), "/a/b") == parent(data, "/a/b/0")[0]


def test_the_container_lists_repeated_keys():
    layout, token = parent(b'{"a": 1, "\\u0061": 22}', "/a")
    assert (layout.keys, layout.starts, layout.stops, token) == (["a", "a"], [6, 19], [7, 21], "a")
    assert layout.entry("a", "/a") == 1


@pytest.mark.parametrize("pointer", ["", "/a", "/0", "/b/0"])
@pytest.mark.parametrize("data", [b"", b" ", b"{", b"[1", b'{"a": }', b'{"a": 1, "b": [1}', b"oops", b"[" * 5000])
def test_what_is_not_json_has_no_places(data: bytes, pointer: str):
    with pytest.raises(Fault, match="not JSON"):
        find(data, pointer)


def test_a_key_on_the_way_must_be_utf8():
    with pytest.raises(Fault, match="invalid UTF-8"):
        find(b'{"a": 1, "\xff": 1}', "/a")


@pytest.mark.parametrize("data", [b"7", b'"a"', b'"\\ud800"'])
def test_a_scalar_has_no_places_within(data: bytes):
    with pytest.raises(Fault, match="neither an object nor an array"):
        find(data, "/0")


@given(VALUES, st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]), st.sampled_from([None, 0, 2]))
def test_every_element_is_where_a_parser_sees_it(value, separators: tuple[str, str], indent: int | None):
    data = json.dumps([value, [value, 0]], separators=separators, indent=indent).encode()
    assert json.loads(text_at(data, "/0")) == value
    assert json.loads(text_at(data, "/1/0")) == value
