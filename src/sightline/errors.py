"""The one exception class, `Fault`, and its closed set of error codes.

The code is the interface: commands, dialects, the record and the page all switch on it. It decides whether a retry can
help, and every code has an entry in `docs/reference/errors.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

Label = Literal["auth", "quota", "net", "model", "unknown"]


class Code(StrEnum):
    """Every kind of failure that Sightline distinguishes."""

    INVALID_REQUEST = "invalid_request"
    AUTH = "auth"
    PERMISSION = "permission"
    MODEL_UNKNOWN = "model_unknown"
    CONTEXT_OVERFLOW = "context_overflow"
    REQUEST_TOO_LARGE = "request_too_large"
    REQUEST_TOO_LARGE_FOR_RATE = "request_too_large_for_rate"
    RATE_LIMITED = "rate_limited"
    QUOTA = "quota"
    CAP_REACHED = "cap_reached"
    CONTENT_FILTERED = "content_filtered"
    OVERLOADED = "overloaded"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_PROTOCOL = "upstream_protocol"
    TIMEOUT_IDLE = "timeout_idle"
    NETWORK = "network"
    CANCELLED = "cancelled"
    TRANSLATION_LOSS = "translation_loss"
    USAGE = "usage"
    CONFIG = "config"
    LOCAL_UNAVAILABLE = "local_unavailable"


RETRYABLE: frozenset[Code] = frozenset(
    {Code.RATE_LIMITED, Code.OVERLOADED, Code.UPSTREAM_ERROR, Code.TIMEOUT_IDLE, Code.NETWORK}
)

LABELS: Mapping[Code, Label] = {
    Code.AUTH: "auth",
    Code.PERMISSION: "auth",
    Code.CONTEXT_OVERFLOW: "quota",
    Code.REQUEST_TOO_LARGE: "quota",
    Code.REQUEST_TOO_LARGE_FOR_RATE: "quota",
    Code.RATE_LIMITED: "quota",
    Code.QUOTA: "quota",
    Code.CAP_REACHED: "quota",
    Code.NETWORK: "net",
    Code.TIMEOUT_IDLE: "net",
    Code.MODEL_UNKNOWN: "model",
}
"""The coarse class of a code, for places with room for one short word. Any other code is `unknown`."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Token counts that a provider's error message states: the limit, the number requested, and the excess."""

    limit: int | None = None
    requested: int | None = None
    excess: int | None = None


UNSTATED = Numbers()


CancelReason: TypeAlias = Literal["client_gone", "shutdown", "interrupted", "user", "timeout"]
"""Why something was cancelled: the client left, Sightline was stopped, the process was interrupted, a person stopped
it, or it timed out."""

CANCEL_WORDS: Mapping[CancelReason, str] = {
    "client_gone": "the client has gone",
    "shutdown": "Sightline was stopped",
    "interrupted": "the program was interrupted",
    "user": "it was stopped by hand",
    "timeout": "its time was up",
}


class Fault(Exception):
    """A failure: its code, a sentence for a person, and what to do next.

    `message` keeps the provider's own words. `pointer` names the offending value of a document, `status` is the HTTP
    status of the response, `retry_after` the seconds to wait that the other side asked for, `details` its error object,
    `numbers` the token counts that its message states. `reason` is why something was cancelled, and is set only for
    that code.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        hint: str = "",
        pointer: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        details: object = None,
        numbers: Numbers = UNSTATED,
        reason: CancelReason | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.pointer = pointer
        self.status = status
        self.retry_after = retry_after
        self.details = details
        self.numbers = numbers
        self.reason = reason

    @property
    def label(self) -> Label:
        """The coarse class of the code."""
        return LABELS.get(self.code, "unknown")

    @property
    def is_retryable(self) -> bool:
        """Whether the same request can succeed later."""
        return self.code in RETRYABLE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and vars(self) == vars(other)

    __hash__ = Exception.__hash__

    def __repr__(self) -> str:
        return f"Fault({self.code.value!r}, {self.message!r})"
