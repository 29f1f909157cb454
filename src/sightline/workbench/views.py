"""An exchange as the API returns it: a line of a list, or everything that is known."""

import base64
from collections.abc import Iterable

import msgspec

from sightline.editing.budgeting import TokenBudget
from sightline.model.exchange import (
    AttemptStarted,
    Edited,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    ExchangeHistory,
    Fact,
    FrameArrived,
    Received,
    Released,
    Translated,
)
from sightline.model.json import JsonObject
from sightline.model.usage import Usage
from sightline.store.entries import FactEntry
from sightline.store.summary import Summary
from sightline.workbench.shapes import ExchangeDetails, FaultShown, Hashes, Thread, TokensShown

ALWAYS = ("id", "state", "dialect", "provider", "model", "session", "at")


def line(summary: Summary) -> JsonObject:
    """One exchange in a list; its status is null until the client has one."""
    always: JsonObject = {name: getattr(summary, name) for name in ALWAYS}
    always["status"] = summary.status or None
    rest: JsonObject = msgspec.to_builtins(summary)
    return rest | always


def view(summary: Summary, facts: list[FactEntry], *, has_frames: bool = True) -> JsonObject:
    """One exchange with all its facts; with `has_frames` also the bytes of its answer."""
    happened = [noted.fact for noted in facts]
    sha256, original = body_sha256(happened), original_sha256(happened)
    hashes = Hashes(
        _last(fact.sha256 for fact in happened if isinstance(fact, Received)),
        _last(fact.sha256 for fact in happened if isinstance(fact, AttemptStarted)),
        _last(fact.sha256 for fact in happened if isinstance(fact, ExchangeFinished | ExchangeFailed)),
    )
    told_too = ExchangeDetails(
        losses=tuple(loss for fact in happened if isinstance(fact, Translated) for loss in fact.report),
        additions=tuple(each for fact in happened if isinstance(fact, Translated) for each in fact.additions),
        hashes=hashes,
        facts=tuple(fact_shown(noted, has_data=has_frames) for noted in facts),
        thread=Thread(summary.previous, summary.title, summary.is_side),
        fault=next((_fault(fact) for fact in happened if isinstance(fact, ExchangeFailed)), None),
        reason=next((fact.reason for fact in happened if isinstance(fact, ExchangeCancelled)), None),
    )
    shown: JsonObject = line(summary) | {
        "state": ExchangeHistory(summary.id, tuple(happened)).state,
        "body_sha256": sha256,
        "dirty": sha256 != original,
        "tokens": _plain(tokens(happened)),
    }
    return shown | _plain(told_too)


def tokens(facts: list[Fact], budget: TokenBudget | None = None) -> TokensShown:
    """The provider's counts, and the estimate."""
    ended = (fact.usage for fact in facts if isinstance(fact, ExchangeFinished | ExchangeFailed))
    usage = next((usage for usage in ended if usage is not None), Usage())
    counted = TokensShown(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )
    if budget is None:
        return counted
    estimate = budget.estimate
    return msgspec.structs.replace(
        counted,
        estimate=estimate.tokens,
        low=estimate.low,
        high=estimate.high,
        how=estimate.how,
        window=budget.window,
        reserve=budget.reserve,
        categories=budget.categories,
    )


def fact_shown(noted: FactEntry, *, has_data: bool = True) -> JsonObject:
    """A fact with its number and time. The bytes of a frame are in base64, since they may end inside a character; they
    can be left out."""
    fact = noted.fact
    shown: JsonObject = {"n": noted.n, "at": noted.at}
    if isinstance(fact, FrameArrived):
        shown |= {"kind": "frame", "after": fact.after, "size": len(fact.data)}
        return shown | {"data": base64.b64encode(fact.data).decode()} if has_data else shown
    shown |= _plain(fact)
    if isinstance(fact, ExchangeFailed):
        shown["fault"] = _plain(_fault(fact))
    return shown


def body_sha256(facts: list[Fact]) -> str:
    """The hash of the body that was or will be sent. Facts after the first attempt are about the reply."""
    named = ""
    for fact in facts:
        match fact:
            case AttemptStarted():
                return fact.sha256 or named
            case Received() | Translated() | Released():
                named = fact.sha256 or named
            case Edited():
                named = fact.after
            case _:
                pass
    return named


def original_sha256(facts: list[Fact]) -> str:
    """The hash of the body before any edit or mask: the client's, or its translation."""
    named = ""
    for fact in facts:
        match fact:
            case Received() | Translated():
                named = fact.sha256 or named
            case Edited() | Released() | AttemptStarted():
                return named
            case _:
                pass
    return named


def reply_of(facts: list[FactEntry]) -> bytes:
    """The provider's answer so far, byte for byte."""
    return b"".join(noted.fact.data for noted in facts if isinstance(noted.fact, FrameArrived))


def _last(hashes: Iterable[str]) -> str | None:
    named = [sha256 for sha256 in hashes if sha256]
    return named[-1] if named else None


def _fault(fact: ExchangeFailed) -> FaultShown:
    return FaultShown(fact.code, fact.message, fact.hint)


def _plain(value: object) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(value)
    return plain
