"""The relay: starts exchanges, keeps track of the active ones, and ends them when the server shuts down."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.dialects.endpoint import match_stored
from sightline.errors import Code, Fault
from sightline.exchange.caps import Caps
from sightline.exchange.client_request import ClientRequest, session_of
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.direct import DirectExchange, DirectLane, ReadModel, Respond
from sightline.exchange.exchange import Exchange
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.interceptor import Interceptor
from sightline.exchange.interception.kept_edits import FinalBody
from sightline.exchange.keepalive import can_keep_alive, run_with_keepalive
from sightline.exchange.lane import Lanes
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import body_of, pass_through, secrets_of_provider
from sightline.exchange.phase import CancelledEnd, cancel_reason
from sightline.exchange.raw_exchange import (
    RawClient,
    embeddings_of,
    hold_pieces,
    no_embeddings,
    route_raw,
    run_embeddings,
    run_raw_exchange,
)
from sightline.exchange.raw_recorder import KEPT, RawExchange, RawRecorder, SocketRecord, socket_call
from sightline.exchange.recorder import FactObserver
from sightline.exchange.request_counter import RequestCounter
from sightline.exchange.responder import Responder
from sightline.exchange.routing import Router
from sightline.exchange.run import ExchangeServices, refuse_own_address, run_exchange
from sightline.exchange.socket_history import HTTP_HEADERS, SocketHistory, is_frame
from sightline.exchange.stored_replies import ReplyRecords, StoredReplies
from sightline.model.exchange import RAW_HTTP
from sightline.model.reply import Reply
from sightline.store.entries import FactEntry
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.sender import RequestClient, Sender
from sightline.transport.waiting import Clock
from sightline.wire.call import HttpRequest

_ABORT_SECONDS = 1.0
"""Seconds that aborted exchanges have to notify their clients."""


class Relay:
    """Sends requests to providers. `own` are the addresses, host and port, at which this server listens; it can be set
    later. `holds` decides which requests are held, `caps` what may be spent. `raw_kept` is how many bytes of a raw body
    are recorded."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        environment: Mapping[str, str],
        sender: Sender,
        embedded: EmbeddedModel,
        memory: Memory,
        hub: Hub,
        clock: Clock,
        make_id: Callable[[], str],
        own: frozenset[tuple[str, int]] = frozenset(),
        holds: Holds | None = None,
        raw_kept: int = KEPT,
        caps: Caps | None = None,
    ) -> None:
        self.holds = holds or Holds(memory, clock.now)
        if caps is not None and caps.may_hold:
            self.holds.stay_ready()
        # The keys of all providers: any response may repeat any of them.
        keys = (key for each in catalog.providers.values() for key in secrets_of_provider(each, environment))
        self.secrets = tuple(dict.fromkeys(keys))
        """The configured keys, which must not appear in anything that is recorded or sent to a client."""
        self.catalog = catalog
        self.router = Router(catalog, environment)
        self.lanes = Lanes(self.secrets)
        self.counter = RequestCounter(memory)
        self.ledger = memory.ledger
        self._services = ExchangeServices(
            router=self.router,
            interceptor=Interceptor(self.holds, clock),
            responder=Responder(memory, self.counter, clock),
            sender=sender,
            embedded=embedded,
            environment=environment,
            own_addresses=own,
            caps=caps,
        )
        self.hub = hub
        self.responder = self._services.responder
        self.dial_socket = sender.dial_socket
        self._raw_kept = raw_kept
        self.clock = clock
        self.make_id = make_id
        self._active: set[Exchange | DirectExchange] = set()
        self._is_empty = asyncio.Event()
        """Set when the last exchange has ended, if the relay is closing."""
        self._is_closing = False

    @property
    def own(self) -> frozenset[tuple[str, int]]:
        """The addresses at which this server listens."""
        return self._services.own_addresses

    @own.setter
    def own(self, addresses: frozenset[tuple[str, int]]) -> None:
        self._services.own_addresses = addresses

    def read_from(self, records: ReplyRecords) -> None:
        """From now on, answer clients' calls about stored replies from this record."""
        self._services.stored = StoredReplies(records, self.hub, self.clock)

    async def start(
        self, request: ClientRequest, observer: FactObserver | None = None, client: RequestClient | None = None
    ) -> ClientResponse:
        """Serve one request; the head of the response is complete when this returns.

        Every failure of a provider or the network becomes a response in the client's dialect. Cancelling this call
        means that the client has gone. `observer` gets each fact except frames, once it is recorded. `client` sends the
        request in place of the HTTP client.
        """
        if request.transport == "websocket" and client is None and request.http_body is None:
            request, client = self._for_single_frame(request)
        exchange = self.make_exchange(request, observer, client)
        if (self.holds.is_idle and not request.hold) or not can_keep_alive(request):
            return await self._run(exchange)
        return await run_with_keepalive(exchange, self.resume(exchange), self.clock)

    def make_exchange(
        self, request: ClientRequest, observer: FactObserver | None = None, client: RequestClient | None = None
    ) -> Exchange:
        """The exchange of a request in a known dialect; see `start`."""
        return Exchange(
            request,
            request.exchange or self.make_id(),
            self.hub,
            self.clock,
            self.secrets,
            self.lanes.lane_of(request),
            observer=observer,
            on_streamed=self.forget,
            client=client,
            counter=self.counter,
        )

    async def start_raw(
        self, request: ClientRequest, client: RawClient, observer: FactObserver | None = None
    ) -> ClientResponse:
        """Pass a raw request on; the head of the response is complete when this returns. Raises a fault, and records
        nothing, if the request belongs to no provider."""
        replies = self._services.stored
        call = None if replies is None or request.upstream else match_stored(request.path)
        if replies is not None and call is not None and await replies.concerns(call, request):
            exchange = self._raw_exchange(request, observer)
            return await self._run(exchange, lambda: replies.answer(exchange, call, client))
        choice = route_raw(self.catalog, request, lambda provider: provider.has_key(self._services.environment))
        exchange = self._raw_exchange(request, observer)
        exchange.choice = choice
        asked, answers = embeddings_of(request.caller), embeddings_of(choice.dialect)
        if request.embeds and asked is not None and asked is not answers:
            if answers is None:
                return exchange.refuse(no_embeddings(choice.provider_name))
            return await self._run(exchange, lambda: run_embeddings(exchange, self._services, asked, answers))
        return await self._run(exchange, lambda: run_raw_exchange(exchange, self._services, client))

    def _raw_exchange(self, request: ClientRequest, observer: FactObserver | None = None) -> RawExchange:
        return RawExchange(
            request,
            self.make_id(),
            self.hub,
            self.clock,
            self.secrets,
            observer=observer,
            make_recorder=partial(RawRecorder, limit=self._raw_kept),
            on_streamed=self.forget,
        )

    async def resume(self, exchange: Exchange) -> ClientResponse:
        """Run an exchange that was created elsewhere in this task; the head of the response is complete when this
        returns."""
        exchange.task = asyncio.current_task()
        return await self._run(exchange)

    # --- direct exchanges ---

    def direct_lane(self, request: ClientRequest, read_model: ReadModel, respond: Respond) -> DirectLane | None:
        """The lane that starts direct exchanges for requests with this head; None if they have to be regular
        exchanges."""
        client = self._services.sender.http_client
        if client is None or request.counts or request.coding or request.transport != "http":
            return None
        return DirectLane(replace(request, body=b"", model="", received=0.0), self, client, read_model, respond)

    @property
    def is_direct(self) -> bool:
        """Whether requests can be sent at once, without waiting for anything but the provider, unless a rule concerns
        them."""
        return self.holds.has_only_rules and self._services.caps is None and not self._is_closing

    def may_expand(self, request: ClientRequest, body: bytes) -> bool:
        """Whether a stored conversation may have to be inserted into this body."""
        stored = self._services.stored
        return stored is not None and stored.may_concern(request.dialect, body)

    def add(self, exchange: Exchange | DirectExchange) -> None:
        self._active.add(exchange)

    async def _run(
        self, exchange: Exchange, run: Callable[[], Awaitable[ClientResponse]] | None = None
    ) -> ClientResponse:
        """Run an exchange with `run`, by default `run_exchange`, and turn every failure into a response."""
        try:
            if self._is_closing and not exchange.request.was_begun:
                raise _closing()
            if exchange.abort_reason is not None:
                raise exchange.abort_reason
            self._active.add(exchange)
            return await (run_exchange(exchange, self._services) if run is None else run())
        except Fault as fault:
            return exchange.refuse(exchange.abort_reason or fault)
        except asyncio.CancelledError:
            if exchange.abort_reason is None:
                if not exchange.is_over:
                    exchange.end(CancelledEnd(cancel_reason()))
                raise
            # The server aborted it, not the client: the client gets a response.
            assert exchange.task is not None
            exchange.task.uncancel()
            return exchange.refuse(exchange.abort_reason)
        finally:
            if not exchange.is_streaming:
                self.forget(exchange)

    def final_body(self, request: ClientRequest) -> FinalBody:
        """The body that would be sent for this request, after masks. Nothing is sent."""
        if request.transport == "websocket" and request.http_body is None:
            request, _ = self._for_single_frame(request)
        choice = self.router.route_for(request)
        body = body_of(request, choice)
        masks = request.masks and not request.counts
        return self.holds.final_body(body, choice.dialect, choice.model, session=session_of(request), masks=masks)

    def socket_request(self, request: ClientRequest) -> tuple[ModelChoice, HttpRequest | None]:
        """Where a request that arrived over a WebSocket goes: the choice, and the handshake of the provider's own
        socket. The handshake is None if the provider is called over HTTP: it has another dialect, is embedded, or has
        no sockets.

        Raises the fault that the request itself would end with.
        """
        route = self.lanes.lane_of(request).route_for(request, self.router)
        choice = route.choice
        is_rewritten = choice.route is not None and choice.route.system != "in_place"
        if (
            choice.dialect != request.dialect
            or not choice.provider.websocket
            or choice.provider.embedded
            or choice.provider.sign  # a handshake is not signed
            or is_rewritten
        ):
            return choice, None
        sent = pass_through(request, route, self._services.environment).request
        refuse_own_address(sent.url, self._services)
        return choice, sent

    def _for_single_frame(self, request: ClientRequest) -> tuple[ClientRequest, RequestClient | None]:
        """The request for a frame that has no open socket, such as a replay: it gets a socket of its own, or is sent
        over HTTP."""
        from sightline.exchange.socket_link import OneTurnClient

        if not is_frame(request.body):
            return request, None  # it was sent over HTTP originally
        try:
            _, handshake = self.socket_request(request)
        except Fault:
            return request, None  # the exchange ends with the same fault
        if handshake is not None:
            return request, OneTurnClient(self.dial_socket)
        body = SocketHistory().http_form(request.body).body
        return replace(request, http_body=body, headers=(*request.headers, *HTTP_HEADERS)), None

    async def raw_socket(self, request: ClientRequest) -> tuple[ModelChoice, HttpRequest, SocketRecord]:
        """Prepare a socket that is passed through: its provider, the handshake to send there, and its record. A cap may
        hold the handshake for a user. Later messages cannot be held, since the two sides do not wait for each other.
        Raises a fault if there is no such provider, or the socket is not allowed."""
        choice = self.router.route_for(request)
        if choice.provider.sign:
            hint = "Use the API of this provider without a WebSocket."
            raise Fault(Code.INVALID_REQUEST, "the handshake of a WebSocket cannot be signed", hint=hint, status=400)
        handshake = socket_call(request, choice, self._services.environment)
        refuse_own_address(handshake.url, self._services)
        exchange = self._raw_exchange(replace(request, dialect=RAW_HTTP))
        exchange.choice = choice
        record = SocketRecord(exchange, request.dialect)
        caps = self._services.caps
        over = None if caps is None else caps.weigh_uncounted(exchange)
        if over is not None:
            try:
                await hold_pieces(exchange, self._services, (), over, is_whole=False)
            except Fault as fault:
                record.fail(fault)
                raise
            except asyncio.CancelledError:
                record.cancel(cancel_reason())
                raise
        return choice, handshake, record

    def answer_here(self, request: ClientRequest, reply: Reply) -> ClientResponse:
        """Answer a request with this reply. Nothing is sent; the exchange is recorded."""
        exchange = Exchange(request, request.exchange or self.make_id(), self.hub, self.clock, self.secrets)
        return self._services.interceptor.answer_by_hand(exchange, reply)

    async def wait_until_learned(self) -> None:
        """Wait until the estimates have learned from everything that providers have counted so far."""
        await self._services.responder.learning.wait_until_idle()

    @property
    def observer(self) -> object | None:
        """What observes runs from outside this process."""
        return self.hub.observer

    def unwritten(self, exchange: str) -> list[FactEntry]:
        """Facts of an active exchange that are not recorded yet."""
        return next((each.unwritten for each in self._active if each.id == exchange), [])

    async def close(self, grace: float) -> None:
        """Wait up to `grace` seconds for exchanges to end, then abort the rest."""
        self._is_closing = True
        self.holds.close()
        await self._wait_until_empty(grace)
        for exchange in list(self._active):
            exchange.abort(_closing())
        await self._wait_until_empty(_ABORT_SECONDS)
        await self._services.responder.learning.close()

    async def _wait_until_empty(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self._active:
                    self._is_empty.clear()
                    await self._is_empty.wait()
        except TimeoutError:
            return

    def forget(self, exchange: Exchange | DirectExchange) -> None:
        self._active.discard(exchange)
        if self._is_closing and not self._active:
            self._is_empty.set()


def _closing() -> Fault:
    return Fault(Code.OVERLOADED, "Sightline is shutting down", hint="Send the request again later.", status=503)
