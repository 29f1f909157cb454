"""The interface between a web server and an application, as far as it is used here: one request, and its answer."""

from asyncio import Task
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict

Headers: TypeAlias = list[tuple[bytes, bytes]]

RUNNING = "sightline.running"
"""The extension in which our own server hands over the tasks that end when their connection does."""


class AsgiScope(TypedDict):
    """A request's head. `raw_path` is the path as it was written; header names are in small letters."""

    type: str
    method: str
    raw_path: bytes
    query_string: bytes
    headers: Headers
    extensions: NotRequired[dict[str, set[Task[object]]]]


class Heard(TypedDict):
    """A piece of the request's body, or the news that the client has gone."""

    type: Literal["http.request", "http.disconnect"]
    body: NotRequired[bytes]
    more_body: NotRequired[bool]


class ResponseStart(TypedDict):
    """The head of an answer."""

    type: Literal["http.response.start"]
    status: int
    headers: Headers


class ResponseBody(TypedDict):
    """A piece of an answer's body."""

    type: Literal["http.response.body"]
    body: bytes
    more_body: bool


Receive: TypeAlias = Callable[[], Awaitable[Heard]]


class Send(Protocol):
    """Where an answer goes; it returns once the client's connection can take more."""

    def __call__(self, message: ResponseStart | ResponseBody, /) -> Awaitable[None]:
        """Take the next piece."""
        ...


def response_start(status: int, headers: Headers) -> ResponseStart:
    """The head of an answer."""
    return {"type": "http.response.start", "status": status, "headers": headers}


def response_body(body: bytes, *, more: bool) -> ResponseBody:
    """A piece of its body."""
    return {"type": "http.response.body", "body": body, "more_body": more}


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A whole answer."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=list)

    async def to(self, send: Send) -> None:
        """Say it."""
        size = (b"content-length", str(len(self.body)).encode())
        await send(response_start(self.status, [*self.headers, size]))
        await send(response_body(self.body, more=False))


def header(headers: Headers, name: bytes) -> str:
    """The first header of this name, which is in small letters; nothing where there is none."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")
