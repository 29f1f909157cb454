"""Why a request is cancelled: asyncio cancels a task without a reason.

Code that may cancel a request of our own opens a `Cancellation` around it. It lives in the context of the task, so that
every task that is started inside has the same one, and what is recorded at the end can name the reason. The request of
a client has none: it is cancelled when its client has gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sightline.errors import CancelReason


class Cancellation:
    """The reason. Set it before the work is cancelled."""

    def __init__(self, reason: CancelReason) -> None:
        self.reason: CancelReason = reason


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellation(reason: CancelReason) -> Iterator[Cancellation]:
    """For what is done inside; `reason` is the one that holds unless another is set."""
    opened = Cancellation(reason)
    token = _CURRENT.set(opened)
    try:
        yield opened
    finally:
        _CURRENT.reset(token)


@contextmanager
def own_request() -> Iterator[None]:
    """The same for a request of our own without one: only an interrupt of the program can cancel that."""
    if _CURRENT.get() is not None:
        yield
        return
    with cancellation("interrupted"):
        yield


def cancel_reason() -> CancelReason:
    """Why what is done here is cancelled."""
    opened = _CURRENT.get()
    return "client_gone" if opened is None else opened.reason
