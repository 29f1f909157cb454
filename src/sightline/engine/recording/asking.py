"""A recorded request made ready to be sent once more: as a client's request for the relay, or as a call to show.

Credentials are not on record. Where the provider has a key of its own, its variable stands in their place; else the
call names a variable for the client's.
"""

import re
from dataclasses import replace

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import Choice
from sightline.catalog.lookup import facts_of, family_of
from sightline.catalog.problem import nearest
from sightline.catalog.provider import DialectName, Provider
from sightline.dialects.endpoint import call_to, in_path
from sightline.dialects.endpoint import credential as place_of_key
from sightline.dialects.registry import dialect
from sightline.engine.asked import Asked
from sightline.engine.outbound import end_to_end, own_call
from sightline.engine.own_calls import path_of
from sightline.engine.recording.recorded import Recorded
from sightline.engine.redaction import CREDENTIAL_HEADERS, parameters
from sightline.errors import Code, Fault
from sightline.wire.call import Call, Told, Variable
from sightline.wire.document import WireDocument
from sightline.wire.masking import MASK

_MODEL_IN_PATH = re.compile(r"(?<=models/).+?(?=:\w+$)")
_LEFT_OUT = frozenset({"accept-encoding", "content-encoding", *CREDENTIAL_HEADERS})
"""The body is on record without its coding, and whoever reads the answer here wants it plain."""


def again(recorded: Recorded) -> Asked:
    """The request that was sent, for the provider that it was sent to: the very bytes."""
    provider = recorded.summary.provider
    if not provider:
        return msgspec.structs.replace(_as_received(recorded), body=recorded.sent)
    if recorded.spoken == recorded.received.dialect:
        return msgspec.structs.replace(
            _as_received(recorded), body=recorded.sent, model=recorded.model, provider=provider
        )
    path, query = path_of(recorded.spoken, recorded.model, stream=recorded.received.is_stream)
    return Asked(
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


def elsewhere(recorded: Recorded, model: str) -> Asked:
    """The same request for another model, wherever that is; what a person changed before it was sent stays changed."""
    asked = _as_received(recorded)
    body = recorded.sent if recorded.spoken == asked.dialect else recorded.body
    if dialect(asked.dialect).model_in_path:
        named = _MODEL_IN_PATH.sub(lambda _: in_path(model), asked.path, count=1)
        return msgspec.structs.replace(asked, body=body, path=named, model=model)
    return msgspec.structs.replace(asked, body=WireDocument(body).set("/model", model).data, model=model)


def had_credential(recorded: Recorded) -> bool:
    """Whether the client showed who it is, in a way that is not on record."""
    named = {name.lower() for name, value in recorded.received.headers if value == MASK}
    return bool(named.intersection(CREDENTIAL_HEADERS)) or f"key={MASK}" in recorded.received.path


def call_of(recorded: Recorded, catalog: Catalog) -> Call:
    """The call that was made, with a variable where the key stood."""
    provider = _provider(recorded, catalog)
    spoken: DialectName = recorded.spoken  # type: ignore[assignment] # nothing else is ever sent
    choice = Choice(
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
    if spoken != provider.dialect and spoken not in provider.also:
        raise _changed(recorded, f"no longer speaks {spoken}")
    variables = dict.fromkeys(provider.env_headers.values(), MASK)
    call = own_call(again(recorded), choice, variables, recorded.sent)
    return replace(call, headers=tuple((name, _told(value, provider)) for name, value in call.headers))


def _told(value: Told, provider: Provider) -> Told:
    """Only the key has to be set."""
    if isinstance(value, Variable) and value.name != provider.key_env:
        return replace(value, optional=True)
    return value


def _as_received(recorded: Recorded) -> Asked:
    received = recorded.received
    path, _, query = received.path.partition("?")
    kept = [piece for _, piece in parameters(query) if piece.partition("=")[2] != MASK]
    headers = [
        (name, value)
        for name, value in end_to_end(received.headers)
        if MASK not in value and name.lower() not in _LEFT_OUT
    ]
    return Asked(
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
    )


def _agent(recorded: Recorded) -> tuple[tuple[str, str], ...]:
    return tuple(each for each in recorded.received.headers if each[0].lower() == "user-agent" and MASK not in each[1])


def _provider(recorded: Recorded, catalog: Catalog) -> Provider:
    """The provider that it went to, as it is configured now; with a name for the client's own key where it has none."""
    name = recorded.summary.provider
    if not name:
        hint = "Use --as wire for the body that the client sent."
        raise Fault(Code.USAGE, f"{recorded.id} was not sent to anybody", hint=hint)
    provider = catalog.providers.get(name)
    if provider is None:
        raise _changed(recorded, "is no longer configured", nearest(name, catalog.providers))
    if provider.key_env or not had_credential(recorded):
        return provider
    shown = (key.lower() for key, value in recorded.received.headers if value == MASK)
    header = next((key for key in shown if key in CREDENTIAL_HEADERS), "")
    if recorded.spoken != recorded.received.dialect or not header:
        header, _ = place_of_key(provider, recorded.spoken)
    variable = re.sub(r"\W", "_", f"{name}_API_KEY".upper())
    help_ = "It is the credential that the client sent, which is not on record."
    return msgspec.structs.replace(provider, key_env=variable, key_header=header, key_help=help_)


def _changed(recorded: Recorded, what: str, hint: str = "") -> Fault:
    message = f"the provider {recorded.summary.provider!r}, to which {recorded.id} went, {what}"
    return Fault(Code.CONFIG, message, hint=hint or "Correct [providers] in sightline.toml, or use --as wire.")
