"""Direct exchanges: the common case of `run_exchange`, run in two callbacks instead of a task.

Most requests are alike. The client repeats an earlier head with another body, the provider speaks the client's dialect,
nothing is held or changed, and the response arrives whole. Such an exchange takes the steps of `run_exchange` in
`DirectLane.begin`, when the request has arrived, and in `DirectExchange.take_whole`, when the response has. What all
requests of one head and model have in common is computed once (`DirectRoute`), and so is what all responses with the
same header names have in common (`ResponsePlan`).

Anything unusual turns it into a usual exchange. Before the request is sent, `begin` returns None. After that,
`run_exchange` continues with the request under way (`_continue`). A law compares the records and the responses of both
ways.
"""

import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import read_plain_reply
from sightline.dialects.signatures import may_hold_signatures
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, pick_places, places_for_client
from sightline.exchange.interception.rule_subject import RouteRules
from sightline.exchange.lane import Lane, LaneRoute
from sightline.exchange.phase import CancelledEnd, cancel_reason
from sightline.exchange.recorder import finish_fact, has_parts, holds_secret, plain_usage
from sightline.exchange.redaction import FrameMasking
from sightline.exchange.reply_reader import ReplyReader, decoder_for
from sightline.exchange.responder import read_usual_reply
from sightline.model.exchange import AttemptStarted
from sightline.model.reply import Reply, Usage
from sightline.store.digest import words_of
from sightline.store.entries import FactEntry, FramesEntry, KeptEntry
from sightline.store.whole import RecordBeginning, decode_entries, encode_ending, join_entries
from sightline.tokens.rate_headers import may_tell
from sightline.transport.http.client import HttpClient, RequestLine
from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.framing import AnswerParser, AnswerShape
from sightline.transport.http.target import Timeouts
from sightline.transport.sender import ProviderResponse, RequestClient
from sightline.web.asgi import ClientWriter, DirectClient
from sightline.wire.call import HttpRequest
from sightline.wire.secrets import bytes_of, decode_names

if TYPE_CHECKING:
    from sightline.exchange.exchange import Exchange
    from sightline.exchange.relay import Relay

_LOG = logging.getLogger(__name__)
_MOST_MODELS = 256
_MOST_PLANS = 64
_MOST_CONTINUED = 4
_TRIED_AGAIN = 32
_OK = 200
_TYPE, _CODING, _EVENTS = b"content-type", b"content-encoding", b"text/event-stream"

ReadModel: TypeAlias = Callable[[bytes], tuple[str, bool] | None]
"""The model that a body names and whether it requests a stream; None if the body may be invalid."""
Respond: TypeAlias = Callable[[ClientResponse, ClientWriter], Awaitable[None]]
"""Writes a response to its client."""


class ResponsePlan:
    """How responses with the same header names are passed on. `head` is the client's head as a format string, and
    `pick` selects the provider's values for it. `type_at` and `coding_at` are the positions of the content's type and
    coding. `has_limits` is true if a header may report a rate limit."""

    __slots__ = ("coding_at", "has_limits", "has_secret", "head", "names", "pick", "raw_names", "type_at", "with_id")

    def __init__(self, shape: AnswerShape, id_header: str, *, is_stream: bool) -> None:
        self.raw_names = tuple(shape.names)
        self.names, self.has_secret = decode_names(self.raw_names)
        self.has_limits = may_tell(self.raw_names)
        self.type_at = shape.low.index(_TYPE) if _TYPE in shape.low else None
        self.coding_at = shape.low.index(_CODING) if _CODING in shape.low else None
        places = places_for_client(self.raw_names)
        low = [shape.low[place] for place in places]
        self.pick: Callable[[tuple[bytes, ...]], tuple[bytes, ...]] = pick_places(places)
        self.with_id = bool(id_header) and id_header.encode() not in low
        lines = [name.replace(b"%", b"%%") + b": %b" for name in low]
        lines += [] if is_stream else [b"content-length: %d"]
        lines += [b"x-sightline-exchange: %b", b"x-sightline-overhead-ms: %.3f"]
        lines += [id_header.encode() + b": %b"] if self.with_id else []
        lines += [b"transfer-encoding: chunked"] if is_stream else []
        self.head = b"HTTP/1.1 200 OK\r\n" + b"\r\n".join([*lines, b"", b""])


