"""Sends one request to one provider, and again within its retry budget, until there is a response to pass on.

Every attempt is reported before it starts and has the same bytes. Once a successful response has begun, nothing is sent
again; an error response is classified by its dialect.
"""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec.structs import replace

from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.exchange import AttemptStarted
from sightline.model.header_names import is_secret_header, is_secret_parameter
from sightline.model.json import Json
from sightline.tokens.account import lower_case
from sightline.tokens.ledger import Ledger, SentRequest
from sightline.tokens.rate_headers import allowances, may_tell, reset_wait
from sightline.transport.http.client import HttpClient, Response
from sightline.transport.http.connection import RequestBody
from sightline.transport.http.faults import may_retry
from sightline.transport.http.framing import OnInterim
from sightline.transport.http.straight_way import StraightWay
from sightline.transport.http.target import Timeouts
from sightline.transport.retry import LONGEST_WAIT, format_duration, next_wait
from sightline.transport.waiting import Clock
from sightline.wire import jsontext
from sightline.wire.call import HttpRequest
from sightline.wire.secrets import MASK, Redaction, redact_json, redact_text, without_scheme

if TYPE_CHECKING:
    from sightline.transport.web_socket import DialledSocket

LONGEST_ERROR = 1 << 20
_LONGEST_TEXT = 4000
_LONGEST_DETAIL = 200
_LAST_STATUS = 599
_REFUSED_HERE = frozenset({Code.CONFIG, Code.INVALID_REQUEST, Code.CANCELLED})
_NOT_CONNECTED = frozenset({"dns", "refused", "unreachable", "tls", "proxy", "connect_timeout"})

RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]


class ProviderResponse(Protocol):
    """A provider's response; see `transport.http.client.Response` for each method."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> RawHeaders: ...
    def header(self, name: str) -> str: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def __anext__(self) -> bytes: ...
    async def pass_to(self, take: Callable[[bytes], bool], way: StraightWay | None = None) -> None: ...
    def take_whole(self) -> bytes | None: ...
    def abort(self, fault: Fault) -> None: ...
    async def close(self) -> None: ...


class RequestClient(Protocol):
    """Sends a request once: the HTTP client, or a socket that is already open."""

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False) -> ProviderResponse:
        """Send the request and return the response, once its head has arrived."""


class Signer(Protocol):
    """Signs the requests to one provider."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """The same request with credentials: headers are added or replaced, and the body stays. Called for each
        attempt, because signatures contain the time. Raises a Fault if it cannot be signed."""


class Outgoing(msgspec.Struct, frozen=True):
    """A request and how to send it. `retries` are attempts after the first, `tokens` its estimated size. With
    `past_proxy`, no proxy is used. `secrets` are values that must not appear in a fault's text; the request's own
    credentials are always included. `sha256` is the hash of the body after content decoding, and `seen` the recorded
    form of the head, if the caller knows them. `sent` is the ledger's entry of the first attempt, if that was already
    sent."""

    request: HttpRequest
    provider: str
    model: str
    dialect: str
    stream: bool
    retries: int
    timeouts: Timeouts
    past_proxy: bool = False
    tokens: int = 0
    max_wait: float = LONGEST_WAIT
    secrets: tuple[str, ...] = ()
    sha256: str = ""
    seen: "SeenRequest | None" = None
    sent: SentRequest | None = None

    def __repr__(self) -> str:
        return f"Outgoing({self.request!r} to {self.provider}, {self.model})"


class AcceptedResponse(msgspec.Struct, frozen=True):
    """A 2xx whose body has not been read; the caller closes it. `sent` is the ledger's entry, to be settled."""

    response: ProviderResponse
    sent: SentRequest


@dataclass(frozen=True, slots=True)
class RefusedResponse:
    """An error response as it arrived, so that it can be passed on, and the corresponding fault.

    The body is complete unless it was interrupted, stalled or longer than `LONGEST_ERROR`. Unlike the fault, it may
    repeat a credential.
    """

    status: int
    headers: RawHeaders
    body: bytes = field(repr=False)
    fault: Fault


Answer: TypeAlias = AcceptedResponse | RefusedResponse


