"""The phases of an exchange, which of them may follow which, and how an exchange can end."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from sightline.errors import CancelReason, Fault
from sightline.model.reply import Reply
from sightline.model.usage import Usage


class ExchangePhase(StrEnum):
    """Where an exchange is. The last four are ends."""

    RECEIVED = "received"
    HELD = "held"
    SENDING = "sending"
    STREAMING = "streaming"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"

    __hash__ = str.__hash__  # that of an Enum is written in Python

    @property
    def is_end(self) -> bool:
        """Whether nothing can follow."""
        return not TRANSITIONS[self]


_ENDS = frozenset({ExchangePhase.FINISHED, ExchangePhase.FAILED, ExchangePhase.CANCELLED, ExchangePhase.DROPPED})
_NONE: frozenset[ExchangePhase] = frozenset()

TRANSITIONS: Mapping[ExchangePhase, frozenset[ExchangePhase]] = {
    # A count that is only estimated finishes without being sent.
    ExchangePhase.RECEIVED: _ENDS | {ExchangePhase.HELD, ExchangePhase.SENDING},
    # A released request is sent, or finishes with a reply that a user wrote. Held tool calls only end.
    ExchangePhase.HELD: _ENDS | {ExchangePhase.SENDING},
    ExchangePhase.SENDING: _ENDS | {ExchangePhase.STREAMING},
    # The head of the response is here and its body is read. Its tool calls may be held at its end.
    ExchangePhase.STREAMING: _ENDS | {ExchangePhase.HELD},
    ExchangePhase.FINISHED: _NONE,
    ExchangePhase.FAILED: _NONE,
    ExchangePhase.CANCELLED: _NONE,
    ExchangePhase.DROPPED: _NONE,
}
"""The phases that may follow each phase."""


class FinishedEnd(msgspec.Struct, frozen=True):
    """The reply is complete. `warning` says what could not be read of it."""

    phase: ClassVar = ExchangePhase.FINISHED
    reply: Reply
    warning: str = ""


@dataclass(frozen=True, slots=True)
class FailedEnd:
    """There is no reply, or it is incomplete. `status` is what the client gets where that is not the provider's."""

    phase: ClassVar = ExchangePhase.FAILED
    fault: Fault
    status: int = 0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class CancelledEnd:
    """The client, or the caller, does not wait for it any more. `usage` is what had been used by then."""

    phase: ClassVar = ExchangePhase.CANCELLED
    reason: CancelReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class DroppedEnd:
    """A user or a rule refused it."""

    phase: ClassVar = ExchangePhase.DROPPED
    reason: str


ExchangeEnd: TypeAlias = FinishedEnd | FailedEnd | CancelledEnd | DroppedEnd
