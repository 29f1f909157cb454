import base64
from typing import Any

import pytest

from sightline.dialects.gemini.signatures import for_client, read_signature
from sightline.errors import Fault


def test_an_own_seal_is_carried_exactly():
    assert read_signature({"thoughtSignature": "abc+/="}, "") == ("abc+/=", "gemini", None)
    assert read_signature({"thought_signature": "abc"}, "") == ("abc", "gemini", None)
    assert for_client("abc+/=", "gemini") == "abc+/="
    assert for_client(None, None) is None
    assert read_signature({}, "") == (None, None, None)


def test_a_seal_is_text():
    with pytest.raises(Fault) as caught:
        read_signature({"thought_signature": 5}, "/p")
    assert caught.value.pointer == "/p/thought_signature"


@pytest.mark.parametrize("item", [None, "rs_1"])
@pytest.mark.parametrize("signature", ["ErUB??>>~~", None])
def test_a_foreign_seal_travels_wrapped_in_base64_and_comes_back(signature, item):
    sent: Any = for_client(signature, "anthropic", item)
    if signature is None and item is None:
        assert sent is None
        return
    assert base64.b64decode(sent).startswith(b"sightline:anthropic:")
    assert read_signature({"thoughtSignature": sent}, "") == (signature, "anthropic", item)
    # the vendor's SDK answers in the URL-safe alphabet
    safe = sent.replace("+", "-").replace("/", "_")
    assert read_signature({"thoughtSignature": safe}, "") == (signature, "anthropic", item)


@pytest.mark.parametrize("broken", ["c2lnaHRsaW5lO", "c2lnaHRsaW5lOv8="])
def test_something_that_only_looks_wrapped_stays_as_it_is(broken):
    assert read_signature({"thoughtSignature": broken}, "") == (broken, "gemini", None)
