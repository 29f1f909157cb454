"""The Responses API over WebSocket: each `response.create` of a client is one exchange, and its events are the
response.

If the provider has such a socket, frames pass unchanged in both directions; between the two sides is the same
`run_exchange` as over HTTP, so that a request can be held, edited, masked and answered by hand. Other providers are
called over HTTP, and their streams become frames.

The frames of a client are processed in order. A held one delays those after it. Several responses may be active at
once, one after another in each lane (`stream_id`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from sightline.catalog.choose import ModelChoice
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, RequestHandler
from sightline.exchange.keepalive import TICK, sign_of_life
from sightline.exchange.relay import Relay
from sightline.exchange.socket_history import HTTP_HEADERS, HttpForm, SocketHistory
from sightline.exchange.socket_link import AdoptedResponse, LaneClient, SocketLink, read_kind
from sightline.gateway.web_socket import (
    GOING_AWAY,
    ClientSocket,
    FrameWriter,
    SocketEvents,
    cancel_frame,
    error_frame,
    fault_frame,
    refuse_socket,
    steering_refused,
)
from sightline.model.exchange import AttemptStarted
from sightline.model.reply import Choice, Reply
from sightline.store.entries import FactEntry
from sightline.transport.web_socket import RefusedSocket
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import MISFIT, decode
from sightline.wire.sse import SseDecoder

_LOG = logging.getLogger("sightline.gateway")
_NO_SOCKET: Final = frozenset({404, 405, 426, 501})
"""The statuses by which a server says that it has no socket here; it is then called over HTTP."""

_INTERNAL_ERROR: Final = 1011
_EMPTY_REPLY: Final = Reply(choices=(Choice(finish="stop"),))


class _ClientFrame(msgspec.Struct):
    """The fields that are read of a client's frame."""

    type: str = ""
    stream_id: str | None = None
    model: str | None = None
    generate: bool | None = None
    previous_response_id: str | None = None
    response_id: str | None = None


_READ_FRAME: Final = msgspec.json.Decoder(_ClientFrame)
_REQUEST: Final = "response.create"


def _read_frame(data: bytes) -> _ClientFrame:
    """The fields of a client's text frame. Raises a fault if it is not JSON, or a request whose fields have other
    types: the provider might understand it, and no rule could have held it."""
    try:
        return _READ_FRAME.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = decode(data)  # JavaScript clients send lone surrogates, which the decoder above refuses
    try:
        return msgspec.convert(value, _ClientFrame)
    except MISFIT as error:
        if isinstance(value, dict) and value.get("type") == _REQUEST:
            raise Fault(Code.INVALID_REQUEST, f"the frame is not a request: {error}", status=400) from None
        return _ClientFrame()


@dataclass(slots=True, eq=False)
class _SocketTurn:
    """One request of a lane and its response. `previous` is the one before it in the lane, whose events come first;
    `after` are frames of the provider that arrived after its response."""

    lane: str
    previous: "_SocketTurn | None"
    request: ClientRequest
    task: "asyncio.Task[None] | None" = None
    has_left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request was sent, or will not be: the frames after it need not wait any longer."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    after: list[tuple[bytes, bool]] = field(default_factory=list)
    is_http: bool = False


