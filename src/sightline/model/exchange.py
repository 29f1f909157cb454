"""One request's whole life as facts that are only ever added; everything shown of it is a fold over them."""

from typing import Literal, TypeAlias, assert_never

import msgspec

from sightline.errors import CancelReason
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.model.report import Addition, Loss

RAW_HTTP = "raw-http"
"""The name used instead of a dialect where a request was passed on as it came and nothing of it is understood."""

State: TypeAlias = Literal["received", "held", "sending", "finished", "failed", "dropped", "cancelled"]


class Received(msgspec.Struct, frozen=True, tag_field="kind", tag="received"):
    """A client, or one of our own callers, asked. `sha256` is that of the body after content decoding.

    `session` labels the traffic, `client` is the program as it calls itself, `origin` the exchange that this one
    replays. `headers` are the client's without credentials. `conversation` is the chat or the run that it is part of,
    where one of our own callers asked. `transport` is how it came: `http`, `tls` where the client meant its provider,
    or a frame of a `websocket`. `method` is that of a raw request; the body of one may still come, and then there is no
    `sha256`.
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
    """The body was put into another dialect; `losses` is how much of it was not carried, `report` what."""

    dialect: str
    sha256: str
    losses: int
    report: tuple[Loss, ...] = ()
    additions: tuple[Addition, ...] = ()


class Held(msgspec.Struct, frozen=True, tag_field="kind", tag="held"):
    """It waits for a person: the whole request, or the tool calls of its reply."""

    phase: Literal["request", "tool_calls"] = "request"


class Edited(msgspec.Struct, frozen=True, tag_field="kind", tag="edited"):
    """A person changed the body."""

    operation: str
    before: str
    after: str


class Released(msgspec.Struct, frozen=True, tag_field="kind", tag="released"):
    """A person let it go, having seen the body with this hash."""

    sha256: str


class Dropped(msgspec.Struct, frozen=True, tag_field="kind", tag="dropped"):
    """A person, or a rule, refused it; nothing was sent."""

    reason: str = ""


class Answered(msgspec.Struct, frozen=True, tag_field="kind", tag="answered"):
    """A person wrote the reply, or changed the tool calls of the one that came. `sha256` is that of the reply that the
    client gets, folded, as JSON."""

    sha256: str


class Budgeted(msgspec.Struct, frozen=True, tag_field="kind", tag="budgeted"):
    """How a chat has planned this request, or what it made of the outcome: one moment of one send, under the names that
    the chat has for it. It may come after the end."""

    telemetry: dict[str, Json]


class ReplyStored(msgspec.Struct, frozen=True, tag_field="kind", tag="stored"):
    """The client can ask for the reply again by its id: a translation has made it, so that no provider keeps it.

    `owner` is a fingerprint of the credential that the client must show for that. `created` is the time that the reply
    gives as its own. A later fact of this kind takes the place of the one before: with the `metadata` that the client
    has set since, or with `is_deleted`. It may come after the end.
    """

    owner: str
    created: int
    metadata: dict[str, Json] | None = None
    is_deleted: bool = False


class AttemptStarted(msgspec.Struct, frozen=True, tag_field="kind", tag="attempt"):
    """The body was written to a provider; every attempt has the same bytes.

    Of an attempt after another, `reason` is the code of the failure before it, `detail` what was said of that, and
    `waited` the seconds in between. `url` is where it went, with a mask in place of a credential in its query;
    `headers` are those that Sightline sent, with a mask in place of each credential. `key` is the beginning of the hash
    of the first of these, which tells one key from another and nothing else.
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
    """A piece of the reply, as it came, and how many seconds after the attempt had started."""

    data: bytes
    after: float = 0.0


class BodyPassed(msgspec.Struct, frozen=True, tag_field="kind", tag="body"):
    """A body of a raw exchange has passed: that of the request, or that of the reply.

    `sha256` and `size` are of the whole body after content decoding; where `coding` is named, it was not decoded and
    they are of the coded bytes. The first `kept` bytes are on record, of a request under `kept_sha256`. With `is_whole`
    unset it broke off.
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
    """The reply is whole. `status` and `headers` are the provider's, `sha256` is that of its raw body, `tools` are the
    tools that it calls; `first_byte` and `elapsed` are seconds since the request was received. `warning` is what was
    wrong with it all the same."""

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
    """It ended in a fault; the rest as in `ExchangeFinished`, as far as an answer had come."""

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
    """It was given up, for this reason. `usage` is what had been used by then, where an answer had begun."""

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
"""The facts with which an exchange is over."""


class ExchangeHistory(msgspec.Struct, frozen=True):
    """A request and all that has happened to it."""

    id: str
    facts: tuple[Fact, ...] = ()

    @property
    def state(self) -> State:
        """Where it stands."""
        state: State = "received"
        for fact in self.facts:
            state = _step(state, fact)
        return state


def _step(state: State, fact: Fact) -> State:
    match fact:
        case Held():
            return "held"
        case Released() | Answered() | AttemptStarted():
            return "sending"
        case Dropped():
            return "dropped"
        case ExchangeFinished():
            return "finished"
        case ExchangeFailed():
            return "failed"
        case ExchangeCancelled():
            return "cancelled"
        case Received() | Translated() | Edited() | Budgeted() | ReplyStored() | BodyPassed() | FrameArrived():
            return state
        case unreachable:
            assert_never(unreachable)
