"""The messages between a command and the running server that sends for it: one call, and the frames of its response.

The response is a stream of frames, each preceded by its length. Facts and faults are JSON inside a frame, because a
model may write half a character (a lone surrogate), which only our own JSON can represent.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Literal, Self, TypeAlias, TypeVar

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.editing.comparing import SectionChange
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait
from sightline.wire.jsontext import MISFIT, decode, encode

PATH, WAIT_PATH = "/api/relay", "/api/relay/wait"

_LENGTH = Struct(">I")


class RelayCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the server sends for a command.

    `provider` is the settings of `asked.provider` in the command's configuration, None if the server should route the
    request. `variables` are those that these settings name and that the command's environment contains: they may be
    keys. Without `is_recorded`, the request leaves no trace in the record.
    """

    asked: ClientRequest
    provider: Provider | None = None
    variables: dict[str, str] = {}
    is_recorded: bool = True

    def __repr__(self) -> str:
        return f"RelayCall({self.asked.provider!r})"


class WaitCall(msgspec.Struct, frozen=True):
    """Asks how long a request of this size must wait for the limits of its model."""

    provider: str
    model: str
    tokens: int
    facts: Facts


class FaultMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a fault that a command needs."""

    code: Code
    message: str
    hint: str = ""
    pointer: str | None = None
    status: int | None = None
    retry_after: float | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, fault: Fault) -> Self:
        notes = tuple(getattr(fault, "__notes__", ()))
        return cls(fault.code, fault.message, fault.hint, fault.pointer, fault.status, fault.retry_after, notes)

    @property
    def fault(self) -> Fault:
        """The fault."""
        fields = msgspec.structs.asdict(self)
        notes = fields.pop("notes")
        fault = Fault(**fields)
        for note in notes:
            fault.add_note(note)
        return fault


class FactFrame(msgspec.Struct, frozen=True, omit_defaults=True, tag="fact"):
    """A fact that is now recorded. `body` is the one that a user released, if they have changed it, and `changes` is
    JSON: what they changed of the conversation."""

    noted: bytes
    body: bytes | None = None
    phase: Literal["request", "tool_calls"] = "request"
    changes: bytes = b"[]"


class HeadFrame(msgspec.Struct, frozen=True, omit_defaults=True, tag="head"):
    """The head of the response. `fault` is JSON: why there is no reply."""

    exchange: str
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    fault: bytes | None = None


class PieceFrame(msgspec.Struct, frozen=True, omit_defaults=True, tag="piece"):
    """The next piece of the response; `fault` is what interrupted the reply, as soon as that is known."""

    data: bytes
    fault: bytes | None = None


class EndFrame(msgspec.Struct, frozen=True, omit_defaults=True, tag="end"):
    """The response ended normally, or with a fault that its dialect cannot express."""

    fault: bytes | None = None


Frame: TypeAlias = FactFrame | HeadFrame | PieceFrame | EndFrame

_FRAME = msgspec.msgpack.Decoder(Frame)
T = TypeVar("T")


def write_call(call: RelayCall | WaitCall | Wait) -> bytes:
    """Encode a call, or the response to a `WaitCall`, which is a `Wait`."""
    return msgspec.msgpack.encode(call)


def read_message(data: bytes, of: type[T]) -> T:
    return _decode(msgspec.msgpack.Decoder(of), data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _other_version(error) from None


def write_changes(changes: tuple[SectionChange, ...]) -> bytes:
    """Encode what a user changed of a conversation."""
    return encode(msgspec.to_builtins(changes))


def read_changes(data: bytes) -> tuple[SectionChange, ...]:
    return msgspec.convert(decode(data), tuple[SectionChange, ...])


def write_frame(frame: Frame) -> bytes:
    data = msgspec.msgpack.encode(frame)
    return _LENGTH.pack(len(data)) + data


class FrameReader:
    """Reads frames from bytes that arrive in arbitrary pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete by now."""
        self._data += data
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            whole = bytes(self._data[_LENGTH.size : end])
            del self._data[:end]
            yield _decode(_FRAME, whole)


def write_fact_entry(entry: FactEntry) -> bytes:
    return encode(msgspec.to_builtins(entry))


def read_fact_entry(data: bytes) -> FactEntry:
    return _convert(data, FactEntry)


def _convert(data: bytes, to: type[T]) -> T:
    try:
        return msgspec.convert(decode(data), to)
    except MISFIT as error:
        raise _other_version(error) from None


def write_fault(fault: Fault) -> bytes:
    return encode(msgspec.to_builtins(FaultMessage.of(fault)))


def read_fault(data: bytes) -> Fault:
    return _convert(data, FaultMessage).fault


def _other_version(error: Exception) -> Fault:
    hint = "Is it another version of Sightline? Start the server again, or send from this process with --apart."
    return Fault(Code.CONFIG, f"the server and this command do not understand each other: {error}", hint=hint)
