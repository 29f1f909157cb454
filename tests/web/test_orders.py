import asyncio
from collections.abc import Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.web import request_body as orders
from sightline.web.asgi import Heard
from sightline.web.request_body import order


def ordered(*pieces: bytes, is_whole: bool = True, most: int = orders.MOST_BYTES) -> JsonObject:
    messages: Sequence[Heard] = [
        {"type": "http.request", "body": piece, "more_body": n + 1 < len(pieces) or not is_whole}
        for n, piece in enumerate(pieces)
    ]
    coming = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> Heard:
        return next(coming)  # type: ignore[return-value]

    return asyncio.run(order(receive, most))


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


def test_one_that_is_too_long_is_heard_out_and_refused() -> None:
    with pytest.raises(Fault) as caught:
        ordered(b'{"a"', b":1", b"}", most=4)
    assert caught.value.status == 413
