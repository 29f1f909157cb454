import asyncio
from typing import Any

import msgspec
import pytest

from sightline.chat.api.bodies import MarkWanted, SendWanted, TopicChangeWanted
from sightline.errors import Code, Fault
from sightline.web.asgi import Heard, Receive
from sightline.web.bodies import Nothing, read_body


def saying(data: bytes) -> Receive:
    async def receive() -> Heard:
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
        (b"{}", SendWanted, "missing required field `view`"),
        (b'{"view":1}', SendWanted, "Expected `str`, got `int`"),
        (b'{"view":"v","quota":"never"}', SendWanted, "Invalid enum value 'never'"),
        (b'{"view":"v","txt":"x"}', SendWanted, "unknown field `txt`"),
        (b'{"ids":[],"star":1}', MarkWanted, "length >= 1"),
        (b'{"ids":["a"],"star":4}', MarkWanted, "<= 3"),
        (b'{"ids":"a"}', MarkWanted, "Expected `array`"),
        (b'{"\\ud800":1}', Nothing, ""),
    ],
)
def test_what_does_not_fit_is_refused_and_says_what_would(
    data: bytes, kind: type[msgspec.Struct], message: str
) -> None:
    with pytest.raises(Fault) as caught:
        read(data, kind)
    assert (caught.value.code, caught.value.status) == (Code.INVALID_REQUEST, 422)
    assert message in caught.value.message
    assert caught.value.hint.startswith("It takes ")


@pytest.mark.parametrize("data", [b"[]", b"7", b"{", b"[" * 1200 + b"]" * 1200, b'{"a":' * 1200 + b"1" + b"}" * 1200])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(Fault) as caught:
        read(data, SendWanted)
    assert caught.value.code is Code.INVALID_REQUEST