class DirectRoute:
    """The route of the requests that share a head and a model, and everything that they have in common."""

    __slots__ = (
        "beginning", "choice", "continued", "is_coded", "is_stream", "keys", "learns_at", "line", "model",
        "names_last_reply", "plans", "redaction", "rules", "secrets", "spoken",
    )  # fmt: skip

    def __init__(
        self,
        request: ClientRequest,
        lane: Lane,
        route: LaneRoute,
        line: RequestLine,
        relay: "Relay",
    ) -> None:
        """Raises a ValueError if the head cannot be recorded this way; see `RecordBeginning`."""
        assert route.outgoing is not None
        assert route.outgoing.seen is not None
        choice, seen = route.choice, route.outgoing.seen
        attempt = AttemptStarted(
            1, choice.provider_name, "", "", "", 0.0, choice.model, choice.dialect, seen.url, seen.headers, seen.key
        )
        caller = lane.caller
        received = caller.arrival_fact(request, "")
        self.beginning = RecordBeginning(caller.near(request), received, attempt)
        self.rules = RouteRules(relay.holds, received, request, choice)
        self.choice = choice
        self.model = request.model
        self.line = line
        self.spoken = dialect(choice.dialect)
        self.is_coded = self.spoken.rules.codes_signatures
        self.names_last_reply = self.spoken.rules.names_last_reply
        self.is_stream = request.is_stream
        self.redaction = caller.redaction
        self.secrets = bytes_of(self.redaction.secrets)
        self.keys = relay.secrets
        self.plans: dict[AnswerShape, ResponsePlan | None] = {}
        self.continued = 0
        """How many exchanges in a row became usual ones."""
        self.learns_at = 0.0
        """The token estimates learn from no request before this time of the monotonic clock."""

    def read_reply(self, body: bytes, kind: bytes, *, was_coded: bool) -> Reply | None:
        """Read the reply of a whole response with this content type; None if `run_exchange` has to read it."""
        is_framed = kind.lower().startswith(_EVENTS)
        if is_framed != self.is_stream or (self.secrets is not None and self.secrets.mask(body)[1]):
            return None
        if self.is_stream:
            stream = self.spoken.plain_stream
            reply = None if stream is None else stream.read(body)
            if reply is not None and self.keys:
                masking = FrameMasking(self.keys)
                reply = reply if masking.feed(body) + masking.close() == body else None
        else:
            reply = (read_plain_reply if was_coded else read_usual_reply)(self.spoken, body) or self._read_all(body)
        return None if reply is None or reply.fault is not None else reply

    def _read_all(self, body: bytes) -> Reply | None:
        """Read the reply with the full reader; None if that reports a problem."""
        reading = ReplyReader(self.spoken.name)
        reading.whole(body)
        return None if reading.warning else reading.reply

    def plan_for(self, shape: AnswerShape, values: tuple[bytes, ...]) -> ResponsePlan | None:
        """Make the plan for responses of this shape, which includes the values of the connection's headers; None if
        `run_exchange` has to handle them."""
        if len(self.plans) >= _MOST_PLANS:
            self.plans.clear()
        named = dict(zip(shape.low, values, strict=True))
        is_usual = shape.status == _OK and named.get(b"connection", b"keep-alive").lower() == b"keep-alive"
        plan = ResponsePlan(shape, self.spoken.clients.request_id, is_stream=self.is_stream) if is_usual else None
        self.plans[shape] = plan
        return plan

    def choose_direct(self) -> bool:
        """Whether the next exchange starts as a direct one. After several in a row that became usual ones, as long
        streams do, only one in 32 does: changing over costs a tenth more than starting as a usual exchange."""
        if self.continued < _MOST_CONTINUED:
            return True
        self.continued += 1
        return not self.continued % _TRIED_AGAIN


