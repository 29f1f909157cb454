"""A raw exchange: a request in no known dialect that is passed to its provider unchanged, and the response passed back.

Bodies are passed on in pieces in both directions and are never completely in memory; the response may begin before the
request has ended. Nothing is retried, since what has passed is gone.

Embeddings are recorded in the same way. If the provider has another API than the client, the request and the vectors
are translated.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace as replace_choice
from fnmatch import fnmatchcase
from typing import Protocol

from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.catalog.provider import DialectName
from sightline.dialects.embeddings import EmbeddingsApi, read_raw_usage
from sightline.dialects.endpoint import embeddings_call, has_readable_reply, read_raw_reply
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.caps import OverCap
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import (
    ClientResponse,
    Headers,
    ResponseBody,
    header,
    headers_for_client,
    request_id,
)
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.drafts import RawDraft
from sightline.exchange.interception.hold import Release
from sightline.exchange.outbound import own_key, raw_call
from sightline.exchange.phase import CancelledEnd, ExchangePhase, FailedEnd, FinishedEnd, cancel_reason
from sightline.exchange.raw_recorder import RawExchange, RawRecorder
from sightline.exchange.reply_reader import decode_body, is_coded, key_repeated, read_error_body, unreadable
from sightline.exchange.routing import (
    HasKey,
    as_meant,
    choice_of,
    home_of,
    provider_in_path,
    route_for,
    with_own,
)
from sightline.exchange.run import ExchangeServices, refuse_own_address, timeouts_of
from sightline.model.exchange import RAW_HTTP
from sightline.model.fold import fold
from sightline.model.header_names import OF_A_BODY, OF_A_CONNECTION, is_secret_header
from sightline.model.reply import Reply, Usage
from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE
from sightline.transport.http.client import Response
from sightline.transport.http.connection import RequestBody
from sightline.transport.sender import Outgoing
from sightline.wire.call import HttpRequest
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode, encode
from sightline.wire.secrets import Masking


class RawClient(RequestBody, Protocol):
    """What a raw request needs of its client: the body, and a way to report interim responses."""

    @property
    def takes_trailers(self) -> bool:
        """Whether the client accepts trailers after the response."""

    def on_interim(self, status: int, headers: Headers, /) -> None:
        """Pass a 1xx response on to the client."""


def route_raw(catalog: Catalog, request: ClientRequest, has_key: HasKey) -> ModelChoice:
    """The provider of a raw request: that of its model, if it names one, the one named in its path, that of a route for
    such paths, or the home of the API that the path belongs to, which is the request's `caller`. Raises a fault with
    status 404 if there is none."""
    caller: DialectName = request.caller
    if request.upstream:
        return as_meant(catalog, request, caller)
    if request.model:
        choice = route_for(catalog, replace(request, dialect=caller), has_key)
        is_embedded = choice.provider.embedded
        if is_embedded and request.embeds and _names_embedded(choice, request):
            raise no_embeddings(choice.provider_name)
        if not is_embedded or _names_embedded(choice, request):
            # A provider computes embeddings in its own API; its other dialects have other addresses.
            return replace_choice(choice, arriving=None) if request.embeds else choice
    if request.provider:
        return with_own(provider_in_path(catalog, request, caller), request, has_key, is_implied=False)
    for route in catalog.routes:
        if route.path and fnmatchcase(request.path, route.path) and route.provider in catalog.providers:
            choice = choice_of(catalog, route.provider, catalog.providers[route.provider], "", caller, route)
            return with_own(choice, request, has_key, is_implied=False)
    found = home_of(catalog, request, caller, has_key)
    if found is None:
        hint = "Name the provider in front of the path, /p/PROVIDER/…, or write a route with a path."
        raise Fault(Code.USAGE, f"no provider serves {request.path}", hint=hint, status=404)
    return found


def _names_embedded(choice: ModelChoice, request: ClientRequest) -> bool:
    """Whether the request, or a route, names the embedded model, so that nothing may leave the machine. Requests for
    models that no provider serves lead there too."""
    names = (choice.provider_name, choice.model, f"{choice.provider_name}/{choice.model}")
    return bool(request.provider) or choice.route is not None or request.model in names


async def run_raw_exchange(exchange: RawExchange, services: ExchangeServices, client: RawClient) -> ClientResponse:
    """Pass one request on. The head of the response is complete when this returns; both bodies may still be arriving.

    Raises a Fault if there is no response, and CancelledError if the client has gone.
    """
    choice, recorder = exchange.choice, exchange.recorder
    variables: Mapping[str, str] = services.environment
    if choice.provider.embedded:
        running = await services.embedded.running()
        variables = {**variables, URL_VARIABLE: running.url, KEY_VARIABLE: running.key}
    request, body, sha256 = _for_choice(exchange.request, choice), client, recorder.sha256
    if request.body is not exchange.request.body:
        body, sha256 = StoredBody(request.body, client), recorder.keep_body(request.body)
    over = None if services.caps is None else await services.caps.reserve_raw(exchange)
    if services.interceptor.concerns(request) or over is not None:
        body, sha256 = await _hold(exchange, services, body, over)
    call = raw_call(request, choice, variables).fill(variables)
    exchange.sent_body = request.body
    response = await _send(exchange, services, call, body, sha256)
    recorder.commit()  # the client gets the exchange's id with the head of the response
    exchange.stream(response.abort)
    headers = [*_headers(response, exchange.secrets), *exchange.own_headers()]
    return ClientResponse(exchange.id, response.status, headers, RawReply(exchange, response))


async def _send(
    exchange: RawExchange,
    services: ExchangeServices,
    call: HttpRequest,
    body: RawClient,
    sha256: str,
    model: str = "",
) -> Response:
    """Send the request and return the response, once its head has arrived and is recorded."""
    refuse_own_address(call.url, services)
    choice, recorder = exchange.choice, exchange.recorder
    exchange.enter(ExchangePhase.SENDING)
    outgoing = Outgoing(
        request=call,
        provider=choice.provider_name,
        model=model,
        dialect=RAW_HTTP,
        stream=True,
        retries=0,
        timeouts=timeouts_of(choice.provider),
        past_proxy=choice.provider.embedded,
        secrets=recorder.redaction.secrets,
        sha256=sha256,
    )
    with exchange.waiting():
        response = await services.sender.pass_on(
            outgoing,
            RecordedBody(body, recorder),
            recorder.record_attempt,
            takes_trailers=body.takes_trailers,
            on_interim=body.on_interim,
        )
    recorder.begin_reply(response.status, response.headers)
    exchange.enter(ExchangePhase.STREAMING)
    return response


async def _hold(
    exchange: RawExchange, services: ExchangeServices, client: RawClient, over: OverCap | None
) -> tuple[RawClient, str]:
    """The body to send, and its hash if it is complete, once the rules or a user have released it. Before that, as much
    of it is read as is recorded."""
    pieces: list[bytes] = []
    size, is_whole = 0, False
    while size <= exchange.recorder.limit and not is_whole:
        data = await client.read()
        is_whole = not data
        size += len(data)
        pieces.append(data)
    # An encoded body cannot be edited: the bytes shown are not the ones sent.
    is_plain = "content-encoding" not in exchange.request.headers_by_name()
    released = await hold_pieces(exchange, services, pieces, over, is_whole=is_whole and is_plain)
    return StoredBody(released.data, client, has_more=not is_whole), released.sha256 if is_whole else ""


async def hold_pieces(
    exchange: RawExchange, services: ExchangeServices, pieces: Sequence[bytes], over: OverCap | None, *, is_whole: bool
) -> Release:
    """The part of a raw request that is released, given these pieces; it can be edited if they are all of it. It is
    always held if it is `over` a cap, and counted once it is released. Raises the faults of the interceptor and of the
    caps."""
    recorder = exchange.recorder
    head = f"{exchange.request.method} {recorder.address}"
    lines = [head, *(f"{name}: {value}" for name, value in recorder.shown_headers)]
    draft = RawDraft("\n".join(lines), b"".join(pieces), is_whole=is_whole)
    if draft.data:
        recorder.keep(draft.sha256, draft.data)
    released = await services.interceptor.hold_raw(exchange, draft, None if over is None else over.fault)
    if over is not None and over.wanted.claims:  # there are none if its cost cannot be known
        await over.wanted.caps.count_released(exchange, over)
    return released


def _for_choice(request: ClientRequest, choice: ModelChoice) -> ClientRequest:
    """The request with the provider's name for its model. Raises a fault if the provider does not have this path."""
    if not request.model:
        return request
    if not request.embeds and choice.dialect != request.caller:
        hint = "Write a route for this model to a provider of that API, or compact without it."
        message = f"the provider {choice.provider_name!r} has no {request.path.strip('/')}"
        raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=404)
    if choice.model == request.model:
        return request
    if dialect(request.caller).model_in_path:
        return replace(request, path=request.path.replace(f"models/{request.model}:", f"models/{choice.model}:", 1))
    headers = tuple(each for each in request.headers if each[0].lower() != "content-encoding")
    return replace(request, headers=headers, body=WireDocument(request.body).set("/model", choice.model).data)


