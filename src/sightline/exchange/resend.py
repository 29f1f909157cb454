"""Sends recorded requests again: prepares them as a client's request for the relay or as a call to show, and sends them
in the background.

Credentials are not recorded. To be sent, a request needs a provider that has its own key or needs none. A call that is
shown names the variable of that key, or otherwise one for the client's.
"""

import asyncio
import dataclasses
import logging
import re
from collections.abc import Mapping

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.problem import nearest
from sightline.catalog.provider import Provider
from sightline.dialects.endpoint import call_to, in_path
from sightline.dialects.endpoint import credential as place_of_key
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.engine import path_of, read_answer
from sightline.exchange.outbound import end_to_end, own_call
from sightline.exchange.raw_exchange import StoredBody
from sightline.exchange.recorder import FactObserver
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.exchange.relay import Relay
from sightline.exchange.routing import choice_of
from sightline.exchange.socket_history import HTTP_HEADERS, SocketHistory, is_frame
from sightline.model.header_names import CREDENTIAL_HEADERS, is_secret_parameter
from sightline.store.entries import FactEntry
from sightline.store.store import Store
from sightline.store.summary import Summary
from sightline.transport.waiting import Clock, wait_started
from sightline.wire.call import RequestTemplate, TemplateValue, Variable
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode
from sightline.wire.secrets import MASK, parameters

_MODEL_IN_PATH = re.compile(r"(?<=models/).+?(?=:\w+$)")
_LEFT_OUT = frozenset({"accept-encoding", "content-encoding", *CREDENTIAL_HEADERS})
"""The body is recorded without its encoding, and the response should be read without one."""


def again(recorded: RecordedExchange) -> ClientRequest:
    """The request that was sent, byte for byte, for the provider that it was sent to."""
    provider = recorded.summary.provider
    if not provider or recorded.spoken == recorded.received.dialect:
        request = msgspec.structs.replace(_as_received(recorded), body=recorded.sent)
        return msgspec.structs.replace(request, model=recorded.model, provider=provider) if provider else request
    path, query = path_of(recorded.spoken, recorded.model, stream=recorded.received.is_stream)
    return ClientRequest(
        recorded.spoken,
        recorded.sent,
        _agent(recorded),
        path,
        query,
        recorded.model,
        recorded.received.is_stream,
        provider=provider,
        session=recorded.received.session,
        origin=recorded.id,
        is_own=True,
    )


def elsewhere(recorded: RecordedExchange, model: str) -> ClientRequest:
    """The same request for another model, at whichever provider serves it. Changes that a user made before it was sent
    are kept."""
    request = _as_received(recorded)
    body = recorded.sent if recorded.spoken == request.dialect else recorded.body
    if dialect(request.dialect).model_in_path:
        named = _MODEL_IN_PATH.sub(lambda _: in_path(model), request.path, count=1)
        return msgspec.structs.replace(request, body=body, path=named, model=model)
    return msgspec.structs.replace(request, body=WireDocument(body).set("/model", model).data, model=model)


def had_credential(recorded: RecordedExchange) -> bool:
    """Whether the client sent a credential, which is not recorded."""
    query = parameters(recorded.received.path.partition("?")[2])
    is_in_query = any(is_secret_parameter(name) and piece.endswith(f"={MASK}") for name, piece in query)
    return bool(_credential_header(recorded)) or is_in_query


def call_of(recorded: RecordedExchange, catalog: Catalog) -> RequestTemplate:
    """The call that was made, with a variable in place of the key. It goes to the recorded address, even if the
    settings have changed. An exchange without a recorded address goes to its provider's current one."""
    if recorded.is_raw:
        return _raw_call(recorded, catalog)
    provider = _provider(recorded, catalog)
    call = _call_to(recorded, provider, catalog)
    headers = call.headers
    if recorded.url and provider.base_url == recorded.url:  # it may not need a key
        headers = tuple((name, dataclasses.replace(value, optional=True) if isinstance(value, Variable) else value)
                        for name, value in headers)  # fmt: skip
    # The embedded model listens at another address each time, so the recorded one is useless.
    return dataclasses.replace(
        call, headers=headers, url=call.url if provider.embedded else _address(recorded) or call.url
    )


def _raw_call(recorded: RecordedExchange, catalog: Catalog) -> RequestTemplate:
    """The call of a raw exchange, with a variable in place of its credential."""
    recorded.need_whole_request()
    name = recorded.summary.provider
    provider = catalog.providers.get(name, Provider())
    request = again(recorded)
    header = _credential_header(recorded)
    headers: list[tuple[str, TemplateValue]] = list(request.headers)
    if provider.key_env or header:
        place, prefix = header, "Bearer " if header == "authorization" else ""
        if provider.key_env:
            place, prefix = place_of_key(provider, provider.dialect)
        help_ = "It is the provider's key."
        headers.append((place, Variable(provider.key_env or _variable(f"{name}_API_KEY"), prefix, help=help_)))
    method = recorded.received.method
    return RequestTemplate(method, _address(recorded), tuple(headers), recorded.sent, is_passed_on=True)


