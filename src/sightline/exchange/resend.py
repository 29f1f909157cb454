"""Recorded requests sent once more: what exactly is to be sent, and the sending of it behind the back of who wants it.

Credentials are not on record, so the provider needs a key of its own, or must want none.
"""

import asyncio
import logging
from collections.abc import Mapping

from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.provider import Provider
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.answer_reading import read_answer
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.raw_exchange import StoredBody
from sightline.exchange.recorder import FactObserver
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.exchange.recording.replay_request import again, elsewhere, had_credential
from sightline.exchange.relay import Relay
from sightline.model.events import StreamEvent
from sightline.store.entries import FactEntry
from sightline.store.store import Store
from sightline.store.summary import Summary
from sightline.transport.clock import Clock
from sightline.transport.race import wait_started
from sightline.wire.jsontext import decode

_LOG = logging.getLogger("sightline.replay")


class ResendSources:
    """What a request can be sent again with: the providers as they are configured now, and the keys that are set."""

    def __init__(self, catalog: Catalog, environment: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._environment = environment

    def request_for(
        self, exchange: RecordedExchange, *, model: str = "", body: bytes | None = None, masks: bool | None = None
    ) -> ClientRequest:
        """What to send: the same bytes to the same provider, these bytes to it, or the same request to another model.

        `masks` says whether the masks that are active now are put on it. Where that is not said, a request for these
        very bytes gets them; what is translated from the client's own request gets masks as that did.

        What cannot be sent, or only without the key that it needs, is a fault before anything is tried.
        """
        if exchange.is_count:
            raise Fault(Code.USAGE, f"{exchange.id} only counted tokens", hint="Replay one that asked a model.")
        if exchange.is_raw:
            exchange.need_whole_request()
            if exchange.received.transport == "websocket":
                message = f"{exchange.id} is a WebSocket, which cannot be sent again"
                raise Fault(Code.USAGE, message, hint="Connect again with its client.", status=422)
            if model:
                exchange.refuse_raw("sent to another model")
        if model:
            arriving = exchange.received.dialect
            self._need_key(choose(self._catalog, model, has_key=self._has_key, arriving=arriving).provider)
            request = elsewhere(exchange, model)
            is_as_received = request.dialect != exchange.spoken
            return replace(request, masks=is_as_received if masks is None else masks)
        name = exchange.summary.provider
        provider = self._catalog.providers.get(name)
        if not name:
            hint = "Name the model that it is to go to."
            raise Fault(Code.USAGE, f"{exchange.id} was not sent to a provider", hint=hint)
        if provider is None:
            message = f"the provider {name!r} is no longer configured"
            raise Fault(Code.CONFIG, message, hint="Add it to sightline.toml, or name another model.")
        if not provider.has_credential and had_credential(exchange):
            message = f"the client's credential for {name} is not on record"
            raise Fault(Code.AUTH, message, hint=f"Set key_env in [providers.{name}] to the name of a variable.")
        self._need_key(provider)
        request = replace(again(exchange), masks=bool(masks), retries=self._route_retries(exchange, name))
        if exchange.is_raw:
            return replace(request, caller=provider.dialect, body=request.body if body is None else body)
        return request if body is None else _with_body(request, body)

    def _route_retries(self, exchange: RecordedExchange, provider: str) -> int | None:
        """How often the route on which it came to this provider sends a request again, if that says so. It is sent
        again past the routes, to the provider itself."""
        received = exchange.received
        try:
            choice = choose(self._catalog, received.model, has_key=self._has_key, arriving=received.dialect)
        except Fault:
            return None  # its model is not known any more
        return choice.route.retries if choice.route is not None and choice.provider_name == provider else None

    def _need_key(self, provider: Provider) -> None:
        if not self._has_key(provider):
            variable = provider.key_env
            hint = f"Set {variable} in the environment: credentials are not on record. {provider.key_help}".strip()
            raise Fault(Code.AUTH, f"the variable {variable} is not set", hint=hint)

    def _has_key(self, provider: Provider) -> bool:
        return provider.has_key(self._environment)


class Resender:
    """Sends recorded requests again, and reads each response to its end, so that all of it is on record."""

    def __init__(self, relay: Relay, store: Store, means: ResendSources, clock: Clock) -> None:
        self._relay = relay
        self._store = store
        self._means = means
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self, summary: Summary, *, model: str = "", body: bytes | None = None, masks: bool | None = None
    ) -> str:
        """Send this exchange again; the answer is the new exchange's id, as soon as that is on record."""
        exchange = await load_exchange(self._store, summary)
        return await self.send(self._means.request_for(exchange, model=model, body=body, masks=masks))

    async def send(self, request: ClientRequest) -> str:
        """Send a request that no client waits for; the answer is its exchange's id, as soon as that is on record."""
        request = replace(request, received=self._clock.monotonic())
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[str] = loop.create_future()

        def on_fact(entry: FactEntry) -> None:
            if not begun.done():
                begun.set_result(entry.exchange)

        task = loop.create_task(self._send(request, on_fact))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        exchange = await wait_started(begun, task)  # one that never began says why
        if self._relay.is_missing(exchange):
            hint = "Make room for the record. The request was sent all the same."
            raise Fault(Code.CONFIG, "the replay could not be recorded", hint=hint, status=503)
        return exchange

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds; then it is cut off, as every client's request is."""
        await self._relay.close(grace)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _send(self, request: ClientRequest, observer: FactObserver) -> None:
        try:
            if request.method:
                async with await self._relay.start_raw(request, StoredBody(request.body), observer) as passed:
                    async for _ in passed:
                        pass  # the record keeps it
                return
            async with await self._relay.start(request, observer) as relayed:
                await read_answer(relayed, request.dialect, _unheard)
        except Fault as fault:
            _LOG.info("the replay of %s failed: %s", request.origin, fault.message)  # the record says the same


def _unheard(_event: StreamEvent) -> None:
    """The record holds the answer."""


def _with_body(request: ClientRequest, body: bytes) -> ClientRequest:
    """The same request with exactly this body; model and stream flag are read from it where the dialect has them."""
    document = decode(body)
    if not isinstance(document, dict):
        raise Fault(Code.INVALID_REQUEST, "the body is not a JSON object", hint="Send the request as one JSON object.")
    if dialect(request.dialect).model_in_path:
        return replace(request, body=body)
    model = document.get("model")
    if not isinstance(model, str) or not model:
        hint = 'Say which model is to answer: {"model": "…"}.'
        raise Fault(Code.INVALID_REQUEST, "the body names no model", hint=hint)
    return replace(request, body=body, model=model, is_stream=document.get("stream") is True)
