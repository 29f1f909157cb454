"""What the two processes say to each other: one line of JSON each way."""

from typing import TypeAlias

import msgspec

from sightline.transport.embedded.causes import Cause


class ChildOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is to do. They come by its standard input, because arguments and environment can be looked at.

    0 threads are half of the cores; without `weights` the installed ones are used.
    """

    key: str
    threads: int
    context_window: int
    weights: str = ""

    def __repr__(self) -> str:
        return f"Orders(threads={self.threads}, context_window={self.context_window})"


class ChildStarted(msgspec.Struct, frozen=True, tag="started"):
    """The model listens at this address."""

    address: str


class ChildFailed(msgspec.Struct, frozen=True, tag="failed"):
    """It does not, and why."""

    cause: Cause
    detail: str = ""


Answer: TypeAlias = ChildStarted | ChildFailed
