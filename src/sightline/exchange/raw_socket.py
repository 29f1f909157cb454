"""Sockets that are passed on as they are (Realtime, Gemini Live): where they go, and their frames on record."""

import base64
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.exchange import Exchange
from sightline.exchange.outbound import own_call
from sightline.exchange.phase import CancelledEnd, ExchangePhase, FailedEnd, FinishedEnd
from sightline.exchange.raw_recorder import RawRecorder
from sightline.model.exchange import RAW_HTTP, AttemptStarted
from sightline.model.reply import Reply
from sightline.transport.web_socket import RefusedSocket
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame

Side = Literal["client", "server"]
_VERSION = re.compile(r"/v\d+[a-z0-9]*/?$")
_NAMES_VERSION = re.compile(r"/(?:v\d+[a-z0-9]*(?:/|$)|ws/)")
_KEY_PROTOCOL: Final = "openai-insecure-api-key."


def socket_call(request: ClientRequest, choice: ModelChoice, variables: Mapping[str, str]) -> HttpRequest:
    """The handshake of the provider's socket: at the same place, with the client's headers, and with the configured
    key where there is one. The version of the base URL is dropped where the path has its own."""
    call = own_call(request, choice, variables, request.body).fill(variables)
    if request.upstream:
        return replace(call, method="GET")
    made = urlsplit(call.url)
    # What stands before the path is the base URL; `own_call` adds the version that models are asked under.
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
    """The subprotocols that the provider is offered: without the client's key, which browsers put there, where another
    key is configured."""
    if not choice.provider.key_env:
        return offered
    return tuple(each for each in offered if not each.startswith(_KEY_PROTOCOL))


class SocketRecord:
    """The frames of one socket on record, as events of a stream: who sent each, and what. Those for which there is no
    more room are counted. `recorder` is the exchange's, `spoken` the dialect of its errors."""

    def __init__(self, exchange: Exchange, recorder: RawRecorder, spoken: str) -> None:
        self._exchange = exchange
        self._recorder = recorder
        self._spoken = spoken

    def begin(self, choice: ModelChoice, url: str) -> None:
        """The provider is dialled."""
        exchange, recorder = self._exchange, self._recorder
        exchange.enter(ExchangePhase.SENDING)
        place = recorder.redaction.text(url.partition("?")[0])
        digest = recorder.sha256
        attempt = AttemptStarted(1, choice.provider_name, digest, "", "", 0.0, exchange.request.model, RAW_HTTP, place)
        recorder.record_attempt(attempt)

    def open(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """The socket is open."""
        self._recorder.begin_frames(headers)
        self._exchange.enter(ExchangePhase.STREAMING)
        self._recorder.commit()

    def add(self, side: Side, data: bytes, *, is_text: bool) -> None:
        """A frame passes."""
        if is_text:
            frame = Frame(data, side)
        else:
            size, digest = len(data), sha256(data).hexdigest()
            said = b'{"size":%d,"sha256":"%b","base64":"%b"}' % (size, digest.encode(), base64.b64encode(data))
            frame = Frame(said, f"{side}.binary")
        self._recorder.pass_reply(encode_frame(frame))

    def finish(self, code: int, reason: str) -> None:
        """The socket was closed with this code."""
        if self._exchange.is_over:
            return
        closed = b'{"code":%d,"reason":%b}' % (code, encode(reason))
        self._recorder.pass_reply(encode_frame(Frame(closed, "close")))
        self._exchange.end(FinishedEnd(Reply()))

    def refuse(self, refused: RefusedSocket) -> None:
        """The provider answered with something else than a socket."""
        self._recorder.begin_reply(refused.status, refused.headers)
        self._recorder.pass_reply(refused.body)
        text = refused.body.decode("utf-8", "replace")
        self.fail(dialect(self._spoken).read_error(refused.status, text, {}))

    def fail(self, fault: Fault) -> None:
        """There is no socket, or it broke."""
        if not self._exchange.is_over:
            self._exchange.end(FailedEnd(fault))

    def cancel(self, reason: CancelReason) -> None:
        """The client has gone, or the server ends."""
        if not self._exchange.is_over:
            self._exchange.end(CancelledEnd(reason))


def socket_cut() -> Fault:
    """The provider's side of a socket ended without a close."""
    hint = "Connect again; the provider may have ended the session."
    return Fault(Code.NETWORK, "the provider's socket ended without a close", hint=hint)
