import asyncio
import json
from collections.abc import Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.web import bodies as orders
from sightline.web import replies
from sightline.web.asgi import (
    RequestEvent,
    ResponseChunk,
    ResponseStart,
    WebResponse,
    header,
    response_body,
    response_start,
)
from sightline.web.bodies import Query, read_object
from sightline.web.routes import ApiCall, Handler, Routes


def test_a_whole_answer_tells_its_length() -> None:
    sent: list[ResponseStart | ResponseChunk] = []

    async def send(message: ResponseStart | ResponseChunk) -> None:
        sent.append(message)

    asyncio.run(WebResponse(404, b"none", [(b"a", b"b")]).to(send))
    assert sent == [response_start(404, [(b"a", b"b"), (b"content-length", b"4")]), response_body(b"none", more=False)]


def test_the_first_header_of_a_name_counts() -> None:
    headers = [(b"a", b"\xe9"), (b"a", b"2")]
    assert header(headers, b"a") == "é"
    assert header(headers, b"b") == ""


def test_a_query_is_read_by_name() -> None:
    query = Query("from=5&on=1&off=false&text=a%20b&empty=&twice=1&twice=2")
    assert (query.number("from", 0), query.number("limit", 7)) == (5, 7)
    assert (query.is_set("on"), query.is_set("off"), query.is_set("missing")) == (True, False, False)
    assert (query.text("text"), query.text("missing"), query.text("twice")) == ("a b", "", "2")
    assert "empty" in query
    assert "missing" not in query


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "²", "9" * 13])
def test_a_number_is_a_number(text: str) -> None:
    with pytest.raises(Fault) as caught:
        Query(f"n={text}").number("n", 0)
    assert (caught.value.status, caught.value.hint) == (400, "n is a whole number, 0 or more.")


def test_a_switch_is_on_or_off() -> None:
    with pytest.raises(Fault, match="cannot be"):
        Query("on=maybe").is_set("on")


def ordered(*pieces: bytes, is_whole: bool = True, most: int = orders.MOST_BYTES) -> JsonObject:
    messages: Sequence[RequestEvent] = [
        {"type": "http.request", "body": piece, "more_body": n + 1 < len(pieces) or not is_whole}
        for n, piece in enumerate(pieces)
    ]
    coming = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> RequestEvent:
        return next(coming)

    return asyncio.run(read_object(receive, most))


def test_an_order_is_one_json_object_and_none_is_an_empty_one() -> None:
    assert ordered(b'{"mod', b'el": "m"}') == {"model": "m"}
    assert ordered(b"") == {}
    assert ordered(b" \n") == {}


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b"\xff"])
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(Fault) as caught:
        ordered(body)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint


def test_an_order_that_breaks_off_is_none() -> None:
    with pytest.raises(Fault) as caught:
        ordered(b"{}", is_whole=False)
    assert caught.value.code is Code.CANCELLED


def test_too_long_body_is_rejected() -> None:
    with pytest.raises(Fault) as caught:
        ordered(b'{"a"', b":1", b"}", most=4)
    assert caught.value.status == 413


def test_an_error_has_one_shape() -> None:
    answer = replies.failure(Fault(Code.INVALID_REQUEST, "not so", hint="Otherwise."))
    assert answer.status == 400
    assert json.loads(answer.body) == {"error": {"code": "invalid_request", "message": "not so", "hint": "Otherwise."}}


def test_answers_are_kept_nowhere_and_framed_nowhere() -> None:
    for answer in (replies.json({}), replies.data(b"", b"text/plain"), replies.no_token(), replies.wrong_method("PUT")):
        headers = dict(answer.headers)
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert headers[b"x-frame-options"] == b"DENY"
        assert headers[b"referrer-policy"] == b"no-referrer"


def test_bytes_of_others_can_do_nothing() -> None:
    assert b"sandbox" in dict(replies.data(b"<script>", b"text/plain").headers)[b"content-security-policy"]


def test_every_refusal_has_its_status() -> None:
    assert replies.no_token().status == 401
    assert replies.failure(replies.not_found("such thing")).status == 404
    assert replies.wrong_method("PUT").status == 405


def test_wrong_method_is_answered_with_the_allowed_methods() -> None:
    assert dict(replies.wrong_method("PUT").headers)[b"allow"] == b"GET, HEAD"
    posted = replies.wrong_method("GET", "POST")
    assert dict(posted.headers)[b"allow"] == b"POST"
    assert json.loads(posted.body)["error"]["hint"] == "Use POST."


def handler(name: str) -> Handler:
    async def answered(_call: ApiCall) -> object:
        return name

    return answered


async def nothing() -> RequestEvent:
    return {"type": "http.disconnect"}


ROUTES = Routes(
    {
        "a": {"GET": handler("a")},
        "a/*": {"GET": handler("a/*")},
        "a/new": {"GET": handler("a/new")},
        "a/*/b/*": {"GET": handler("a/*/b/*")},
        "c/d": {"GET": handler("c/d")},
    }
)


@pytest.mark.parametrize(
    ("path", "pattern", "names"),
    [
        ("a", "a", ()),
        ("a/new", "a/new", ()),
        ("a/1", "a/*", ("1",)),
        ("a/*", "a/*", ("*",)),
        ("a/", "a/*", ("",)),
        ("a/1/b/2%2F3", "a/*/b/*", ("1", "2%2F3")),
        ("c/d", "c/d", ()),
    ],
)
async def test_a_path_means_the_pattern_that_fits_it_best(path: str, pattern: str, names: tuple[str, ...]) -> None:
    methods, stood_for = ROUTES.find(path)
    call = ApiCall(stood_for, "", nothing)
    assert await methods["GET"](call) == pattern
    assert stood_for == names
    assert not names or call.name == names[0]


@pytest.mark.parametrize("path", ["", "b", "c", "a/1/b", "a/new/b/2", "c/d/e", "*"])
def test_nothing_else_is_there(path: str) -> None:
    assert ROUTES.find(path) is None
