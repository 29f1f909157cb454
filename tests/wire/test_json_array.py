import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.partial_json import JsonArrayDecoder, begins_array

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.integers(1, 7), st.sampled_from([None, 1]), st.booleans())
def test_any_split_gives_the_same_elements(values: list[object], size: int, indent: int | None, is_ascii: bool) -> None:
    text = (b"\xef\xbb\xbf \n" if is_ascii else b"") + json.dumps(values, indent=indent, ensure_ascii=is_ascii).encode()
    decoder = JsonArrayDecoder()
    elements = [each for at in range(0, len(text), size) for each in decoder.feed(text[at : at + size])]
    assert [json.loads(each) for each in elements] == values
    assert decoder.is_over
    assert decoder.feed(b"[1]") == []


def test_elements_within_elements_may_come_byte_by_byte() -> None:
    text = rb'[[1, [2]], {"a": ["\",]", {}]}, "b"]'
    decoder = JsonArrayDecoder()
    elements = [each for byte in text for each in decoder.feed(bytes([byte]))]
    assert elements == [b"[1, [2]]", rb'{"a": ["\",]", {}]}', b'"b"']
    assert decoder.is_over


def test_an_object_is_given_with_its_last_bracket() -> None:
    decoder = JsonArrayDecoder()
    assert decoder.feed(b'[{"a":"}\\"]"}') == [b'{"a":"}\\"]"}']
    assert decoder.is_between
    assert decoder.feed(b"\n,\r\n{") == []
    assert not decoder.is_between
    assert decoder.feed(b"}\n]") == [b"{}"]
    assert not decoder.is_between


@pytest.mark.parametrize(
    ("data", "is_array"),
    [(b"", None), (b"\xef\xbb\xbf \r\n", None), (b" [", True), (b"{}", False), (b"data: [", False)],
)
def test_array_is_recognized_by_its_first_byte(data: bytes, is_array: bool | None) -> None:
    assert begins_array(data) is is_array
