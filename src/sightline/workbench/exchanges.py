"""The record as the API gives it out: lists, and the exact bytes of bodies."""

from collections.abc import Callable
from urllib.parse import parse_qs

from sightline.errors import Code, Fault
from sightline.exchange.interception.holds import Holds
from sightline.exchange.recording.records import Records
from sightline.filters.parsing import parse
from sightline.model.json import JsonObject
from sightline.store.summary import Summary
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.web.bodies import one
from sightline.workbench.views import body_sha256, line, original_sha256, reply_of

MOST, USUAL = 500, 100
_BODIES = "of is sent, received, original, reply or held."


class Exchanges:
    """Reads the record. Every answer holds all that was recorded before it was asked for."""

    def __init__(self, records: Records, now: Callable[[], float], holds: Holds | None = None) -> None:
        self._records = records
        self._now = now
        self._holds = holds

    @property
    def trouble(self) -> str:
        """Why the record cannot be written at the moment; nothing if it can."""
        fault = self._records.store.trouble
        return "" if fault is None else fault.message

    async def newest(self, count: int) -> list[Summary]:
        """The last few."""
        await self._records.store.settle()
        return await self._records.store.find(parse(""), now=self._now(), limit=count)

    async def list_exchanges(self, query: str) -> JsonObject:
        """Those that a filter takes, newest first."""
        told = parse_qs(query, keep_blank_values=True)
        wanted = parse(one(told, "filter"))
        limit = _limit(one(told, "limit"))
        await self._records.store.settle()
        found = await self._records.store.find(wanted, now=self._now(), before=one(told, "before"), limit=limit)
        return {"exchanges": [line(summary) for summary in found]}

    async def summary(self, exchange: str) -> Summary:
        """One of them, in short."""
        return await self._records.summary(exchange, await self._records.facts(exchange))

    async def body(self, exchange: str, query: str) -> WebResponse:
        """The bytes that will go out or went, `of=received` those of the client, `of=original` those before any edit,
        `of=reply` those that came back, `of=held` the document under edit."""
        named = one(parse_qs(query, keep_blank_values=True), "of") or "sent"
        if named == "held":
            return await self._held_body(exchange)
        hold = None if self._holds is None else self._holds.find(exchange)
        if hold is not None and hold.phase == "request" and named in ("sent", "original"):
            # The facts do not say everything yet: a route that only renames the model leaves none before the attempt.
            data = hold.draft.data if named == "sent" else hold.draft.original
            return replies.data(data, b"application/json")
        facts = await self._records.facts(exchange)
        happened = [noted.fact for noted in facts]
        match named:
            case "sent":
                sha256 = body_sha256(happened)
            case "received":
                sha256 = body_sha256(happened[:1])
            case "original":
                sha256 = original_sha256(happened)
            case "reply":
                # A page among the answers must not become one of ours.
                return replies.data(reply_of(facts), b"text/plain; charset=utf-8")
            case other:
                raise Fault(Code.INVALID_REQUEST, f"there is no body {other[:40]!r}", hint=_BODIES, status=400)
        body = await self._records.store.body(sha256)
        if body is None:
            raise replies.not_found(f"body of {exchange!r}: the record no longer holds it")
        return replies.data(body, b"application/json")

    async def _held_body(self, exchange: str) -> WebResponse:
        hold = None if self._holds is None else self._holds.find(exchange)
        if hold is None:
            await self._records.facts(exchange)  # one that is not there at all is another mistake
            hint = "Leave `of` out for the body that was sent; GET /api/holds lists what is held."
            raise Fault(Code.INVALID_REQUEST, f"exchange {exchange!r} is not held", hint=hint, status=409)
        return replies.data(hold.draft.data, b"application/json")


def _limit(text: str) -> int:
    if not text:
        return USUAL
    try:
        return min(max(int(text), 1), MOST)
    except ValueError:
        hint = f"limit is a number from 1 to {MOST}."
        raise Fault(Code.INVALID_REQUEST, f"the limit is no number: {text[:40]!r}", hint=hint, status=400) from None
