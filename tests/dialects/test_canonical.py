import pytest

from sightline.dialects.views import read_canonical, write_canonical
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request


def test_a_request_is_written_and_read_back() -> None:
    request = Request(model="m", messages=(Message("user", (Text("hi \ud800"),)),), dialect="openai-chat")
    assert read_canonical(write_canonical(request)) == request


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "/messages: expected a list, found null"),
        (b'{"messages":[],"bogus":1}', "unknown field `bogus`"),
        (b'{"messages":[{"role":"user","parts":[{"type":"text","text":"x","zz":1}]}]}', "unknown field `zz`"),
        (b'{"messages":[],"model":5}', "not a canonical request: Expected `str`"),
        (b"{", "not JSON"),
        (b"[]", "Expected `object`"),
        (b'{"messages":[],"options":{"temperature":"\\ud800"}}', "surrogates"),
    ],
)
def test_anything_else_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Fault, match=reason) as caught:
        read_canonical(data)
    assert caught.value.code == Code.INVALID_REQUEST
    assert caught.value.hint
