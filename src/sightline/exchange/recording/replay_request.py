"""A recorded request made ready to be sent once more: as a client's request for the relay, or as a call to show.

Credentials are not on record. Where the provider has a key of its own, its variable takes their place; else the
call names a variable for the client's.
"""

import re
from dataclasses import replace

import msgspec

from sightline.catalog.catalog import Catalog, facts_of, family_of
from sightline.catalog.choose import ModelChoice
from sightline.catalog.problem import nearest
from sightline.catalog.provider import Provider
from sightline.dialects.endpoint import call_to, in_path
from sightline.dialects.endpoint import credential as place_of_key
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.engine import path_of
from sightline.exchange.outbound import end_to_end, own_call
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.socket_history import HTTP_HEADERS, SocketHistory, is_frame
from sightline.model.header_names import CREDENTIAL_HEADERS, is_secret_parameter
from sightline.wire.call import RequestTemplate, TemplateValue, Variable
from sightline.wire.document import WireDocument
from sightline.wire.secrets import MASK, parameters

_MODEL_IN_PATH = re.compile(r"(?<=models/).+?(?=:\w+$)")
_LEFT_OUT = frozenset({"accept-encoding", "content-encoding", *CREDENTIAL_HEADERS})
"""The body is on record without its coding, and the response is to be read without one."""


def again(recorded: RecordedExchange) -> ClientRequest:
    """The request that was sent, for the provider that it was sent to: the very bytes."""
    provider = recorded.summary.provider
    if not provider:
        return msgspec.structs.replace(_as_received(recorded), body=recorded.sent)
    if recorded.spoken == recorded.received.dialect:
        return msgspec.structs.replace(
            _as_received(recorded), body=recorded.sent, model=recorded.model, provider=provider
        )
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
    """The same request for another model, wherever that is; what a person changed before it was sent stays changed."""
    request = _as_received(recorded)
    body = recorded.sent if recorded.spoken == request.dialect else recorded.body
    if dialect(request.dialect).model_in_path:
        named = _MODEL_IN_PATH.sub(lambda _: in_path(model), request.path, count=1)
        return msgspec.structs.replace(request, body=body, path=named, model=model)
    return msgspec.structs.replace(request, body=WireDocument(body).set("/model", model).data, model=model)


def had_credential(recorded: RecordedExchange) -> bool:
    """Whether the client showed who it is, in a way that is not on record."""
    named = {name.lower() for name, value in recorded.received.headers if value == MASK}
    query = parameters(recorded.received.path.partition("?")[2])
    is_in_query = any(is_secret_parameter(name) and piece.endswith(f"={MASK}") for name, piece in query)
    return bool(named.intersection(CREDENTIAL_HEADERS)) or is_in_query


def call_of(recorded: RecordedExchange, catalog: Catalog) -> RequestTemplate:
    """The call that was made, with a variable where the key stood: to the address that is on record, whatever the
    settings say today. Exchanges without one go to where the settings have their provider."""
    if recorded.is_raw:
        return _raw_call(recorded, catalog)
    provider = _provider(recorded, catalog)
    call = _call_to(recorded, provider, catalog)
    headers = call.headers
    if recorded.url and provider.base_url == recorded.url:  # it may need no key
        headers = tuple((name, replace(value, optional=True) if isinstance(value, Variable) else value)
                        for name, value in headers)  # fmt: skip
    # The embedded model listens elsewhere each time, so that its address of then leads nowhere.
    return replace(call, headers=headers, url=call.url if provider.embedded else _address(recorded) or call.url)


def _raw_call(recorded: RecordedExchange, catalog: Catalog) -> RequestTemplate:
    """The call that passed as it came, with a variable where its credential stood."""
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
    choice = ModelChoice(
        recorded.summary.provider,
        provider,
        recorded.model,
        facts_of(catalog, recorded.summary.provider, recorded.model),
        family_of(catalog, recorded.summary.provider, recorded.model),
        None,
        spoken,
    )
    if spoken != recorded.received.dialect:
        call = call_to(provider, spoken, recorded.model, recorded.sent, stream=recorded.received.is_stream)
        return replace(call, headers=(*call.headers, *_agent(recorded)))
    variables = dict.fromkeys(provider.env_headers.values(), MASK)
    request, sent = again(recorded), recorded.sent
    if recorded.received.transport == "websocket" and is_frame(sent):  # shown as the POST that asks for the same
        request = msgspec.structs.replace(request, headers=(*request.headers, *HTTP_HEADERS))
        sent = SocketHistory().http_form(sent).body
    call = own_call(request, choice, variables, sent)
    return replace(call, headers=tuple((name, _optional_unless_key(value, provider)) for name, value in call.headers))


def _address(recorded: RecordedExchange) -> str:
    """The address on record, without what is a credential there: that is sent in a header."""
    place, _, query = recorded.url.partition("?")
    kept = [piece for piece in query.split("&") if piece and not piece.endswith(f"={MASK}")]
    return f"{place}?{'&'.join(kept)}" if kept else place


def _variable(words: str) -> str:
    return re.sub(r"\W", "_", words.upper())


def _optional_unless_key(value: TemplateValue, provider: Provider) -> TemplateValue:
    """Only the key has to be set."""
    if isinstance(value, Variable) and value.name != provider.key_env:
        return replace(value, optional=True)
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
    """The provider that it went to, as it is configured now; with a name for the client's own key where it has none."""
    name = recorded.summary.provider
    if not name:
        hint = "Use --as wire for the body that the client sent."
        raise Fault(Code.USAGE, f"{recorded.id} was not sent to a provider", hint=hint)
    provider = catalog.providers.get(name)
    spoken = recorded.spoken
    if provider is None or (spoken != provider.dialect and spoken not in provider.also):
        if recorded.url:
            # These settings are not those with which it was sent; what they do not tell is on record or the caller's.
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
    """The header in which the client showed who it is; nothing where it used none."""
    shown = (key.lower() for key, value in recorded.received.headers if value == MASK)
    return next((key for key in shown if key in CREDENTIAL_HEADERS), "")


def _provider_mismatch(recorded: RecordedExchange, what: str, hint: str = "") -> Fault:
    message = f"the provider {recorded.summary.provider!r}, to which {recorded.id} went, {what}"
    return Fault(Code.CONFIG, message, hint=hint or "Correct [providers] in sightline.toml, or use --as wire.")
