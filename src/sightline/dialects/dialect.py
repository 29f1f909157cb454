"""What a dialect is: a small record of pure functions in both directions, because we are client and server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import ReasoningForm
from sightline.dialects.tool_names import ANY_NAME, NameRule
from sightline.dialects.versions import ApiVersions
from sightline.errors import Fault
from sightline.model.events import StreamEvent
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Reply
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.sse import Frame

SystemPolicy = Literal["in_place", "merge_leading", "merge_all"]


@dataclass(frozen=True, slots=True)
class Target:
    """How a request is to be written, beyond what it says: settings of the provider that will read it.

    `thinking_field` is the message field in which a chat provider takes reasoning back (`reasoning_content`), empty
    where it takes none. `max_tokens` is used where the dialect demands a limit and the request sets none.
    `max_tokens_field` is the chat field for that limit; without `developer_role` a chat provider takes developer
    messages as system ones; without `stream_usage` it cannot be asked for the usage of a stream; with `call_seals` it
    takes a tool call's seal back, which others refuse as an unknown field. `facts` are those of the model that will
    read it: what it refuses is left out of a translation. None: nobody has looked. With `states_tools` a Responses
    request says that it has no tools.
    """

    system: SystemPolicy = "in_place"
    thinking_field: str = ""
    max_tokens: int = 8192
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    developer_role: bool = True
    stream_usage: bool = True
    call_seals: bool = False
    facts: Facts | None = None
    states_tools: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """What the reader of a reply expects: identity where the provider gave none, and usage only if it asked.

    `as_array` says that a stream is to be one JSON array, in the dialect that has that form.
    """

    include_usage: bool = True
    id: str = ""
    model: str = ""
    created: int = 0
    input_tokens: int = 0
    as_array: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a request that the API rejects (`error`) or handles badly (`warning`), and where it stands.

    `rule` names the rule that is broken where an edit can mend it.
    """

    pointer: str
    message: str
    severity: Literal["error", "warning"] = "error"
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """What a dialect says of those of its fields that are not modelled.

    The loss of `bookkeeping` changes nothing that anybody reads; with `echoes` a reply repeats its request;
    `containers` hold modelled fields too, so that only their unknown members are lost; `stateful` fields stand for
    messages which the provider keeps.
    """

    bookkeeping: frozenset[str] = frozenset()
    echoes: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    stateful: frozenset[str] = frozenset()


class StreamReading(Protocol):
    """Frames in, events out; the events end with exactly one `Ended`."""

    @property
    def is_complete(self) -> bool:
        """Whether the bytes could end here."""
        ...

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """Take the next frame."""
        ...

    def close(self) -> list[StreamEvent]:
        """The bytes have ended."""
        ...


class StreamWriting(Protocol):
    """Events in, bytes out; after `Ended` the bytes hold exactly one legal terminal."""

    def feed(self, event: StreamEvent) -> bytes:
        """Take the next event."""
        ...


@dataclass(frozen=True, slots=True)
class Counting:
    """How a provider is asked for the tokens of a request: where, and which of the body's fields it takes (none: all).

    `wrapper` is the field under which the whole request stands, where it does; `result` that of the count.
    """

    path: str
    fields: frozenset[str] = frozenset()
    wrapper: str = ""
    result: str = "input_tokens"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a dialect is spoken: what stands behind a provider's base URL, and how a caller shows who it is.

    `{model}` in a path is the model's name. `stream_path` is where streams are asked for, if elsewhere. `version` is
    added to a base URL that does not end in one. `credential` is the header of the key and what stands before the key.
    """

    path: str
    stream_path: str = ""
    version: str = ""
    credential: tuple[str, str] = ("authorization", "Bearer ")
    headers: tuple[tuple[str, str], ...] = ()
    counting: Counting | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider's API as values. `model_in_path` says that the URL, not the body, names the model.

    `endpoint` is None for a dialect that nobody serves. With `ends_with_bytes` nothing but the end of its bytes ends a
    stream. With `carries_parts` it takes parts of other dialects whole, with `keeps_kinds` it tells calls of built-in
    tools from those of functions. `read_plain` reads a whole reply of the most frequent kind at once, and leaves any
    other to `read_reply`. `vendor_problems` are what the vendor's own server refuses in a document, while other servers
    of the dialect may take it. `reasoning` is how the dialect says how much to reason; `versions` are those of the API,
    where a header names one. `error_event` is the name without which clients do not see a stream's frame
    as an error.
    """

    name: str
    read_request: Callable[[Json], Request]
    write_request: Callable[[Request, Target, Report], Json]
    read_reply: Callable[[Json], list[StreamEvent]]
    write_reply: Callable[[Reply, Client, Report], JsonObject]
    stream_reader: Callable[[], StreamReading]
    stream_writer: Callable[[Client, Report], StreamWriting]
    read_error: Callable[[int, Json, Mapping[str, str]], Fault]
    write_error: Callable[[Fault], tuple[int, JsonObject]]
    problems: Callable[[Request], list[Problem]]
    model_in_path: bool = False
    ends_with_bytes: bool = False
    carries_parts: bool = False
    keeps_kinds: bool = False
    endpoint: Endpoint | None = None
    names: NameRule = ANY_NAME
    unread: Unread = field(default_factory=Unread)
    read_plain: Callable[[Json, str], Reply | None] | None = None
    vendor_problems: Callable[[Json], list[Problem]] = lambda _: []
    reasoning: ReasoningForm = "effort"
    versions: ApiVersions | None = None
    error_event: str = ""