class Sender:
    """Sends through one client, and keeps the ledger. `jitter` returns numbers from 0 up to 1. `signers` sign the
    requests of the providers by whose names they are keyed."""

    def __init__(
        self,
        client: RequestClient,
        clock: Clock,
        jitter: Callable[[], float],
        ledger: Ledger,
        signers: Mapping[str, Signer] | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._jitter = jitter
        self._ledger = ledger
        self._signers = signers or {}

    @property
    def http_client(self) -> HttpClient | None:
        """The HTTP client; None if requests are sent over something else."""
        return self._client if isinstance(self._client, HttpClient) else None

    def through(self, client: RequestClient) -> "Sender":
        """A sender that uses another client."""
        return Sender(client, self._clock, self._jitter, self._ledger, self._signers)

    async def dial_socket(self, request: HttpRequest, seconds: float, **options: Any) -> "DialledSocket":
        """Open a provider's socket; `options` are those of `web_socket.dial_socket`. There are no retries."""
        from sightline.transport.web_socket import dial_socket  # on first use: the import takes 40 ms

        if not isinstance(self._client, HttpClient):
            raise TypeError("only the HTTP client can dial a socket")
        return await dial_socket(self._client, request, seconds=seconds, **options)

    async def send(self, outgoing: Outgoing, on_attempt: Callable[[AttemptStarted], None]) -> Answer:
        """Send the request and return the provider's response. If there is none, raises the fault of the last
        attempt."""
        digest = outgoing.sha256 or sha256(outgoing.request.body).hexdigest()
        seen = outgoing.seen or see_request(outgoing.request, outgoing.secrets)
        attempt = AttemptStarted(1, outgoing.provider, digest, "", "", 0.0, outgoing.model, outgoing.dialect, *seen)
        while True:
            on_attempt(attempt)
            outcome = await self._attempt(outgoing, attempt.number)
            if isinstance(outcome, AcceptedResponse):
                return outcome
            fault = outcome.fault if isinstance(outcome, RefusedResponse) else outcome
            wait = None
            if attempt.number <= outgoing.retries:
                wait = next_wait(fault, attempt.number, outgoing.max_wait, self._jitter)
            if wait is None:
                _conclude(fault, attempt.number)
                if isinstance(outcome, RefusedResponse):
                    return outcome
                raise fault
            await self._clock.sleep(wait)
            number, why = attempt.number + 1, _detail(fault)
            attempt = replace(attempt, number=number, reason=fault.code.value, detail=why, waited=wait)

    async def pass_on(
        self,
        outgoing: Outgoing,
        body: RequestBody,
        on_attempt: Callable[[AttemptStarted], None],
        *,
        takes_trailers: bool = False,
        on_interim: OnInterim | None = None,
    ) -> Response:
        """Send a request with this body as it arrives, once, and return the response, whatever it is; the caller closes
        it. Raises a fault if there is none."""
        assert isinstance(self._client, HttpClient), "a socket takes no body that is still coming"
        url = see_request(outgoing.request, outgoing.secrets).url
        on_attempt(
            AttemptStarted(
                1, outgoing.provider, outgoing.sha256, model=outgoing.model, dialect=outgoing.dialect, url=url
            )
        )
        if outgoing.provider in self._signers:
            body = await _read_whole(body)
            outgoing = await self._sign(outgoing, body.data)
        try:
            return await self._client.send_open(
                outgoing.request,
                body,
                outgoing.timeouts,
                past_proxy=outgoing.past_proxy,
                takes_trailers=takes_trailers,
                on_interim=on_interim,
            )
        except Fault as fault:
            redact_fault(fault, _secrets_of(outgoing))
            raise

    async def _attempt(self, outgoing: Outgoing, number: int) -> AcceptedResponse | RefusedResponse | Fault:
        sent = outgoing.sent if number == 1 else None
        if sent is None:
            sent = self._ledger.add_request(outgoing.provider, outgoing.model, outgoing.tokens, self._clock.now())
        try:
            if outgoing.provider in self._signers:
                outgoing = await self._sign(outgoing, outgoing.request.body)
            response = await self._client.send(outgoing.request, outgoing.timeouts, past_proxy=outgoing.past_proxy)
        except Fault as fault:
            if _was_not_sent(fault):
                self._ledger.unsent(sent, self._clock.now())
            elif may_retry(fault):
                self._ledger.settle(sent, 0, self._clock.now())
            redact_fault(fault, _secrets_of(outgoing))
            return fault
        is_accepted = False
        try:
            now = self._clock.now()
            if 200 <= response.status < 300:
                names, values = zip(*response.headers, strict=True) if response.headers else ((), ())
                if may_tell(names):
                    self._ledger.keep_headers(sent, names, values, now)
                is_accepted = True
                return AcceptedResponse(response, sent)
            return await self._refusal(outgoing, response, sent, now)
        finally:
            # A response without an owner would keep its connection, and its place in the pool, forever.
            if not is_accepted:
                await response.close()

    async def _sign(self, outgoing: Outgoing, body: bytes) -> Outgoing:
        """The same with its request signed for this body. A signer that changes the body is refused: what was shown
        would not be what is sent."""
        signed = await self._signers[outgoing.provider].sign(outgoing.request.with_body(body))
        if signed.body != body:
            hint = "Correct the plug-in: a signer adds headers and leaves the body as it is."
            raise Fault(Code.CONFIG, f"what signs requests to {outgoing.provider!r} has changed the body", hint=hint)
        return replace(outgoing, request=signed)

    async def _refusal(
        self, outgoing: Outgoing, response: ProviderResponse, sent: SentRequest, now: float
    ) -> RefusedResponse | Fault:
        headers = lower_case(response.headers)
        self._ledger.observe_headers(outgoing.provider, outgoing.model, headers, now)
        self._ledger.settle(sent, 0, now)
        if response.status < 400:
            return _redirect_fault(response, _secrets_of(outgoing))
        body = await _error_body(response, outgoing.timeouts)
        if response.status > _LAST_STATUS:
            return _nonstandard(outgoing, response.status, headers, body)
        fault = _classify_error(outgoing, response.status, headers, body, now)
        return RefusedResponse(response.status, response.headers, body, fault)


_MOST_SIGNED = 64 << 20
"""The maximum size of an arriving body that has to be signed, since its signature is sent first."""


@dataclass(frozen=True, slots=True)
class _WholeBody:
    """A body that has been read, in the form of one that arrives."""

    data: bytes
    trailers: list[tuple[bytes, bytes]]
    rest: list[bytes]

    @property
    def length(self) -> int:
        return len(self.data)

    async def read(self) -> bytes:
        return self.rest.pop() if self.rest else b""


async def _read_whole(body: RequestBody) -> _WholeBody:
    data = bytearray()
    while piece := await body.read():
        data += piece
        if len(data) > _MOST_SIGNED:
            hint = f"Send at most {_MOST_SIGNED >> 20} MB at once."
            raise Fault(Code.REQUEST_TOO_LARGE, "the body is too long to be signed", hint=hint, status=413)
    whole = bytes(data)
    return _WholeBody(whole, body.trailers, [whole] if whole else [])


def _was_not_sent(fault: Fault) -> bool:
    """Whether the provider cannot have received the request: it was refused here, or there was no connection."""
    details = fault.details
    return fault.code in _REFUSED_HERE or (isinstance(details, dict) and details.get("kind") in _NOT_CONNECTED)


async def _error_body(response: ProviderResponse, timeouts: Timeouts) -> bytes:
    """As much of the body as arrives in time. If that is not all, the status is enough."""
    body = bytearray()
    with contextlib.suppress(Fault, TimeoutError):
        async with asyncio.timeout(timeouts.idle or None):
            async for data in response:
                body += data
                if len(body) > LONGEST_ERROR:
                    break
    return bytes(body[:LONGEST_ERROR])


def _classify_error(outgoing: Outgoing, status: int, headers: dict[str, str], body: bytes, now: float) -> Fault:
    headers.setdefault("date", formatdate(now, usegmt=True))  # a date in `retry-after` is relative to this
    fault = dialect(outgoing.dialect).read_error(status, _read_error_body(body, headers), headers)
    if fault.code is Code.RATE_LIMITED and fault.retry_after is None:
        fault.retry_after = reset_wait(allowances(headers, now), outgoing.tokens)
    redact_fault(fault, _secrets_of(outgoing))
    return fault


def _read_error_body(body: bytes, headers: Mapping[str, str]) -> Json:
    if headers.get("content-encoding", "identity").lower() != "identity":
        body = _inflate(body)
    try:
        return jsontext.decode(body)
    except Fault:
        return body.decode("utf-8", "replace")[:_LONGEST_TEXT].strip()


def _inflate(body: bytes) -> bytes:
    """The decompressed gzip or deflate data; empty if it cannot be read, so that no noise is taken for a provider's
    message."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LONGEST_ERROR)
    except zlib.error:
        return b""


def _redirect_fault(response: ProviderResponse, secrets: tuple[str, ...]) -> Fault:
    # Masked before it is shortened: a secret that is cut in two would not be found.
    place = redact_text(response.header("location"), secrets).partition("?")[0].partition("#")[0]
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the provider redirects with status {response.status}, and redirects are not followed",
        hint=f"Set base_url to where the API is{f': it points to {_without_user(place)}' if place else ''}.",
        status=response.status,
    )


def _nonstandard(outgoing: Outgoing, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """The fault of a status above 599, which HTTP does not have: it asks clients to treat it as a server error."""
    # Masked before it is shortened: a secret that is cut in two would not be found.
    words = " ".join(redact_text(str(_read_error_body(body, headers)), _secrets_of(outgoing)).split())[:_LONGEST_DETAIL]
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the provider answers with status {status}, which HTTP does not have{f': {words}' if words else ''}",
        hint="Something other than the provider's API answered, a proxy or a firewall; check the base URL.",
    )


class SeenRequest(NamedTuple):
    """The recorded form of a request's head. `key` distinguishes its credential from others; empty if it has none."""

    url: str
    headers: tuple[tuple[str, str], ...]
    key: str


def see_request(request: HttpRequest, secrets: tuple[str, ...]) -> SeenRequest:
    """The recorded form of a request's head."""
    return _see_head(request.url, request.headers, secrets)


@lru_cache(maxsize=512)
def _see_head(url: str, headers: tuple[tuple[str, str], ...], secrets: tuple[str, ...]) -> SeenRequest:
    """Cached: a client sends the same head again and again."""
    own = _credentials(url, headers)
    key = sha256(own[0].encode()).hexdigest()[:8] if own else ""
    redaction = Redaction((*secrets, *(without_scheme(value) for name, value in headers if is_secret_header(name))))
    return SeenRequest(_address_for_record(url, secrets), redaction.headers(headers), key)


def _address_for_record(url: str, secrets: tuple[str, ...]) -> str:
    place, mark, query = url.partition("?")
    pieces = [
        f"{name}={MASK}" if is_secret_parameter(name) and value else piece
        for piece in query.split("&")
        for name, _, value in [piece.partition("=")]
    ]
    return redact_text(f"{_without_user(place)}{mark}{'&'.join(pieces)}", secrets)


def _without_user(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}" if mark else url


def _conclude(fault: Fault, attempts: int) -> None:
    if attempts > 1:
        fault.add_note(f"note: after {attempts} attempts")
    if fault.is_retryable and fault.retry_after:
        when = f"The provider can be asked again in {format_duration(fault.retry_after)}."
        fault.hint = f"{fault.hint} {when}" if fault.hint else when


def _detail(fault: Fault) -> str:
    return f"{f'{fault.status}: ' if fault.status else ''}{fault.message}"[:_LONGEST_DETAIL]


def redact_fault(fault: Fault, secrets: tuple[str, ...]) -> None:
    """Mask these values in the texts of the fault."""
    fault.message = redact_text(fault.message, secrets)
    fault.args = (fault.message,)
    fault.hint = redact_text(fault.hint, secrets)
    if isinstance(fault.details, dict | list | str):
        fault.details = redact_json(fault.details, secrets)


def _secrets_of(outgoing: Outgoing) -> tuple[str, ...]:
    """The given secrets, and the request's own credentials."""
    return (*outgoing.secrets, *_credentials(outgoing.request.url, outgoing.request.headers))


def _credentials(url: str, headers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Every credential of a request, without its scheme (`Bearer`)."""
    named = [value.rpartition(" ")[2] for name, value in headers if is_secret_header(name)]
    return (*named, *(value for name, value in parse_qsl(urlsplit(url).query) if is_secret_parameter(name)))