class StoredBody:
    """A body in memory: of one of Sightline's own requests, or read from a `client`. With `has_more`, the rest of the
    client's body follows."""

    def __init__(self, data: bytes, client: RawClient | None = None, *, has_more: bool = False) -> None:
        self.takes_trailers = client is not None and client.takes_trailers
        self._client = client
        self._has_more = has_more
        self._length = len(data)
        self._data = data

    @property
    def length(self) -> int | None:
        """The length of the body; the client's if the client has the rest of it."""
        return self._client.length if self._has_more and self._client is not None else self._length

    @property
    def trailers(self) -> Headers:
        """The client's trailers, which only a chunked body can have."""
        return [] if self._client is None else self._client.trailers

    def on_interim(self, status: int, headers: Headers) -> None:
        """Pass a 1xx response on to the client, if there is one."""
        if self._client is not None:
            self._client.on_interim(status, headers)

    async def read(self) -> bytes:
        """The stored bytes, once; then the rest of the client's body."""
        data, self._data = self._data, b""
        return data or (await self._client.read() if self._has_more and self._client is not None else b"")


class RecordedBody:
    """The client's body on its way to the provider, recorded as it passes."""

    def __init__(self, body: RequestBody, recorder: RawRecorder) -> None:
        self._body = body
        self._recorder = recorder
        if body.length == 0:
            recorder.end_request()

    @property
    def length(self) -> int | None:
        return self._body.length

    @property
    def trailers(self) -> Headers:
        """The client's trailers that are allowed after a body."""
        return passable_trailers(self._body.trailers)

    async def read(self) -> bytes:
        data = await self._body.read()
        if data:
            self._recorder.pass_request(data)
        else:
            self._recorder.end_request()
        return data


