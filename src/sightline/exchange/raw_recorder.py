"""The record of a raw exchange: what passed of its bodies, how much of that is kept, and the hash of all of it."""

from hashlib import sha256
from typing import Literal

from msgspec.structs import replace

from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.exchange.hub import Hub
from sightline.exchange.phase import ExchangeEnd, FailedEnd, FinishedEnd
from sightline.exchange.recorder import FactObserver, Recorder
from sightline.exchange.redaction import Caller
from sightline.exchange.reply_reader import BodyDecoder, decoder_for
from sightline.model.exchange import BodyPassed, ExchangeFinished
from sightline.transport.clock import Clock

KEPT = 8 << 20
"""Bytes that are kept of each body, where nothing else is set."""


class BodyTally:
    """Counts and hashes one body while it passes. `take` gives back what is to be kept of it.

    A coded body is decoded as long as it fits into what is kept; a longer one is counted and hashed as it came, because
    a few coded bytes may stand for any number.
    """

    def __init__(self, media_type: str, coding: str, limit: int) -> None:
        self.media_type = media_type
        self.kept = 0
        self._coding = coding.strip().lower()
        self._limit = limit
        self._decoder: BodyDecoder | None = decoder_for(coding)
        self._is_plain = self._decoder is None or not self._decoder.trouble
        self._came, self._plain = sha256(), sha256()
        self._came_size = self._plain_size = 0

    def take(self, data: bytes) -> bytes:
        """A piece has come; the part of it that is to be kept, after content decoding."""
        self._came.update(data)
        self._came_size += len(data)
        if self._decoder is None or not self._is_plain:
            plain = data
        else:
            plain = self._decoder.feed(data)
            self._plain.update(plain)
            self._plain_size += len(plain)
            if self._decoder.trouble or self._plain_size > self._limit:
                self._is_plain = False
        kept = plain[: self._limit - self.kept] if self._decoder is None or self._plain_size <= self._limit else b""
        self.kept += len(kept)
        return kept

    @property
    def is_kept(self) -> bool:
        """Whether all that came is kept."""
        return self.kept == self.size

    @property
    def is_coded(self) -> bool:
        """Whether it is counted as it came, in its coding."""
        return self._decoder is not None and not self._is_plain

    @property
    def size(self) -> int:
        """How many bytes have come, after content decoding where that was possible."""
        return self._came_size if self._decoder is None or self.is_coded else self._plain_size

    @property
    def sha256(self) -> str:
        """The hash of these bytes, in hex."""
        return (self._came if self._decoder is None or self.is_coded else self._plain).hexdigest()

    def fact(self, of: Literal["request", "reply"], *, is_whole: bool, kept_sha256: str = "") -> BodyPassed:
        """What is recorded of it."""
        coding = self._coding if self.is_coded else ""
        return BodyPassed(of, self.sha256, self.size, self.media_type, coding, self.kept, kept_sha256, is_whole)


class RawRecorder(Recorder):
    """Records a raw exchange; `limit` is how many bytes are kept of each of its bodies. `address` and `shown_headers`
    are the client's, without secrets."""

    def __init__(
        self,
        request: ClientRequest,
        exchange: str,
        hub: Hub,
        clock: Clock,
        caller: Caller,
        observer: FactObserver | None = None,
        *,
        limit: int = KEPT,
    ) -> None:
        super().__init__(request, exchange, hub, clock, caller, observer)
        self.limit = limit
        self.address, self.shown_headers = caller.address, caller.headers
        self._request = _tally(request.headers, limit)
        self._request_kept: list[bytes] = []
        self._is_request_whole = False
        self._answer: BodyTally | None = None

    def pass_request(self, data: bytes) -> None:
        """A piece of the request's body goes to the provider."""
        if kept := self._request.take(data):
            self._request_kept.append(kept)

    def end_request(self) -> None:
        """All of the request's body has gone to the provider."""
        self._is_request_whole = True

    def begin_reply(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """The head of the answer has come."""
        self.record_head(status, headers)
        self._answer = _tally(
            tuple((name.decode("latin-1"), each.decode("latin-1")) for name, each in headers), self.limit
        )

    def begin_frames(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """A socket is open. Its frames are recorded as the events of a stream."""
        self.record_head(101, headers)
        self._answer = BodyTally("text/event-stream", "", self.limit)

    def pass_reply(self, data: bytes) -> bytes:
        """A piece of the answer's body has come; what is kept of it, after content decoding."""
        assert self._answer is not None
        kept = self._answer.take(data)
        if kept:
            self.record_chunk(kept)
        return kept

    def record_end(self, end: ExchangeEnd) -> None:
        """Record what has passed, and how it ended."""
        self.settle(end)
        if self._is_request_whole or self._request.size:
            data = b"".join(self._request_kept)
            digest = self.keep_body(data) if data and sha256(data).hexdigest() != self.sha256 else self.sha256
            self.note(self._request.fact("request", is_whole=self._is_request_whole, kept_sha256=digest))
        if self._answer is not None:
            self.note(self._answer.fact("reply", is_whole=isinstance(end, FinishedEnd) or self._is_error(end)))
        super().record_end(end)

    def _is_error(self, end: ExchangeEnd) -> bool:
        """Whether the answer is whole, and is an error of the provider's."""
        return isinstance(end, FailedEnd) and end.fault.status == self._status

    def _finish_fact(self, end: FinishedEnd) -> ExchangeFinished:
        return replace(super()._finish_fact(end), finish=end.reply.choice.finish or "")

    def _reply_sha256(self) -> str:
        """The hash of the answer: of what is on record, where that is all, because a credential is masked there."""
        answer = self._answer
        return super()._reply_sha256() if answer is None or answer.is_kept else answer.sha256


def _tally(headers: TextHeaders, limit: int) -> BodyTally:
    named = {name.lower(): value for name, value in reversed(headers)}
    return BodyTally(named.get("content-type", ""), named.get("content-encoding", ""), limit)
