"""The summaries of sessions in the record: all sessions, the requests of one, newest first, or its latest turn."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final

import msgspec

from sightline.editing.masks import project_of
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Records, read_summaries
from sightline.filters.expression import TextTerm, both
from sightline.filters.parsing import parse
from sightline.filters.predicate import literal
from sightline.store.summary import Summary
from sightline.web.bodies import Query
from sightline.workbench.costs import add_up, list_filter, only_counts

TURNS: Final = "!side:yes"
"""The filter that excludes side requests of a client, such as for a title."""
_LOOKED_AT = 20
"""Among so many of the latest requests there is a turn, unless a client only counts tokens."""


class SessionLines:
    """Reads the summaries of sessions. Everything recorded before the call is included."""

    def __init__(self, records: Records, now: Callable[[], float]) -> None:
        self._store, self._now = records.store, now

    async def read(self, session: str | None, *terms: str) -> AsyncIterator[Summary]:
        """The requests of the session with exactly this name that match all these filters, newest first; with None,
        those of any session. The empty name means requests without a session."""
        await self._store.settle()
        wanted = parse(" & ".join(terms))
        if session is not None:
            wanted = both(wanted, TextTerm("session", literal(session)))
        async for summary in read_summaries(self._store, wanted, self._now()):
            if session is None or summary.session == session:  # the filter is case-insensitive
                yield summary

    async def list(self, query: Query) -> dict[str, "list[SessionBrief]"]:
        """The HTTP call `GET /api/sessions`: the sessions of the requests that match a filter."""
        await self._store.settle()
        found = read_summaries(self._store, list_filter(query), self._now())
        return {"sessions": list_sessions(await take_first(found, MOST_LISTED))}

    async def latest_turn(self, session: str) -> Summary:
        """The latest request of the session that carries a conversation; with an empty name, of any session. Raises a
        Fault if none is recorded."""
        count = 0
        async for summary in self.read(session or None, TURNS):
            if not only_counts(summary):
                return summary
            count += 1
            if count == _LOOKED_AT:
                break
        raise not_on_record(session)


async def take_first(summaries: AsyncIterator[Summary], most: int) -> list[Summary]:
    """The first of these, at most so many."""
    found: list[Summary] = []
    async for summary in summaries:
        found.append(summary)
        if len(found) == most:
            break
    return found


MOST_LISTED: Final = 50_000
"""How many of the latest requests the list of sessions is made from."""


class SessionSums(msgspec.Struct, frozen=True, kw_only=True):
    """What every view of a session shows. `key` is its name in URLs: the session's name, or the id of the first request
    of a conversation without one. `turns` are its requests that carry a conversation; `unpriced` requests have tokens
    whose cost is not known; `estimated_cost` is the part of the cost for requests that the provider did not count."""

    key: str
    session: str
    client: str
    began: float
    ended: float
    turns: int
    requests: int
    failed: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    unpriced: int
    estimated_cost: float


class SessionBrief(SessionSums, frozen=True, kw_only=True):
    """A session in a list."""

    title: str
    project: str


def sum_session(key: str, lines: Sequence[Summary], turns: int) -> SessionSums:
    """The sums of a session with at least one request, oldest first."""
    own = {
        "key": key,
        "session": lines[-1].session,
        "client": lines[-1].client,
        "began": lines[0].at,
        "ended": max(line.at + (line.elapsed or 0.0) for line in lines),
        "turns": turns,
    }
    return msgspec.convert(msgspec.structs.asdict(add_up(lines)) | own, SessionSums)


def list_sessions(summaries: Iterable[Summary]) -> list[SessionBrief]:
    """The sessions of these requests, the most recently active first. Requests without a session are grouped by
    conversation."""
    roots: dict[str, str] = {}
    groups: dict[str, list[Summary]] = {}
    for line in sorted(summaries, key=lambda line: (line.at, line.id)):
        before = line.origin or line.previous
        roots[line.id] = roots.get(before, line.id)
        groups.setdefault(line.session or roots[line.id], []).append(line)
    briefs = [_brief(key, lines) for key, lines in groups.items()]
    return sorted(briefs, key=lambda brief: -brief.ended)


def _brief(key: str, lines: list[Summary]) -> SessionBrief:
    turns = [line for line in lines if not line.is_side and not line.origin and not only_counts(line)]
    return SessionBrief(
        **msgspec.structs.asdict(sum_session(key, lines, len(turns))),
        title=next((line.title for line in turns if line.title), lines[0].title),
        project=project_of(lines[-1].session),
    )


def not_on_record(session: str) -> Fault:
    """The fault for a session without a recorded request, or for an empty record."""
    message = f"no request of the session {session[:80]!r} is on record" if session else "nothing is on record"
    hint = "`sightline costs --by session` lists the sessions on record; `sightline traffic` lists their requests."
    return Fault(Code.USAGE, message, hint=hint, status=404)