class ResponsesSocket(SocketEvents):
    """Serves one client. `template` is the handshake as a request without a body; `elapsed` the clock of the relay;
    `longest` the maximum size of a message in bytes."""

    def __init__(
        self,
        handler: RequestHandler,
        client: ClientSocket,
        template: ClientRequest,
        elapsed: Callable[[], float],
        longest: int,
    ) -> None:
        self._handler = handler
        self._relay = handler if isinstance(handler, Relay) else None
        self._client = client
        self._template = template
        self._elapsed = elapsed
        self._longest = longest
        self._model = ""
        self._history = SocketHistory()
        self._links: dict[str, SocketLink] = {}
        self._latest: SocketLink | None = None
        self._without_socket: set[str] = set()
        self._turns: dict[str, _SocketTurn] = {}
        """The last turn of each lane that is not over."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._steers: dict[str, bytes] = {}
        self._texts: dict[bytes, bytes] = {}
        self._is_ending = False
        client.events = self

    async def run(self) -> ClientResponse | None:
        """Serve the client until its socket closes. Returns the response to a handshake that is refused, otherwise
        None."""
        try:
            passed = await self._dial_early()
        except RefusedSocket as refused:
            return refuse_socket(refused, self._relay.secrets if self._relay is not None else ())
        except Fault as fault:
            return client_response.refusal(self._template.dialect, fault, [(b"connection", b"close")])
        self._client.accept(passed)
        try:
            while (message := await self._client.next_message()) is not None:
                await self._take(*message)
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            # After the client's last frames, which may have arrived together with its close.
            for link in self._links.values():
                link.socket.close(self._client.close_code or GOING_AWAY, self._client.close_reason)
        await self._client.until_lost()
        return None

    # --- the client's frames ---

    async def _take(self, data: bytes, is_text: bool) -> None:  # noqa: FBT001 - a message is a pair
        try:
            frame = _read_frame(data) if is_text else _ClientFrame()
        except Fault as unread:
            self._send_fault(unread, "")
            return
        if frame.type == _REQUEST:
            await self._create(data, frame)
            return
        turn = self._turns.get(frame.stream_id or "")
        is_for_http = turn is not None and turn.is_http
        link = self._link_for(frame)
        if link is not None and link.socket.is_open and not is_for_http:
            if frame.type == "response.steer":
                self._steers[link.lanes_by_response.get(frame.previous_response_id or "", "")] = data
            link.socket.send(data, is_text=is_text)
            await link.until_writable()
        elif frame.type == "response.cancel":
            self._cancel(frame.stream_id or "")
        elif frame.type == "response.steer":
            self._client.send(steering_refused(data))
        else:
            fault = Fault(Code.INVALID_REQUEST, f"the event {frame.type!r} is not known here", status=400)
            self._send_fault(fault, frame.stream_id or "")

    def _link_for(self, frame: _ClientFrame) -> SocketLink | None:
        """The socket of the response that a frame is about; the latest socket if it names none that is known."""
        named = frame.response_id or frame.previous_response_id or ""
        return next((each for each in self._links.values() if named in each.lanes_by_response), self._latest)

    async def _create(self, data: bytes, frame: _ClientFrame) -> None:
        """Start a turn; returns when its request was sent, so that frames after it keep their order."""
        lane = frame.stream_id or ""
        model = frame.model or self._model
        if not model:
            hint = 'Say which model is to answer: {"model": "…"}.'
            self._send_fault(Fault(Code.INVALID_REQUEST, "the frame names no model", hint=hint, status=400), lane)
            return
        self._model = model
        request = msgspec.structs.replace(self._template, body=data, model=model, received=self._elapsed())
        turn = _SocketTurn(lane, self._turns.get(lane), request)
        self._begin(turn, self._serve(turn, warm_up=frame.generate is False))
        await turn.has_left.wait()
        if self._latest is not None:
            await self._latest.until_writable()

    def _begin(self, turn: _SocketTurn, serving: Coroutine[Any, Any, None]) -> None:
        self._turns[turn.lane] = turn
        loop = asyncio.get_running_loop()
        turn.task = loop.create_task(serving)
        self._tasks.add(turn.task)
        turn.task.add_done_callback(lambda task: self._end_turn(turn, task))
        timer = loop.call_later(TICK, self._keep_alive, turn)
        turn.task.add_done_callback(lambda _: timer.cancel())

    def _end_turn(self, turn: _SocketTurn, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        turn.has_left.set()
        turn.is_over.set()
        for data, is_text in turn.after:
            self._client.send(data, is_text=is_text)
        if self._turns.get(turn.lane) is turn:
            del self._turns[turn.lane]
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("a request on a socket failed", exc_info=error)
            self._client.socket.close(_INTERNAL_ERROR, "Internal error")
        elif self._is_ending:
            self.server_ends()

    def _keep_alive(self, turn: _SocketTurn) -> None:
        """While the turn may be waiting for a user, send pings and keep-alive frames to the client."""
        if turn.is_over.is_set():
            return
        if not turn.has_left.is_set() or (self._relay is not None and not self._relay.holds.is_idle):
            self._client.socket.ping()
            for frame in SseDecoder().feed(sign_of_life(turn.request)):
                self._client.send(frame.data)
        asyncio.get_running_loop().call_later(TICK, self._keep_alive, turn)

    # --- a turn ---

    async def _serve(self, turn: _SocketTurn, *, warm_up: bool) -> None:
        request = turn.request
        try:
            sender = await self._sender_for(turn)
            if sender is not None:
                assert self._relay is not None
                # The client reconnects by itself, and a frame that was sent is not sent twice.
                response = await self._relay.start(msgspec.structs.replace(request, retries=0), client=sender)
                await self._hand_over(turn, response, None)
                return
            turn.is_http = True
            form = self._history.http_form(request.body)
            response = await self._ask_over_http(turn, form, warm_up=warm_up)
            await self._hand_over(turn, response, form)
        except Fault as fault:
            self._send_fault(fault, turn.lane)

    async def _sender_for(self, turn: _SocketTurn) -> LaneClient | None:
        """The client that sends the request as a frame; None if it is sent over HTTP. A problem with the route or the
        provider becomes the end of the exchange, which is recorded."""
        if self._relay is None:
            return None
        try:
            choice, handshake = self._relay.socket_request(turn.request)
        except Fault:
            return None
        if handshake is None or choice.provider_name in self._without_socket:
            return None

        open_link = partial(self._link_to, choice, handshake)
        refused: RefusedSocket | Fault | None = None
        try:
            await open_link()
        except (RefusedSocket, Fault) as error:
            if _is_no_socket(error):
                self._without_socket.add(choice.provider_name)
                return None
            refused = error
        return LaneClient(turn.lane, turn.has_left.set, refused, open_link)

    async def _ask_over_http(self, turn: _SocketTurn, form: HttpForm, *, warm_up: bool) -> ClientResponse:
        request = turn.request
        if self._relay is None:
            turn.has_left.set()
            return await self._handler.start(msgspec.structs.replace(request, body=form.body))
        if warm_up:
            # A provider that is called over HTTP has nothing to warm up; the items are kept for later requests.
            return self._relay.answer_here(request, _EMPTY_REPLY)

        def look(entry: FactEntry) -> None:
            if isinstance(entry.fact, AttemptStarted):
                turn.has_left.set()

        headers = (*request.headers, *HTTP_HEADERS)
        return await self._relay.start(msgspec.structs.replace(request, headers=headers, http_body=form.body), look)

    async def _hand_over(self, turn: _SocketTurn, response: ClientResponse, form: HttpForm | None) -> None:
        async with response:
            turn.has_left.set()
            if turn.previous is not None:
                await turn.previous.is_over.wait()
                turn.previous = None
            if response.status >= 400:
                body = b"".join([piece async for piece in response])
                self._client.send(error_frame(response, body, turn.lane))
                return
            texts = None if form is not None else self._texts
            writer = FrameWriter(self._client, turn.lane, texts)
            try:
                await response.body.write_to(writer)
            except Fault as fault:  # the stream cannot contain it
                writer.finish()
                self._send_fault(fault, turn.lane)
                return
            if form is not None and writer.last:
                self._history.keep(form, writer.last)
        writer.finish()

    def _cancel(self, lane: str) -> None:
        turn = self._turns.get(lane)
        if turn is not None and turn.task is not None:
            turn.task.cancel()
            self._client.send(cancel_frame(turn.lane))

    # --- the provider's sockets ---

    async def _dial_early(self) -> client_response.Headers:
        """Connect during the handshake if the provider is known before the first request; returns the headers of its
        response for the client."""
        relay = self._relay
        if relay is None or (not self._template.provider and relay.catalog.routes):
            return []
        choice, handshake = relay.socket_request(self._template)
        if handshake is None:
            return []
        try:
            link = await self._link_to(choice, handshake)
        except Fault as fault:
            if not _is_no_socket(fault):
                raise
            if self._template.upstream:  # the vendor's own client then does what it does without us
                hint = "Ask over HTTP."
                raise Fault(Code.USAGE, "the provider has no WebSocket", hint=hint, status=426) from None
            self._without_socket.add(choice.provider_name)
            return []
        return client_response.headers_for_client(link.headers, relay.secrets)

    async def _link_to(self, choice: ModelChoice, handshake: HttpRequest) -> SocketLink:
        """The socket to a provider: the one that is open, or a new one. Frames that name no model go there from now
        on."""
        known = self._links.get(choice.provider_name)
        if known is not None and known.socket.is_open:
            self._latest = known
            return known
        assert self._relay is not None
        seconds = choice.provider.connect_timeout_ms / 1000
        dialled = await self._relay.dial_socket(
            handshake, seconds, longest=self._longest, compresses=self._client.wants_compression
        )
        link = SocketLink(dialled, handshake.url, self._on_unmatched_frame, self._link_closed)
        link.texts = self._texts
        self._links[choice.provider_name] = self._latest = link
        return link

    def _on_unmatched_frame(self, link: SocketLink, data: bytes, lane: str, is_text: bool) -> None:  # noqa: FBT001 - a callback
        """Handle a frame of the provider that belongs to no request."""
        turn = self._turns.get(lane)
        if is_text and read_kind(data).type == "response.created":
            self._adopt(link, data, lane, turn)
        elif turn is not None:
            turn.after.append((data, is_text))
        else:
            self._client.send(data, is_text=is_text)
            if self._client.is_paused:
                for each in self._links.values():
                    each.hold_back(is_held=True)

    def _adopt(self, link: SocketLink, data: bytes, lane: str, previous: _SocketTurn | None) -> None:
        """The provider continues by itself, with input that steered the previous response: that is an exchange too. It
        can be neither held nor changed, since the provider has it already."""
        response = link.adopt(lane)
        response.feed(data, is_last=False)
        body = self._steers.pop(lane, b"{}")
        request = msgspec.structs.replace(
            self._template, body=body, model=self._model, received=self._elapsed(), was_sent=True, masks=False
        )
        turn = _SocketTurn(lane, previous, request)
        self._begin(turn, self._serve_adopted(turn, AdoptedResponse(response)))

    async def _serve_adopted(self, turn: _SocketTurn, sender: AdoptedResponse) -> None:
        assert self._relay is not None
        await self._hand_over(turn, await self._relay.start(turn.request, client=sender), None)

    def _link_closed(self, link: SocketLink, code: int, reason: str) -> None:
        """A provider has closed its socket. Close the client's, once it has received everything that arrived; unless
        there are other sockets, or a request waits for a user: it gets a new socket."""
        self._links = {name: each for name, each in self._links.items() if each is not link}
        is_needed = any(turn.is_http or not turn.has_left.is_set() for turn in self._turns.values())
        if not self._links and not is_needed:
            asyncio.get_running_loop().create_task(self._close_after_turns(code, reason)).add_done_callback(_forget)

    async def _close_after_turns(self, code: int, reason: str) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        if code == 1006:
            code, reason = _INTERNAL_ERROR, "the connection to the provider was lost"
        self._client.socket.close(code, reason)

    # --- events of the client's socket ---

    def server_ends(self) -> None:
        """Close as soon as no turn is active."""
        self._is_ending = True
        if not self._tasks:
            self._client.socket.close(GOING_AWAY, "Sightline is shutting down")

    def client_writable(self) -> None:
        for link in self._links.values():
            link.hold_back(is_held=False)

    # --- errors ---

    def _send_fault(self, fault: Fault, lane: str) -> None:
        self._client.send(fault_frame(self._template.dialect, fault, lane))


def _is_no_socket(error: RefusedSocket | Fault) -> bool:
    """Whether the response to a handshake means that the server has no socket, or does not speak HTTP/1.1, like some
    small local servers."""
    return error.status in _NO_SOCKET if isinstance(error, RefusedSocket) else error.code is Code.UPSTREAM_PROTOCOL


def _forget(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()
