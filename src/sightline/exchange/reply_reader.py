"""Parses a response for the record and for Sightline's own callers, and decodes content encodings."""

from collections.abc import Callable

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FieldReceived, FrameBroken, Started, StreamEvent
from sightline.model.fold import Fold
from sightline.model.reply import Reply
from sightline.wire.coding import READABLE, ContentDecoder
from sightline.wire.jsontext import decode

_MOST_WARNINGS = 3


class ReplyReader:
    """Parses a response alongside the client. Anything that goes wrong becomes a warning, and the client is still
    served.

    `has_failed`: the response is an error or was interrupted. `has_begun`: something of a reply has arrived. With
    `keeps_events`, each event is kept as it arrived, for one of Sightline's own callers; otherwise the pieces of one
    text are joined.
    """

    def __init__(self, spoken: str, *, keeps_events: bool = False) -> None:
        self.decoder = ReplyDecoder(dialect(spoken), joins=not keeps_events)
        self._fold = Fold(spoken)
        self._keeps_events = keeps_events
        self._events: list[StreamEvent] = []
        self._gave_up = False
        self._error: Exception | None = None
        self.was_interrupted = False
        """Set if the response is known to be truncated, so that an incomplete last frame is not reported."""
        self.has_failed = False
        self._has_begun = False
        self._warnings: list[str] = []

    def feed(self, data: bytes) -> None:
        self._read(self.decoder.feed, data)

    def close(self) -> None:
        self._read(self.decoder.close)

    def whole(self, data: bytes) -> None:
        """Parse a response that is complete, and most likely not a stream."""
        self._read(self.decoder.whole, data)

    def _read(self, read: Callable[..., list[StreamEvent]], *data: bytes) -> None:
        if not self._gave_up:
            try:
                self._take(read(*data))
            except Exception as error:  # noqa: BLE001 - a bug in our reader must not cost the client its response
                self._error = error
                self.give_up(f"the reply could not be read: {type(error).__name__}: {error}")

    def fail(self, fault: Fault) -> None:
        """The response was interrupted by this fault."""
        if not self._gave_up:
            self._take(self.decoder.fail(fault))

    @property
    def has_begun(self) -> bool:
        """Whether anything of a reply has arrived; a response that cannot be parsed counts as one."""
        return self._has_begun or self._gave_up

    @property
    def reply(self) -> Reply:
        return Reply() if self._gave_up else self._fold.reply

    @property
    def warning(self) -> str:
        """The warnings, in a sentence or two."""
        more = len(self._warnings) - _MOST_WARNINGS
        return "; ".join(self._warnings[:_MOST_WARNINGS]) + (f"; and {more} more" if more > 0 else "")

    def take_events(self) -> list[StreamEvent]:
        """The events since the last call. Raises the error of the parser: to one of Sightline's own callers, a reply
        that could not be parsed must not look like an empty one."""
        if self._error is not None:
            raise self._error
        events, self._events = self._events, []
        return events

    def _take(self, events: list[StreamEvent]) -> None:
        if self.was_interrupted:
            events = [event for event in events if not isinstance(event, FrameBroken)]
        if self._keeps_events:
            self._events += events
        for event in events:
            self._fold.add(event)
            if isinstance(event, Failed):
                self.has_failed = True
            elif isinstance(event, FrameBroken):
                self._warnings.append(f"a frame cannot be read ({event.at}): {event.message}")
            elif not (self._has_begun or _is_generic_event(event)):
                self._has_begun = True

    def give_up(self, why: str) -> None:
        """Stop parsing: the rest of the response cannot be read."""
        if not self._gave_up:
            self._gave_up = True
            self._warnings.append(why)


def read_so_far(spoken: str, data: bytes) -> Reply:
    """The reply so far in a response, complete or interrupted."""
    reading = ReplyReader(spoken)
    reading.was_interrupted = True
    reading.feed(data)
    reading.close()
    return reading.reply


def _is_generic_event(event: StreamEvent) -> bool:
    """Whether an event could result from any JSON, such as another dialect's ping, and does not begin a reply."""
    if isinstance(event, Started):
        return event.id is None and event.model is None
    return isinstance(event, Ended | FieldReceived)


def is_coded(content_encoding: str) -> bool:
    """Whether this value of the `Content-Encoding` header means that a body is compressed."""
    return content_encoding.strip().lower() not in ("", "identity")


def decoder_for(content_encoding: str) -> "BodyDecoder | None":
    """The decoder for this content encoding; None if there is none."""
    return BodyDecoder(content_encoding) if is_coded(content_encoding) else None


def decode_body(content_encoding: str, body: bytes) -> bytes:
    """A complete body after content decoding, as far as that is possible."""
    decoder = decoder_for(content_encoding)
    return body if decoder is None else decoder.feed(body)


class BodyDecoder:
    """Decodes the content encodings of a response, the last one first. `trouble` says why it cannot continue."""

    def __init__(self, coding: str) -> None:
        known = coding.strip().lower()
        names = [name for each in known.split(",") if (name := each.strip())]
        is_read = READABLE.issuperset(names)
        self._decodings = [ContentDecoder(name) for name in reversed(names)] if is_read else None
        self.trouble = "" if is_read else f"the content coding {known} cannot be read: what it holds is not known"

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes; unchanged if the encoding is unknown, empty if they are invalid."""
        if self._decodings is None:
            return data
        try:
            for decoding in self._decodings:
                data = decoding.feed(data)
        except Fault as fault:
            self._decodings, self.trouble = None, fault.message
            return b""
        return data


def read_error_body(spoken: str, status: int, body: bytes) -> Fault:
    """The fault in an error response, read as its dialect writes errors, or else as plain text."""
    try:
        return dialect(spoken).read_error(status, decode(body), {})
    except Fault:
        return dialect(spoken).read_error(status, body[:4000].decode("utf-8", "replace").strip(), {})


def unreadable(why: str) -> Fault:
    """The fault of a response that cannot be translated because it cannot be read."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the provider's answer cannot be read: {why}",
        hint="Check that the provider's base_url leads to its API, and that it speaks the dialect that is set for it.",
    )


def key_repeated() -> Fault:
    """The fault of an encoded response that contains a key."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        "the answer repeats a configured key and is coded, so that the key cannot be taken out",
        hint="Ask for the answer without Accept-Encoding, and tell the provider.",
    )
