import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.gateway.gateway import is_too_deep


def nested(levels: int, opening: bytes = b"[", inner: bytes = b"", closing: bytes = b"]") -> bytes:
    return opening * levels + inner + closing * levels


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        nested(1000),
        nested(500, b'{"a":[', b"1", b"]}"),
        b"[" + b",".join([b'{"a":[[]]}'] * 5000) + b"]",
        json.dumps({"text": "[" * 5000}).encode(),
        json.dumps({"text": '"[' * 5000}).encode(),
        json.dumps({"text": '\\"[' * 3000 + "\\"}).encode(),
        json.dumps({"text": "\\" * 7, "more": "{" * 3000}).encode(),
        b'"' + b"[" * 3000,
        b"]" * 3000 + b"[" * 900,
    ],
)
def test_what_people_mean_is_not_too_deep(text: bytes) -> None:
    assert not is_too_deep(text)


@pytest.mark.parametrize(
    "text",
    [
        nested(1001),
        nested(501, b'{"a":[', b"1", b"]}"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text":"\\\\","deep":' + nested(1001) + b"}",
        b'{"text":"\\"","deep":' + nested(1001) + b"}",
        b"[" + b"[]," * 500 + nested(1000) + b"]",
    ],
)
def test_what_is_deeper_than_any_api_means_is_found(text: bytes) -> None:
    assert is_too_deep(text)


@given(st.integers(990, 1010), st.text(max_size=5), st.booleans())
def test_the_limit_is_exact(levels: int, text: str, is_object: bool) -> None:
    inner = json.dumps([text, "[{" * 20, text]).encode()
    wrapped = nested(levels - 1, b'{"k":' if is_object else b"[", inner, b"}" if is_object else b"]")
    assert is_too_deep(b"[" + b'"x",' * 3 + wrapped + b"]") is (levels + 1 > 1000)
