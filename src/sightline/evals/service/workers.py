"""Who runs cases. Today that is this process; whoever runs them elsewhere is one of these too."""

from typing import Protocol

from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import Key


class Worker(Protocol):
    """Takes as many cases at once as it is given: how many that are, and in which order, is decided by who gives them.

    A worker elsewhere has to hold the limits of providers together with all others, and its exchanges are on its
    record.
    """

    async def run(self, key: Key) -> CaseResult:
        """The result of one case on one target, once. What goes wrong with the case is in it."""
        ...

    async def close(self) -> None:
        """End what was started."""
        ...
