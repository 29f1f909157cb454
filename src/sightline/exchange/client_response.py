"""The response to a client: its head and its body, functions that make complete or generated responses, and the headers
of a response that is not the provider's own: a request id and the account's rate limits, under the names of the
client's dialect.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from operator import itemgetter
from typing import AnyStr, Protocol, Self, TypeVar

from sightline.dialects.dialect import LimitHeaders
from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.exchange.client_request import HOP_BY_HOP, ClientRequest, TextHeaders
from sightline.exchange.reply_reader import ReplyReader
from sightline.tokens.rate_headers import Allowance, Counted, allowances
from sightline.transport.sender import RawHeaders
from sightline.web.asgi import ChunkWriter
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Masking

Headers = list[tuple[bytes, bytes]]
T = TypeVar("T")


class ResponseBody(ABC):
    """The body of a response, in chunks."""

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks; can be iterated once."""

    async def leave(self) -> None:  # noqa: B027 - a complete body has nothing to close
        """The client wants no more of the body, or it has ended: close everything that it uses."""

    def share_reading(self) -> ReplyReader | None:
        """What already parses these bytes for the record, for one of Sightline's own callers that asks before it takes
        the first chunk. None if the caller has to parse them itself."""
        return None

    async def write_to(self, client: ChunkWriter) -> None:
        """Write the whole body to a client, as fast as the client accepts it, without the end of the transfer. Raises
        what the iteration raises."""
        async for data in self:
            client.write(data)
            if client.is_paused:
                await client.until_writable()


class WholeBody(ResponseBody):
    """A complete body."""

    def __init__(self, data: bytes, reading: ReplyReader | None = None) -> None:
        """`reading` has parsed the data, with its events."""
        self.data = data
        self._reading = reading
        self._is_taken = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_taken or not self.data:
            raise StopAsyncIteration
        self._is_taken = True
        return self.data

    def share_reading(self) -> ReplyReader | None:
        return self._reading


class ClientResponse:
    """A response for the client. Leaving its `async with` block early means that the client has gone: the provider's
    connection is closed at once.

    `exchange` is the id of its record, empty if there is none. A fault raised by the iteration means that the body was
    interrupted and its dialect cannot express that: the transfer must be aborted, not ended. `fault` is for Sightline's
    own callers: why there is no reply, or what interrupted it. It is set before the last bytes.
    """

    def __init__(
        self, exchange: str, status: int, headers: Headers, body: ResponseBody, *, fault: Fault | None = None
    ) -> None:
        self.exchange = exchange
        self.status = status
        self.headers = headers
        self.fault = fault
        self.whole_body = body.data if isinstance(body, WholeBody) else None
        """The body if all of it is available; None if it is still arriving."""
        self.body: ResponseBody = body

    def set_body(self, data: bytes) -> None:
        """Set the body, which has been read meanwhile, to what the client gets of it."""
        self.body, self.whole_body = WholeBody(data), data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.body.__aiter__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.body.leave()


class RequestHandler(Protocol):
    """What answers clients: the relay to the providers, or the replay of a record."""

    async def start(self, request: ClientRequest) -> ClientResponse:
        """The response to a request; its head is complete when this returns."""

    async def close(self, grace: float, /) -> None:
        """Let exchanges end within this many seconds."""


# --- making responses ---

_FRAMING = frozenset(name.encode() for name in HOP_BY_HOP) | {b"content-length", b"proxy-connection"}
_JSON = (b"content-type", b"application/json")
_NAME = itemgetter(0)
EVENT_STREAM: Headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
_ARRAY: Headers = [(b"content-type", b"application/json; charset=utf-8"), (b"cache-control", b"no-cache")]


def stream_headers(request: ClientRequest) -> Headers:
    """The headers of a stream that is written here, in the form that its client reads."""
    return _ARRAY if request.wants_array else EVENT_STREAM


def refusal(spoken: str, fault: Fault, own: Headers, exchange: str = "") -> ClientResponse:
    status, body = dialect(spoken).write_error(fault)
    error = body.get("error")
    if isinstance(fault.details, dict) and isinstance(error, dict) and fault.details.get("code") == RESEND:
        error["code"] = RESEND
    headers: Headers = [_JSON]
    if fault.retry_after is not None:
        headers.append((b"retry-after", str(ceil(fault.retry_after)).encode()))
    return whole(exchange, status, headers, encode(body), own, fault=fault)


RESEND = "previous_response_not_found"
"""The error code upon which a client of the Responses API sends its whole history again."""


def whole(
    exchange: str,
    status: int,
    headers: Headers,
    body: bytes,
    own: Headers,
    *,
    fault: Fault | None = None,
    reading: ReplyReader | None = None,
) -> ClientResponse:
    """A complete response; `fault` is the error in it, if it is one. `reading` has parsed the body."""
    size = (b"content-length", str(len(body)).encode())
    return ClientResponse(exchange, status, [*headers, size, *own], WholeBody(body, reading), fault=fault)


