"""Why providers' caches missed, for the turns of a session or a filter: summed by cause, next to the provider's own
reasons; what would have helped, how much it would have saved on these turns, and the kept edit that does it from the
next turn on."""

from asyncio import sleep
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

import msgspec

from sightline.catalog.problem import quote_word
from sightline.editing.cache_edits import CacheAction, CacheEdit, TurnPair
from sightline.editing.draft import Draft
from sightline.editing.masks import Mask, Strip, apply_masks, project_of, with_id
from sightline.editing.operations import Keep
from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import REASONS, Cause, expect_read, price_loss
from sightline.tokens.cost import cost_of
from sightline.web.bodies import Query
from sightline.wire.cache import BoundedCache
from sightline.workbench.cache_turns import MOST_TURNS, CacheTurn, ExaminedTurn, TurnExaminer, turn_of
from sightline.workbench.costs import group_readers
from sightline.workbench.session_lines import not_on_record

_HOUR = 3600.0
MOST_COMPARED: Final = 40
"""How many of the turns that it would have helped an edit is tried on, the newest ones: each requires two bodies."""
_MOST_BYTES = 8_000_000
"""How many bytes of bodies an edit is tried on at once."""
_CACHE_SIZE = 64

_ADVICE: Final[dict[Cause, str]] = {
    "provider": "Stay with one provider for a session: each has its own cache.",
    "model": "Stay with one model for a session, or start another session for the other model.",
    "organisation": "Use keys of one organisation and project for a session.",
    "key": "Use keys of one account for a session.",
    "cache_key": "Send the same cache key, or name the same cached content, with every turn of a session.",
    "in_flight": "Send the first request alone, and the others once its answer begins.",
    "tier": "Stay with one service tier for a session.",
    "expired": "Ask for a lifetime of one hour in the cache marks.",
    "format": "Keep the schema of the answer the same for a session.",
    "tools": "Freeze the tool definitions for a session: offer all of them from the first turn on.",
    "tools_order": "Send the tools in the same order each time.",
    "system": "Move what changes after the last cache mark, into the newest message, or strip it.",
    "settings": "Keep reasoning, verbosity and the choice of tools the same for a session.",
    "messages": "Freeze messages once they are sent; put what changes into the newest message.",
    "marks_missing": "Mark the last block of each request for the cache.",
    "marks_moved": "Mark an older block too: a mark finds what was written at most 20 blocks before it.",
    "marks_limit": "Set at most four cache marks, one of them at the end.",
    "version": "Stay with one version of the API.",
    "beta": "Send the same beta features with every turn of a session.",
}
"""What would have helped. The client cannot avoid the other causes."""


_LABELS: Final[dict[CacheAction, str]] = {
    "freeze": "Freeze",
    "strip": "Strip",
    "move": "Move to the end",
    "order": "Keep the order",
    "option": "Keep the value",
    "mark": "Set cache marks",
}


class KeepableEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that would have helped. `label` tells what it does; `mask` repeats it on later requests of the session,
    or of the project or of all sessions if it would have helped in several. The savings are computed by applying the
    edit to recorded turns; `tried` is how many."""

    action: CacheAction
    label: str
    words: str
    saved_tokens: int
    money: float | None
    tried: int
    mask: Mask


class CacheAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, and what it would have saved on those of these turns that had no other cause. `edits` make the
    change, the one that saves most first; if there are none, only the client can make it."""

    cause: Cause
    section_name: str
    text: str
    turns: int
    saved_tokens: int
    money: float | None
    edits: tuple[KeepableEdit, ...] = ()


