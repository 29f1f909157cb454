"""The record of a raw exchange: the bodies that passed, or the frames of its socket (Realtime, Gemini Live), how much
of them is kept, and the hash of all of it. Also the handshake of such a socket with its provider.
"""

import base64
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.client_request import ClientRequest, TextHeaders, headers_by_name, text_headers
from sightline.exchange.exchange import Exchange
from sightline.exchange.hub import Hub
from sightline.exchange.outbound import own_call
from sightline.exchange.phase import CancelledEnd, ExchangeEnd, ExchangePhase, FailedEnd, FinishedEnd
from sightline.exchange.recorder import FactObserver, Recorder
from sightline.exchange.redaction import Caller
from sightline.exchange.reply_reader import BodyDecoder, decoder_for
from sightline.model.exchange import RAW_HTTP, AttemptStarted, BodyPassed, ExchangeFinished
from sightline.model.reply import Reply
from sightline.transport.waiting import Clock
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame

if TYPE_CHECKING:
    from sightline.transport.web_socket import RefusedSocket

KEPT = 8 << 20
"""How many bytes of each body are kept by default."""


class BodyTally:
    """Counts and hashes one body while it passes. `take` returns the part that should be kept.

    An encoded body is decoded as long as it fits into the limit. A longer one is counted and hashed as it arrived,
    because a few encoded bytes may expand to any number.
    """

    def __init__(self, media_type: str, coding: str, limit: int) -> None:
        self.media_type = media_type
        self.kept = 0
        self._coding = coding.strip().lower()
        self._limit = limit
        self._decoder: BodyDecoder | None = decoder_for(coding)
        """The decoder, as long as decoding is possible."""
        self.is_coded = False
        """Whether the body is counted as it arrived, in its encoding."""
        self._came, self._plain = sha256(), sha256()
        self._came_size = self._plain_size = 0
        self._check_decoder()

    def _check_decoder(self) -> None:
        if self._decoder is not None and (self._decoder.trouble or self._plain_size > self._limit):
            self._decoder, self.is_coded = None, True

    def take(self, data: bytes) -> bytes:
        """Count a piece of the body; returns the part of it to keep, after content decoding."""
        self._came.update(data)
        self._came_size += len(data)
        plain = data
        if self._decoder is not None:
            plain = self._decoder.feed(data)
            self._plain.update(plain)
            self._plain_size += len(plain)
            self._check_decoder()
        kept = plain[: self._limit - self.kept] if self._plain_size <= self._limit else b""
        self.kept += len(kept)
        return kept

    @property
    def is_kept(self) -> bool:
        return self.kept == self.size

    @property
    def size(self) -> int:
        """How many bytes have arrived, after content decoding if that was possible."""
        return self._came_size if self._decoder is None else self._plain_size

    @property
    def sha256(self) -> str:
        """The hash of these bytes, in hex."""
        return (self._came if self._decoder is None else self._plain).hexdigest()

    def fact(self, of: Literal["request", "reply"], *, is_whole: bool, kept_sha256: str = "") -> BodyPassed:
        coding = self._coding if self.is_coded else ""
        return BodyPassed(of, self.sha256, self.size, self.media_type, coding, self.kept, kept_sha256, is_whole)


