"""Sessions: the turns of a client's conversation in order, with the requests that each of them caused.

A session is what a client named as one, or one conversation if it named none. The turns come only from the summaries in
the record. What each turn called, what filled its context and where the cache broke requires reading its body, so the
page requests it turn by turn.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Final, Literal
from urllib.parse import unquote

import msgspec

from sightline.editing.section import Section, call_words
from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import read_summaries
from sightline.filters.parsing import parse
from sightline.model.parts import ToolCall
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import Cause
from sightline.web.bodies import Query
from sightline.wire.cache import BoundedCache
from sightline.workbench.cache_turns import CacheTurn, TurnExaminer
from sightline.workbench.context import NAMES, ContextRow, server_of, share_by_parts
from sightline.workbench.session_lines import SessionSums, not_on_record, sum_session, take_first

MOST_REQUESTS: Final = 5_000
"""How many of a session's latest requests are shown."""
MOST_TURNS: Final = 20
"""How many turns' details are read in one call: each may have a body of several megabytes."""
_SIDE_REQUEST_SECONDS = 600
"""A side request belongs to the nearest turn of its session, if it is within so many seconds."""
_REMEMBERED = 2_000
_FILE_READERS = frozenset({"read", "read_file", "view", "view_file", "cat", "open_file", "read_many_files"})

ThreadKind = Literal["conversation", "agent", "side", "replay"]


class SessionTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a session. `asked` is what the user wrote, empty if a turn only brings tool results. `total` is
    the cost of the session after it, with everything that it caused. `below` are the requests that it caused.
    `is_estimated`: the provider did not count its tokens."""

    id: str
    at: float
    state: str
    model: str
    asked: str
    status: int
    fault: str
    tools: tuple[str, ...]
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost: float | None
    total: float
    elapsed: float | None
    is_estimated: bool = False
    below: tuple["SessionThread", ...] = ()


class SessionThread(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that continue each other, in order: a conversation, a sub-agent's conversation, a side request,
    or a replay. `requests` and `cost` include everything below."""

    kind: ThreadKind
    title: str
    requests: int
    cost: float
    turns: tuple[SessionTurn, ...]


class SessionShown(SessionSums, frozen=True, kw_only=True):
    """A session with its threads; with `is_cut`, older requests are left out."""

    models: tuple[str, ...]
    is_cut: bool
    threads: tuple[SessionThread, ...]