def _call_to(recorded: RecordedExchange, provider: Provider, catalog: Catalog) -> RequestTemplate:
    spoken = recorded.spoken
    choice = choice_of(catalog, recorded.summary.provider, provider, recorded.model, spoken)
    if spoken != recorded.received.dialect:
        call = call_to(provider, spoken, recorded.model, recorded.sent, stream=recorded.received.is_stream)
        return dataclasses.replace(call, headers=(*call.headers, *_agent(recorded)))
    variables = dict.fromkeys(provider.env_headers.values(), MASK)
    request, sent = again(recorded), recorded.sent
    if recorded.received.transport == "websocket" and is_frame(sent):  # shown as the equivalent POST
        request = msgspec.structs.replace(request, headers=(*request.headers, *HTTP_HEADERS))
        sent = SocketHistory().http_form(sent).body
    call = own_call(request, choice, variables, sent)
    return dataclasses.replace(
        call, headers=tuple((name, _optional_unless_key(value, provider)) for name, value in call.headers)
    )


def _address(recorded: RecordedExchange) -> str:
    """The recorded address without credentials, which are sent in a header."""
    place, _, query = recorded.url.partition("?")
    kept = [piece for piece in query.split("&") if piece and not piece.endswith(f"={MASK}")]
    return f"{place}?{'&'.join(kept)}" if kept else place


def _variable(words: str) -> str:
    return re.sub(r"\W", "_", words.upper())


def _optional_unless_key(value: TemplateValue, provider: Provider) -> TemplateValue:
    """Only the key is required."""
    if isinstance(value, Variable) and value.name != provider.key_env:
        return dataclasses.replace(value, optional=True)
    return value


def _as_received(recorded: RecordedExchange) -> ClientRequest:
    received = recorded.received
    path, _, query = received.path.partition("?")
    kept = [piece for _, piece in parameters(query) if piece.partition("=")[2] != MASK]
    headers = [
        (name, value)
        for name, value in end_to_end(received.headers)
        if MASK not in value and name.lower() not in _LEFT_OUT
    ]
    return ClientRequest(
        received.dialect,
        recorded.body,
        tuple(headers),
        path,
        "&".join(kept),
        received.model,
        received.is_stream,
        session=received.session,
        counts=recorded.is_count,
        origin=recorded.id,
        is_own=True,
        transport=received.transport,
        method=received.method,
    )


def _agent(recorded: RecordedExchange) -> tuple[tuple[str, str], ...]:
    return tuple(each for each in recorded.received.headers if each[0].lower() == "user-agent" and MASK not in each[1])


def _provider(recorded: RecordedExchange, catalog: Catalog) -> Provider:
    """The provider that it was sent to, as configured now; with a variable for the client's own key if it has none."""
    name = recorded.summary.provider
    if not name:
        hint = "Use --as wire for the body that the client sent."
        raise Fault(Code.USAGE, f"{recorded.id} was not sent to a provider", hint=hint)
    provider = catalog.providers.get(name)
    spoken = recorded.spoken
    if provider is None or (spoken != provider.dialect and spoken not in provider.also):
        if recorded.url:
            # The current settings are not those with which it was sent; what they lack is recorded or up to the caller.
            help_ = "It is the provider's key, if it wants one."
            header = "" if recorded.spoken != recorded.received.dialect else _credential_header(recorded)
            return Provider(
                dialect=spoken,
                base_url=recorded.url,
                key_env=_variable(f"{name}_API_KEY"),
                key_header=header,
                key_help=help_,
            )
        if provider is None:
            raise _provider_mismatch(recorded, "is no longer configured", nearest(name, catalog.providers))
        raise _provider_mismatch(recorded, f"no longer speaks {spoken}")
    if provider.key_env or not had_credential(recorded):
        return provider
    header = _credential_header(recorded)
    if recorded.spoken != recorded.received.dialect or not header:
        header, _ = place_of_key(provider, recorded.spoken)
    variable = _variable(f"{name}_API_KEY")
    help_ = "It is the credential that the client sent, which is not on record."
    return msgspec.structs.replace(provider, key_env=variable, key_header=header, key_help=help_)


def _credential_header(recorded: RecordedExchange) -> str:
    """The header in which the client sent its credential; empty if there is none."""
    shown = (key.lower() for key, value in recorded.received.headers if value == MASK)
    return next((key for key in shown if key in CREDENTIAL_HEADERS), "")


def _provider_mismatch(recorded: RecordedExchange, what: str, hint: str = "") -> Fault:
    message = f"the provider {recorded.summary.provider!r}, to which {recorded.id} went, {what}"
    return Fault(Code.CONFIG, message, hint=hint or "Correct [providers] in sightline.toml, or use --as wire.")