class RawRecorder(Recorder):
    """Records a raw exchange; `limit` is how many bytes of each body are kept. `address` and `shown_headers` are the
    client's, without secrets."""

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
        """A piece of the request's body is being sent to the provider."""
        if kept := self._request.take(data):
            self._request_kept.append(kept)

    def end_request(self) -> None:
        self._is_request_whole = True

    def begin_reply(self, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self.record_head(status, headers)
        self._answer = _tally(text_headers(headers), self.limit)

    def begin_frames(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """A socket is open. Its frames are recorded as the events of a stream."""
        self.record_head(101, headers)
        self._answer = BodyTally("text/event-stream", "", self.limit)

    def pass_reply(self, data: bytes) -> bytes:
        """A piece of the response's body has arrived; returns the part of it that is kept, after content decoding."""
        assert self._answer is not None
        kept = self._answer.take(data)
        if kept:
            self.record_chunk(kept)
        return kept

    def record_end(self, end: ExchangeEnd) -> None:
        self.settle(end)
        if self._is_request_whole or self._request.size:
            data = b"".join(self._request_kept)
            digest = self.keep_body(data) if data and sha256(data).hexdigest() != self.sha256 else self.sha256
            self.note(self._request.fact("request", is_whole=self._is_request_whole, kept_sha256=digest))
        if self._answer is not None:
            is_error = isinstance(end, FailedEnd) and end.fault.status == self.status  # the provider's, and complete
            self.note(self._answer.fact("reply", is_whole=isinstance(end, FinishedEnd) or is_error))
        super().record_end(end)

    def _finish_fact(self, end: FinishedEnd) -> ExchangeFinished:
        return replace(super()._finish_fact(end), finish=end.reply.choice.finish or "")

    def _reply_sha256(self) -> str:
        """The hash of the response; of its recorded form if that is complete, because credentials are masked in it."""
        answer = self._answer
        return super()._reply_sha256() if answer is None or answer.is_kept else answer.sha256


class RawExchange(Exchange):
    """An exchange whose request is passed on unchanged."""

    recorder: RawRecorder


def _tally(headers: TextHeaders, limit: int) -> BodyTally:
    named = headers_by_name(headers)
    return BodyTally(named.get("content-type", ""), named.get("content-encoding", ""), limit)


Side = Literal["client", "server"]
_VERSION = re.compile(r"/v\d+[a-z0-9]*/?$")
_NAMES_VERSION = re.compile(r"/(?:v\d+[a-z0-9]*(?:/|$)|ws/)")
_KEY_PROTOCOL: Final = "openai-insecure-api-key."


def socket_call(request: ClientRequest, choice: ModelChoice, variables: Mapping[str, str]) -> HttpRequest:
    """The handshake of the provider's socket: the same path, with the client's headers, and with the configured key if
    there is one. The version in the base URL is dropped if the path has its own."""
    call = own_call(request, choice, variables, request.body).fill(variables)
    if request.upstream:
        return replace(call, method="GET")
    made = urlsplit(call.url)
    # The part before the path is the base URL; `own_call` adds the API version under which models are called.
    asked = request.path if request.path.startswith("/") else f"/{request.path}"
    tail = re.sub(r"^/+(?:v\d+[a-z0-9]*/+)*", "/", asked)
    base = made.path[: -len(tail)] if made.path.endswith(tail) else ""
    if _NAMES_VERSION.match(asked):
        base = _VERSION.sub("", base)
        tail = asked
    return replace(
        call, method="GET", url=urlunsplit((made.scheme, made.netloc, base.rstrip("/") + tail, made.query, ""))
    )


def protocols_for(choice: ModelChoice, offered: tuple[str, ...]) -> tuple[str, ...]:
    """The subprotocols that the provider is offered. The client's key, which browsers put there, is removed if another
    key is configured."""
    if not choice.provider.key_env:
        return offered
    return tuple(each for each in offered if not each.startswith(_KEY_PROTOCOL))


class SocketRecord:
    """Records the frames of one socket as events of a stream: the sender and the content of each. Frames beyond the
    limit are only counted. `spoken` is the dialect of its errors."""

    def __init__(self, exchange: RawExchange, spoken: str) -> None:
        self._exchange = exchange
        self._recorder = exchange.recorder
        self._spoken = spoken

    def begin(self, url: str) -> None:
        exchange, recorder = self._exchange, self._recorder
        exchange.enter(ExchangePhase.SENDING)
        provider, model = exchange.choice.provider_name, exchange.request.model
        place = recorder.redaction.text(url.partition("?")[0])
        attempt = AttemptStarted(1, provider, recorder.sha256, model=model, dialect=RAW_HTTP, url=place)
        recorder.record_attempt(attempt)

    def open(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self._recorder.begin_frames(headers)
        self._exchange.enter(ExchangePhase.STREAMING)
        self._recorder.commit()

    def add(self, side: Side, data: bytes, *, is_text: bool) -> None:
        if is_text:
            frame = Frame(data, side)
        else:
            size, digest = len(data), sha256(data).hexdigest()
            said = b'{"size":%d,"sha256":"%b","base64":"%b"}' % (size, digest.encode(), base64.b64encode(data))
            frame = Frame(said, f"{side}.binary")
        self._recorder.pass_reply(encode_frame(frame))

    def finish(self, code: int, reason: str) -> None:
        if not self._exchange.is_over:
            closed = b'{"code":%d,"reason":%b}' % (code, encode(reason))
            self._recorder.pass_reply(encode_frame(Frame(closed, "close")))
            self._exchange.end(FinishedEnd(Reply()))

    def refuse(self, refused: "RefusedSocket") -> None:
        """The provider responded with something other than a socket."""
        self._recorder.begin_reply(refused.status, refused.headers)
        self._recorder.pass_reply(refused.body)
        text = refused.body.decode("utf-8", "replace")
        self.fail(dialect(self._spoken).read_error(refused.status, text, {}))

    def fail(self, fault: Fault) -> None:
        if not self._exchange.is_over:
            self._exchange.end(FailedEnd(fault))

    def cancel(self, reason: CancelReason) -> None:
        """The client has gone, or the server is shutting down."""
        if not self._exchange.is_over:
            self._exchange.end(CancelledEnd(reason))


def socket_cut() -> Fault:
    hint = "Connect again; the provider may have ended the session."
    return Fault(Code.NETWORK, "the provider's socket ended without a close", hint=hint)