def headers_for_client(headers: RawHeaders, secrets: tuple[str, ...] = ()) -> Headers:
    """The provider's headers that are passed to the client, without those about framing, which are written anew."""
    pick, has_connection = _choose_for_client(tuple(map(_NAME, headers)))
    passed = list(pick(headers))
    if has_connection:
        values = [value for name, value in headers if name.lower() == b"connection"]
        named = {word.strip().lower() for value in values for word in value.split(b",")}
        passed = [each for each in passed if each[0].lower() not in named]
    if secrets and without(joined := b"\n".join([value for _, value in passed]), secrets) != joined:
        return [(name, without(value, secrets)) for name, value in passed]
    return passed


@lru_cache(maxsize=256)
def _choose_for_client(names: tuple[bytes, ...]) -> tuple[Callable[[RawHeaders], RawHeaders], bool]:
    """A function that picks the headers for the client from those with these names, and whether one of them is
    `Connection`. Cached: the responses of a provider have the same names again and again."""
    places, has_connection = places_for_client(names), any(name.lower() == b"connection" for name in names)
    return pick_places(places), has_connection


def pick_places(places: list[int]) -> Callable[[tuple[T, ...]], tuple[T, ...]]:
    """A function that takes the items at these positions out of a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))  # an itemgetter of one position does not return a tuple


def places_for_client(names: Iterable[bytes]) -> list[int]:
    """The positions of the headers that are passed to the client. Those that a `Connection` header names are still
    included."""
    low = [name.lower() for name in names]
    return [place for place, name in enumerate(low) if name not in _FRAMING and not name.startswith(b"x-sightline-")]


def without(data: bytes, secrets: tuple[str, ...]) -> bytes:
    """A complete body without these secrets."""
    masking = Masking(secrets)
    return masking.feed(data) + masking.close()


def header(headers: RawHeaders, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), "")


def without_coding(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() != b"content-encoding"]


_WORDS: dict[Counted, str] = {
    "requests": "requests", "tokens": "tokens", "input_tokens": "input-tokens", "output_tokens": "output-tokens",
}  # fmt: skip


def request_id(
    client: str, provider: str, came: TextHeaders, passed: Iterable[tuple[bytes, bytes]], own: str
) -> Headers:
    """The header with the request id under the name of the client's dialect: the provider's id, otherwise our `own`.
    Empty if the dialect has no such header, or it is among those that are `passed`."""
    name = dialect(client).clients.request_id.encode()
    if not name or _place_of(tuple(map(_NAME, passed)), name) is not None:
        return []
    wanted = dialect(provider).clients.request_id if provider else ""
    at = _place_of(tuple(map(_NAME, came)), wanted) if wanted else None
    given = (came[at][1] if at is not None else "") or own
    return [(name, given.encode("latin-1"))] if given else []


@lru_cache(maxsize=256)
def _place_of(names: tuple[AnyStr, ...], wanted: AnyStr) -> int | None:
    """The position of the header with this lowercase name; None if there is none. Cached: the responses of a provider
    have the same names again and again."""
    return next((place for place, name in enumerate(names) if name.lower() == wanted), None)


def limits_for_client(client: str, came: TextHeaders, now: float) -> Headers:
    """The rate limits reported by a provider of another dialect, under the names that this client's dialect uses. If it
    uses none, they are passed as they arrived."""
    listed = {name.lower(): value for name, value in came if "ratelimit" in name.lower()}
    if not listed:
        return []
    names = dialect(client).clients.limits
    if names is None:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in listed.items()]
    found: dict[str, str] = {}
    dated = {name.lower(): value for name, value in came if name.lower() == "date"}
    for allowance in allowances({**dated, **listed}, now):
        for name, value in _limit_lines(allowance, names, now):
            found.setdefault(name, value)
    return [(name.encode(), value.encode()) for name, value in found.items()]


def _limit_lines(allowance: Allowance, names: LimitHeaders, now: float) -> Iterator[tuple[str, str]]:
    counted = _WORDS.get(allowance.counted, "")
    if counted not in names.counted:
        counted = "tokens" if counted == "input-tokens" else ""  # the prompt is most of what a token limit counts
    if not counted:
        return
    for role, count in (("limit", allowance.limit), ("remaining", allowance.remaining)):
        if count is not None:
            yield names.template.format(counted=counted, role=role), str(int(count))
    if allowance.reset is not None:
        yield names.template.format(counted=counted, role="reset"), _reset(allowance.reset, now, names)


def _reset(seconds: float, now: float, names: LimitHeaders) -> str:
    if names.reset == "duration":
        return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
    return datetime.fromtimestamp(now + seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
