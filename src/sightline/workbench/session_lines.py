"""The lines of a session in the record: all of them, newest first, or the latest turn."""

from collections.abc import AsyncIterator, Callable
from typing import Final

from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Records
from sightline.filters.parsing import parse
from sightline.store.summary import Summary
from sightline.workbench.costs import read_summaries

TURNS: Final = "!side:yes"
"""The filter of requests that are no errand of a client, such as a title."""
_COUNTS = ("/count_tokens", ":countTokens")
_LOOKED_AT = 20
"""Among so many of the latest requests there is a turn, unless a client does nothing but count."""


class SessionLines:
    """Reads them. What has just ended is on record before anything is read."""

    def __init__(self, records: Records, now: Callable[[], float]) -> None:
        self._store, self._now = records.store, now

    async def read(self, session: str | None, *terms: str) -> AsyncIterator[Summary]:
        """The requests of the session with this very name that all these filters take, newest first; with None, those
        of any session. The empty name is that of requests without one."""
        await self._store.settle()
        wanted = [*terms, *([] if session is None else [f"session:{quote_value(session)}"])]
        async for summary in read_summaries(self._store, parse(" & ".join(wanted)), self._now()):
            if session is None or summary.session == session:  # the filter does not tell upper from lower case
                yield summary

    async def latest_turn(self, session: str) -> Summary:
        """The latest request of the session, or of any with an empty name, that carries a conversation. Raises a Fault
        if none is on record."""
        count = 0
        async for summary in self.read(session or None, TURNS):
            if is_turn(summary):
                return summary
            count += 1
            if count == _LOOKED_AT:
                break
        raise not_on_record(session)


def is_turn(summary: Summary) -> bool:
    """Whether it carries a conversation: mere counts of tokens do not."""
    return not summary.path.partition("?")[0].endswith(_COUNTS)


def quote_value(text: str) -> str:
    """A text as a value in a filter."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def not_on_record(session: str) -> Fault:
    """No request of this session is on record, or none at all."""
    message = f"no request of the session {session[:80]!r} is on record" if session else "nothing is on record"
    hint = "`sightline costs --by session` lists the sessions on record; `sightline traffic` lists their requests."
    return Fault(Code.USAGE, message, hint=hint, status=404)