class CacheAdviser:
    """Computes advice, and remembers what was tried on the same turns."""

    def __init__(self, examiner: TurnExaminer) -> None:
        self._examiner = examiner
        self._known: BoundedCache[tuple[str, ...], tuple[KeepableEdit, ...]] = BoundedCache(_CACHE_SIZE)

    async def advise(self, examined: Sequence[ExaminedTurn]) -> tuple[CacheAdvice, ...]:
        """What to change, by cause and section, the largest saving first."""
        advice = []
        for (cause, name), group in _groups(examined).items():
            money = _savings_with_hour_ttl(examined, group) if cause == "expired" else _sum_money(group)
            if money is not None and money <= 0 and cause == "expired":
                continue  # if pauses are rare, a lifetime of an hour costs more than it saves
            edits = await self._find_edits(cause, group)
            if cause == "expired":
                edits = tuple(msgspec.structs.replace(each, money=money) for each in edits)
            advice.append(
                CacheAdvice(
                    cause=cause,
                    section_name=name,
                    text=_ADVICE[cause],
                    turns=len(group),
                    saved_tokens=sum(each.turn.autopsy.lost_tokens for each in group),
                    money=money,
                    edits=edits,
                )
            )
        return tuple(sorted(advice, key=lambda each: (-(each.money or 0.0), -each.saved_tokens)))

    async def _find_edits(self, cause: Cause, group: Sequence[ExaminedTurn]) -> tuple[KeepableEdit, ...]:
        """The edits that would have saved something, the largest saving first."""
        key = cause, *(each.turn.exchange for each in group)
        if (known := self._known.get(key)) is not None:
            return known
        pairs = await self._load(group)
        if not pairs:
            return ()
        found = []
        for label, words, mask in _masks_for(cause, pairs[-1].turns, *_scope_of({pair.session for pair in pairs})):
            saved = []
            for pair in pairs:
                saved.append(pair.measure_saving(mask, self._examiner))
                await sleep(0)  # bodies may be large: others must not wait for all of them
            tokens = sum(count for count, _ in saved)
            money = [dollars for _, dollars in saved]
            if tokens > 0:
                found.append(
                    KeepableEdit(
                        action="strip" if mask.cache is None else mask.cache.action,
                        label=label,
                        words=words,
                        saved_tokens=tokens,
                        money=None if None in money else fsum(each for each in money if each is not None),
                        tried=len(pairs),
                        mask=mask,
                    )
                )
        edits = tuple(sorted(found, key=lambda each: -each.saved_tokens))
        self._known.put(key, edits)
        return edits

    async def _load(self, group: Sequence[ExaminedTurn]) -> "list[_TurnPair]":
        """The turns on which an edit is tried, each with the turn before it, the newest last."""
        pairs: list[_TurnPair] = []
        size = 0
        for each in reversed(group[-MOST_COMPARED:]):
            try:
                old = await self._examiner.load(each.turn.previous)
                new = await self._examiner.load(each.turn.exchange)
            except Fault:
                continue  # retention has removed its bodies
            size += len(old.sent) + len(new.sent)
            if pairs and size > _MOST_BYTES:
                break
            before, now = (Draft.of(one.sent, one.spoken, one.model) for one in (old, new))
            pairs.append(_TurnPair(each, old, new, TurnPair(before, now, each.turn.autopsy.pointer)))
        return pairs[::-1]


@dataclass(frozen=True)
class _TurnPair:
    """A turn that lost cached tokens, and the turn before it."""

    examined: ExaminedTurn
    old: RecordedExchange
    new: RecordedExchange
    turns: TurnPair

    @property
    def session(self) -> str:
        return self.new.summary.session

    def measure_saving(self, mask: Mask, examiner: TurnExaminer) -> tuple[int, float | None]:
        """How many more tokens the turn would have read from the cache if this edit had been applied to both turns, and
        what they are worth. A request to which the edit does not apply is sent unchanged."""
        facts, estimator = examiner.viewer.measures(self.new)
        scope = {"session": self.session, "project": project_of(self.session)}
        requests = [apply_masks(draft, (mask,), **scope)[0].request for draft in (self.turns.before, self.turns.now)]
        if requests[0] is None or requests[1] is None:
            return 0, 0.0
        expected = expect_read(turn_of(self.old, requests[0]), turn_of(self.new, requests[1]), estimator, facts)
        autopsy = self.examined.turn.autopsy
        saved = max(0, min(expected or 0, autopsy.could_tokens) - autopsy.read_tokens)
        return saved, price_loss(self.examined.usage, saved, facts.prices)


def _groups(examined: Iterable[ExaminedTurn]) -> dict[tuple[Cause, str], list[ExaminedTurn]]:
    """The turns with a single cause, by cause and section."""
    groups: dict[tuple[Cause, str], list[ExaminedTurn]] = {}
    for each in examined:
        autopsy = each.turn.autopsy
        is_too_long = autopsy.cause == "expired" and (autopsy.idle or 0.0) > _HOUR
        if autopsy.cause in _ADVICE and autopsy.lost_tokens and not autopsy.also and not is_too_long:
            groups.setdefault((autopsy.cause, each.turn.section_name), []).append(each)
    return groups


def _scope_of(sessions: set[str]) -> tuple[Keep, str]:
    """The scope and its name for an edit that would have helped in all of these sessions."""
    projects = {project_of(session) for session in sessions}
    if len(sessions) == 1 and "" not in sessions:
        return "session", next(iter(sessions))
    return ("project", next(iter(projects))) if len(projects) == 1 and "" not in projects else ("all", "")


