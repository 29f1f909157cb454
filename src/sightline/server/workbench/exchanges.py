"""The record as the API gives it out: lists, single exchanges, and the exact bytes of their bodies."""

from collections.abc import Callable
from urllib.parse import parse_qs

from sightline.errors import Code, Fault
from sightline.filter.parsing import parse
from sightline.model.json import JsonObject
from sightline.server.asgi import Answer
from sightline.server.workbench import replies
from sightline.server.workbench.views import body_sha256, line, reply_of, view
from sightline.store.entries import Noted
from sightline.store.folding import PriceList, summary_of
from sightline.store.store import Store
from sightline.store.summary import Summary

MOST, USUAL = 500, 100


class Exchanges:
    """Reads the store. Every answer holds all that was recorded before it was asked for."""

    def __init__(self, store: Store, now: Callable[[], float], prices: PriceList) -> None:
        self._store = store
        self._now = now
        self._prices = prices

    @property
    def trouble(self) -> str:
        """Why the record cannot be written at the moment; nothing if it can."""
        fault = self._store.trouble
        return "" if fault is None else fault.message

    async def newest(self, count: int) -> list[Summary]:
        """The last few."""
        await self._store.settle()
        return await self._store.find(parse(""), now=self._now(), limit=count)

    async def listed(self, query: str) -> JsonObject:
        """Those that a filter takes, newest first."""
        told = parse_qs(query, keep_blank_values=True)
        wanted = parse(_one(told, "filter"))
        limit = _limit(_one(told, "limit"))
        await self._store.settle()
        found = await self._store.find(wanted, now=self._now(), before=_one(told, "before"), limit=limit)
        return {"exchanges": [line(summary) for summary in found]}

    async def summary(self, exchange: str) -> Summary:
        """One of them, in short."""
        return summary_of(exchange, await self._facts(exchange), self._prices)

    async def shown(self, exchange: str) -> JsonObject:
        """All that is known of one."""
        facts = await self._facts(exchange)
        return view(summary_of(exchange, facts, self._prices), facts)

    async def body(self, exchange: str, query: str) -> Answer:
        """The bytes that went out, `of=received` those of the client, `of=reply` those that came back."""
        facts = await self._facts(exchange)
        match _one(parse_qs(query, keep_blank_values=True), "of") or "sent":
            case "sent":
                sha256 = body_sha256([noted.fact for noted in facts])
            case "received":
                sha256 = body_sha256([facts[0].fact])
            case "reply":
                # A page among the answers must not become one of ours.
                return replies.data(reply_of(facts), b"text/plain; charset=utf-8")
            case other:
                hint = "of is sent, received or reply."
                raise Fault(Code.INVALID_REQUEST, f"there is no body {other!r}", hint=hint, status=400)
        body = await self._store.body(sha256)
        if body is None:
            raise replies.not_found(f"body of {exchange!r}: the record no longer holds it")
        return replies.data(body, b"application/json")

    async def _facts(self, exchange: str) -> list[Noted]:
        await self._store.settle()
        facts = await self._store.facts(exchange)
        if not facts:
            raise replies.not_found(f"exchange {exchange!r}")
        return facts


def _one(told: dict[str, list[str]], name: str) -> str:
    return told[name][-1] if name in told else ""


def _limit(text: str) -> int:
    if not text:
        return USUAL
    try:
        return min(max(int(text), 1), MOST)
    except ValueError:
        hint = f"limit is a number from 1 to {MOST}."
        raise Fault(Code.INVALID_REQUEST, f"the limit is no number: {text[:40]!r}", hint=hint, status=400) from None
