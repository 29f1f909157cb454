"""What a host writes down at home: exchanges, the logs of runs with tools, and which exchange answered what."""

from collections.abc import Sequence

from sightline.errors import Code, Fault
from sightline.evals.service.answer_cache import Found, answer_in, key_of
from sightline.evals.service.cluster.accounts import FarRates
from sightline.evals.service.cluster.line import HostLine
from sightline.evals.service.cluster.messages import (
    Append,
    Find,
    FindAnswer,
    Keep,
    Lines,
    ListLogs,
    Logs,
    ReadLines,
    RecordEntries,
)
from sightline.exchange.prepare import Prepared
from sightline.store.entries import Entry
from sightline.store.store import Line, Log
from sightline.store.summary import PriceList


def recording(line: HostLine, entries: Sequence[Entry]) -> None:
    """These belong on record."""
    line.tell(RecordEntries(tuple(entries)))


class FarLogbook:
    """The logbook at home."""

    def __init__(self, line: HostLine) -> None:
        self._line = line

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines behind line number `after`; once it returns, they last."""
        await self._line.ask(Append(log, after, tuple(data), at), bool)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        """The lines behind line number `after`."""
        _, lines = await self._line.ask(ReadLines(log, after), Lines)
        return list(lines)

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin so."""
        _, logs = await self._line.ask(ListLogs(prefix), Logs)
        return list(logs)

    async def forget(self, log: str) -> None:
        """No host may take away what is not its own."""
        raise Fault(Code.USAGE, f"a host does not forget the log {log!r}", hint="Do it where the record is.")


class FarAnswers:
    """The earlier answers of one target, which are found at home."""

    def __init__(self, line: HostLine, target: str, prices: PriceList) -> None:
        self._line = line
        self._target = target
        self._prices = prices

    def key(self, prepared: Prepared, sample: int) -> str:
        """What makes a request the same."""
        return key_of(prepared, self._target, sample)

    async def find(self, key: str, sha256: str) -> Found | None:
        """The earlier answer; None where there is none, or the record holds it no more."""
        _, told = await self._line.ask(Find(self._target, key), FindAnswer)
        return answer_in(told.exchange, told.facts, sha256, self._prices) if told.exchange else None

    def keep(self, key: str, exchange: str) -> None:
        """This exchange answered it."""
        self._line.tell(Keep(self._target, key, exchange))

    async def flush(self) -> None:
        """Home writes it down."""


class FarSharing:
    """What a host shares with all others, through home."""

    def __init__(self, line: HostLine, prices: PriceList, *, is_cached: bool) -> None:
        self.rates = FarRates(line)
        self._line = line
        self._prices = prices
        self._is_cached = is_cached

    async def answers(self, target: str) -> FarAnswers | None:
        """The earlier answers of a target; None where everything is asked anew."""
        return FarAnswers(self._line, target, self._prices) if self._is_cached else None

    async def close(self) -> None:
        """Home does."""
