"""The phases of an exchange, which of them may follow which, how an exchange can end, and why one is cancelled.

asyncio cancels a task without a reason. Code that may cancel one of Sightline's own requests opens a `Cancellation`
around it. It lives in the context of the task, so that every task started inside shares it, and the recorded end can
name the reason. A client's request has none: it is cancelled when its client has gone.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from sightline.errors import CancelReason, Fault
from sightline.model.reply import Reply, Usage


class ExchangePhase(StrEnum):
    """The state of an exchange. The last four are ends."""

    RECEIVED = "received"
    HELD = "held"
    SENDING = "sending"
    STREAMING = "streaming"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"

    __hash__ = str.__hash__  # the hash of an Enum is computed in Python, which is slow

    @property
    def is_end(self) -> bool:
        return not TRANSITIONS[self]


_ENDS = frozenset({ExchangePhase.FINISHED, ExchangePhase.FAILED, ExchangePhase.CANCELLED, ExchangePhase.DROPPED})

TRANSITIONS: Mapping[ExchangePhase, frozenset[ExchangePhase]] = {
    # A token count that is only estimated finishes without being sent.
    ExchangePhase.RECEIVED: _ENDS | {ExchangePhase.HELD, ExchangePhase.SENDING},
    # A released request is sent, or finishes with a reply that a user wrote. Held tool calls only end.
    ExchangePhase.HELD: _ENDS | {ExchangePhase.SENDING},
    ExchangePhase.SENDING: _ENDS | {ExchangePhase.STREAMING},
    # The head of the response has arrived and its body is being read. Its tool calls may be held at its end.
    ExchangePhase.STREAMING: _ENDS | {ExchangePhase.HELD},
    **dict.fromkeys(_ENDS, frozenset()),
}
"""The phases that may follow each phase."""


class FinishedEnd(msgspec.Struct, frozen=True):
    """The reply is complete. `warning` says what could not be read of it."""

    phase: ClassVar = ExchangePhase.FINISHED
    reply: Reply
    warning: str = ""


@dataclass(frozen=True, slots=True)
class FailedEnd:
    """There is no reply, or it is incomplete. `status` is the status that the client gets, 0 if it is the
    provider's."""

    phase: ClassVar = ExchangePhase.FAILED
    fault: Fault
    status: int = 0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class CancelledEnd:
    """The client, or the caller, no longer waits for it. `usage` is what was used until then."""

    phase: ClassVar = ExchangePhase.CANCELLED
    reason: CancelReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class DroppedEnd:
    """A user or a rule refused it."""

    phase: ClassVar = ExchangePhase.DROPPED
    reason: str


ExchangeEnd: TypeAlias = FinishedEnd | FailedEnd | CancelledEnd | DroppedEnd


class Cancellation:
    """The reason for a cancellation. Set it before cancelling the work."""

    def __init__(self, reason: CancelReason) -> None:
        self.reason: CancelReason = reason


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellation(reason: CancelReason) -> Iterator[Cancellation]:
    """Set why work inside this block is cancelled; the reason can still be changed."""
    opened = Cancellation(reason)
    token = _CURRENT.set(opened)
    try:
        yield opened
    finally:
        _CURRENT.reset(token)


@contextmanager
def own_request() -> Iterator[None]:
    """The same for one of Sightline's own requests, if no cancellation is open: only an interrupt of the program can
    cancel it."""
    if _CURRENT.get() is not None:
        yield
        return
    with cancellation("interrupted"):
        yield


def cancel_reason() -> CancelReason:
    """Why the current work is cancelled."""
    opened = _CURRENT.get()
    return "client_gone" if opened is None else opened.reason
