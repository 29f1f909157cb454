"""Two ways to show an answer that are no provider's: its events a line each, and the one folded reply."""

from collections.abc import Callable, Mapping

import msgspec

from sightline.dialects.dialect import StreamWriting
from sightline.errors import Fault
from sightline.model.events import Ended, StreamEvent
from sightline.model.fold import Fold
from sightline.model.reply import reply_json
from sightline.wire.jsontext import encode


class EventLines:
    """Each event as one line of JSON."""

    def feed(self, event: StreamEvent) -> bytes:
        """The line of one event."""
        return encode(msgspec.to_builtins(event, enc_hook=_fault)) + b"\n"


class FoldedReply:
    """Nothing until the end, then the whole reply."""

    def __init__(self) -> None:
        self._fold = Fold()

    def feed(self, event: StreamEvent) -> bytes:
        """The reply, once nothing more comes."""
        self._fold.add(event)
        return encode(reply_json(self._fold.reply)) + b"\n" if isinstance(event, Ended) else b""


VIEWS: Mapping[str, Callable[[], StreamWriting]] = {"events": EventLines, "reply": FoldedReply}


def _fault(value: object) -> object:
    """Faults are exceptions, the one thing in an event that is not a value."""
    assert isinstance(value, Fault)
    return {"code": value.code.value, "message": value.message}
