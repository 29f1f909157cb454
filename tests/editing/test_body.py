"""A body knows where its values stand, and still knows it after one of them was replaced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.editing.body import DocumentBytes
from sightline.errors import Fault
from sightline.wire.document import WireDocument

DATA = b' {"a" : [1, {"b":"x"}, [ ] ] ,"c/d": {"e":null}, "a2":[10,20] , "z":"end"} '


def test_places_are_found_and_remembered() -> None:
    body = DocumentBytes(DATA)
    assert body.text_of("") == DATA.strip()
    assert body.text_of("/a/1/b") == b'"x"'
    assert body.text_of("/c~1d/e") == b"null"
    assert body.layout("/a") is body.layout("/a")
    with pytest.raises(Fault):
        body.find("/a/9")
    with pytest.raises(Fault):
        DocumentBytes(b"{broken").find("/a")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("/a/0", "/a/1/b", "/a/1", "/a", "/c~1d/e", "/c~1d", "/a2/1", "/z")),
            st.sampled_from((b"1", b'"a longer text"', b"[1,2]", b'{"b":"y","e":[]}')),
        ),
        max_size=6,
    )
)
def test_what_is_remembered_stays_true(changes: list[tuple[str, bytes]]) -> None:
    body = DocumentBytes(DATA)
    for pointer, text in changes:
        try:
            wire = WireDocument(body.data).text_of(pointer)
        except Fault:
            continue
        assert body.text_of(pointer) == wire
        body = body.replace(pointer, text)
        for place in ("/a", "/a2", "/a2/1", "/z", "/c~1d"):
            assert body.text_of(place) == WireDocument(body.data).text_of(place)


def test_entries_are_cut_with_one_comma_each() -> None:
    body = DocumentBytes(b'{"a": [1, 2, 3], "b": {"x": 1, "y": 2, "x": 3}, "c": 4}')
    assert body.without({}) == body.data
    assert body.without({"/a": {"0", "2"}, "": {"c"}}) == b'{"a": [2], "b": {"x": 1, "y": 2, "x": 3}}'
    assert body.without({"/b": {"x"}}) == b'{"a": [1, 2, 3], "b": {"y": 2}, "c": 4}'
    assert body.without({"/a": {"0", "1", "2"}}) == b'{"a": [], "b": {"x": 1, "y": 2, "x": 3}, "c": 4}'