class CacheBreak(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn lost of the tokens that the provider had cached, or would have. `kind`: the prompt changed, or it did
    not and the provider still read less from its cache. `section` and `pointer` are where the prompt changed since the
    turn `previous`."""

    kind: Literal["changed", "missed"]
    tokens: int
    kept: int
    reason: str
    section: str = ""
    pointer: str = ""
    money: float | None = None
    cause: Cause = ""
    previous: str = ""


class TurnDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What the body and the reply of a turn contain: the calls in words, what filled the context by kind, and where the
    cache broke. `is_gone`: the body is no longer recorded."""

    id: str
    calls: tuple[str, ...] = ()
    kinds: tuple[ContextRow, ...] = ()
    broken: CacheBreak | None = None
    is_gone: bool = False


class SessionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request is in its session: number `turn` of the `turns` of its thread, and its neighbours. `turn` is 0
    for a request that is not shown in the session; `above` is the turn that caused its thread, empty if none did."""

    key: str
    session: str
    turn: int
    turns: int
    previous: str
    next: str
    above: str


# --- the turns, from the summaries in the record ---


@dataclass(slots=True, eq=False)
class _Thread:
    """Requests with the same root, while they are being sorted."""

    lines: list[Summary] = field(default_factory=list)
    above: Summary | None = None
    kind: ThreadKind = "conversation"


def arrange(summaries: Iterable[Summary]) -> tuple[SessionThread, ...]:
    """The conversations of these requests, the oldest first. Threads that a turn caused are below it."""
    lines = sorted(summaries, key=lambda line: (line.at, line.id))
    threads = _threads(lines)
    below: dict[str, list[_Thread]] = {}
    for thread in threads:
        _place(thread, threads)
        if thread.above is not None:
            below.setdefault(thread.above.id, []).append(thread)
    total = [0.0]
    return tuple(_render_thread(thread, below, total) for thread in threads if thread.above is None)


def _threads(lines: Sequence[Summary]) -> list[_Thread]:
    """The threads of these requests. Side requests and replays are separate threads; all others are grouped
    by their first request."""
    known = {line.id: line for line in lines}
    roots: dict[str, str] = {}
    found: dict[str, _Thread] = {}
    for line in lines:  # the oldest first, so that the root of the request that it continues is known
        before = "" if line.is_side or line.origin else line.previous
        root = roots.get(before, line.id) if before in known else line.id
        roots[line.id] = root
        found.setdefault(root, _Thread()).lines.append(line)
    return list(found.values())


def _place(thread: _Thread, threads: Sequence[_Thread]) -> None:
    """Find the turn that caused a thread: the replayed one, the nearest one for a side request, or the one
    whose tool calls were pending when a sub-agent began."""
    first = thread.lines[0]
    others = [other for other in threads if other is not thread]
    if first.origin:
        thread.kind = "replay"
        thread.above = next((line for other in others for line in other.lines if line.id == first.origin), None)
    elif first.is_side:
        thread.kind = "side"
        turns = [line for other in others for line in other.lines if not line.is_side and not line.origin]
        near = min(turns, key=lambda line: abs(line.at - first.at), default=None)
        thread.above = near if near is not None and abs(near.at - first.at) <= _SIDE_REQUEST_SECONDS else None
    else:
        thread.above = _calling_turn(first, others)
        if thread.above is not None:
            thread.kind = "agent"


_CLOCK_GAP = 0.1
"""Seconds by which an answer may seem to end too late: on a busy machine, time passes between the reading of the clock
that dates a request and the one from which its duration is measured, and a local client sends its next request at
once."""


def _calling_turn(first: Summary, others: Iterable[_Thread]) -> Summary | None:
    """The turn that had called tools and was waiting for them when this request arrived; the latest of several."""
    waiting = []
    for other in others:
        if other.lines[0].is_side or other.lines[0].origin or other.lines[0].at >= first.at:
            continue
        earlier = [line for line in other.lines if line.at < first.at]
        turn = earlier[-1]
        is_last = len(earlier) == len(other.lines)
        has_answered = turn.state == "finished" and turn.at + (turn.elapsed or 0.0) <= first.at + _CLOCK_GAP
        # A conversation that was never continued may have ended there; only a tool that starts agents shows otherwise.
        if has_answered and turn.tools and (not is_last or any(_starts_agents(name) for name in turn.tools)):
            waiting.append(turn)
    return max(waiting, key=lambda line: line.at, default=None)


def _starts_agents(tool: str) -> bool:
    return "agent" in tool.lower() or tool.lower() in ("task", "delegate", "dispatch")


def _render_thread(thread: _Thread, below: Mapping[str, list[_Thread]], total: list[float]) -> SessionThread:
    """A thread with everything below it. `total` is the running sum of the whole session."""
    turns, asked, requests, costs = [], "", len(thread.lines), []
    for line in thread.lines:
        total[0] += line.cost or 0.0
        costs.append(line.cost or 0.0)
        inner = tuple(_render_thread(each, below, total) for each in below.get(line.id, ()))
        requests += sum(each.requests for each in inner)
        costs += [each.cost for each in inner]
        own = {"asked": "" if line.title == asked else line.title, "total": total[0], "below": inner}
        turns.append(msgspec.convert(msgspec.structs.asdict(line) | own, SessionTurn))
        asked = line.title
    return SessionThread(
        kind=thread.kind, title=thread.lines[0].title, requests=requests, cost=fsum(costs), turns=tuple(turns)
    )


def show_session(key: str, summaries: Sequence[Summary], *, is_cut: bool = False) -> SessionShown:
    """A session with at least one request."""
    lines = sorted(summaries, key=lambda line: (line.at, line.id))
    threads = arrange(lines)
    return SessionShown(
        **msgspec.structs.asdict(sum_session(key, lines, sum(len(thread.turns) for thread in threads))),
        models=tuple(dict.fromkeys(line.model for line in lines if line.model)),
        is_cut=is_cut,
        threads=threads,
    )


def place_of(exchange: str, session: SessionShown) -> SessionPlace:
    place = SessionPlace(key=session.key, session=session.session, turn=0, turns=0, previous="", next="", above="")
    for thread, above in _all_threads(session.threads):
        ids = [turn.id for turn in thread.turns]
        if exchange in ids:
            at = ids.index(exchange)
            previous, following = ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""
            return msgspec.structs.replace(
                place, turn=at + 1, turns=len(ids), previous=previous, next=following, above=above
            )
    return place


def _all_threads(threads: Iterable[SessionThread], above: str = "") -> Iterator[tuple[SessionThread, str]]:
    """These threads and everything below them, each with the turn that caused it."""
    for thread in threads:
        yield thread, above
        for turn in thread.turns:
            yield from _all_threads(turn.below, turn.id)


# --- the details of a turn, from its body and its reply ---


def growth_of(sections: Iterable[Section], client: str = "") -> tuple[ContextRow, ...]:
    """What fills the context, by kind, the largest first. Tools of MCP servers are grouped by server, and the results
    of tools that read files are separate from others."""
    sums: dict[str, int] = {}
    for section in sections:
        if section.tokens is None or section.deleted:
            continue
        names = {answer.call_id: answer.name for answer in section.answers}
        for part, kind, tokens in share_by_parts(section):
            name = NAMES[kind]
            if kind == "tools" and part is not None and (server := server_of(part.name, client)):
                name = f"Tools of {server}"
            elif kind == "tool_result" and part is not None and _reads_files(names.get(part.call_id, part.name)):
                name = "Files read"
            sums[name] = sums.get(name, 0) + tokens
    rows = (ContextRow(name=name, tokens=tokens) for name, tokens in sums.items() if tokens)
    return tuple(sorted(rows, key=lambda row: (-row.tokens, row.name)))


def _reads_files(tool: str) -> bool:
    return tool.rpartition("__")[2].lower() in _FILE_READERS


def break_of(turn: CacheTurn | None) -> CacheBreak | None:
    """What a turn lost of the cache; None if nothing, or if its prompt is too short for any cache."""
    if turn is None or not turn.autopsy.lost_tokens or turn.autopsy.cause == "below_minimum":
        return None
    autopsy = turn.autopsy
    return CacheBreak(
        kind="changed" if autopsy.offset is not None else "missed",
        tokens=autopsy.lost_tokens,
        kept=autopsy.read_tokens,
        reason=turn.reason,
        section=turn.section,
        pointer=autopsy.pointer,
        money=autopsy.money,
        cause=autopsy.cause,
        previous=turn.previous,
    )


class Sessions:
    """Reads sessions from the record."""

    def __init__(self, examiner: TurnExaminer, now: Callable[[], float]) -> None:
        self._viewer, self._examiner, self._now = examiner.viewer, examiner, now
        self._records, self._lines = examiner.viewer.records, examiner.lines
        self._known: BoundedCache[str, TurnDetails] = BoundedCache(_REMEMBERED)

    async def read(self, name: str) -> SessionShown:
        """The HTTP call `GET /api/sessions/NAME`: a session by its name, or by the id of one of its requests."""
        return await self._find(unquote(name))

    async def place(self, exchange: str) -> SessionPlace:
        """The HTTP call `GET /api/exchanges/ID/place`."""
        return place_of(exchange, await self._find(exchange))

    async def details(self, query: Query) -> dict[str, list[TurnDetails]]:
        """The HTTP call `GET /api/turns?ids=…`: the details of up to 20 turns, in the order of their ids."""
        wanted = [each for each in query.text("ids").split(",") if each]
        if not 1 <= len(wanted) <= MOST_TURNS:
            hint = f"Name 1 to {MOST_TURNS} exchanges with commas: ?ids=x_1,x_2."
            raise Fault(Code.INVALID_REQUEST, f"{len(wanted)} turns were asked for", hint=hint, status=400)
        summaries = {each: await self._records.summary(each, await self._records.facts(each)) for each in wanted}
        examined = await self._examiner.examine([line for name, line in summaries.items() if name not in self._known])
        turns = {each.turn.exchange: each.turn for each in examined}
        return {"turns": [await self._details(each, turns.get(each)) for each in wanted]}

    async def _details(self, exchange: str, turn: CacheTurn | None) -> TurnDetails:
        known = self._known.get(exchange)
        if known is not None:
            return known
        try:
            recorded = await self._records.read(exchange)
            look = await self._viewer.view_recorded(recorded, recorded.spoken)
        except Fault:
            return TurnDetails(id=exchange, is_gone=True)
        found = TurnDetails(
            id=exchange,
            calls=_calls(recorded),
            kinds=growth_of(look.sections, recorded.summary.client),
            broken=break_of(turn),
        )
        if recorded.end is not None:  # only an ended exchange no longer changes
            self._known.put(exchange, found)
        return found

    async def _find(self, name: str) -> SessionShown:
        await self._records.store.settle()
        if (one := await self._line(name)) is not None:
            if not one.session:
                return await self._conversation(one)
            name = one.session
        found = await take_first(self._lines.read(name), MOST_REQUESTS + 1)
        if not found:
            raise not_on_record(name)
        return show_session(name, found[:MOST_REQUESTS], is_cut=len(found) > MOST_REQUESTS)

    async def _line(self, exchange: str) -> Summary | None:
        """The summary of an exchange; None if there is no such exchange."""
        if not exchange.startswith("x_"):
            return None
        try:
            return await self._records.summary(exchange, await self._records.facts(exchange))
        except Fault:
            return None

    async def _conversation(self, one: Summary) -> SessionShown:
        """The conversation of a request without a session: the requests that it continues, and all that continue
        them."""
        before = {one.id: one}
        root: Summary = one
        while (earlier := root.origin or root.previous) and earlier not in before:
            line = await self._line(earlier)
            if line is None:
                break  # retention has removed it
            root = before[earlier] = line
        later: list[Summary] = []
        async for summary in read_summaries(self._records.store, parse(""), self._now()):
            if summary.at < root.at or len(later) > MOST_REQUESTS:
                break
            later.append(summary)
        taken = dict(before)
        for line in reversed(later):
            if (line.previous in taken or line.origin in taken) and not line.session:
                taken.setdefault(line.id, line)
        return show_session(root.id, list(taken.values()), is_cut=len(later) > MOST_REQUESTS)


def _calls(recorded: RecordedExchange) -> tuple[str, ...]:
    """The tool calls of the reply, in words."""
    parts = (part for choice in recorded.reply().choices for part in choice.parts)
    return tuple(call_words(part.name, part.arguments) for part in parts if isinstance(part, ToolCall))
