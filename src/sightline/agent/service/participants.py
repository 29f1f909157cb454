"""Who decides in a run, a person at a terminal or a page, or a policy, and who watches it."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from sightline.agent.core.approval import Decision
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.tokens.ledger import Wait

Interrupted: TypeAlias = Literal["again", "skip"]
"""What becomes of a call that was running when the process ended."""

Question: TypeAlias = Approve | Confirm | tuple[RunnableCall, ...]
"""What a person is asked: about calls, a limit, or calls that were interrupted."""


class Approver(Protocol):
    """Is asked, and takes the time that it takes; the run waits. To be cancelled means that nobody waits any more."""

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        """What is decided about each call, by its key; one that is left out is not run."""
        ...

    async def confirm(self, run: str, step: Confirm) -> bool:
        """Whether a limit is raised."""
        ...

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        """Whether each call runs again that was started, may have had effects, and has no result."""
        ...


class Watcher(Protocol):
    """Is told what no fact of a run tells, as it happens."""

    def on_pause(self, wait: Wait) -> None:
        """The next request waits for the provider's limits."""
        ...

    def on_progress(self, key: str, words: str) -> None:
        """How far the tool is that runs for a call."""
        ...
