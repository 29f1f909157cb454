import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.chat.api.requests import OWN_CODES, MarkWanted, SendWanted, TopicChangeWanted, refusal
from sightline.errors import Code, Fault
from sightline.web.asgi import Receive, RequestEvent
from sightline.web.bodies import Nothing, read_body
from tests.chat.api.http_stage import ChatDesk, chat_desk

CALLS = [
    ("PUT", "views/{view}"),
    ("GET", "views/{view}"),
    ("GET", "views/{view}/rows"),
    ("GET", "views/{view}/place"),
    ("POST", "estimate"),
    ("POST", "preview"),
    ("POST", "send"),
    ("POST", "cancel"),
    ("POST", "resume"),
    ("GET", "pairs/{id}"),
    ("GET", "pairs/{id}/media/{n}"),
    ("POST", "pairs/{id}/reask"),
    ("POST", "pairs/{id}/edit"),
    ("POST", "pairs/{id}/swap"),
    ("POST", "mark"),
    ("POST", "delete"),
    ("POST", "restore"),
    ("POST", "command"),
    ("GET", "export"),
    ("POST", "import"),
    ("GET", "topics"),
    ("POST", "topics"),
    ("PUT", "topics/{id}"),
    ("DELETE", "topics/{id}"),
    ("GET", "preferences"),
    ("PUT", "preferences"),
    ("POST", "compaction"),
    ("POST", "compaction/draft"),
    ("POST", "compaction/compare"),
    ("POST", "compaction/undo"),
    ("GET", "filter"),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    with chat_desk(tmp_path_factory.mktemp("calls")) as made:
        yield made


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_call_is_there_and_no_other_way_to_ask_for_it(desk: ChatDesk, method: str, path: str) -> None:
    path = path.replace("{n}", "0").replace("{", "").replace("}", "")
    status, told = desk.call(method, path, {} if method in ("POST", "PUT") else None)
    assert status < 500
    assert status != 405
    assert not (status == 404 and "there is no" in told["error"]["message"] and "/api/chat" in told["error"]["message"])
    answer = desk.raw("PATCH", path, b"{}")
    assert answer.status == 405
    assert method in answer.headers["allow"]


def test_what_is_not_there_is_not_found(desk: ChatDesk) -> None:
    for path in ("", "nothing", "views", "pairs", "pairs/p/nothing", "topics/a/b", "compaction/nothing"):
        assert desk.raw("GET", path).status == 404


def test_every_call_is_documented() -> None:
    told = (Path(__file__).parents[3] / "docs/reference/http.md").read_text("utf-8")
    missing = [path for _, path in CALLS if f"/api/chat/{path}" not in told]
    assert not missing


NAMES = [
    "view text attachments replaces hold step expect_sha256 quota model ids star flag topic hand index user_text",
    "assistant_text filter anyway before dry_run name parent system_prompt style_directives parameters toolsets",
    "settings saved_filters instruction id",
]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["", "v", "none", "acme/large", "s2 :delete", "ask", "@x", ":", "\x00", "\ud800", "\U0001f600"]),
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.sampled_from(["none", "", 7, None, {"data": "YQ=="}, {"name": "a", "filter": "e"}]), max_size=3),
    st.dictionaries(st.sampled_from(["temperature", "charsPerToken", "x"]), st.integers(-1, 99) | st.text(max_size=3)),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    call=st.sampled_from([call for call in CALLS if call[0] in ("POST", "PUT") and call[1] != "import"]),
    value=st.dictionaries(st.sampled_from(" ".join(NAMES).split()), VALUES, max_size=5),
)
def test_arbitrary_write_request_never_causes_a_server_error(
    desk: ChatDesk, call: tuple[str, str], value: dict[str, Any]
) -> None:
    method, path = call
    answer = desk.raw(method, path.replace("{view}", "v").replace("{id}", "none"), json.dumps(value).encode())
    assert answer.status < 500, (call, value, answer.body)
    assert answer.status == 200 or answer.json()["error"]["hint"], (call, value, answer.body)
    if (method, path, answer.status) == ("POST", "send", 200):
        desk.ended(answer.json()["pair"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from([path for method, path in CALLS if method == "GET"]),
    names=st.text(max_size=5),
    query=st.dictionaries(
        st.sampled_from(
            ["view", "filter", "as", "from", "limit", "pair", "of", "text", "cursor", "text_tokens", "name"]
        ),
        st.sampled_from(["", "v", "-1", "99999999999999999999", "json", "%00", "s2", "answer", "\x00", "ä", "jsonl"]),
        max_size=4,
    ),
)
def test_arbitrary_get_request_never_causes_a_server_error(
    desk: ChatDesk, path: str, names: str, query: dict[str, str]
) -> None:
    for each in ("{view}", "{id}", "{n}"):
        path = path.replace(each, quote(names.encode("utf-8", "replace"), safe="") or "v")
    answer = desk.raw("GET", f"{path}?{urlencode(query)}")
    assert answer.status < 500, (path, query, answer.body)


def told(fault: Fault) -> tuple[int, Any]:
    answer = refusal(fault)
    return answer.status, json.loads(answer.body)["error"]


@pytest.mark.parametrize("code", sorted(OWN_CODES))
def test_chat_specific_error_codes_are_returned(code: str) -> None:
    fault = Fault(Code.CONTEXT_OVERFLOW, "too much", hint="less", status=422, details={"code": code})
    assert told(fault) == (422, {"code": code, "message": "too much", "hint": "less"})


def test_error_includes_the_details_the_page_needs_to_continue() -> None:
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


def saying(data: bytes) -> Receive:
    async def receive() -> RequestEvent:
        return {"type": "http.request", "body": data}

    return receive


def read(data: bytes, kind: type[msgspec.Struct]) -> Any:
    return asyncio.run(read_body(saying(data), kind))


def test_a_body_becomes_what_it_should_be() -> None:
    assert read(b'{"view":"v","text":"hi"}', SendWanted) == SendWanted("v", "hi")
    assert read(b"", Nothing) == Nothing()
    assert read(b'{"model":null}', TopicChangeWanted).model is None
    assert read(b"{}", TopicChangeWanted).model is msgspec.UNSET


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"{}", SendWanted, 'the body lacks the key "view"'),
        (b'{"view":"v","quota":"never"}', SendWanted, 'quota must be one of "anyway", "ask", "wait", not "never"'),
        (b'{"view":"v","attachments":[{"name":"a"}]}', SendWanted, 'attachments[0] lacks the key "data"'),
        (b'{"ids":"a","star":4}', MarkWanted, "ids must be a list, each text, not text; star must be"),
        (b'{"\\ud800":1}', Nothing, 'the body has no key "?"'),
    ],
)
def test_what_does_not_fit_is_refused_and_says_what_would(
    data: bytes, kind: type[msgspec.Struct], message: str
) -> None:
    with pytest.raises(Fault) as caught:
        read(data, kind)
    assert (caught.value.code, caught.value.status) == (Code.INVALID_REQUEST, 422)
    assert message in caught.value.message
    assert "It takes " in caught.value.hint