class DirectLane:
    """Begins the direct exchanges of one client head. `request` is what all of its requests have in common."""

    def __init__(
        self, request: ClientRequest, relay: "Relay", client: HttpClient, read_model: ReadModel, respond: Respond
    ) -> None:
        self.relay = relay
        self.client = client
        self.respond = respond
        self.request = request
        self._read_model = read_model
        self._lane = relay.lanes.lane_of(request)
        self._routes: dict[tuple[str, bool], DirectRoute | None] = {}
        """By the model and whether a stream is requested."""

    def begin(self, body: bytes, received: float, client: DirectClient) -> "DirectExchange | None":
        """Send a request with this body now; None, with nothing done, if it has to be a usual exchange."""
        relay = self.relay
        if not relay.is_direct or (asked := self._read_model(body)) is None:
            return None
        route = self._routes[asked] if asked in self._routes else self._open_route(*asked)
        if (
            route is None
            or not route.choose_direct()
            or may_hold_signatures(body, is_coded=route.is_coded)
            or (route.names_last_reply and relay.may_expand(self.request, body))
            or not (relay.holds.is_idle or route.rules.allows(body, relay.clock.now()))
        ):
            return None
        exchange = DirectExchange(self, route, body, received, client)
        return exchange if exchange.send() else None

    def _open_route(self, model: str, is_stream: bool) -> DirectRoute | None:  # noqa: FBT001 - as the body says it
        """Prepare the route to this model. None if its requests cannot be direct, and until `run_exchange` has sent one
        of them: the route reuses what that left in the lane."""
        relay, request = self.relay, replace(self.request, model=model, is_stream=is_stream)
        try:
            found = self._lane.route_for(request, relay.router)
        except Fault:
            return None
        sent, choice = found.sent.get(True), found.choice
        if sent is None or found.outgoing is None or found.outgoing.seen is None:
            return None
        is_own = choice.dialect == request.dialect and (choice.model == model or dialect(choice.dialect).model_in_path)
        is_plain = not choice.provider.embedded and not choice.provider.sign
        opened = None
        if is_own and is_plain and (choice.route is None or choice.route.system == "in_place"):
            try:
                line = self.client.line_for(sent, found.outgoing.timeouts)
                opened = None if line is None else DirectRoute(request, self._lane, found, line, relay)
            except (Fault, ValueError):
                opened = None  # `run_exchange` says what is wrong with it
        if len(self._routes) >= _MOST_MODELS:
            self._routes.clear()
        self._routes[model, is_stream] = opened
        return opened


class _BegunClient:
    """An HTTP client whose first attempt only waits for the response to the request under way. Retries are sent as
    usual."""

    def __init__(self, line: RequestLine, connection: HttpConnection, client: RequestClient) -> None:
        self._line = line
        self._connection: HttpConnection | None = connection
        self._client = client

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False) -> ProviderResponse:
        connection, self._connection = self._connection, None
        if connection is None:
            return await self._client.send(request, timeouts, past_proxy=past_proxy)
        return await self._line.receive(connection)


