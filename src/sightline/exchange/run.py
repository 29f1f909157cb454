"""`run_exchange`: everything that happens to one request, from top to bottom.

Route, translate, apply kept edits, hold, send, read, hold the tool calls, respond. Each step records itself with the
exchange's recorder. A response that streams is read by its pump (`stream_pump`) after this has returned.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sightline.catalog.choose import ModelChoice
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.caps import Caps
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.hold import Release, UserReply
from sightline.exchange.interception.interceptor import Interceptor
from sightline.exchange.interception.kept_edits import refuse_other
from sightline.exchange.outbound import Outbound, outbound_for, pass_through
from sightline.exchange.phase import ExchangePhase
from sightline.exchange.responder import Responder
from sightline.exchange.routing import Router
from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE, EmbeddedModel
from sightline.transport.http.target import Timeouts, target
from sightline.transport.sender import Answer, Outgoing, RefusedResponse, Sender, see_request
from sightline.wire.call import HttpRequest

if TYPE_CHECKING:
    from sightline.exchange.stored_replies import StoredReplies

_WILDCARD_HOSTS = frozenset({"0.0.0.0", "::", "localhost", "127.0.0.1", "::1"})


@dataclass(slots=True)
class ExchangeServices:
    """The services that an exchange needs. `environment` contains the providers' keys; `own_addresses` are the hosts
    and ports at which this server listens, to which nothing may be sent."""

    router: Router
    interceptor: Interceptor
    responder: Responder
    sender: Sender
    embedded: EmbeddedModel
    environment: Mapping[str, str]
    own_addresses: frozenset[tuple[str, int]]
    caps: Caps | None = None
    stored: "StoredReplies | None" = None
    foreign_url: tuple[str, frozenset[tuple[str, int]]] = ("", frozenset())
    """The last URL that was found not to be this server's own, so that the next request to it skips the check."""


async def run_exchange(exchange: Exchange, services: ExchangeServices) -> ClientResponse:
    """Serve one request. The head of the response is complete when this returns; its body may still stream.

    Raises a Fault if there is no response, and CancelledError if the client has gone.
    """
    if services.stored is not None:
        exchange.request = await services.stored.expand(exchange.request)
    request, interceptor = exchange.request, services.interceptor
    route = exchange.route = exchange.lane.route_for(request, services.router)
    choice = exchange.choice = route.choice
    if request.counts and choice.dialect != request.dialect:
        return services.responder.answer_with_estimate(exchange)

    outbound: Outbound | None = None
    released: Release | None = None
    over = None if services.caps is None or request.counts else await services.caps.reserve(exchange)
    if (interceptor.concerns(request) and not request.was_begun) or over is not None:
        # A request is held before it takes the embedded model's turn, which would block all others.
        outbound = _outbound_for(exchange, _preview_variables(choice.provider, services))
        digest = _record_body(exchange, outbound)
        final = interceptor.apply_masks(exchange, outbound, digest)
        decision = await interceptor.hold_request(exchange, outbound, final, None if over is None else over.fault)
        if isinstance(decision, UserReply):
            return interceptor.answer_by_hand(exchange, decision.reply)
        released = decision
        if services.caps is not None and over is not None:
            await services.caps.count_released(exchange, over)

    if not choice.provider.embedded:
        if outbound is None:
            outbound = _outbound_for(exchange, services.environment)
        return await _send_and_respond(exchange, outbound, released, services, None)
    async with AsyncExitStack() as turn:
        variables = await _variables_for(exchange, services, turn)  # its address is known only now
        outbound = _outbound_for(exchange, variables)
        return await _send_and_respond(exchange, outbound, released, services, turn)


async def _send_and_respond(
    exchange: Exchange,
    outbound: Outbound,
    released: Release | None,
    services: ExchangeServices,
    turn: AsyncExitStack | None,
) -> ClientResponse:
    """Send the request and make the response. `released` is the body that a user or the rules released; `turn` is the
    turn at the embedded model, kept while the response streams."""
    refuse_own_address(outbound.request.url, services)
    if released is None:
        digest = _record_body(exchange, outbound)
        refuse_other(exchange.request.expect_sha256, digest)
        answer = await _send(exchange, outbound, digest, services.sender)
    else:
        answer = await _send(exchange, outbound.with_body(released.data), released.sha256, services.sender)
    if isinstance(answer, RefusedResponse):
        return services.responder.answer_with_error(exchange, answer)
    try:
        response = services.responder.answer_with_response(exchange, answer, outbound, turn)
        return await (services.interceptor.hold_calls(exchange, response) if exchange.holds_calls else response)
    except BaseException:
        await answer.response.close()
        raise


def _outbound_for(exchange: Exchange, variables: Mapping[str, str]) -> Outbound:
    """The request as it is sent to the provider: the client's own bytes, or a translation."""
    request, route = exchange.request, exchange.route
    translates = route.choice.dialect != request.dialect
    return (outbound_for if translates else pass_through)(request, route, variables)