_LOG = logging.getLogger("sightline.replay")


class ResendSources:
    """What a request can be sent again with: the providers as configured now, and the keys that are set."""

    def __init__(self, catalog: Catalog, environment: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._environment = environment

    def request_for(
        self, exchange: RecordedExchange, *, model: str = "", body: bytes | None = None, masks: bool | None = None
    ) -> ClientRequest:
        """The request to send: the same bytes to the same provider, `body` to the same provider, or the same request to
        another model.

        `masks` says whether the active masks are applied. By default they are not, unless the request is translated
        again from the client's own, which is then masked as the original was. Raises a fault if the request cannot be
        sent, or lacks the key that it needs.
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
            self._require_key(choose(self._catalog, model, has_key=self._has_key, arriving=arriving).provider)
            request = elsewhere(exchange, model)
            is_as_received = request.dialect != exchange.spoken
            return msgspec.structs.replace(request, masks=is_as_received if masks is None else masks)
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
        self._require_key(provider)
        request = msgspec.structs.replace(
            again(exchange), masks=bool(masks), retries=self._route_retries(exchange, name)
        )
        if exchange.is_raw:
            return msgspec.structs.replace(
                request, caller=provider.dialect, body=request.body if body is None else body
            )
        return request if body is None else _with_body(request, body)

    def _route_retries(self, exchange: RecordedExchange, provider: str) -> int | None:
        """The retries of the route by which the request reached this provider; None if the route does not set them. A
        resent request bypasses the routes and goes to the provider itself."""
        received = exchange.received
        try:
            choice = choose(self._catalog, received.model, has_key=self._has_key, arriving=received.dialect)
        except Fault:
            return None  # its model is no longer known
        return choice.route.retries if choice.route is not None and choice.provider_name == provider else None

    def _require_key(self, provider: Provider) -> None:
        if not self._has_key(provider):
            variable = provider.key_env
            hint = f"Set {variable} in the environment: credentials are not on record. {provider.key_help}".strip()
            raise Fault(Code.AUTH, f"the variable {variable} is not set", hint=hint)

    def _has_key(self, provider: Provider) -> bool:
        return provider.has_key(self._environment)


class Resender:
    """Sends recorded requests again, and reads each response to its end, so that all of it is recorded."""

    def __init__(self, relay: Relay, store: Store, means: ResendSources, clock: Clock) -> None:
        self._relay = relay
        self._store = store
        self._sources = means
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self, summary: Summary, *, model: str = "", body: bytes | None = None, masks: bool | None = None
    ) -> str:
        """Send this exchange again; returns the new exchange's id as soon as it is recorded."""
        exchange = await load_exchange(self._store, summary)
        return await self.send(self._sources.request_for(exchange, model=model, body=body, masks=masks))

    async def send(self, request: ClientRequest) -> str:
        """Send a request for which no client waits; returns its exchange's id as soon as it is recorded."""
        request = msgspec.structs.replace(request, received=self._clock.monotonic())
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[str] = loop.create_future()

        def on_fact(entry: FactEntry) -> None:
            if not begun.done():
                begun.set_result(entry.exchange)

        task = loop.create_task(self._send(request, on_fact))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        exchange = await wait_started(begun, task)  # raises the fault of one that never started
        if self._relay.hub.is_missing(exchange):
            hint = "Make room for the record. The request was sent all the same."
            raise Fault(Code.CONFIG, "the replay could not be recorded", hint=hint, status=503)
        return exchange

    async def close(self, grace: float) -> None:
        """Let active requests end within this many seconds; then they are aborted, like those of clients."""
        await self._relay.close(grace)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _send(self, request: ClientRequest, observer: FactObserver) -> None:
        try:
            if request.method:
                async with await self._relay.start_raw(request, StoredBody(request.body), observer) as passed:
                    async for _ in passed:
                        pass  # it is recorded
                return
            async with await self._relay.start(request, observer) as relayed:
                await read_answer(relayed, request.dialect, lambda _event: None)  # it is recorded
        except Fault as fault:
            _LOG.info("the replay of %s failed: %s", request.origin, fault.message)  # the record contains the same


def _with_body(request: ClientRequest, body: bytes) -> ClientRequest:
    """The same request with exactly this body; the model and the stream flag are read from it unless the dialect has
    them in the path."""
    document = decode(body)
    if not isinstance(document, dict):
        raise Fault(Code.INVALID_REQUEST, "the body is not a JSON object", hint="Send the request as one JSON object.")
    if dialect(request.dialect).model_in_path:
        return msgspec.structs.replace(request, body=body)
    model = document.get("model")
    if not isinstance(model, str) or not model:
        hint = 'Say which model is to answer: {"model": "…"}.'
        raise Fault(Code.INVALID_REQUEST, "the body names no model", hint=hint)
    return msgspec.structs.replace(request, body=body, model=model, is_stream=document.get("stream") is True)
