import asyncio
import json
from typing import Any

import pytest

from sightline.chat.api.refusals import OWN_CODES, not_there, refusal, refusing, wrong_text
from sightline.errors import Code, Fault
from sightline.filters.parsing import parse
from sightline.web.asgi import Heard, WebResponse
from sightline.web.routes import ApiCall


def told(fault: Fault) -> tuple[int, Any]:
    answer = refusal(fault)
    return answer.status, json.loads(answer.body)["error"]


@pytest.mark.parametrize("code", sorted(OWN_CODES))
def test_the_chats_own_codes_are_told(code: str) -> None:
    fault = Fault(Code.CONTEXT_OVERFLOW, "too much", hint="less", status=422, details={"code": code})
    assert told(fault) == (422, {"code": code, "message": "too much", "hint": "less"})


def test_what_the_page_needs_to_go_on_is_told() -> None:
    details = {"code": "quota_wait", "line": "can go in 5 s", "can_go_at": 12.5, "secret": 1}
    status, error = told(Fault(Code.RATE_LIMITED, "wait", hint="wait", status=429, details=details))
    assert (status, error["code"]) == (429, "quota_wait")
    assert error["details"] == {"line": "can go in 5 s", "can_go_at": 12.5}


def test_a_providers_words_are_not_taken_for_ours() -> None:
    details = {"code": "weird", "line": "x", "message": "hm"}
    assert told(Fault(Code.UPSTREAM_ERROR, "hm", details=details)) == (
        502,
        {"code": "upstream_error", "message": "hm", "hint": ""},
    )
    assert told(Fault(Code.UPSTREAM_ERROR, "hm", details="words"))[0] == 502
    assert told(Fault(Code.UPSTREAM_ERROR, "hm", details={"code": 7}))[1]["code"] == "upstream_error"


@pytest.mark.parametrize("code", [Code.AUTH, Code.PERMISSION, Code.MODEL_UNKNOWN])
def test_a_providers_refusal_is_not_the_apis_own(code: Code) -> None:
    assert told(Fault(code, "no", status=401))[0] == 422


def test_a_place_is_told_as_a_browser_counts() -> None:
    text = "c'\U0001f600' & nothing"
    with pytest.raises(Fault) as caught:
        parse(text)
    status, error = told(wrong_text(text, caught.value))
    assert status == 422
    assert error["details"] == {"column": 9, "length": 7}


def test_a_handlers_fault_is_its_answer() -> None:
    async def handler(_call: ApiCall) -> object:
        raise not_there("pair", "p")

    async def receive() -> Heard:
        return {"type": "http.disconnect"}

    async def asked() -> object:
        return await refusing(handler)(ApiCall((), "", receive))

    answer = asyncio.run(asked())
    assert isinstance(answer, WebResponse)
    assert answer.status == 404
    assert json.loads(answer.body)["error"]["message"] == "there is no pair 'p'"
