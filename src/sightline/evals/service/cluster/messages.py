"""What goes over the line between a host and home, and its form there."""

from collections.abc import Iterable, Sequence
from typing import Self, TypeAlias, TypeVar

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts
from sightline.editing.masks import Mask
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import Key
from sightline.model.usage import Usage
from sightline.settings import Settings
from sightline.store.entries import Entry, FactEntry
from sightline.store.store import Line, Log
from sightline.tokens.estimate import Estimate
from sightline.wire.jsontext import MISFIT, decode, encode


class HostFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault, as far as another process needs it."""

    code: Code
    message: str
    hint: str = ""
    status: int | None = None

    @classmethod
    def of(cls, fault: Fault) -> Self:
        """This fault."""
        return cls(fault.code, fault.message, fault.hint, fault.status)

    def again(self) -> Fault:
        """The same fault."""
        return Fault(self.code, self.message, hint=self.hint, status=self.status)


class Introduction(msgspec.Struct, frozen=True):
    """Who a host is: both must be the same programs, or they do not understand each other."""

    sightline: str
    python: str
    process: str = ""


# --- to a host ---


class Begin(msgspec.Struct, frozen=True, omit_defaults=True, tag="begin", kw_only=True):
    """All that a host needs besides files. `began` is the fact of the run, `process` the driver's name, `config` where
    the configuration file would lie below the folder of the suites. `variables` hold keys; `masks` are those that are
    active at home when the run begins."""

    run: str
    began: bytes
    catalog: Catalog
    settings: Settings
    targets: tuple[str, ...]
    process: str = ""
    config: str = ""
    calibration: bytes = b""
    variables: dict[str, str] = {}
    masks: tuple[Mask, ...] = ()

    def __repr__(self) -> str:
        return f"Begin({self.run!r})"


class Keys(msgspec.Struct, frozen=True, tag="keys"):
    """The variables of what begins next, by themselves: a small message is nowhere kept on its way, and one with a
    whole suite in it may be."""

    variables: dict[str, str]

    def __repr__(self) -> str:
        return "Keys()"


class RunCase(msgspec.Struct, frozen=True, tag="run"):
    """Run this case; `n` is how it is called from here on."""

    n: int
    key: Key


class CutOff(msgspec.Struct, frozen=True, tag="cut"):
    """Nobody waits for this case any more."""

    n: int


class HomeAnswer(msgspec.Struct, frozen=True, omit_defaults=True, tag="answer"):
    """What a host asked for, or why there is none."""

    n: int
    value: msgspec.Raw = msgspec.Raw(b"null")
    fault: HostFault | None = None


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """End everything."""


ToHost: TypeAlias = Keys | Begin | RunCase | CutOff | HomeAnswer | Leave


# --- questions of a host ---


class Admit(msgspec.Struct, frozen=True, omit_defaults=True, tag="admit"):
    """When may a request of this size go? The answer is that it may."""

    provider: str
    model: str
    tokens: int
    facts: Facts


class HowLong(msgspec.Struct, frozen=True, omit_defaults=True, tag="how_long"):
    """How long must a request of this size wait?"""

    provider: str
    model: str
    tokens: int
    facts: Facts


class Find(msgspec.Struct, frozen=True, tag="find"):
    """What is on record of the exchange that answered this before?"""

    target: str
    key: str


class Append(msgspec.Struct, frozen=True, tag="append"):
    """Add lines to a log."""

    log: str
    after: int
    data: tuple[bytes, ...]
    at: float


class ReadLines(msgspec.Struct, frozen=True, omit_defaults=True, tag="lines"):
    """The lines of a log."""

    log: str
    after: int = 0


class ListLogs(msgspec.Struct, frozen=True, omit_defaults=True, tag="logs"):
    """The logs whose names begin so."""

    prefix: str = ""


Question: TypeAlias = Admit | HowLong | Find | Append | ReadLines | ListLogs


class Waiting(msgspec.Struct, frozen=True):
    """The answer to `HowLong`: never endless, for a number must be told."""

    seconds: float
    reason: str = ""
    limit: str = ""
    allowed: float | None = None


class FindAnswer(msgspec.Struct, frozen=True):
    """The answer to `Find`; no exchange where there is none."""

    exchange: str = ""
    facts: tuple[FactEntry, ...] = ()


Lines: TypeAlias = tuple[Line, ...]
Logs: TypeAlias = tuple[Log, ...]


# --- to home ---


class HostReady(msgspec.Struct, frozen=True, omit_defaults=True, tag="ready"):
    """A host can run cases, or why it cannot."""

    fault: HostFault | None = None


class CaseEnded(msgspec.Struct, frozen=True, omit_defaults=True, tag="ended"):
    """A case has a result, which is told as the fact of a run; `broken` is why it has none, which is a mistake of
    ours."""

    n: int
    done: bytes = b""
    broken: str = ""


class RecordEntries(msgspec.Struct, frozen=True, tag="recorded"):
    """These belong on record."""

    entries: tuple[Entry, ...]


class CostSpent(msgspec.Struct, frozen=True, tag="spent"):
    """So many dollars are gone; None is not known."""

    cost: float | None


class RequestReleased(msgspec.Struct, frozen=True, tag="released"):
    """The request that question `n` was about is on its way, or never will be."""

    n: int


class RequestCounted(msgspec.Struct, frozen=True, tag="counted"):
    """A request went out."""

    n: int
    provider: str
    model: str
    tokens: int


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """It took so many tokens."""

    n: int
    tokens: int


class Uncounted(msgspec.Struct, frozen=True, tag="uncounted"):
    """It never left."""

    n: int


class Observed(msgspec.Struct, frozen=True, tag="observed"):
    """What headers of an answer say about limits."""

    provider: str
    model: str
    headers: dict[str, str]


class Learned(msgspec.Struct, frozen=True, tag="learned"):
    """The provider has counted what was estimated."""

    provider: str
    model: str
    raw: Estimate
    usage: Usage
    tools: bool
    media: bool = False
    window: int | None = None


class Keep(msgspec.Struct, frozen=True, tag="keep"):
    """This exchange answered it."""

    target: str
    key: str
    exchange: str


class HostQuestion(msgspec.Struct, frozen=True, tag="ask"):
    """A question; its answer has the same number."""

    n: int
    question: Question


class HostLeft(msgspec.Struct, frozen=True, tag="left"):
    """Everything is ended, and nothing more comes."""


ToHome: TypeAlias = (
    HostReady
    | CaseEnded
    | RecordEntries
    | CostSpent
    | RequestReleased
    | RequestCounted
    | Settled
    | Uncounted
    | Observed
    | Learned
    | Keep
    | HostQuestion
    | HostLeft
)

Value = TypeVar("Value")

_TO_HOST: "msgspec.json.Decoder[ToHost]" = msgspec.json.Decoder(ToHost)
_TO_HOME: "msgspec.json.Decoder[ToHome]" = msgspec.json.Decoder(ToHome)
_BATCH = msgspec.msgpack.Decoder(tuple[bytes, ...])


def pack(value: object) -> bytes:
    """A message, or the value of an answer. A model may write half a character, which only we can."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return encode(msgspec.to_builtins(value))


def batch(messages: Iterable[bytes]) -> bytes:
    """Several messages at once."""
    return msgspec.msgpack.encode(tuple(messages))


def for_host(data: bytes) -> Sequence[ToHost]:
    """The messages of a batch."""
    return [_read(each, _TO_HOST, ToHost) for each in _BATCH.decode(data)]


def for_home(data: bytes) -> Sequence[ToHome]:
    """The messages of a batch."""
    return [_read(each, _TO_HOME, ToHome) for each in _BATCH.decode(data)]


def value_of(data: bytes, form: type[Value]) -> Value:
    """The value of an answer."""
    return _read(data, msgspec.json.Decoder(form), form)


def _read(data: bytes, decoder: "msgspec.json.Decoder[Value]", form: object) -> Value:
    try:
        return decoder.decode(data)
    except ValueError:
        pass  # half a character is in it, or it is another version's
    try:
        value: Value = msgspec.convert(decode(data), form)
    except MISFIT as error:
        raise Fault(Code.CONFIG, f"a host is not understood: {error}", hint="Is it the same Sightline?") from None
    return value
