"""The history of a request, as facts that are only ever appended. Everything shown of an exchange is a fold over its
facts."""

from typing import Literal, TypeAlias

import msgspec

from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.model.report import Addition, Loss

RAW_HTTP = "raw-http"
"""Used in place of a dialect for a request that was passed through unread."""

State: TypeAlias = Literal["received", "held", "sending", "finished", "failed", "dropped", "cancelled"]


class Received(msgspec.Struct, frozen=True, tag_field="kind", tag="received"):
    """A client, or one of our own callers, sent a request. `sha256` is the hash of the body after content decoding.

    `session` labels the traffic, `client` is the program as it calls itself, and `origin` is the exchange that this one
    replays. `headers` are the client's, without credentials. `conversation` is the chat or run that a request of our
    own belongs to. `transport` is how it arrived: `http`, `tls` if the client addressed its provider, or a frame of a
    `websocket`. `method` is set for raw requests, whose body may still be arriving, in which case there is no `sha256`.
    """

    dialect: str
    model: str
    sha256: str
    session: str = ""
    client: str = ""
    path: str = ""
    is_stream: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    origin: str = ""
    conversation: str = ""
    transport: str = "http"
    method: str = ""


class Translated(msgspec.Struct, frozen=True, tag_field="kind", tag="translated"):
    """The body was translated into another dialect. `losses` is how many things were not carried over, and `report`
    lists them."""

    dialect: str
    sha256: str
    losses: int
    report: tuple[Loss, ...] = ()
    additions: tuple[Addition, ...] = ()


class Held(msgspec.Struct, frozen=True, tag_field="kind", tag="held"):
    """The exchange waits for a person: the whole request, or the tool calls of its reply."""

    phase: Literal["request", "tool_calls"] = "request"


class Edited(msgspec.Struct, frozen=True, tag_field="kind", tag="edited"):
    """A person changed the body."""

    operation: str
    before: str
    after: str


class Released(msgspec.Struct, frozen=True, tag_field="kind", tag="released"):
    """A person released the request after seeing the body with this hash."""

    sha256: str


class Dropped(msgspec.Struct, frozen=True, tag_field="kind", tag="dropped"):
    """A person, or a rule, refused the request; nothing was sent."""

    reason: str = ""


class Answered(msgspec.Struct, frozen=True, tag_field="kind", tag="answered"):
    """A person wrote the reply, or changed the tool calls of the one that arrived. `sha256` is the hash of the folded
    reply that the client gets, as JSON."""

    sha256: str


class Budgeted(msgspec.Struct, frozen=True, tag_field="kind", tag="budgeted"):
    """How a chat planned this request, or what it made of the outcome: one step of a send, in the chat's own terms. May
    follow the end of the exchange."""

    telemetry: dict[str, Json]


class ReplyStored(msgspec.Struct, frozen=True, tag_field="kind", tag="stored"):
    """The client can retrieve the reply by its id. A translation made the reply, so no provider keeps it.

    `owner` is a fingerprint of the credential that the client must present to retrieve it. `created` is the time that
    the reply gives as its own. A later fact of this kind replaces an earlier one, with the `metadata` that the client
    has set since, or with `is_deleted`. May follow the end of the exchange.
    """

    owner: str
    created: int
    metadata: dict[str, Json] | None = None
    is_deleted: bool = False


class AttemptStarted(msgspec.Struct, frozen=True, tag_field="kind", tag="attempt"):
    """The body was written to a provider; every attempt has the same bytes.

    For a retry, `reason` is the code of the previous failure, `detail` its message, and `waited` the seconds in
    between. `url` is the address, with credentials in its query masked; `headers` are those that Sightline sent, with
    each credential masked. `key` is the beginning of the hash of the first credential, which only tells keys apart.
    """

    number: int
    provider: str
    sha256: str
    reason: str = ""
    detail: str = ""
    waited: float = 0.0
    model: str = ""
    dialect: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key: str = ""


class FrameArrived(msgspec.Struct, frozen=True, tag_field="kind", tag="frame"):
    """A piece of the reply, as it arrived, and how many seconds after the start of the attempt."""

    data: bytes
    after: float = 0.0


class BodyPassed(msgspec.Struct, frozen=True, tag_field="kind", tag="body"):
    """A body of a raw exchange has passed through: the request's or the reply's.

    `sha256` and `size` describe the whole body after content decoding; if `coding` is set, the body was not decoded and
    they describe the encoded bytes. The first `kept` bytes are recorded, for a request under `kept_sha256`. Without
    `is_whole` the body was interrupted.
    """

    of: Literal["request", "reply"]
    sha256: str
    size: int
    media_type: str = ""
    coding: str = ""
    kept: int = 0
    kept_sha256: str = ""
    is_whole: bool = True


class ExchangeFinished(msgspec.Struct, frozen=True, tag_field="kind", tag="finished"):
    """The reply is complete. `status` and `headers` are the provider's, `sha256` is the hash of its raw body, `tools`
    are the names of the tools that it calls, each once; `first_byte` and `elapsed` are seconds since the request was
    received. `warning` describes a problem that did not make the exchange fail."""

    finish: str
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    sha256: str = ""
    model: str = ""
    usage: Usage | None = None
    tools: tuple[str, ...] = ()
    first_byte: float = 0.0
    elapsed: float = 0.0
    warning: str = ""


class ExchangeFailed(msgspec.Struct, frozen=True, tag_field="kind", tag="failed"):
    """The exchange ended in a fault. The other fields are those of `ExchangeFinished`, as far as an answer had
    arrived."""

    code: str
    message: str
    hint: str = ""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    sha256: str = ""
    usage: Usage | None = None
    first_byte: float = 0.0
    elapsed: float = 0.0


class ExchangeCancelled(msgspec.Struct, frozen=True, tag_field="kind", tag="cancelled"):
    """The exchange was cancelled for this reason. `usage` is what had been used by then, if an answer had begun."""

    reason: CancelReason = "client_gone"
    usage: Usage | None = None


Fact: TypeAlias = (
    Received
    | Translated
    | Held
    | Edited
    | Released
    | Dropped
    | Answered
    | Budgeted
    | ReplyStored
    | AttemptStarted
    | BodyPassed
    | FrameArrived
    | ExchangeFinished
    | ExchangeFailed
    | ExchangeCancelled
)

ENDS = (ExchangeFinished, ExchangeFailed, ExchangeCancelled, Dropped)
"""The facts that end an exchange."""