def _preview_variables(provider: Provider, services: ExchangeServices) -> Mapping[str, str]:
    """The variables for a request that is only shown: the embedded model need not run for that."""
    if not provider.embedded:
        return services.environment
    return {**services.environment, URL_VARIABLE: "http://127.0.0.1", KEY_VARIABLE: "local"}


async def _variables_for(exchange: Exchange, services: ExchangeServices, stack: AsyncExitStack) -> Mapping[str, str]:
    """The variables for a call to the embedded model, which is started if necessary. It answers one request at a time,
    but can count tokens meanwhile."""
    exchange.recorder.commit()  # its turn may be a long time off
    with exchange.waiting():
        if exchange.request.counts:
            running = await services.embedded.running()
        else:
            running = await stack.enter_async_context(services.embedded.turn())
    return {**services.environment, URL_VARIABLE: running.url, KEY_VARIABLE: running.key}


def refuse_own_address(url: str, services: ExchangeServices) -> None:
    """Raise a fault if the provider's address is this server, which would call itself forever."""
    if (url, services.own_addresses) == services.foreign_url:
        return
    origin = target(url).origin
    for host, port in services.own_addresses:
        is_here = origin.host == host or (host in _WILDCARD_HOSTS and origin.is_loopback)
        if origin.port == port and is_here:
            raise Fault(
                Code.CONFIG,
                f"the provider's address {origin.place} is Sightline itself",
                hint="Set base_url to the provider's own address.",
                status=508,
            )
    services.foreign_url = url, services.own_addresses


def _record_body(exchange: Exchange, outbound: Outbound) -> str:
    """Record a body that differs from the client's, and what its translation lost. Returns the hash of the body."""
    recorder = exchange.recorder
    if outbound.body is exchange.request.body:
        return recorder.sha256
    digest = recorder.keep_body(outbound.body)
    if outbound.report is not None:
        recorder.record_translation(exchange.choice.dialect, digest, outbound.report)
        exchange.losses = len(outbound.report.losses)
    return digest


async def _send(exchange: Exchange, outbound: Outbound, digest: str, sender: Sender) -> Answer:
    """Send the request, with as many attempts as are allowed, and record the head of the response."""
    exchange.enter(ExchangePhase.SENDING)
    exchange.sent_body = outbound.body
    outgoing = _outgoing_for(exchange, outbound.request, digest)
    if exchange.sent is not None:
        outgoing = replace(outgoing, sent=exchange.sent)
    if exchange.client is not None:
        sender = sender.through(exchange.client)
    with exchange.waiting():
        answer = await sender.send(outgoing, exchange.recorder.record_attempt)
    head = answer if isinstance(answer, RefusedResponse) else answer.response
    exchange.recorder.record_head(head.status, head.headers)
    exchange.enter(ExchangePhase.STREAMING)
    return answer


def _outgoing_for(exchange: Exchange, sent: HttpRequest, digest: str) -> Outgoing:
    """How to send the request. The settings of the route's last request are reused if only the body differs."""
    request, route = exchange.request, exchange.route
    last = route.outgoing
    is_usual = request.retries is None and not request.is_own
    if last is not None and last.request.headers is sent.headers and last.stream == request.is_stream and is_usual:
        return replace(last, request=sent, sha256=digest)
    choice = route.choice
    outgoing = Outgoing(
        request=sent,
        provider=choice.provider_name,
        model=choice.model,
        dialect=choice.dialect,
        stream=request.is_stream,
        retries=_retries(choice, request),
        timeouts=timeouts_of(choice.provider),
        past_proxy=choice.provider.embedded,
        tokens=request.tokens,
        max_wait=request.max_wait,
        secrets=exchange.recorder.redaction.secrets,
        sha256=digest,
        seen=see_request(sent, exchange.recorder.redaction.secrets),
    )
    if is_usual:
        route.outgoing = replace(outgoing, request=sent.with_body(b""))
    return outgoing


def _retries(choice: ModelChoice, request: ClientRequest) -> int:
    """How many times to retry: as set for the request, otherwise for its route, otherwise for its provider."""
    if request.retries is not None:
        return request.retries
    if choice.route is not None and choice.route.retries is not None:
        return choice.route.retries
    return choice.provider.retries(is_stream=request.is_stream, is_own=request.is_own)


def timeouts_of(provider: Provider) -> Timeouts:
    return _timeouts(provider.connect_timeout_ms, provider.first_byte_timeout_ms, provider.stream_idle_timeout_ms)


@lru_cache(maxsize=256)
def _timeouts(connect: int, first_byte: int, idle: int) -> Timeouts:
    return Timeouts(connect / 1000, first_byte / 1000, idle / 1000)
