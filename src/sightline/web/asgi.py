"""The part of ASGI that is used here: one request and its response, and extensions of it."""

from asyncio import Transport
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NotRequired, Protocol, TypeAlias, TypedDict

Headers: TypeAlias = list[tuple[bytes, bytes]]


class Upstream(NamedTuple):
    """The host that the client itself connected to, below TLS. `origin` is its address, `provider` its provider (or the
    host's own name if none is known), `bases` the paths of that provider's base URLs; `session` labels the traffic."""

    origin: str
    provider: str
    bases: tuple[str, ...] = ()
    session: str = ""


class AsgiScope(TypedDict):
    """The head of a request. `raw_path` is the path as sent; header names are in lower case. `head` is the same object
    for each request with this head, regardless of the length of its body, so that what is derived from it can be
    cached. `upstream` is set if the client did not address this server."""

    type: str
    method: str
    raw_path: bytes
    query_string: bytes
    headers: Headers
    head: NotRequired[object]
    upstream: NotRequired[Upstream]


class RequestEvent(TypedDict):
    """A piece of the request's body, the last one with its trailers, or the end of the connection."""

    type: Literal["http.request", "http.disconnect"]
    body: NotRequired[bytes]
    more_body: NotRequired[bool]
    trailers: NotRequired[Headers]


class ResponseStart(TypedDict):
    """The head of a response."""

    type: Literal["http.response.start"]
    status: int
    headers: Headers


class ResponseChunk(TypedDict):
    """A piece of a response's body. The last one of a body without a length may have trailers."""

    type: Literal["http.response.body"]
    body: bytes
    more_body: bool
    trailers: NotRequired[Headers]


Receive: TypeAlias = Callable[[], Awaitable[RequestEvent]]


class Send(Protocol):
    """Sends a response. It returns once the connection can take more."""

    def __call__(self, message: ResponseStart | ResponseChunk, /) -> Awaitable[None]: ...


class Pausable(Protocol):
    """Tells whether a client cannot take more at the moment, by an attribute that is cheap to read."""

    is_writing_paused: bool


class ChunkWriter(Protocol):
    """Writes chunks of a body without waiting for the client. If the client falls behind, `is_paused` is True, and the
    sender waits until it is not."""

    @property
    def is_paused(self) -> bool:
        """Whether the client cannot take more at the moment."""
        ...

    def write(self, data: bytes, /) -> None:
        """Write a chunk of the body; nothing if it is empty."""
        ...

    def chunk_writer(self) -> tuple[Callable[[bytes], None], "Pausable"] | None:
        """A function that writes a chunk with its size, as in HTTP/1.1, once the head has been sent, and the object
        that is paused while the client cannot take more. None if bodies have no such chunks."""
        ...

    async def until_writable(self) -> None: ...


class ClientWriter(Send, ChunkWriter, Protocol):
    """Sends a response, in pieces or whole, and has the body of its request."""

    def take_body(self) -> bytes | None:
        """The body of the request, if all of it has arrived and none was taken; otherwise None, and it has to be
        received."""
        ...

    def write_interim(self, status: int, headers: Headers, /) -> None:
        """Write a 1xx response before the response itself."""
        ...

    def respond(self, status: int, headers: Headers, body: bytes, /) -> None:
        """Write a whole response. The headers contain its length."""
        ...


class DirectClient(Protocol):
    """A client whose request is answered without a task."""

    def respond_directly(self, data: bytes, /) -> None:
        """Write a whole response with its head: the request is answered."""
        ...

    def continue_in_task(self, serve: Callable[[ClientWriter], Awaitable[None]], /) -> None:
        """Let the connection's task answer the request with this function."""
        ...


class DirectRequest(Protocol):
    """A request that is answered without a task."""

    def client_gone(self) -> None: ...


BeginDirectly: TypeAlias = Callable[[object, bytes, DirectClient], DirectRequest | None]
"""Answers a request with a known head and this body without a task. None, with nothing done, if that is not
possible."""


class Upgradable(Protocol):
    """The response to a request that asks for another protocol."""

    @property
    def is_paused(self) -> bool:
        """Whether the client cannot take more at the moment."""
        ...

    async def until_writable(self) -> None: ...

    def upgrade(self, headers: Headers, receive: "UpgradeReceiver", /) -> Transport:
        """Answer with 101 and these headers. From then on, bytes from the client are passed to `receive`, and what is
        written to the transport goes to the client. The end of the request closes it."""
        ...


class UpgradeReceiver(Protocol):
    """The receiver of the other protocol."""

    def feed(self, data: bytes, /) -> None:
        """Bytes have arrived from the client."""
        ...

    def shut_down(self) -> None:
        """The server is shutting down: end as soon as possible."""
        ...

    def client_gone(self) -> None:
        """The connection has ended. The task that serves it is cancelled after this."""
        ...

    def writable_again(self) -> None:
        """The client, which was behind, can take more."""
        ...


def response_start(status: int, headers: Headers) -> ResponseStart:
    return {"type": "http.response.start", "status": status, "headers": headers}


def response_body(body: bytes, *, more: bool) -> ResponseChunk:
    return {"type": "http.response.body", "body": body, "more_body": more}


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A whole response."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)

    async def to(self, send: Send) -> None:
        size = (b"content-length", str(len(self.body)).encode())
        await send(response_start(self.status, [*self.headers, size]))
        await send(response_body(self.body, more=False))


def header(headers: Headers, name: bytes) -> str:
    """The first header of this name, given in lower case; empty if there is none."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")
