"""JSON text is read exactly, and what cannot be read is refused with its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.wire import jsontext
from sightline.wire.jsontext import decode, encode

SURROGATES = st.characters(categories=["Ll", "Nd", "Cs"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(SURROGATES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(SURROGATES, max_size=4), inner, max_size=4),
    max_leaves=12,
)


def refusal_of(data: bytes | str) -> Fault:
    with pytest.raises(Fault) as caught:
        decode(data)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint
    return caught.value


def test_bytes_and_text_are_read_alike():
    assert decode(b'{"a": [1, 1.5, "\xc3\xa9", null]}') == decode('{"a": [1, 1.5, "é", null]}')


def test_big_integers_survive_exactly():
    assert encode(decode(b"[123456789012345678901234567890]")) == b"[123456789012345678901234567890]"


def test_numbers_keep_their_kind():
    one, also_one = decode(b"1"), decode(b"1.0")
    assert (type(one), type(also_one)) == (int, float)


def test_a_lone_surrogate_escape_is_legal():
    assert decode(b'{"a": "x\\ud800y", "b": 1.5, "c": 7}') == {"a": "x\ud800y", "b": 1.5, "c": 7}


def test_a_lone_surrogate_is_written_as_an_escape():
    assert encode({"a": ["\ud800", "é"]}) == b'{"a":["\\ud800","\\u00e9"]}'


def test_text_is_written_compactly_in_utf8():
    assert encode({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf{}", "\ufeff{}"])
def test_one_byte_order_mark_is_tolerated(data: bytes | str):
    assert decode(data) == {}


def test_two_byte_order_marks_are_not():
    refusal_of("\ufeff\ufeff{}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON: expecting value at line 1, column 1"),
        (b'{\n "a": }', "not JSON: expecting value at line 2, column 7"),
        (b'["a', "not JSON: unterminated string starting at line 1, column 2"),
        (b"[1] x", "not JSON: extra data at line 1, column 5"),
        (b'["a",\n "\xc3\xa9\xff"]', "not JSON: invalid UTF-8 at line 2, column 4"),
        (b'["1e400",\n 1e400]', "not JSON: no usable number: 1e400 at line 2, column 2"),
        (b"3e900606ab", "not JSON: no usable number: 3e900606 at line 1, column 1"),
        (b"[NaN]", "not JSON: no usable number: NaN at line 1, column 2"),
        (b"-Infinity", "not JSON: no usable number: -Infinity at line 1, column 1"),
        (b"1" * 5000, f"not JSON: no usable number: {'1' * 40}… at line 1, column 1"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(data: bytes, message: str):
    assert refusal_of(data).message == message


@pytest.mark.parametrize("leaf", [b"", b'"\\ud800",'])
def test_nesting_has_an_end(leaf: bytes):
    assert "nested too deep" in refusal_of(leaf.join([b"["] * 200_000) + b"[" + b"]" * 200_001).message


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[1,{"\\ud800":', "}]")])
def test_the_limit_of_nesting_is_exact(opening: str, closing: str):
    levels = jsontext.MOST_LEVELS // (2 if "{" in opening and "[" in opening else 1)
    text = opening * levels + "0" + closing * levels
    for form in (text, text.encode()):
        assert encode(decode(form)) == text.encode()
        assert "nested too deep" in refusal_of(b"[" + text.encode() + b"]").message
    assert "nested too deep" in refusal_of(f'[{{"a":{text}}}]').message


def test_brackets_side_by_side_and_in_words_are_no_levels():
    wide = [{"a": []}] * 3000
    assert decode(encode(wide)) == wide
    assert decode(encode("[{" * 3000)) == "[{" * 3000


def test_a_value_nested_too_deep_is_not_written():
    value: list[object] = []
    for _ in range(500_000):
        value = [value]
    with pytest.raises(Fault, match="nested too deep"):
        encode(value)  # type: ignore[arg-type]


@given(VALUES)
def test_whatever_is_written_is_read_back(value):
    data = encode(value)
    data.decode("utf-8")
    assert json.dumps(decode(data)) == json.dumps(json.loads(json.dumps(value)))


@given(st.binary(max_size=20) | st.text('[]{}",:\\u0d8eE+-. ntf', max_size=20))
def test_any_input_is_a_value_or_a_fault(data: bytes | str):
    try:
        value = decode(data)
    except Fault:
        return
    assert decode(encode(value)) == value
