"""Whether a failed attempt is followed by another, and after how long. No I/O: a fault in, a number out."""

from collections.abc import Callable

from sightline.errors import Code, Fault
from sightline.transport.http.faults import may_retry

FIRST_WAIT = 0.2
LONGEST_WAIT = 10.0
JITTER = 0.1

STATUSES = frozenset({408, 429, 500, 502, 503, 504, 529})
"""The statuses after which the same request may succeed, unless the error says otherwise."""


def next_wait(fault: Fault, failed_attempts: int, max_wait: float, jitter: Callable[[], float]) -> float | None:
    """The seconds to wait before the next attempt; None if there is to be no other attempt.

    A delay that the provider requests is kept exactly; if it is longer than `max_wait`, there is no other attempt.
    Otherwise the wait doubles with each attempt, up to `max_wait`. `jitter` returns numbers from 0 up to 1, so that
    clients that failed together do not retry together.
    """
    if not is_worth_another(fault):
        return None
    if fault.retry_after:
        return fault.retry_after if fault.retry_after <= max_wait else None
    doubled = FIRST_WAIT * 2.0 ** min(failed_attempts - 1, 32)
    return min(max_wait, doubled * (1 - JITTER + 2 * JITTER * jitter()))


def is_worth_another(fault: Fault) -> bool:
    """Whether the same bytes may succeed later: nothing has arrived yet, or the response did not reject them."""
    if fault.code is Code.NETWORK and fault.status is None:
        return may_retry(fault)
    return fault.status in STATUSES and fault.is_retryable


def format_duration(seconds: float) -> str:
    """A duration for people: `2 min 5 s`."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
