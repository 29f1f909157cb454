"""The recordings that can answer clients: found by what a request says, each in its turn, or else the nearest one."""

from dataclasses import dataclass
from difflib import unified_diff

from sightline.dialects.registry import dialect, find_dialect
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.exchange.recording.likeness import key_of, lines_of, marks_of, shorten, without_limit
from sightline.filters.expression import Expression
from sightline.store.store import Store
from sightline.store.summary import Summary

_PAGE = 500
_MOST_LINES = 16


@dataclass(frozen=True, slots=True)
class Recording:
    """One that can be played, and what it is found by."""

    summary: Summary
    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NearestRecording:
    """The nearest recording to a request that has none, and in what they differ."""

    summary: Summary
    difference: str


class Library:
    """Recordings of a store. The same request again gets the next recording of it; behind the last, the last again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recordings: list[Recording] = []
        self._by_key: dict[bytes, list[Summary]] = {}
        # Of dialects that demand a limit of tokens, without it: who asks in another dialect says none.
        self._without_limit: dict[bytes, list[Summary]] = {}
        self._turns: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._recordings)

    async def fill(self, wanted: Expression, *, now: float) -> None:
        """Take in every exchange that the filter takes and that got an answer, from the oldest to the newest."""
        found: list[Summary] = []
        before = ""
        while page := await self._store.find(wanted, now=now, before=before, limit=_PAGE):
            found += page
            before = page[-1].id
        for summary in reversed(found):
            if summary.state not in ("finished", "failed") or find_dialect(summary.dialect) is None:
                continue
            try:
                self._take(await load_exchange(self._store, summary))
            except Fault:
                continue  # its body is gone or was never one of its dialect, so that no request can be like it

    def _take(self, recorded: RecordedExchange) -> None:
        if recorded.frames:
            lines = _lines(recorded)
            self._recordings.append(Recording(recorded.summary, marks_of(lines)))
            self._by_key.setdefault(key_of(lines), []).append(recorded.summary)
            if dialect(recorded.received.dialect).rules.needs_max_tokens:
                self._without_limit.setdefault(key_of(without_limit(lines)), []).append(recorded.summary)

    async def next(self, lines: list[str], spoken: str = "") -> RecordedExchange | None:
        """The recording whose turn it is; none where there is none of this request, which came in this dialect."""
        key, summaries = self._find(lines, spoken)
        turn = self._turns.get(key, 0)
        if summaries:
            self._turns[key] = turn + 1
        return await self._load_turn(summaries, turn)

    async def at(self, lines: list[str], turn: int, spoken: str = "") -> RecordedExchange | None:
        """The recording of this request whose turn this is, counted from 0, for callers that count turns themselves."""
        return await self._load_turn(self._find(lines, spoken)[1], turn)

    def _find(self, lines: list[str], spoken: str) -> tuple[bytes, list[Summary]]:
        """The recordings of this request, and what their turns are counted by. A limit of tokens that one side has only
        because its dialect demands one does not make them differ."""
        key, bare = key_of(lines), key_of(without_limit(lines))
        if key in self._by_key:
            return key, self._by_key[key]
        if bare == key:
            return bare, self._without_limit.get(bare, [])
        return bare, self._by_key.get(bare, []) if dialect(spoken).rules.needs_max_tokens else []

    async def _load_turn(self, summaries: list[Summary], turn: int) -> RecordedExchange | None:
        return await load_exchange(self._store, summaries[min(turn, len(summaries) - 1)]) if summaries else None

    async def nearest(self, lines: list[str]) -> NearestRecording | None:
        """The recording that has most in common with a request, the newest of several."""
        marks = marks_of(lines)
        wanted = set(marks)
        if not self._recordings:
            return None
        nearest = max(reversed(self._recordings), key=lambda each: _likeness(each.marks, marks, wanted))
        return NearestRecording(
            nearest.summary, _difference(_lines(await load_exchange(self._store, nearest.summary)), lines)
        )


def _lines(recorded: RecordedExchange) -> list[str]:
    received = recorded.received
    return lines_of(received.dialect, recorded.body, received.model, counts=recorded.is_count)


def _likeness(recording: tuple[int, ...], marks: tuple[int, ...], wanted: set[int]) -> float:
    """How much of both is the same."""
    held = set(recording)
    return len(held & wanted) / (len(recording) + len(marks))


def _difference(before: list[str], after: list[str]) -> str:
    """What the recording has and the request has not (-), and the other way round (+)."""
    lines = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    changed = [shorten(line) for line in lines if not line.startswith("@@")]
    more = len(changed) - _MOST_LINES
    return "\n".join(changed[:_MOST_LINES]) + (f"\n(and {more} more lines)" if more > 0 else "")
