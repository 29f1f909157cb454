import json

from sightline.dialects.views import VIEWS
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, StreamEvent, TextReceived

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
