"""Embeddings for a client of one API by a provider of another: the request is translated, and so are the vectors."""

from msgspec.structs import replace

from sightline.dialects.embeddings import EmbeddingsApi
from sightline.dialects.endpoint import credential as place_of_key
from sightline.dialects.endpoint import embeddings_call
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.answer_headers import request_id
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.exchange import Exchange
from sightline.exchange.outbound import dialect_key
from sightline.exchange.phase import ExchangePhase, FinishedEnd
from sightline.exchange.raw_exchange import RecordedBody, StoredBody, fault_in, hold_pieces
from sightline.exchange.raw_recorder import RawRecorder
from sightline.exchange.reply_reader import decode_body, unreadable
from sightline.exchange.routing import credential
from sightline.exchange.run import ExchangeServices, refuse_own_address, timeouts_of
from sightline.model.exchange import RAW_HTTP
from sightline.model.reply import Reply, Usage
from sightline.transport.sender import Outgoing
from sightline.wire.jsontext import decode, encode


def embeddings_of(spoken: str) -> EmbeddingsApi | None:
    """How texts are embedded in the API of a dialect; None where they are not."""
    endpoint = dialect(spoken).endpoint
    return None if endpoint is None else endpoint.embeddings


def no_embeddings(provider: str) -> Fault:
    """The fault of a provider whose API embeds no texts."""
    hint = "Write a route for this model to a provider that embeds texts."
    return Fault(Code.INVALID_REQUEST, f"the provider {provider!r} has no embeddings", hint=hint, status=400)


async def run_embeddings(
    exchange: Exchange, services: ExchangeServices, client: EmbeddingsApi, provider: EmbeddingsApi
) -> ClientResponse:
    """Serve one request whose `choice` is made. Raises a Fault where there are no vectors."""
    request, choice, recorder = exchange.request, exchange.choice, exchange.recorder
    assert isinstance(recorder, RawRecorder)
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
        fault = None if over is None else over.fault
        released = await hold_pieces(exchange, services, [body], fault, is_whole=True)
        body, digest = released.data, released.sha256
    if services.caps is not None and over is not None:
        await services.caps.let(exchange, over)
    call = embeddings_call(choice.provider, choice.dialect, choice.model, body).fill(services.environment)
    own = credential(request, dialect_key(request.caller))
    if own and not choice.provider.has_credential:
        name, prefix = place_of_key(choice.provider, choice.dialect)
        call = replace(call, headers=(*call.headers, (name, f"{prefix}{own}")))
    refuse_own_address(call.url, services)
    exchange.enter(ExchangePhase.SENDING)
    exchange.sent_body = body
    outgoing = Outgoing(
        request=call,
        provider=choice.provider_name,
        model=choice.model,
        dialect=RAW_HTTP,
        stream=False,
        retries=0,
        timeouts=timeouts_of(choice.provider),
        secrets=recorder.redaction.secrets,
        sha256=digest,
    )
    with exchange.waiting():
        response = await services.sender.pass_on(
            outgoing, RecordedBody(StoredBody(body), recorder), recorder.record_attempt
        )
        async with response:
            recorder.begin_reply(response.status, response.headers)
            exchange.enter(ExchangePhase.STREAMING)
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
