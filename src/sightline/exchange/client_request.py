"""The request of a client, or of a caller of our own, as it was read."""

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
"""Headers of one connection, which are not passed on."""

SESSIONS = ("x-claude-code-session-id", "session-id", "x-session-id", "thread-id")
"""Headers by which clients say which of their requests belong together."""


class ClientRequest(msgspec.Struct, frozen=True):
    """What a client sent. `body` is after content decoding; `coded` the bytes as they came where a coding was undone.

    `headers` are as they came, in order, in latin-1; `path` and `query` as the client wrote them, behind any prefix.
    `received` is the monotonic time when its head came; `origin` the exchange that this one replays; `tokens` its
    estimated size, if the caller has one. With `hold` it is held, whatever the rules say. `budgeted` is the plan of a
    chat, for the record; `exchange` the id that it gets there, if the caller has made one; `max_wait` the longest wait
    that a provider may ask for before another attempt. `conversation` is the chat or the run that it is part of.
    `is_own` says that Sightline made it and no client; `retries` is how often it is sent again, if the caller says so.
    Without `masks` no mask is applied; with `expect_sha256` it is refused where another body would be sent.
    `transport` is how it came. A frame of a socket may go to a provider that is asked over HTTP: then `http_body` is
    what it is there, in the same dialect. With `was_sent` the provider has it already: it is neither held nor changed.
    With `was_begun` its first attempt is out, and the exchange goes on from there.
    `head` is one object for all requests with these headers and this address, if its server has one.

    A raw request, which is passed on as it came, has a `method`, and `caller` is the dialect in which its client takes
    errors. With `is_open` its body is still coming and is not here. `embeds` says that it asks for embeddings.
    `upstream` is the address that the client itself has connected to, below TLS: `path` is then that of the provider,
    and the request goes there with what the client sent and nothing of ours.
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
        """Whether its stream is to be one JSON array: Google's are, unless server-sent events are asked for."""
        return self.is_stream and dialect(self.dialect).clients.streams_array(self.query)

    def headers_by_name(self) -> Mapping[str, str]:
        """The headers by name in lower case; of several with one name the first."""
        return _headers_by_name(self.headers)


@lru_cache(maxsize=512)
def _headers_by_name(headers: TextHeaders) -> Mapping[str, str]:
    """A client sends the same headers with all of its requests, so that what follows from them is worked out once."""
    return MappingProxyType({name.lower(): value for name, value in reversed(headers)})


def session_of(request: ClientRequest) -> str:
    """The label of its traffic: the path's, or else what the client itself says in a header."""
    named = request.headers_by_name()
    return request.session or next((named[name] for name in SESSIONS if named.get(name)), "")
