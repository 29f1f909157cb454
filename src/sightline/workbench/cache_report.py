"""Why providers' caches missed, for every turn of a session: summed by cause, beside the provider's own reasons, and
with what would have helped."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import Final

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.problem import quote_word
from sightline.dialects.dialect import CacheDiagnosis
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft
from sightline.errors import Code, Fault
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.filters.parsing import parse
from sightline.model.comparison import of_message
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.model.usage import Usage
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import REASONS, CacheAutopsy, Cause, Turn, examine, left_tokens
from sightline.tokens.estimate import cost_of
from sightline.web.bodies import Query
from sightline.wire.jsontext import decode
from sightline.wire.sse import SseDecoder
from sightline.workbench.session_lines import TURNS, SessionLines, is_turn, not_on_record

_NO_MATCH = Fault(Code.USAGE, "no request matches", hint="`sightline traffic` lists what is on record.", status=404)
MOST_TURNS: Final = 2000
"""So many turns are examined, the newest ones."""
MOST_AT_ONCE: Final = 20
"""So many turns are examined by their ids in one call."""
_HOUR = 3600.0
GROUPS: Final[dict[str, Callable[[Summary], str]]] = {
    "day": lambda line: datetime.fromtimestamp(line.at).astimezone().date().isoformat(),
    "client": lambda line: line.client,
    "model": lambda line: line.model,
    "session": lambda line: line.session,
}
"""By what causes can be summed."""

_ADVICE: Final[dict[Cause, str]] = {
    "provider": "Stay with one provider for a session: each has its own cache.",
    "model": "Stay with one model for a session, or start the other one's work in a session of its own.",
    "organisation": "Use keys of one organisation and project for a session.",
    "key": "Use keys of one account for a session.",
    "cache_key": "Send the same cache key, or name the same cached content, with every turn of a session.",
    "in_flight": "Send the first request alone, and the others once its answer begins.",
    "tier": "Stay with one service tier for a session.",
    "expired": "Ask for a lifetime of one hour in the cache marks.",
    "format": "Keep the schema of the answer the same for a session.",
    "tools": "Freeze the tool definitions for a session: offer all of them from the first turn on.",
    "tools_order": "Send the tools in the same order each time.",
    "system": "Move what changes behind the last cache mark, into the newest message, or strip it.",
    "settings": "Keep reasoning, verbosity and the choice of tools the same for a session.",
    "messages": "Freeze messages once they are sent; put what changes into the newest message.",
    "marks_missing": "Mark the last block of each request for the cache.",
    "marks_moved": "Mark an older block too: a mark finds what was written at most 20 blocks before it.",
    "marks_limit": "Set at most four cache marks, one of them at the end.",
    "version": "Stay with one version of the API.",
    "beta": "Send the same beta features with every turn of a session.",
}
"""What would have helped. The other causes cannot be avoided by the client."""


class CacheTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. `previous` is the turn that it is compared with; `section` is the section at the place where the two
    part, `section_name` what it is called. `provider_reason` is what the provider says itself, and `agrees` whether
    that is the cause found here; None where it says nothing."""

    exchange: str
    previous: str
    at: float
    model: str
    client: str
    input_tokens: int
    reason: str
    autopsy: CacheAutopsy
    section: str = ""
    section_name: str = ""
    provider_reason: str = ""
    provider_tokens: int | None = None
    agrees: bool | None = None


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


class CacheAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, and what it would have saved on these very turns: those that nothing else would have broken."""

    cause: Cause
    section_name: str
    text: str
    turns: int
    saved_tokens: int
    money: float | None


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


@dataclass(frozen=True)
class _Examined:
    """A turn with what its advice is worked out from."""

    turn: CacheTurn
    line: Summary
    usage: Usage
    facts: Facts


class CacheReports:
    """Reads sessions out of the record and examines their turns."""

    def __init__(self, viewer: Viewer, now: Callable[[], float]) -> None:
        self._records, self._viewer, self._lines = viewer.records, viewer, SessionLines(viewer.records, now)

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
            summaries = [await self._records.summary(each, await self._records.facts(each)) for each in ids]
            sessions = {summary.session for summary in summaries}
            shared = sessions.pop() if len(sessions) == 1 else ""
            return _sum_up(shared, await self._examine_some(summaries), key_of, is_cut=False)
        if not session and not wanted:
            session = (await self._lines.latest_turn("")).session
        lines = await self._turns(session, wanted)
        if not lines:
            raise not_on_record(session) if session or not wanted else _NO_MATCH
        is_cut = len(lines) > MOST_TURNS
        return _sum_up(session, await self._examine_turns(lines[:MOST_TURNS], None), key_of, is_cut=is_cut)

    async def examine(self, lines: Sequence[Summary]) -> dict[str, CacheTurn]:
        """These turns by their ids, each compared with what came before it in its session. Turns that the provider did
        not count are missing, as are those of which the record holds no body any more."""
        return {each.turn.exchange: each.turn for each in await self._examine_some(lines)}

    async def _examine_some(self, lines: Sequence[Summary]) -> list["_Examined"]:
        found: list[_Examined] = []
        for session in dict.fromkeys(line.session for line in lines):
            wanted = {line.id for line in lines if line.session == session}
            found += await self._examine_turns((await self._turns(session, ""))[:MOST_TURNS], wanted)
        return found

    async def _turns(self, session: str, wanted: str) -> list[Summary]:
        """Newest first: requests that a provider counted, without a client's errands and mere counts of tokens."""
        terms = [TURNS, "input>0"]
        if wanted:
            parse(wanted)  # a mistake in it is reported without our own terms
            terms.append(f"({wanted})")
        found: list[Summary] = []
        async for summary in self._lines.read(None if wanted and not session else session, *terms):
            if is_turn(summary):
                found.append(summary)
                if len(found) > MOST_TURNS:
                    break
        return found

    async def _examine_turns(self, lines: Sequence[Summary], wanted: Collection[str] | None) -> list["_Examined"]:
        """Those of the turns that are wanted, the oldest first; all of them with None."""
        examined = []
        continued = {line.previous for line in lines}
        latest: dict[str, Summary] = {}
        earlier: dict[str, Summary] = {}
        for line in sorted(lines, key=lambda line: line.at):
            before = latest.get(line.session)
            is_open = before is not None and before.id in continued and before.id != line.previous
            if wanted is None or line.id in wanted:
                found = await self._examine(line, earlier.get(line.previous), None if is_open else before)
                examined += [] if found is None else [found]
            latest[line.session] = earlier[line.id] = line
        return examined

    async def _examine(self, line: Summary, likely: Summary | None, latest: Summary | None) -> _Examined | None:
        """None for a turn whose body the record no longer holds, or whose provider counted nothing. `likely` is the
        turn that it continues, `latest` the one of the session before it, unless that is of a branch beside it."""
        store = self._records.store
        exchange = await load_exchange(store, line, needs_bodies=False)
        usage = exchange.usage
        if usage is None or usage.input_tokens is None:
            return None
        facts, estimator = self._viewer.measures(exchange)
        if likely is not None and (latest is None or likely is latest):
            before = await load_exchange(store, likely, needs_bodies=False)
            left = left_tokens(before.usage, dialect(exchange.spoken).cache, facts)
            read = usage.cached_tokens or 0
            if left and read >= left:  # as a rule: then no body is needed
                whole = CacheAutopsy(cause="", could_tokens=read, read_tokens=read, idle=line.at - likely.at)
                return _Examined(_turn(exchange, likely.id, whole, None), line, usage, facts)
        try:
            exchange = await load_exchange(store, line)
            request = exchange.request()
        except Fault:
            return None
        before_it = await self._baseline(exchange, request, likely, latest)
        autopsy = examine(before_it and _as_turn(*before_it), _as_turn(exchange, request), estimator, facts)
        draft = Draft.of(exchange.sent, exchange.spoken, exchange.model) if autopsy.pointer else None
        return _Examined(_turn(exchange, before_it[0].id if before_it else "", autopsy, draft), line, usage, facts)

    async def _baseline(
        self, exchange: RecordedExchange, request: Request, likely: Summary | None, latest: Summary | None
    ) -> tuple[RecordedExchange, Request] | None:
        """The earlier turn that has most of the conversation in common: the one that it continues, or the latest of the
        session where a message was changed since, so that it continues an older one. None where a conversation
        begins."""
        ranked: list[tuple[int, RecordedExchange, Request]] = []
        continued = None if likely is not None else await self._records.previous(exchange.id)
        known = [] if continued is None else [continued]
        for line in (likely, latest if latest is not likely else None):
            try:
                known += [] if line is None else [await load_exchange(self._records.store, line)]
            except Fault:
                continue  # retention has taken its bodies
        for before in known:
            asked = before.request()
            ranked.append((_shared(asked, request), before, asked))
        if not ranked:
            return None
        most, before, asked = max(reversed(ranked), key=lambda each: each[0])  # of equals the latest
        begins = not any(message.role == "assistant" for message in request.messages)
        return None if most == 0 and begins else (before, asked)


def _shared(one: Request, other: Request) -> int:
    """How many messages of the conversation are the same from its beginning on."""
    count = 0
    spoken = (
        [each for each in request.messages if each.role not in ("system", "developer")] for request in (one, other)
    )
    for old, new in zip(*spoken, strict=False):
        if old != new and of_message(old) != of_message(new):
            break
        count += 1
    return count


def _as_turn(exchange: RecordedExchange, request: Request) -> Turn:
    rules = dialect(exchange.spoken).cache
    sent = {name.lower(): value for name, value in exchange.received.headers}
    got = {name.lower(): value for name, value in exchange.headers}
    betas = ",".join(sent.get(name, "") for name in rules.betas)
    return Turn(
        request=request,
        at=exchange.summary.at,
        usage=exchange.usage,
        ready=exchange.summary.at + (exchange.summary.first_byte or 0.0),
        provider=exchange.summary.provider,
        model=exchange.model,
        organisation="/".join(got[name] for name in rules.accounts if name in got),
        key="" if exchange.attempt is None else exchange.attempt.key,
        version="/".join(sent.get(name, "") for name in rules.versions),
        betas=frozenset(name.strip() for name in betas.split(",") if name.strip()),
    )