class DirectExchange:
    """A direct exchange, from the moment its request is sent."""

    __slots__ = (
        "_at", "_begun", "_body", "_client", "_connection", "_is_recorded", "_lane", "_received", "_route", "_sent",
        "_sent_at", "_usual", "id",
    )  # fmt: skip

    def __init__(
        self, lane: DirectLane, route: DirectRoute, body: bytes, received: float, client: DirectClient
    ) -> None:
        self._lane = lane
        self._route = route
        self._body = body
        self._received = received
        self._client = client
        self._is_recorded = False
        self._usual: Exchange | None = None
        """The usual exchange that this one became, if it did."""

    def send(self) -> bool:
        """Send the request; False, with nothing sent, if no connection is free."""
        lane, route, body = self._lane, self._route, self._body
        relay = lane.relay
        self.id = relay.make_id()
        self._at = at = relay.clock.now()
        # Encoded first: a request that cannot be recorded must not be sent from here.
        self._begun = route.beginning.encode(self.id, sha256(body).hexdigest(), body, at)
        self._sent_at = relay.clock.monotonic()
        connection = route.line.begin(body, self)
        if connection is None:
            return False
        self._connection = connection
        choice = route.choice
        self._sent = relay.ledger.add_request(choice.provider_name, choice.model, 0, at)
        relay.hub.expect(self)
        relay.add(self)
        return True

    # --- the response ---

    def take_whole(self, shape: AnswerShape, values: tuple[bytes, ...], body: bytes) -> bool:
        """Record a whole response and pass it on; False, with nothing done, if `run_exchange` has to handle it."""
        relay, route = self._lane.relay, self._route
        arrived = relay.clock.monotonic()
        try:
            plan = route.plans.get(shape) or route.plan_for(shape, values)
            ended = None if plan is None else self._end(plan, values, body, arrived)
            if plan is None or ended is None:
                return False
            ending, reported, now, words = ended
            # Recorded before the first byte reaches the client.
            if self._is_recorded:
                entries = join_entries(2, *ending)
            else:
                entries = join_entries(5, *self._begun, *ending, words=words)
            relay.hub.append(entries, self.id)
        except (Fault, OSError, UnicodeEncodeError):
            return False  # the recorder of a usual exchange reports what it cannot write, and retries
        except Exception:  # noqa: BLE001 - the client gets its response in the usual way
            _LOG.exception("exchange %s could not be ended directly", self.id)
            return False
        relay.hub.stop_expecting(self)
        relay.forget(self)
        route.line.release(self._connection)
        route.continued = 0
        own = relay.clock.monotonic() - self._received - (arrived - self._sent_at)
        self._client.respond_directly(self._response(plan, values, body, own))
        if plan.has_limits:
            relay.ledger.keep_headers(self._sent, plan.raw_names, values, now)
        lesson = self._body if arrived >= route.learns_at else b""
        if pause := relay.responder.settle(self._sent, reported, route.choice, lesson):
            route.learns_at = arrived + pause
        return True

    def _end(
        self, plan: ResponsePlan, values: tuple[bytes, ...], body: bytes, arrived: float
    ) -> tuple[tuple[bytes, bytes], Usage | None, float, str] | None:
        """Read a response that arrived at this time, and encode how the exchange ends. Returns the encoded entries, the
        usage that the provider reported (if it is plausible), the time, and the words of a stream; None if
        `run_exchange` has to handle the response."""
        relay, route = self._lane.relay, self._route
        plain = body
        if plan.coding_at is not None and (decoder := decoder_for(values[plan.coding_at].decode("latin-1"))):
            plain = decoder.feed(body)
            if decoder.trouble:
                return None
        kind = b"" if plan.type_at is None else values[plan.type_at]
        reply = route.read_reply(plain, kind, was_coded=plain is not body)
        joined = b"\n".join(values).decode("latin-1")
        headers = route.redaction.headers_of_values(plan.names, joined, has_secret=plan.has_secret)
        if reply is None or headers is None:
            return None
        if has_parts(reply) and holds_secret(reply, route.redaction):
            return None
        usage = reported = plain_usage(reply.usage)
        if not relay.counter.is_plausible(route.choice, usage):
            usage = plain_usage(relay.counter.with_estimate(route.choice, self._body, reply, lambda: plain).usage)
        now, after = relay.clock.now(), arrived - self._sent_at
        times = arrived - self._received, relay.clock.monotonic() - self._received
        finished = finish_fact(reply, _OK, headers, sha256(plain).hexdigest(), usage, times)
        frames = FramesEntry(self.id, 2, [self._at + after], [after], [plain])
        # Reading a stream of 200 chunks again would take the recorder 50 microseconds.
        words = words_of(reply) if route.is_stream and not route.names_last_reply else ""
        return encode_ending(frames, FactEntry(self.id, 3, now, finished)), reported, now, words

    def _response(self, plan: ResponsePlan, values: tuple[bytes, ...], body: bytes, own: float) -> bytes:
        """The response for the client. `own` is the time that Sightline took, in seconds."""
        name = self.id.encode()
        ids = (name, own * 1000, name) if plan.with_id else (name, own * 1000)
        if self._route.is_stream:
            return b"%b%x\r\n%b\r\n0\r\n\r\n" % (plan.head % (*plan.pick(values), *ids), len(body), body)
        return plan.head % (*plan.pick(values), len(body), *ids) + body

    def on_answer(self, answer: AnswerParser) -> None:
        """Handle a fault, or a response that did not arrive in one read; one in chunks may be complete by now."""
        if answer.is_complete and answer.values is not None and answer.shape is not None and answer.fault is None:
            body = answer.pieces[0] if len(answer.pieces) == 1 else b"".join(answer.pieces)
            if self.take_whole(answer.shape, answer.values, body):
                return
        if (
            answer.values is not None or not answer.is_complete
        ):  # otherwise the next response of this shape may be direct
            self._route.continued += 1
        self._continue()

    # --- what makes it a usual exchange ---

    def _continue(self) -> None:
        """Let `run_exchange` do the rest in the task of the client's connection."""
        lane, exchange = self._lane, self._hand_over()

        async def serve(writer: ClientWriter) -> None:
            await lane.respond(await lane.relay.resume(exchange), writer)

        self._client.continue_in_task(serve)

    def _hand_over(self) -> "Exchange":
        """Make the usual exchange that takes over the connection and the places in the hub and the relay."""
        lane, route = self._lane, self._route
        relay = lane.relay
        self._connection.leave_taker()
        request = replace(
            lane.request,
            body=self._body,
            model=route.model,
            is_stream=route.is_stream,
            received=self._received,
            exchange=self.id,
            was_begun=True,
        )
        client = _BegunClient(route.line, self._connection, lane.client)
        exchange = self._usual = relay.make_exchange(request, client=client)
        exchange.resume(self._entries(), self._sent, self._sent_at, is_recorded=self._is_recorded)
        relay.add(exchange)  # before `forget`, or the relay would be empty for a moment
        relay.forget(self)
        relay.hub.stop_expecting(self)
        return exchange

    def client_gone(self) -> None:
        """The client has disconnected before `run_exchange` took over."""
        exchange = self._usual or self._hand_over()
        self._connection.abort()
        if not exchange.is_over:
            exchange.end(CancelledEnd(cancel_reason()))
        self._lane.relay.forget(exchange)

    def abort(self, reason: Fault) -> None:
        """End the exchange now with this fault as the response."""
        lane, exchange = self._lane, self._hand_over()
        self._connection.abort()
        response = exchange.refuse(reason)
        lane.relay.forget(exchange)

        async def serve(writer: ClientWriter) -> None:
            await lane.respond(response, writer)

        self._client.continue_in_task(serve)

    def _entries(self) -> list[KeptEntry]:
        return decode_entries(memoryview(join_entries(3, *self._begun)))

    # --- its record ---

    def commit(self) -> None:
        """Record how the exchange began, because its response is taking a while."""
        hub = self._lane.relay.hub
        hub.stop_expecting(self)
        if self._is_recorded:
            return
        try:
            hub.append(join_entries(3, *self._begun), self.id)
            self._is_recorded = True
        except Exception:  # noqa: BLE001 - as above
            self._continue()

    @property
    def unwritten(self) -> list[FactEntry]:
        return [] if self._is_recorded else [each for each in self._entries() if isinstance(each, FactEntry)]
