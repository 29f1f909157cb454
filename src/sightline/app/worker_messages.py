"""The messages between the main process and a worker: connections, facts, and calls with their answers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.relay_messages import read_fault, write_fault
from sightline.server.channel import Channel
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry, KeptEntry, join_frames, plain_entries
from sightline.store.journal import encode_entries

_LOG = logging.getLogger(__name__)


class Connection(msgspec.Struct, frozen=True, tag="connection"):
    """A client's connection, whose descriptor is sent with this message; `first` is the part of its next request that
    has been read."""

    first: bytes = b""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker is ready to serve clients."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """The worker has to end as soon as its clients have their answers."""


ALL_FACTS, FEW_FACTS, NO_FACTS = b"all", b"few", b""
"""The arguments of the call `watch`: which facts of its exchanges a worker sends."""


class FactsShared(msgspec.Struct, frozen=True, tag="facts"):
    """Facts of the worker's exchanges for watchers, encoded by `encode_facts`; with `has_more`, others were left
    out."""

    packed: bytes
    has_more: bool = False


class Call(msgspec.Struct, frozen=True, tag="call"):
    """A call that is answered with `ConnectionReturned`."""

    number: int
    name: str
    data: bytes = b""


class TurnOver(msgspec.Struct, frozen=True):
    """The end of the embedded model's turn with this number: with a fault, because the client has gone, or with
    success."""

    number: int
    fault: bytes = b""
    is_cancelled: bool = False


class ConnectionReturned(msgspec.Struct, frozen=True, tag="returned"):
    """The answer to a call, or its fault."""

    number: int
    data: bytes = b""
    fault: bytes = b""


Message: TypeAlias = Connection | Ready | End | FactsShared | Call | ConnectionReturned
Serve: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""A function that answers a call."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)
_KEPT = msgspec.msgpack.Decoder(list[KeptEntry])


def decode_facts(data: bytes) -> list[FactEntry]:
    """Decode the result of `encode_facts`, with one fact for each frame."""
    return [entry for entry in plain_entries(_KEPT.decode(data)) if isinstance(entry, FactEntry)]


def decode_news(data: bytes) -> list[FactEntry | FramesEntry]:
    """Decode the result of `encode_facts`, with joined frames."""
    return [entry for entry in _KEPT.decode(data) if not isinstance(entry, BodyEntry)]


def encode_facts(facts: Sequence[FactEntry | FramesEntry]) -> bytes:
    """Encode these facts in the format of the journal."""
    return encode_entries(join_frames(facts))


class Peer:
    """The process at the other end of a channel. `calls` are the calls that it may make; `on_message` gets all other
    messages."""

    def __init__(self, calls: Mapping[str, Serve], on_message: Callable[[Message, int], None]) -> None:
        self._calls = calls
        self._on_message = on_message
        self._channel: Channel | None = None
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self._count = 0
        self._serving: set[asyncio.Task[None]] = set()

    def open(self, channel: Channel) -> None:
        self._channel = channel

    @property
    def backlog(self) -> int:
        """Bytes that the peer has not read yet."""
        return 0 if self._channel is None else self._channel.backlog

    def send(self, message: Message, descriptor: int = -1) -> bool:
        """Send a message; returns False if the peer is gone."""
        return self._channel is not None and self._channel.send(_ENCODER.encode(message), descriptor)

    def tell(self, name: str, data: bytes) -> None:
        """Call the peer without waiting for an answer."""
        self.send(Call(0, name, data))

    async def call(self, name: str, data: bytes = b"") -> bytes:
        """Call the peer and return its answer. Raises the Fault of the peer, or a 503 Fault if it is gone."""
        self._count += 1
        number = self._count
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[number] = answer
        try:
            if not self.send(Call(number, name, data)):
                raise process_ended()
            return await answer
        finally:
            del self._awaited[number]

    def hear(self, data: bytes, descriptor: int) -> None:
        message = _DECODER.decode(data)
        match message:
            case Call():
                task = asyncio.get_running_loop().create_task(self._serve(message))
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)
            case ConnectionReturned():
                answer = self._awaited.get(message.number)
                if answer is not None and not answer.done():
                    if message.fault:
                        answer.set_exception(read_fault(message.fault))
                    else:
                        answer.set_result(message.data)
            case _:
                self._on_message(message, descriptor)

    def close(self) -> None:
        """Close the channel; calls in progress end with a fault."""
        if self._channel is not None:
            self._channel.close()
        for answer in self._awaited.values():
            if not answer.done():
                answer.set_exception(process_ended())
        for task in list(self._serving):
            task.cancel()

    async def _serve(self, call: Call) -> None:
        try:
            data = await self._calls[call.name](call.data)
        except Fault as fault:
            self.send(ConnectionReturned(call.number, fault=write_fault(fault)))
        except Exception:  # noqa: BLE001 - the other process must not wait forever
            _LOG.exception("the call %s of another process failed", call.name)
            self.send(ConnectionReturned(call.number, fault=write_fault(process_ended())))
        else:
            self.send(ConnectionReturned(call.number, data))


def process_ended() -> Fault:
    """The fault for a call to a process that has ended."""
    hint = "Send the request again: the process is started anew."
    return Fault(Code.OVERLOADED, "a process of Sightline has ended", hint=hint, status=503)