class RawReply(ResponseBody):
    """The provider's response on its way to the client, recorded as it passes. Configured keys in it are masked."""

    def __init__(self, exchange: RawExchange, response: Response) -> None:
        self._exchange = exchange
        self._recorder = exchange.recorder
        self._response = response
        self._masking = Masking(exchange.secrets)
        self._coding = is_coded(response.header("content-encoding"))
        self._kept: list[bytes] = []
        self._came = self._given = 0

    @property
    def trailers(self) -> Headers:
        """The trailers, once the body has been read to its end."""
        secrets = self._exchange.secrets
        return [(name, Masking(secrets).feed(value)) for name, value in passable_trailers(self._response.trailers)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The body as it arrives; all of it is recorded before the iteration ends."""
        try:
            async for piece in self._response:
                if data := self._take(piece):
                    yield data
            if rest := self._rest():
                yield rest
        except Fault as fault:
            self._end(FailedEnd(fault))
            raise
        status = self._response.status
        if status < 400:
            self._end(FinishedEnd(self._read_reply()))
        else:
            self._end(FailedEnd(fault_in(self._exchange, status, b"".join(self._kept))))

    def _take(self, piece: bytes) -> bytes:
        self._came += len(piece)
        kept = self._recorder.pass_reply(piece)
        if self._response.status >= 400:
            self._kept.append(kept)
        if not self._coding:
            data = self._masking.feed(piece)
        else:
            self._masking.feed(kept)
            if self._masking.has_found:
                raise key_repeated()
            data = piece
        self._given += len(data)
        return data

    def _rest(self) -> bytes:
        """What masking has held back. If a key was masked, the body is shorter than its `Content-Length`, so it is
        padded with white space, which JSON and text allow at their end."""
        rest = b"" if self._coding else self._masking.close()
        self._given += len(rest)
        has_length = bool(self._response.header("content-length"))
        return rest + b" " * (self._came - self._given if has_length and not self._coding else 0)

    def _read_reply(self) -> Reply:
        """What can be read of the response: the whole reply of some APIs, otherwise the usage reported for a model."""
        request = self._exchange.request
        if has_readable_reply(request.path):
            return fold(read_raw_reply(request.path, self._recorder.response))
        return Reply(usage=read_raw_usage(self._recorder.response) if request.model else None)

    def _end(self, end: FinishedEnd | FailedEnd | CancelledEnd) -> None:
        if not self._exchange.is_over:
            self._exchange.end(end)
            self._exchange.end_stream()

    async def leave(self) -> None:
        self._end(CancelledEnd(cancel_reason()))
        await self._response.close()


def passable_trailers(trailers: Headers) -> Headers:
    """The trailers that are allowed after a body: none about the connection, the body or credentials."""
    barred = OF_A_CONNECTION | OF_A_BODY | {"content-type", "cookie", "set-cookie"}
    return [
        (name, value)
        for name, value in trailers
        if (low := name.decode("latin-1").lower()) not in barred
        and not low.startswith("x-sightline-")
        and not is_secret_header(low)
    ]


def _headers(response: Response, secrets: tuple[str, ...]) -> Headers:
    """The provider's headers for the client, with the length of the body if it is known."""
    headers = headers_for_client(response.headers, secrets)
    length = header(response.headers, b"content-length").strip()
    is_framed = length.isdigit() and not response.header("transfer-encoding")
    return [*headers, (b"content-length", length.encode())] if is_framed else headers


def fault_in(exchange: Exchange, status: int, body: bytes) -> Fault:
    """The fault in the provider's error response."""
    fault = read_error_body(exchange.choice.dialect, status, body)
    fault.status = status
    return fault


def embeddings_of(spoken: str) -> EmbeddingsApi | None:
    """The embeddings API of a dialect; None if it has none."""
    endpoint = dialect(spoken).endpoint
    return None if endpoint is None else endpoint.embeddings


def no_embeddings(provider: str) -> Fault:
    hint = "Write a route for this model to a provider that embeds texts."
    return Fault(Code.INVALID_REQUEST, f"the provider {provider!r} has no embeddings", hint=hint, status=400)


async def run_embeddings(
    exchange: RawExchange, services: ExchangeServices, client: EmbeddingsApi, provider: EmbeddingsApi
) -> ClientResponse:
    """Serve one request for embeddings whose `choice` is made. Raises a Fault if there are no vectors."""
    request, choice, recorder = exchange.request, exchange.choice, exchange.recorder
    read = client.read_request(decode(request.body), request.path)
    is_strict = request.strict or (choice.route is not None and choice.route.strict)
    if is_strict and read.report.refusals:
        lost = ", ".join(loss.what for loss in read.report.refusals)
        hint = "Change the request, choose another provider, or do without strict."
        raise Fault(Code.TRANSLATION_LOSS, f"not carried to {choice.dialect}: {lost}", hint=hint)
    body = encode(provider.write_request(read, choice.model))
    digest = recorder.keep_body(body)
    recorder.record_translation(choice.dialect, digest, read.report)
    exchange.losses = len(read.report.losses)
    over = None if services.caps is None else await services.caps.reserve_raw(exchange)
    if services.interceptor.concerns(request) or over is not None:
        released = await hold_pieces(exchange, services, [body], over, is_whole=True)
        body, digest = released.data, released.sha256
    call = embeddings_call(choice.provider, choice.dialect, choice.model, body).fill(services.environment)
    call = replace(call, headers=(*call.headers, *own_key(request, choice)))
    exchange.sent_body = body
    with exchange.waiting():
        async with await _send(exchange, services, call, StoredBody(body), digest, choice.model) as response:
            came = await response.read()
    recorder.pass_reply(came)
    plain = decode_body(response.header("content-encoding"), came)
    if response.status >= 400:
        raise fault_in(exchange, response.status, plain)
    try:
        embeddings = provider.read_reply(decode(plain))
    except Fault as fault:
        raise unreadable(fault.message) from None
    exchange.end(FinishedEnd(Reply(usage=Usage(input_tokens=embeddings.tokens, output_tokens=0))))
    written = encode(client.write_reply(embeddings, read, request.model))
    named = request_id(request.caller, choice.dialect, recorder.response_headers, (), exchange.id)
    headers = [(b"content-type", b"application/json"), *named]
    return client_response.whole(exchange.id, 200, headers, written, exchange.own_headers())
