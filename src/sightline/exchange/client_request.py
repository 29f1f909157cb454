"""The request of a client, or of Sightline itself, as it was read."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec

from sightline.dialects.registry import dialect
from sightline.model.json import JsonObject
from sightline.transport.retry import LONGEST_WAIT

TextHeaders = tuple[tuple[str, str], ...]


def text_headers(headers: Iterable[tuple[bytes, bytes]]) -> TextHeaders:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings", "expect"}
)
"""Headers that concern one connection and are not passed on."""

SESSIONS = ("x-claude-code-session-id", "session-id", "x-session-id", "thread-id")
"""Headers by which clients mark requests that belong together."""


class ClientRequest(msgspec.Struct, frozen=True):
    """What a client sent. `body` is after content decoding; `coded` is the body as it arrived, if it was encoded.
    `headers` are as they arrived, in order, in latin-1; `path` and `query` as the client wrote them, after any prefix.

    `received` is the monotonic time when the head arrived; `origin` the exchange that this one replays; `tokens` the
    estimated size, if the caller has one. With `hold`, the request is held regardless of the rules. `budgeted` is the
    plan of a chat, for the record; `exchange` the id of the exchange, if the caller has made one; `max_wait` the
    longest delay that a provider may request before another attempt. `conversation` is the chat or the run that the
    request belongs to. `is_own` says that Sightline made it and not a client; `retries` is how many times it is
    retried, if the caller decides that. Without `masks`, no mask is applied; with `expect_sha256`, it is refused if
    another body would be sent.

    `transport` is how it arrived. A frame of a socket may go to a provider that is called over HTTP: `http_body` is
    then its form there, in the same dialect. With `was_sent`, the provider has the request already: it is neither held
    nor changed. With `was_begun`, its first attempt has been sent, and the exchange continues from there. `head` is one
    object for all requests with these headers and this address, if the server keeps one.

    A raw request, which is passed on as it arrived, has a `method`, and `caller` is the dialect in which its client
    expects errors. With `is_open`, its body is still arriving and not in `body`. `embeds` says that it asks for
    embeddings. `upstream` is the address to which the client itself has connected, inside TLS: `path` is then the
    provider's, and the request is sent there with only what the client sent.
    """

    dialect: str
    body: bytes
    headers: TextHeaders
    path: str
    query: str = ""
    model: str = ""
    is_stream: bool = False
    coded: bytes | None = None
    coding: str = ""
    provider: str = ""
    session: str = ""
    strict: bool = False
    counts: bool = False
    received: float = 0.0
    origin: str = ""
    tokens: int = 0
    hold: bool = False
    exchange: str = ""
    budgeted: tuple[JsonObject, ...] = ()
    max_wait: float = LONGEST_WAIT
    conversation: str = ""
    is_own: bool = False
    retries: int | None = None
    masks: bool = True
    expect_sha256: str = ""
    transport: str = "http"
    http_body: bytes | None = None
    was_sent: bool = False
    was_begun: bool = False
    head: object = None
    method: str = ""
    caller: str = ""
    is_open: bool = False
    embeds: bool = False
    upstream: str = ""

    @property
    def wants_array(self) -> bool:
        """Whether the client expects the stream as one JSON array. Google's clients do, unless they ask for server-sent
        events."""
        return self.is_stream and dialect(self.dialect).clients.streams_array(self.query)

    def headers_by_name(self) -> Mapping[str, str]:
        """The headers by lowercase name; the first one if a name is repeated."""
        return headers_by_name(self.headers)


@lru_cache(maxsize=512)
def headers_by_name(headers: TextHeaders) -> Mapping[str, str]:
    """The same of any headers. Cached: a client sends the same headers with all of its requests."""
    return MappingProxyType({name.lower(): value for name, value in reversed(headers)})


def session_of(request: ClientRequest) -> str:
    """The session label of the request: from its path, otherwise from one of the client's headers."""
    named = request.headers_by_name()
    return request.session or next((named[name] for name in SESSIONS if named.get(name)), "")
