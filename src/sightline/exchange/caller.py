"""Who asks: what a client's headers tell, worked out once for all of the requests that have the same ones."""

from functools import lru_cache

import msgspec

from sightline.exchange.client_request import SESSIONS, TextHeaders
from sightline.exchange.redaction import Redaction, secrets_of


class Caller(msgspec.Struct, frozen=True):
    """A client as the record knows it: without secrets in `client`, `address` and `headers`. `program` is its name as
    it came and `session` what it calls its session, for finding what belongs together, and not for the record."""

    redaction: Redaction
    program: str
    client: str
    session: str
    address: str
    headers: TextHeaders


@lru_cache(maxsize=512)
def identify_caller(headers: TextHeaders, path: str, query: str, secrets: tuple[str, ...]) -> Caller:
    """The client with these headers and this address; `secrets` are those of our own settings."""
    named = {name.lower(): value for name, value in reversed(headers)}
    redaction = Redaction((*secrets_of(headers, query), *secrets))
    program = named.get("user-agent", "").partition(" ")[0]
    return Caller(
        redaction,
        program,
        redaction.text(program),
        next((named[name] for name in SESSIONS if named.get(name)), ""),
        redaction.address(path, query),
        redaction.headers(headers),
    )
