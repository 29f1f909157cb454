"""The log of one run: its facts in the logbook."""

from collections.abc import Callable, Sequence

from sightline.errors import Code, Fault
from sightline.evals.core.facts import CaseDone, EvalFact, read, write
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.line_writer import LineWriter
from sightline.exchange.redaction import Redaction
from sightline.store.logbook import Logbook

PREFIX = "eval:"
"""Prefix of a run's log. The log's name is also the session of the run's exchanges."""

_CHANGED = 409


class EvalLog:
    """Appends facts with secrets redacted. `standing` is updated at once; `written` is called when a fact is stored."""

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
        self._logbook = logbook
        self._lines = standing.version
        self._now = now
        self._redaction = Redaction(secrets)
        self._written = written
        self._writer = LineWriter(self._append)

    def note(self, fact: EvalFact) -> None:
        """Append a fact without waiting."""
        kept, line = self._redact(fact)
        self._writer.add(line, lambda: self._written(kept))
        self.standing.add(kept)

    async def append(self, fact: EvalFact) -> None:
        """Append a fact and wait until it is stored."""
        kept, line = self._redact(fact)
        self.standing.add(kept)
        await self._writer.lasting(line, lambda: self._written(kept))

    async def flush(self) -> None:
        """Wait until everything added so far is stored."""
        await self._writer.flush()

    def _redact(self, fact: EvalFact) -> tuple[EvalFact, bytes]:
        masking = self._redaction.masking()
        line = masking.feed(write(fact)) + masking.close()
        # A result is shown and exported as stored (redacted). The other facts stay complete in memory.
        return (read(line) if masking.has_found and isinstance(fact, CaseDone) else fact), line

    async def _append(self, lines: Sequence[bytes]) -> None:
        try:
            await self._logbook.append(PREFIX + self.run, self._lines, lines, self._now())
        except Fault as fault:
            if fault.status != _CHANGED:
                raise
            message = f"the run {self.run} was taken over by another process"
            raise Fault(Code.USAGE, message, hint="It goes on there.", status=_CHANGED) from None
        self._lines += len(lines)
