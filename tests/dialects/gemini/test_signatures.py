import base64
import copy
from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.gemini.request_write import write_request
from sightline.dialects.gemini.signatures import UNCHECKED, for_client, read_signature, sign_calls
from sightline.errors import Fault
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request


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


def content(role: str, *kinds: str) -> dict[str, Any]:
    return {"role": role, "parts": [{kind: {}} if kind != "text" else {"text": "x"} for kind in kinds]}


def test_calls_of_the_current_turn_are_signed_where_the_model_demands_it() -> None:
    report = Report()
    own = {"functionCall": {}, "thoughtSignature": "b3du"}
    contents: list[Any] = [
        content("user", "text"),
        content("model", "functionCall"),
        content("user", "functionResponse"),
        content("user", "text"),
        content("model", "text", "functionCall", "functionCall"),
        content("user", "functionResponse", "text"),
        {"role": "model", "parts": [own]},
        content("user", "functionResponse"),
        content("model", "text"),
    ]
    before = copy.deepcopy(contents)
    sign_calls(contents, report)
    before[4]["parts"][1]["thoughtSignature"] = UNCHECKED  # the first call of a step; older turns are not checked
    assert contents == before
    assert [addition.pointer for addition in report.additions] == ["/contents/4/parts/1/thoughtSignature"]
    only = [content("model", "functionCall")]
    sign_calls(only, report)  # type: ignore[arg-type]
    assert only[0]["parts"][0]["thoughtSignature"] == UNCHECKED


@pytest.mark.parametrize("facts", [Facts(signed_calls=True), Facts(), None])
def test_only_models_that_check_signatures_get_one(facts: Facts | None) -> None:
    messages = (Message("user", (Text("a"),)), Message("assistant", (ToolCall("c", "f", "{}"),)))
    request = Request("m", (*messages, Message("tool", (ToolResult("c", (Text("x"),)),))))
    body: Any = write_request(request, Target(facts=facts), Report())
    assert ("thoughtSignature" in body["contents"][1]["parts"][0]) is bool(facts and facts.signed_calls)
