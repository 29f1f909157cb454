"""Spending caps: the most that a request can cost is reserved before it is sent, and settled with what it used.

A request that does not fit is refused, or held for a user, as the cap says. Without caps, none of this is created.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.editing.masks import project_of
from sightline.errors import Code, Fault
from sightline.exchange.client_request import session_of
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.rule_subject import subject_of
from sightline.exchange.memory import Memory
from sightline.exchange.phase import ExchangeEnd, FailedEnd, FinishedEnd
from sightline.exchange.reply_reader import read_so_far
from sightline.exchange.request_counter import RequestCounter, read_body
from sightline.filters.expression import Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.predicate import matches
from sightline.model.header_names import tag_of
from sightline.model.json import JsonObject
from sightline.model.parts import Text, Thinking, ToolCall
from sightline.model.reply import Reply, Usage, is_complete, possible
from sightline.settings import CapSettings
from sightline.store.caps import CapCounts, CapFullError
from sightline.store.summary import PriceList
from sightline.tokens.caps import (
    WARN_AT,
    BucketKey,
    CapUse,
    Claim,
    RequestBound,
    amount_used,
    amount_words,
    bucket_of,
    cap_words,
    limit_in,
    limit_of,
    measure_bound,
    measure_raw_bound,
    share_of,
    unit_of,
    usage_so_far,
)
from sightline.transport.waiting import run_to_end
from sightline.wire.secrets import secrets_of

_LOG = logging.getLogger(__name__)

_NO_LIMIT = (1 << 62) - 1
"""A limit that no sum reaches."""
_LARGE_BODY = 64 * 1024
"""Estimating a larger body takes milliseconds, so it is done in another thread."""
_MOST_NOTICES = 10_000
_CHARGED = re.compile(
    r"/(?:completions?|images/\w+|audio/\w+|videos|batches|interactions|fine_tuning/jobs)/*$|:(?:predict|batchGenerate|generate)\w*$"
)
"""Raw paths for which providers charge: those that create something, and not those that list or store."""
_ERROR = 400


@dataclass(slots=True)
class Reservation:
    """What is reserved for an exchange, until its end is known."""

    caps: "Caps"
    claims: tuple[Claim, ...]
    bound: RequestBound
    note: str = ""
    """The value of the header `x-sightline-cap`: the caps that are nearly reached."""


class Caps:
    """The caps of a configuration. `on_notice` is called once for each cap that is nearly reached."""

    def __init__(
        self,
        settings: Sequence[CapSettings],
        counts: CapCounts,
        prices: PriceList,
        memory: Memory,
        now: Callable[[], float],
    ) -> None:
        self.settings = tuple(settings)
        self.counts = counts
        self.on_notice: Callable[[JsonObject], None] | None = None
        self.forward: Callable[[CapUse], None] | None = None
        """Called by a worker to report a cap that is nearly reached to the main process, which announces it once for
        all workers."""
        self._caps: list[tuple[CapSettings, Expression]] = [
            (cap, parse(cap.filter, scope=FilterScope.RULES)) for cap in settings
        ]
        self._by_name = {cap.name: cap for cap in settings}
        self._prices = prices
        self._counter = RequestCounter(memory)
        self._counter_on_thread = RequestCounter(memory)
        """Its own, because an estimator must not be used by two threads at once."""
        self.now = now
        self._measuring = asyncio.Lock()
        self._settling: set[asyncio.Task[None]] = set()
        self._noticed: dict[tuple[BucketKey, int], None] = {}

    @property
    def may_hold(self) -> bool:
        """Whether a user may have to decide about a request."""
        return any(cap.action == "hold" for cap in self.settings)

    # --- before a request is sent ---

    async def reserve(self, exchange: Exchange) -> "OverCap | None":
        """Reserve the most that a request can cost. If a cap with the action "hold" does not allow it, nothing is
        reserved, and a user decides about the returned `OverCap`. Raises a fault if a cap refuses the request."""
        concerned = self._caps_for(exchange)
        if not concerned:
            return None
        was_sent, is_free = exchange.request.was_sent, exchange.choice.provider.embedded
        bound = await self._measure_request(exchange)
        unpriced: Fault | None = None
        claims: list[Claim] = []
        for cap in concerned:
            amount = 0 if is_free and cap.dollars is not None else bound.amount(unit_of(cap))
            if amount is None and cap.unpriced == "refuse" and not was_sent:
                unpriced = unpriced or _refuse_uncounted(cap, exchange)
            # What the provider already has can no longer be refused.
            limit = _NO_LIMIT if was_sent else limit_of(cap)
            claims.append(Claim(bucket_of(cap, _cap_dimensions(exchange), self.now()), amount or 0, limit))
        wanted = Reservation(self, tuple(claims), bound)
        if unpriced is not None:
            return OverCap(unpriced, wanted)
        full = await self._take(exchange, wanted)
        if full is None:
            return None
        cap = self._by_name[full.claim.key.cap]
        fault = _cap_fault(cap, full.claim, full.use)
        if cap.action == "refuse":
            raise fault
        return OverCap(fault, wanted)

    async def count_released(self, exchange: Exchange, over: "OverCap") -> None:
        """Count a request that a cap held and a user released, however much it costs. Raises a fault if another
        cap refuses it."""
        holding = {cap.name for cap in self.settings if cap.action == "hold"}
        claims = tuple(
            Claim(each.key, each.amount, _NO_LIMIT) if each.key.cap in holding else each for each in over.wanted.claims
        )
        full = await self._take(exchange, Reservation(self, claims, over.wanted.bound))
        if full is not None:
            raise _cap_fault(self._by_name[full.claim.key.cap], full.claim, full.use)

    async def _take(self, exchange: Exchange, wanted: Reservation) -> CapFullError | None:
        """Reserve this for the exchange; returns None, or the cap that is full."""
        taking = asyncio.ensure_future(self.counts.reserve(wanted.claims))
        try:
            uses = await asyncio.shield(taking)
        except CapFullError as full:
            return full
        except asyncio.CancelledError:  # the client has gone, but the database may have reserved it anyway
            taking.add_done_callback(lambda done: self._give_back(done, wanted))
            raise
        shares = ((use.key.cap, share_of(use, limit_of(self._by_name[use.key.cap]))) for use in uses)
        wanted.note = ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= WARN_AT)
        exchange.reservation = wanted
        return None

    def _give_back(self, done: "asyncio.Future[list[CapUse]]", wanted: Reservation) -> None:
        if not done.cancelled() and done.exception() is None:
            self._settle_later([(claim, 0) for claim in wanted.claims])

    async def reserve_raw(self, exchange: Exchange) -> "OverCap | None":
        """The same for a raw request. One that names a model, such as for embeddings, is counted by its bytes and the
        usage in its response; the cost of other charged requests cannot be known."""
        request = exchange.request
        if request.method != "POST":
            return None
        if request.model:
            return await self.reserve(exchange)
        return self.weigh_uncounted(exchange) if _CHARGED.search(request.path) else None

    def weigh_uncounted(self, exchange: Exchange) -> "OverCap | None":
        """What a user decides about if a holding cap concerns a request whose cost cannot be known, such as a WebSocket
        that is passed through. If it is released, it is not counted. None if no cap objects. Raises a fault if a cap
        refuses it."""
        faults = [_refuse_uncounted(cap, exchange) for cap in self._caps_for(exchange) if cap.unpriced == "refuse"]
        return OverCap(faults[0], Reservation(self, (), RequestBound(0, 0, None))) if faults else None

    def _caps_for(self, exchange: Exchange) -> list[CapSettings]:
        now = self.now()
        subject = subject_of(exchange, at=now)
        return [cap for cap, wanted in self._caps if matches(wanted, subject, now=now)]

    async def _measure_request(self, exchange: Exchange) -> RequestBound:
        if len(exchange.request.body) <= _LARGE_BODY:
            return self._measure(exchange, self._counter)
        async with self._measuring:
            # The thread goes on if the client leaves, and the next request must not use its counter until then.
            return await run_to_end(asyncio.to_thread(self._measure, exchange, self._counter_on_thread))

    def _measure(self, exchange: Exchange, counter: RequestCounter) -> RequestBound:
        asked, choice = exchange.request, exchange.choice
        body = asked.http_body or asked.body
        prices = self._prices(choice.provider_name, choice.model)
        if asked.method:
            return measure_raw_bound(body, choice.facts, prices, has_output=not asked.embeds)
        request = read_body(asked.dialect, body)
        tokens = 0 if request is None else counter.estimate(choice, request).high
        return measure_bound(request, tokens, choice.facts, prices, body)

    # --- after a request has ended ---

    def settle(self, reservation: Reservation, exchange: Exchange, end: ExchangeEnd) -> None:
        """Replace the reservation of an exchange that has ended with what it used."""
        choice = exchange.choice
        answered = end.reply.model or "" if isinstance(end, FinishedEnd) else ""
        found = (self._prices(choice.provider_name, name) for name in (answered, choice.model) if name)
        prices = next((each for each in found if each is not None), None)
        usage, was_billed = _usage_of(exchange, end, reservation.bound)
        taken = []
        for claim in reservation.claims:
            is_free = not was_billed or (choice.provider.embedded and claim.key.unit == "dollars")
            taken.append((claim, 0 if is_free else amount_used(claim.key.unit, usage, reservation.bound, prices)))
        self._settle_later(taken)

    def _settle_later(self, taken: "list[tuple[Claim, int]]") -> None:
        task = asyncio.get_running_loop().create_task(self._settle(taken))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, taken: "list[tuple[Claim, int]]") -> None:
        for claim, amount in taken:
            try:
                use = await self.counts.settle(claim.key, claim.amount, amount)
            except Fault as fault:  # the reservation stays, so that this never lets a cap be exceeded
                _LOG.error("cap %s could not be settled: %s", claim.key.cap, fault.message)
            else:
                self.notice(use)

    async def wait_until_settled(self) -> None:
        while self._settling:
            await asyncio.wait(set(self._settling))

    async def close(self) -> None:
        await self.wait_until_settled()
        await self.counts.close()

    # --- usage and notices ---

    def notice(self, use: CapUse) -> None:
        """Report once that a cap is nearly reached, and once that it is reached."""
        cap = self._by_name.get(use.key.cap)
        if cap is None:
            return
        share = share_of(use, limit_of(cap))
        level = 2 if share >= 1 else 1 if share >= WARN_AT else 0
        if not level or (use.key, level) in self._noticed:
            return
        if len(self._noticed) >= _MOST_NOTICES:
            self._noticed.clear()
        self._noticed[use.key, level] = None
        if self.forward is not None:
            self.forward(use)
            return
        words = f"the cap {cap_words(use.key, cap.per)} is at {share:.0%} of {_limit_words(cap, use)}"
        _LOG.warning("%s", words)
        if self.on_notice is not None:
            self.on_notice({"cap": cap.name, "share": share, "message": f"{words[0].upper()}{words[1:]}."})


@dataclass(frozen=True, slots=True)
class OverCap:
    """A request that a cap holds: the reason, and what would be reserved for it."""

    fault: Fault
    wanted: Reservation


def _cap_dimensions(exchange: Exchange) -> dict[str, str]:
    """The values that a cap can be `per`. A key is identified by a hash, since keys are never stored."""
    request = exchange.request
    session, keys = session_of(request), secrets_of(request.headers, request.query)
    return {
        "session": session,
        "project": project_of(session),
        "client": exchange.lane.caller.client,
        "tag": tag_of(session, request.headers),
        "key": hashlib.sha256(keys[0].encode()).hexdigest()[:12] if keys else "",
        "model": exchange.choice.model,
        "provider": exchange.choice.provider_name,
    }


def _usage_of(exchange: Exchange, end: ExchangeEnd, bound: RequestBound) -> "tuple[Usage | None, bool]":
    """What an exchange used, None if only the reservation is known; and whether it cost anything. A request that was
    never sent, or was refused by its provider, cost nothing."""
    status = exchange.recorder.status
    if not exchange.sent_body:
        return None, False
    match end:
        case FinishedEnd(reply=reply) if is_complete(possible(reply.usage)):
            return reply.usage, True
        case FinishedEnd() if exchange.choice.facts.reasoning:
            return None, True  # its text does not show how long it reasoned
        case FailedEnd(fault=fault) if status >= _ERROR or (not status and fault.code in _NOT_REACHED):
            return None, False
        case _:
            reply = read_so_far(exchange.choice.dialect, exchange.recorder.response)
            return usage_so_far(reply.usage, _text_bytes(reply), bound), True


_NOT_REACHED = frozenset({Code.NETWORK, Code.AUTH, Code.CONFIG, Code.LOCAL_UNAVAILABLE, Code.MODEL_UNKNOWN})
"""Codes of faults that mean that a request did not reach its provider."""


def _text_bytes(reply: Reply) -> int:
    parts = [part for choice in reply.choices for part in choice.parts]
    texts = [part.text for part in parts if isinstance(part, Text | Thinking)]
    texts += [str(part.arguments) for part in parts if isinstance(part, ToolCall)]
    return sum(len(text.encode()) for text in texts)


def _limit_words(cap: CapSettings, use: CapUse) -> str:
    return amount_words(use.key.unit, limit_in(use, limit_of(cap)))


def _cap_fault(cap: CapSettings, claim: Claim, use: CapUse) -> Fault:
    unit = use.key.unit
    message = (
        f"the cap {cap_words(use.key, cap.per)} allows {_limit_words(cap, use)}: {amount_words(unit, use.spent)} are "
        f"spent, {amount_words(unit, use.reserved)} reserved for requests under way, and this request can take up to "
        f"{amount_words(unit, claim.amount)}"
    )
    hint = "Raise it on Sightline's page under Costs, or in sightline.toml; a lower max_tokens reserves less."
    return Fault(Code.CAP_REACHED, message, hint=hint)


def _refuse_uncounted(cap: CapSettings, exchange: Exchange) -> Fault:
    """Refuse a request that a cap cannot count: raises the fault, or returns it if the cap holds such requests for a
    user."""
    choice, request = exchange.choice, exchange.request
    if exchange.choice.model and request.model:
        what, hint = f"{choice.provider_name}/{choice.model} has no known price", "Set prices for the model, or"
    else:
        place = f"{request.method} /{request.path.strip('/')}"
        what, hint = f"what {place} costs at {choice.provider_name} is not known before it is sent", "Set"
    message = f"the cap {cap.name} cannot count this request: {what}"
    fault = Fault(Code.CAP_REACHED, message, hint=f'{hint} unpriced = "pass" in the cap {cap.name}.')
    if cap.action == "refuse":
        raise fault
    return fault
