"""The recorded turns of sessions, each compared with the turn before it: why the provider's cache missed."""

from asyncio import sleep
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import CacheDiagnosis
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft
from sightline.errors import Fault
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.filters.parsing import parse
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.model.request import Request, of_message
from sightline.store.summary import Summary
from sightline.tokens.cache_autopsy import REASONS, CacheAutopsy, Turn, count_left, examine
from sightline.wire.cache import BoundedCache
from sightline.wire.jsontext import decode
from sightline.wire.sse import SseDecoder
from sightline.workbench.costs import only_counts
from sightline.workbench.session_lines import TURNS, SessionLines, take_first

MOST_TURNS: Final = 2000
"""How many turns are examined, the newest ones."""


class CacheTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn. `previous` is the turn that it is compared with; `section` is the section where the two begin to
    differ, `section_name` its label. `provider_reason` is the reason that the provider reports, and `agrees` whether it
    matches the cause found here; None if the provider reports none."""

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


@dataclass(frozen=True)
class ExaminedTurn:
    """A turn with what is needed to sum it up and to advise."""

    turn: CacheTurn
    line: Summary
    usage: Usage
    facts: Facts


class TurnExaminer:
    """Reads the turns of sessions from the record and examines them."""

    def __init__(self, viewer: Viewer, now: Callable[[], float]) -> None:
        self.viewer, self.lines = viewer, SessionLines(viewer.records, now)
        self._records = viewer.records
        self._known: BoundedCache[str, ExaminedTurn] = BoundedCache(MOST_TURNS)

    async def load(self, exchange: str) -> RecordedExchange:
        """Load a turn with its bodies. Raises a Fault if they are no longer recorded."""
        summary = await self._records.summary(exchange, await self._records.facts(exchange))
        return await load_exchange(self._records.store, summary)

    async def examine(self, lines: Sequence[Summary]) -> list[ExaminedTurn]:
        """Examine these turns, each compared with the turn before it in its session. The result has no turns that the
        provider did not count, or whose bodies are no longer recorded."""
        found: list[ExaminedTurn] = []
        for session in dict.fromkeys(line.session for line in lines):
            wanted = {line.id for line in lines if line.session == session}
            found += await self.examine_turns((await self.find_turns(session, ""))[:MOST_TURNS], wanted)
        return found

    async def find_turns(self, session: str, wanted: str) -> list[Summary]:
        """The turns, newest first: requests that a provider counted, without side requests and without
        requests that only count tokens."""
        terms = [TURNS, "input>0"]
        if wanted:
            parse(wanted)  # so that a mistake is reported without our own terms
            terms.append(f"({wanted})")
        lines = self.lines.read(None if wanted and not session else session, *terms)
        return await take_first((line async for line in lines if not only_counts(line)), MOST_TURNS + 1)

    async def examine_turns(self, lines: Sequence[Summary], wanted: Collection[str] | None) -> list[ExaminedTurn]:
        """Examine the wanted turns, the oldest first; all of them if `wanted` is None."""
        examined = []
        continued = {line.previous for line in lines}
        latest: dict[str, Summary] = {}
        earlier: dict[str, Summary] = {}
        for line in sorted(lines, key=lambda line: line.at):
            before = latest.get(line.session)
            is_open = before is not None and before.id in continued and before.id != line.previous
            if wanted is None or line.id in wanted:
                found = self._known.get(line.id)
                if found is None:
                    found = await self._examine(line, earlier.get(line.previous), None if is_open else before)
                    await sleep(0)  # a long session must not make others wait
                examined += [] if found is None else [found]
                if found is not None and line.state == "finished":  # otherwise it may still change
                    self._known.put(line.id, found)
            latest[line.session] = earlier[line.id] = line
        return examined

    async def _examine(self, line: Summary, likely: Summary | None, latest: Summary | None) -> ExaminedTurn | None:
        """Examine one turn; None if its body is no longer recorded, or its provider counted nothing. `likely` is the
        turn that it continues; `latest` is the turn before it in the session, unless that one is on another branch."""
        store = self._records.store
        exchange = await load_exchange(store, line, needs_bodies=False)
        usage = _usage_by_provider(exchange)
        if usage is None or usage.input_tokens is None:
            return None
        facts, estimator = self.viewer.measures(exchange)
        if likely is not None and (latest is None or likely is latest):
            before = await load_exchange(store, likely, needs_bodies=False)
            left = count_left(_usage_by_provider(before), dialect(exchange.spoken).cache, facts)
            read = usage.cached_tokens or 0
            if left and read >= left:  # the usual case, in which no body is needed
                whole = CacheAutopsy(cause="", could_tokens=read, read_tokens=read, idle=line.at - likely.at)
                return ExaminedTurn(_turn(exchange, likely.id, whole, None), line, usage, facts)
        try:
            exchange = await load_exchange(store, line)
            request = exchange.request()
        except Fault:
            return None
        before_it = await self._baseline(exchange, request, likely, latest)
        autopsy = examine(before_it and turn_of(*before_it), turn_of(exchange, request), estimator, facts)
        draft = Draft.of(exchange.sent, exchange.spoken, exchange.model) if autopsy.pointer else None
        return ExaminedTurn(_turn(exchange, before_it[0].id if before_it else "", autopsy, draft), line, usage, facts)

    async def _baseline(
        self, exchange: RecordedExchange, request: Request, likely: Summary | None, latest: Summary | None
    ) -> tuple[RecordedExchange, Request] | None:
        """The earlier turn that has most of the conversation in common: the turn that this one continues, or the latest
        of the session if a message was changed since, so that this one continues an older turn. None for the beginning
        of a conversation."""
        ranked: list[tuple[int, RecordedExchange, Request]] = []
        continued = None if likely is not None else await self._records.previous(exchange.id)
        known = [] if continued is None else [continued]
        for line in (likely, latest if latest is not likely else None):
            try:
                known += [] if line is None else [await load_exchange(self._records.store, line)]
            except Fault:
                continue  # retention has removed its bodies
        for before in known:
            try:
                asked = before.request()
            except Fault:
                continue  # not a valid request in its dialect; some providers answer it nevertheless
            ranked.append((_count_shared(asked, request), before, asked))
        if not ranked:
            return None
        most, before, asked = max(reversed(ranked), key=lambda each: each[0])  # the latest of equals
        begins = not any(message.role == "assistant" for message in request.messages)
        return None if most == 0 and begins else (before, asked)


def _usage_by_provider(exchange: RecordedExchange) -> Usage | None:
    """What the provider counted; None if it is only an estimate. For an interrupted answer, the provider may have
    counted the prompt and its cached part, while the output is estimated."""
    usage = exchange.usage
    is_guess = usage is not None and usage.is_estimated and usage.cached_tokens is None
    return None if is_guess else usage


def _count_shared(one: Request, other: Request) -> int:
    """How many messages at the beginning of the conversation are the same."""
    count = 0
    spoken = (
        [each for each in request.messages if each.role not in ("system", "developer")] for request in (one, other)
    )
    for old, new in zip(*spoken, strict=False):
        if old != new and of_message(old) != of_message(new):
            break
        count += 1
    return count


def turn_of(exchange: RecordedExchange, request: Request) -> Turn:
    """A recorded exchange in the form that the autopsy compares, with this request in place of the one that was
    sent."""
    rules = dialect(exchange.spoken).cache
    sent = {name.lower(): value for name, value in exchange.received.headers}
    got = {name.lower(): value for name, value in exchange.headers}
    betas = ",".join(sent.get(name, "") for name in rules.betas)
    return Turn(
        request=request,
        at=exchange.summary.at,
        usage=_usage_by_provider(exchange),
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
    """The reason that the provider reports for a cache miss, and the tokens that it reports as missed; empty and None
    if it reports nothing."""
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
                continue  # a frame that is not JSON
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
