"""The facts of one run of a suite in the logbook."""

from collections.abc import Callable, Sequence

from sightline.engine.evaluating.line_writer import LineWriter
from sightline.engine.redaction import Redaction
from sightline.errors import Code, Fault
from sightline.evals.facts import EvalFact, write
from sightline.evals.standing import Standing
from sightline.store.logbook import Logbook

PREFIX = "eval:"
"""How the logs of runs are called, before the run's own name; exchanges have the whole as their session."""

_CHANGED = 409


class EvalLog:
    """Adds facts without the configured keys. `standing` knows each at once; `written` hears of it when it lasts."""

    def __init__(
        self,
        logbook: Logbook,
        run: str,
        standing: Standing,
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
        self._writer.add(self._line(fact), lambda: self._written(fact))
        self.standing.add(fact)

    async def noted(self, fact: EvalFact) -> None:
        """Write this down now; others are written with it."""
        self.standing.add(fact)
        await self._writer.lasting(self._line(fact), lambda: self._written(fact))

    async def flushed(self) -> None:
        """All of it is written down."""
        await self._writer.flushed()

    def _line(self, fact: EvalFact) -> bytes:
        masking = self._redaction.masking()
        return masking.feed(write(fact)) + masking.close()

    async def _append(self, lines: Sequence[bytes]) -> None:
        try:
            await self._logbook.append(PREFIX + self.run, self._lines, lines, self._now())
        except Fault as fault:
            if fault.status != _CHANGED:
                raise
            message = f"the run {self.run} was taken over by another process"
            raise Fault(Code.USAGE, message, hint="It goes on there.", status=_CHANGED) from None
        self._lines += len(lines)
