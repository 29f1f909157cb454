import json

from sightline.errors import Code, Fault
from sightline.web import replies


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


def test_a_wrong_method_is_told_the_right_ones() -> None:
    assert dict(replies.wrong_method("PUT").headers)[b"allow"] == b"GET, HEAD"
    posted = replies.wrong_method("GET", "POST")
    assert dict(posted.headers)[b"allow"] == b"POST"
    assert json.loads(posted.body)["error"]["hint"] == "Use POST."