def _turn(exchange: RecordedExchange, previous: str, autopsy: CacheAutopsy, draft: Draft | None) -> CacheTurn:
    summary = exchange.summary
    section = "" if draft is None else draft.section_at(autopsy.pointer)
    label = "" if draft is None else next((each.label for each in draft.sections if each.id == section), "")
    diagnosis = dialect(exchange.spoken).cache.diagnosis
    said, tokens = ("", None) if diagnosis is None else read_provider_reason(exchange.reply_body, diagnosis)
    meant = None if diagnosis is None else diagnosis.meanings.get(said)
    return CacheTurn(
        exchange=summary.id,
        previous=previous,
        at=summary.at,
        model=exchange.model,
        client=summary.client,
        input_tokens=summary.input_tokens or 0,
        reason=REASONS[autopsy.cause],
        autopsy=autopsy,
        section=section,
        section_name=label,
        provider_reason=said,
        provider_tokens=tokens,
        agrees=None if meant is None or not autopsy.lost_tokens else bool({autopsy.cause, *autopsy.also} & set(meant)),
    )


def read_provider_reason(reply: bytes, diagnosis: CacheDiagnosis) -> tuple[str, int | None]:
    """What the provider itself says about the cache, and the tokens that it says were missed; empty where nothing."""
    sought = diagnosis.path[-1].encode()
    if sought not in reply:
        return "", None
    decoder = SseDecoder()
    is_whole = reply.lstrip()[:1] == b"{"
    found = [reply] if is_whole else [frame.data for frame in (*decoder.feed(reply), *decoder.close())]
    said: tuple[str, int | None] = "", None
    for data in found:
        if sought in data:
            try:
                said = _reason_in(decode(data), diagnosis) or said
            except Fault:
                continue  # a frame that is no JSON
    return said


def _reason_in(body: Json, diagnosis: CacheDiagnosis) -> tuple[str, int | None] | None:
    found = body.get(diagnosis.holder, body) if isinstance(body, dict) else None
    for name in diagnosis.path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    reason = next((found[name] for name in diagnosis.reason if found.get(name)), "")
    tokens = found.get(diagnosis.tokens)
    return str(reason), tokens if isinstance(tokens, int) else None


def _sum_up(
    session: str, examined: Sequence[_Examined], key_of: Callable[[Summary], str], *, is_cut: bool
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
        advice=_advise(examined),
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


def _advise(examined: Sequence[_Examined]) -> tuple[CacheAdvice, ...]:
    """What to change, by cause and section, the most worthwhile first."""
    groups: dict[tuple[Cause, str], list[_Examined]] = {}
    for each in examined:
        autopsy = each.turn.autopsy
        is_too_long = autopsy.cause == "expired" and (autopsy.idle or 0.0) > _HOUR
        if autopsy.cause in _ADVICE and autopsy.lost_tokens and not autopsy.also and not is_too_long:
            groups.setdefault((autopsy.cause, each.turn.section_name), []).append(each)
    advice = []
    for (cause, name), group in groups.items():
        money = _saved_by_an_hour(examined, group) if cause == "expired" else _saved(group)
        if money is None or money > 0:  # keeping for an hour costs more than it saves where pauses are rare
            advice.append(
                CacheAdvice(
                    cause=cause,
                    section_name=name,
                    text=_ADVICE[cause],
                    turns=len(group),
                    saved_tokens=sum(each.turn.autopsy.lost_tokens for each in group),
                    money=money,
                )
            )
    return tuple(sorted(advice, key=lambda each: (-(each.money or 0.0), -each.saved_tokens)))


def _saved(group: Iterable[_Examined]) -> float | None:
    known = [each.turn.autopsy.money for each in group]
    return None if None in known else fsum(money for money in known if money is not None)


def _saved_by_an_hour(examined: Iterable[_Examined], group: Sequence[_Examined]) -> float | None:
    """What all turns would have cost less had every write been for an hour, so that these had found the cache."""
    ids = {each.turn.exchange for each in group}
    differences = []
    for each in examined:
        lost = each.turn.autopsy.lost_tokens if each.turn.exchange in ids else 0
        written = max(0, (each.usage.cache_write_tokens or 0) - lost)
        usage = msgspec.structs.replace(each.usage, cost=None)
        kept = msgspec.structs.replace(
            usage,
            cached_tokens=(usage.cached_tokens or 0) + lost,
            cache_write_tokens=written,
            cache_write_1h_tokens=written,
        )
        paid, least = cost_of(usage, each.facts.prices), cost_of(kept, each.facts.prices)
        if paid is None or least is None:
            return None
        differences.append(paid.dollars - least.dollars)
    return fsum(differences)
