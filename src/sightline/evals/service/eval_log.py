"""The journal of one run of a suite."""

from collections.abc import Callable

from sightline.errors import Code, Fault
from sightline.evals.core.run_state import CaseDone, EvalFact, EvalState, read, write
from sightline.evals.service.line_writer import LineWriter
from sightline.journal.journal import CONFLICT, FactFormat, Journal
from sightline.store.store import Logbook

PREFIX = "eval:"
"""The prefix of the names of these logs, before the id of the run. The exchanges of a run have the whole as session."""

# A result is shown and exported as it was written. The beginning keeps its secrets, which the run needs.
FORMAT: FactFormat[EvalFact] = FactFormat(
    lambda fact: (write(fact), fact), lambda line: read(line.data), lambda fact: isinstance(fact, CaseDone)
)


class EvalLog:
    """Appends facts in batches. `standing` has each fact at once, `written` is called with it when it is durable."""

    def __init__(
        self,
        logbook: Logbook,
        run: str,
        standing: EvalState,
        *,
        now: Callable[[], float],
        secrets: tuple[str, ...] = (),
        written: Callable[[EvalFact], None] = lambda _fact: None,
    ) -> None:
        self.run = run
        self.standing = standing
        self._written = written
        message = f"the run {run} was taken over by another process"
        self._journal: Journal[EvalFact, EvalState, None] = Journal(
            logbook,
            PREFIX + run,
            FORMAT,
            standing,
            lambda fact, _at: standing.add(fact),
            now=now,
            secrets=secrets,
            taken_over=Fault(Code.USAGE, message, hint="It goes on there.", status=CONFLICT),
            version=standing.version,
        )
        self._writer = LineWriter(self._journal.write)

    def note(self, fact: EvalFact) -> None:
        """Append this with the next batch."""
        line, kept = self._journal.encode(fact)
        self._writer.add(line, lambda: self._written(kept))
        self.standing.add(kept)

    async def append(self, fact: EvalFact) -> None:
        """Append this; it is durable when this returns."""
        line, kept = self._journal.encode(fact)
        self.standing.add(kept)
        await self._writer.lasting(line, lambda: self._written(kept))

    async def flush(self) -> None:
        """Wait until all facts are durable."""
        await self._writer.flush()
