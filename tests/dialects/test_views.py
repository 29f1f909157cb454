"""Forms that are no provider's."""

import json

import pytest

from sightline.dialects.translate import VIEWS, read_canonical, write_canonical
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, StreamEvent, TextReceived
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request

EVENTS: list[StreamEvent] = [TextReceived(0, "half"), Failed(Fault(Code.NETWORK, "gone")), Ended()]


def test_events_are_a_line_each() -> None:
    view = VIEWS["events"]()
    lines = [json.loads(view.feed(event)) for event in EVENTS]
    assert lines == [
        {"event": "text", "part": 0, "text": "half"},
        {"event": "failed", "fault": {"code": "network", "message": "gone"}},
        {"event": "ended"},
    ]


def test_the_folded_reply_comes_at_the_end() -> None:
    view = VIEWS["reply"]()
    written = [view.feed(event) for event in EVENTS]
    assert written[:2] == [b"", b""]
    assert json.loads(written[2])["fault"] == {"code": "network", "message": "gone"}


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
