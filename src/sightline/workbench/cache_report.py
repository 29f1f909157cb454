"""Why providers' caches missed, for the turns of a session or of a filter: summed by cause, beside the provider's own
reasons, and with what would have helped."""

from collections.abc import Callable, Sequence
from datetime import datetime
from math import fsum
from typing import Final

import msgspec

from sightline.catalog.problem import quote_word
from sightline.errors import Code, Fault
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import REASONS, Cause
from sightline.web.bodies import Query
from sightline.workbench.cache_advice import CacheAdvice, CacheAdviser
from sightline.workbench.cache_turns import MOST_TURNS, CacheTurn, ExaminedTurn, TurnExaminer
from sightline.workbench.session_lines import not_on_record

_NO_MATCH = Fault(Code.USAGE, "no request matches", hint="`sightline traffic` lists what is on record.", status=404)
MOST_AT_ONCE: Final = 20
"""So many turns are examined by their ids in one call."""
GROUPS: Final[dict[str, Callable[[Summary], str]]] = {
    "day": lambda line: datetime.fromtimestamp(line.at).astimezone().date().isoformat(),
    "client": lambda line: line.client,
    "model": lambda line: line.model,
    "session": lambda line: line.session,
}
"""By what causes can be summed."""


class CacheCause(msgspec.Struct, frozen=True, kw_only=True):
    """What one cause has lost. `money` is as far as known, `unpriced` the turns of which it is not. `key` is the day,
    the client or whatever else causes are summed by."""

    key: str
    cause: Cause
    reason: str
    turns: int
    lost_tokens: int
    money: float
    unpriced: int


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, the oldest first. `is_cut`: there are more, older ones. `agreed` and `disagreed` count the turns of
    which the provider tells a reason itself."""

    session: str
    could_tokens: int
    read_tokens: int
    lost_tokens: int
    money: float
    unpriced: int
    agreed: int
    disagreed: int
    is_cut: bool
    causes: tuple[CacheCause, ...]
    advice: tuple[CacheAdvice, ...]
    turns: tuple[CacheTurn, ...]


class CacheReports:
    """Sums up what the examiner finds."""

    def __init__(self, examiner: TurnExaminer) -> None:
        self._examiner, self._records = examiner, examiner.viewer.records
        self._adviser = CacheAdviser(examiner)

    async def read(self, query: Query) -> CacheReport:
        """The HTTP call: `GET /api/cache?session=…&filter=…&by=…`, or `?exchange=…` for some turns alone, with commas;
        without any of them, the session of the latest request."""
        asked = query.text("session"), query.text("filter"), query.text("by")
        return await self.report(*asked, exchange=query.text("exchange"))

    async def report(self, session: str = "", wanted: str = "", by: str = "", *, exchange: str = "") -> CacheReport:
        """Examine the turns of a session, or those that a filter takes; with `exchange`, these alone, as far as they
        are turns that the provider counted. `by` names one of the groups. Raises a Fault if there are no such turns."""
        if by and by not in GROUPS:
            hint = f"There are {', '.join(GROUPS)}."
            raise Fault(Code.INVALID_REQUEST, f"causes are not summed by {quote_word(by)}", hint=hint, status=400)
        key_of = GROUPS[by] if by else lambda _line: ""
        if exchange:
            ids = exchange.split(",")
            if len(ids) > MOST_AT_ONCE:
                hint = f"Name up to {MOST_AT_ONCE} exchanges with commas."
                raise Fault(Code.INVALID_REQUEST, f"{len(ids)} turns were asked for", hint=hint, status=400)
            summaries = []
            for each in ids:
                try:
                    summaries.append(await self._records.summary(each, await self._records.facts(each)))
                except Fault:
                    if len(ids) == 1:
                        raise  # of several, one may have been removed since the page showed it
            sessions = {summary.session for summary in summaries}
            shared = sessions.pop() if len(sessions) == 1 else ""
            return await self._sum_up(
                shared, await self._examiner.examine_some(summaries), key_of, is_cut=False, has_advice=len(ids) == 1
            )
        if not session and not wanted:
            session = (await self._examiner.lines.latest_turn("")).session
        lines = await self._examiner.find_turns(session, wanted)
        if not lines:
            raise not_on_record(session) if session or not wanted else _NO_MATCH
        is_cut = len(lines) > MOST_TURNS
        return await self._sum_up(
            session, await self._examiner.examine_turns(lines[:MOST_TURNS], None), key_of, is_cut=is_cut
        )

    async def _sum_up(
        self,
        session: str,
        examined: Sequence[ExaminedTurn],
        key_of: Callable[[Summary], str],
        *,
        is_cut: bool,
        has_advice: bool = True,
    ) -> CacheReport:
        turns = tuple(each.turn for each in examined)
        groups: dict[tuple[str, Cause], list[CacheTurn]] = {}
        for each in examined:
            if each.turn.autopsy.cause:
                groups.setdefault((key_of(each.line), each.turn.autopsy.cause), []).append(each.turn)
        rows = [_cause_row(key, cause, group) for (key, cause), group in groups.items()]
        lost = [turn.autopsy for turn in turns if turn.autopsy.lost_tokens]
        return CacheReport(
            session=session,
            could_tokens=sum(turn.autopsy.could_tokens for turn in turns),
            read_tokens=sum(turn.autopsy.read_tokens for turn in turns),
            lost_tokens=sum(each.lost_tokens for each in lost),
            money=fsum(each.money for each in lost if each.money is not None),
            unpriced=sum(each.money is None for each in lost),
            agreed=sum(turn.agrees is True for turn in turns),
            disagreed=sum(turn.agrees is False for turn in turns),
            is_cut=is_cut,
            causes=tuple(sorted(rows, key=lambda row: (row.key, -row.lost_tokens, row.cause))),
            advice=await self._adviser.advise(examined) if has_advice else (),
            turns=turns,
        )


def _cause_row(key: str, cause: Cause, turns: Sequence[CacheTurn]) -> CacheCause:
    lost = [turn.autopsy for turn in turns]
    return CacheCause(
        key=key,
        cause=cause,
        reason=REASONS[cause],
        turns=len(turns),
        lost_tokens=sum(each.lost_tokens for each in lost),
        money=fsum(each.money for each in lost if each.money is not None),
        unpriced=sum(each.money is None for each in lost if each.lost_tokens),
    )