def _masks_for(cause: Cause, turns: TurnPair, scope: Keep, name: str) -> Iterator[tuple[str, str, Mask]]:
    """The edits to try for a cause: the label of each, the words that it affects, and its mask."""
    edits: list[CacheEdit | None] = []
    match cause:
        case "system" | "messages":
            edits = [turns.hold_words("move"), turns.hold_words("freeze"), turns.hold_words("strip")]
        case "tools":
            edits = [turns.hold_words("freeze")]
            for tool in turns.new_tools():
                yield f"Leave out {tool}", tool, _mask(scope, name, strip=Strip(what="tool", tool=tool))
        case "tools_order":
            edits = [turns.order_tools()]
        case "settings" | "format" | "cache_key":
            edits = [turns.keep_option(_options_of(cause, turns))]
        case "expired":
            edits = [CacheEdit(action="mark", ttl="1h")]
        case "marks_missing" | "marks_moved" | "marks_limit":
            edits = [CacheEdit(action="mark")]
        case _:
            pass
    for edit in edits:
        if edit is not None:
            label = "Ask for an hour" if edit.ttl else _LABELS[edit.action]
            words = " … ".join(turns.words_of(edit)) or ", ".join(edit.names) or edit.pointer
            yield label, words[:200], _mask(scope, name, cache=edit)


def _mask(scope: Keep, name: str, *, cache: CacheEdit | None = None, strip: Strip | None = None) -> Mask:
    return with_id(Mask(kind="strip" if cache is None else "cache", scope=scope, name=name, cache=cache, strip=strip))


def _options_of(cause: Cause, turns: TurnPair) -> list[str]:
    """The pointers to the options that this cause is about, in either turn."""
    places: list[str] = []
    for request in (turns.before.request, turns.now.request):
        if request is None:
            continue
        options = request.options
        match cause:
            case "settings":
                values = (options.reasoning, request.tool_choice)
                places += [value.at for value in values if value is not None and value.at]
            case "format":
                places += [options.format.at] if options.format is not None and options.format.at else []
            case _:
                places += [turns.option_with(options.cache_key)] if options.cache_key else []
    return [place for place in dict.fromkeys(places) if place]


def _sum_money(group: Iterable[ExaminedTurn]) -> float | None:
    known = [each.turn.autopsy.money for each in group]
    return None if None in known else fsum(money for money in known if money is not None)


def _savings_with_hour_ttl(examined: Iterable[ExaminedTurn], group: Sequence[ExaminedTurn]) -> float | None:
    """How much less all turns would have cost if every cache write had been for an hour, so that the turns of the group
    had found the cache. None if prices are missing."""
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


_NO_MATCH = Fault(Code.USAGE, "no request matches", hint="`sightline traffic` lists what is on record.", status=404)
MOST_AT_ONCE: Final = 20
"""How many turns can be examined by their ids in one call."""
GROUPS: Final = {name: group_readers(None)[name] for name in ("day", "client", "model", "session")}
"""The groups by which causes can be summed."""


class CacheCause(msgspec.Struct, frozen=True, kw_only=True):
    """What one cause has lost. `money` is the known part, `unpriced` counts the turns for which it is not known. `key`
    is the day, the client or whatever else causes are summed by."""

    key: str
    cause: Cause
    reason: str
    turns: int
    lost_tokens: int
    money: float
    unpriced: int


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """All turns, the oldest first. `is_cut`: there are more, older ones. `agreed` and `disagreed` count the turns for
    which the provider reports a reason itself."""

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
    """Sums up the results of the examiner."""

    def __init__(self, examiner: TurnExaminer) -> None:
        self._examiner, self._records = examiner, examiner.viewer.records
        self._adviser = CacheAdviser(examiner)

    async def read(self, query: Query) -> CacheReport:
        """The HTTP call `GET /api/cache?session=…&filter=…&by=…`, or `?exchange=…` for only some turns, separated by
        commas. Without any of these, the session of the latest request."""
        asked = query.text("session"), query.text("filter"), query.text("by")
        return await self.report(*asked, exchange=query.text("exchange"))

    async def report(self, session: str = "", wanted: str = "", by: str = "", *, exchange: str = "") -> CacheReport:
        """Examine the turns of a session, or those that match a filter; with `exchange`, only those turns, if the
        provider counted them. `by` names one of the groups. Raises a Fault if there are no such turns."""
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
                        raise  # one of several may have been removed since the page showed it
            sessions = {summary.session for summary in summaries}
            shared = sessions.pop() if len(sessions) == 1 else ""
            return await self._sum_up(
                shared, await self._examiner.examine(summaries), key_of, is_cut=False, has_advice=len(ids) == 1
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
