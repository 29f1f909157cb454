"""The facts of one run of a suite in the logbook."""

from collections.abc import Callable, Sequence

from sightline.errors import Code, Fault
from sightline.evals.core.facts import CaseDone, EvalFact, read, write
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.line_writer import LineWriter
from sightline.store.logbook import Logbook
from sightline.wire.secrets import Redaction

PREFIX = "eval:"
"""How the logs of runs are called, before the run's own name; exchanges have the whole as their session."""

_CHANGED = 409


class EvalLog:
    """Adds facts without the configured keys. `standing` knows each at once; `written` hears of it when it lasts."""

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
        """Write this down soon."""
        kept, line = self._redact(fact)
        self._writer.add(line, lambda: self._written(kept))
        self.standing.add(kept)

    async def append(self, fact: EvalFact) -> None:
        """Write this down now; others are written with it."""
        kept, line = self._redact(fact)
        self.standing.add(kept)
        await self._writer.lasting(line, lambda: self._written(kept))

    async def flush(self) -> None:
        """All of it is written down."""
        await self._writer.flush()

    def _redact(self, fact: EvalFact) -> tuple[EvalFact, bytes]:
        masking = self._redaction.masking()
        line = masking.feed(write(fact)) + masking.close()
        # A result is looked at and exported as it is written down. What the run was told it is told in full.
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
