"""What a translation could not carry over, and what it had to add."""

from typing import Literal

import msgspec

Severity = Literal["content", "option", "identity"]


class Loss(msgspec.Struct, frozen=True):
    """Something in the source that the target does not express. `pointer` is its place in the source document.

    `content` is something that the model or the reader would have seen, `option` a setting, `identity` an id or
    bookkeeping that means nothing elsewhere.
    """

    pointer: str
    what: str
    why: str
    severity: Severity


class Addition(msgspec.Struct, frozen=True):
    """Something that the target requires and the source does not contain. `pointer` is its place in the target
    document."""

    pointer: str
    what: str
    why: str
    severity: Severity = "option"


class Report:
    """Collects losses and additions while a document is written, without duplicates."""

    def __init__(self) -> None:
        self._losses: dict[Loss, None] = {}
        self._additions: dict[Addition, None] = {}
        self.refusal_count = 0
        """How many of the losses make a strict translation refuse."""

    def lose(self, pointer: str, what: str, why: str, severity: Severity) -> None:
        """Record something that the target cannot express."""
        loss = Loss(pointer, what, why, severity)
        if loss not in self._losses:
            self._losses[loss] = None
            self.refusal_count += severity != "identity"

    def add(self, pointer: str, what: str, why: str, severity: Severity = "option") -> None:
        """Record something that the target required."""
        self._additions[Addition(pointer, what, why, severity)] = None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """In the order in which they were recorded."""
        return tuple(self._losses)

    @property
    def additions(self) -> tuple[Addition, ...]:
        """In the order in which they were recorded."""
        return tuple(self._additions)

    @property
    def refusals(self) -> tuple[Loss, ...]:
        """The losses that make a strict translation refuse."""
        return tuple(loss for loss in self._losses if loss.severity != "identity")
