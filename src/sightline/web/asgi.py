"""The part of ASGI that is used here: one request and its response."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NotRequired, Protocol, TypeAlias, TypedDict

Headers: TypeAlias = list[tuple[bytes, bytes]]


class Upstream(NamedTuple):
    """The host that a client itself has connected to, below TLS. `origin` is its address, `provider` whose it is (the
    host's own name where none is known), `bases` the paths of that provider's base URLs; `session` labels the
    traffic."""

    origin: str
    provider: str
    bases: tuple[str, ...] = ()
    session: str = ""


class AsgiScope(TypedDict):
    """The head of a request. `raw_path` is the path as sent; header names are in lower case. `upstream` is there where
    the client did not mean this server."""

    type: str
    method: str
    raw_path: bytes
    query_string: bytes
    headers: Headers
    upstream: NotRequired[Upstream]


class RequestEvent(TypedDict):
    """A piece of the request's body, or the end of the connection."""

    type: Literal["http.request", "http.disconnect"]
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


class ResponseStart(TypedDict):
    """The head of a response."""

    type: Literal["http.response.start"]
    status: int
    headers: Headers


class ResponseChunk(TypedDict):
    """A piece of a response's body."""

    type: Literal["http.response.body"]
    body: bytes
    more_body: bool


Receive: TypeAlias = Callable[[], Awaitable[RequestEvent]]


class Send(Protocol):
    """Sends a response; it returns once the connection can take more."""

    def __call__(self, message: ResponseStart | ResponseChunk, /) -> Awaitable[None]:
        """Send the next piece."""
        ...


class ClientWriter(Send, Protocol):
    """Sends a response, and writes chunks of its body without waiting for the client, who may be behind: then it
    `is_paused`, and the sender waits until it is not."""

    @property
    def is_paused(self) -> bool:
        """Whether the client takes no more for now."""
        ...

    def respond(self, status: int, headers: Headers, body: bytes, /) -> None:
        """Write a whole response; its length is among the headers."""
        ...

    def write(self, data: bytes, /) -> None:
        """Write a chunk of the body; nothing where it is empty."""
        ...

    async def until_writable(self) -> None:
        """Wait until the client takes more."""
        ...


def response_start(status: int, headers: Headers) -> ResponseStart:
    """The head of a response."""
    return {"type": "http.response.start", "status": status, "headers": headers}


def response_body(body: bytes, *, more: bool) -> ResponseChunk:
    """A piece of a response's body."""
    return {"type": "http.response.body", "body": body, "more_body": more}


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A whole response."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)

    async def to(self, send: Send) -> None:
        """Send it."""
        size = (b"content-length", str(len(self.body)).encode())
        await send(response_start(self.status, [*self.headers, size]))
        await send(response_body(self.body, more=False))


def header(headers: Headers, name: bytes) -> str:
    """The first header of this name, given in lower case; empty if there is none."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")
