"""Requests of our own callers, in the form in which a client's come: the relay knows no difference."""

from sightline.dialects.endpoint import count_call, counting_of, endpoint_of, in_path
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.prepare import Prepared
from sightline.model.json import JsonObject
from sightline.transport.retry import LONGEST_WAIT
from sightline.wire.call import RequestTemplate

AGENT = "sightline"
"""What our own callers call themselves."""


def question(
    prepared: Prepared,
    *,
    session: str,
    received: float,
    tokens: int = 0,
    hold: bool = False,
    exchange: str = "",
    budgeted: tuple[JsonObject, ...] = (),
    max_wait: float = LONGEST_WAIT,
    conversation: str = "",
    expect_sha256: str = "",
) -> ClientRequest:
    """The request that was prepared, byte for byte, for the provider that was chosen."""
    path, query = path_of(prepared.dialect, prepared.choice.model, stream=prepared.is_stream)
    return ClientRequest(
        prepared.dialect,
        prepared.body,
        _headers(prepared, prepared.call),
        path,
        query,
        prepared.choice.model,
        prepared.is_stream,
        provider=prepared.choice.provider_name,
        session=session,
        received=received,
        tokens=tokens,
        hold=hold,
        exchange=exchange,
        budgeted=budgeted,
        max_wait=max_wait,
        conversation=conversation,
        is_own=True,
        retries=None if prepared.choice.route is None else prepared.choice.route.retries,
        expect_sha256=expect_sha256,
    )


def count(prepared: Prepared, *, session: str, received: float) -> ClientRequest:
    """The request that asks its provider how many tokens it has."""
    choice, spoken = prepared.choice, prepared.dialect
    call = count_call(choice.provider, spoken, choice.model, prepared.body)
    path, query = _path_and_query(spoken, counting_of(spoken).path, choice.model)
    return ClientRequest(
        spoken,
        call.body,
        _headers(prepared, call),
        path,
        query,
        choice.model,
        provider=choice.provider_name,
        session=session,
        counts=True,
        received=received,
        is_own=True,
    )


def path_of(spoken: str, model: str, *, stream: bool) -> tuple[str, str]:
    """Path and query by which a client of this dialect asks."""
    endpoint = endpoint_of(spoken)
    return _path_and_query(spoken, endpoint.stream_path if stream and endpoint.stream_path else endpoint.path, model)


def _path_and_query(spoken: str, path: str, model: str) -> tuple[str, str]:
    named = path.replace("{model}", in_path(model)) if "{model}" in path else path
    path, _, query = named.partition("?")
    return f"{endpoint_of(spoken).version or '/v1'}{path}", query


def _headers(prepared: Prepared, call: RequestTemplate) -> tuple[tuple[str, str], ...]:
    """What a client of the dialect says; the relay adds what is configured."""
    provider = prepared.choice.provider
    configured = {name.lower() for name in (*provider.headers, *provider.env_headers)}
    usual = ((name, value) for name, value in call.headers if isinstance(value, str) and name.lower() not in configured)
    return (*usual, ("user-agent", AGENT))
