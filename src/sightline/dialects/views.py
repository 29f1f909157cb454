"""Forms that are no provider's: the canonical request as JSON, and a reply as its events or as one folded value."""

from collections.abc import Callable, Mapping

import msgspec

from sightline.dialects.dialect import StreamWriting
from sightline.dialects.fields import wrong
from sightline.errors import Code, Fault
from sightline.model.events import Ended, StreamEvent
from sightline.model.fold import Fold
from sightline.model.reply import reply_json
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode


def write_canonical(request: Request) -> bytes:
    """The request as JSON; what is unset is left out."""
    return encode(msgspec.to_builtins(request))


def read_canonical(data: bytes) -> Request:
    """The request that such JSON holds."""
    document = decode(data)
    if isinstance(document, dict) and not isinstance(document.get("messages"), list):
        raise wrong(document.get("messages"), "/messages", "a list")
    try:
        return msgspec.convert(document, Request)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Fault(
            Code.INVALID_REQUEST,
            f"not a canonical request: {error}",
            hint="Make one with `sightline translate request --to canonical` and change that.",
        ) from None


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
