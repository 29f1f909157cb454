"""From the facts of an exchange to its summary: one fold, whichever database keeps them."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, assert_never

import msgspec

from sightline.catalog.facts import Prices
from sightline.model.exchange import (
    Answered,
    AttemptStarted,
    Budgeted,
    Dropped,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Held,
    Received,
    Released,
    Translated,
)
from sightline.model.usage import Usage
from sightline.store.digest import Digest
from sightline.store.entries import FactEntry
from sightline.store.summary import Summary
from sightline.tokens.cost import cost_of

PriceList: TypeAlias = Callable[[str, str], Prices | None]
"""The prices of a provider's model, where they are known."""


def summary_of(exchange: str, facts: Iterable[FactEntry], prices: PriceList, digest: Digest | None = None) -> Summary:
    """One line for the exchange with these facts, which stand in their order; frames may be left out."""
    summary, sent = Summary(id=exchange, at=0.0), ""
    for noted in facts:
        if isinstance(noted.fact, AttemptStarted):
            sent = noted.fact.model
        summary = _step(summary, noted, sent, prices)
    return summary if digest is None else with_digest(summary, digest)


def with_digest(summary: Summary, digest: Digest) -> Summary:
    """The summary with what its request tells."""
    return msgspec.structs.replace(summary, title=digest.title, previous=digest.previous, is_side=digest.is_side)


def bodies_of(fact: Fact) -> tuple[str, ...]:
    """The hashes of the request bodies that a fact names. A reply is its frames and is no body."""
    match fact:
        case Received() | Translated() | Released() | Answered() | AttemptStarted():
            return (fact.sha256,) if fact.sha256 else ()
        case Edited():
            return tuple(sha256 for sha256 in (fact.before, fact.after) if sha256)
        case Held() | Dropped() | Budgeted() | FrameArrived():
            return ()
        case ExchangeFinished() | ExchangeFailed() | ExchangeCancelled():
            return ()
        case unreachable:
            assert_never(unreachable)


def _step(summary: Summary, noted: FactEntry, sent: str, prices: PriceList) -> Summary:
    match noted.fact:
        case Received() as fact:
            return msgspec.structs.replace(
                summary, at=noted.at, dialect=fact.dialect, model=fact.model, session=fact.session,
                client=fact.client, path=fact.path, is_stream=fact.is_stream, origin=fact.origin,
            )  # fmt: skip
        case Translated() as fact:
            return msgspec.structs.replace(summary, losses=summary.losses + fact.losses)
        case Held():
            return msgspec.structs.replace(summary, state="held")
        case Released() | Answered():
            return msgspec.structs.replace(summary, state="sending")
        case AttemptStarted() as fact:
            attempts = max(summary.attempts, fact.number)
            return msgspec.structs.replace(summary, state="sending", provider=fact.provider, attempts=attempts)
        case Dropped() as fact:
            return msgspec.structs.replace(summary, state="dropped", message=fact.reason)
        case ExchangeFinished() as fact:
            ended = msgspec.structs.replace(
                summary, state="finished", finish=fact.finish, status=fact.status, tools=fact.tools,
                first_byte=fact.first_byte, elapsed=fact.elapsed, message=fact.warning,
            )  # fmt: skip
            return _with_usage(ended, fact.usage, (fact.model, sent), prices)
        case ExchangeFailed() as fact:
            ended = msgspec.structs.replace(
                summary, state="failed", fault=fact.code, message=fact.message, status=fact.status,
                first_byte=fact.first_byte or None, elapsed=fact.elapsed or None,
            )  # fmt: skip
            return _with_usage(ended, fact.usage, (sent,), prices)
        case ExchangeCancelled() as fact:
            return msgspec.structs.replace(summary, state="cancelled", message=fact.reason)
        case Edited() | Budgeted() | FrameArrived():
            return summary
        case unreachable:
            assert_never(unreachable)


def _with_usage(summary: Summary, usage: Usage | None, models: tuple[str, ...], prices: PriceList) -> Summary:
    """The summary with the provider's counts, and what they cost by the first of these models, or else the one that was
    asked for, whose prices are known."""
    if usage is None:
        return summary
    named = (prices(summary.provider, name) for name in dict.fromkeys((*models, summary.model)) if name)
    found = next((found for found in named if found is not None), None)
    cost = cost_of(usage, found)
    return msgspec.structs.replace(
        summary, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens, cost=None if cost is None else cost.dollars,
    )  # fmt: skip
