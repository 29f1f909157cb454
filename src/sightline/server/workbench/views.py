"""An exchange as the API shows it: a line of a list, or everything that is known."""

import base64
from collections.abc import Iterable

import msgspec

from sightline.model.exchange import (
    AttemptStarted,
    Edited,
    Exchange,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
    Released,
    Translated,
)
from sightline.model.json import Json, JsonObject
from sightline.model.usage import Usage
from sightline.store.entries import Noted
from sightline.store.summary import Summary

_ALWAYS = ("id", "state", "dialect", "provider", "model", "session", "at")


def line(summary: Summary) -> JsonObject:
    """One exchange in a list; a status that the client has not got yet is null."""
    told: JsonObject = {name: getattr(summary, name) for name in _ALWAYS}
    told["status"] = summary.status or None
    rest: JsonObject = msgspec.to_builtins(summary)
    return rest | told


def view(summary: Summary, facts: list[Noted]) -> JsonObject:
    """One exchange with all that happened to it."""
    happened = [noted.fact for noted in facts]
    shown = line(summary)
    shown |= {
        "state": Exchange(summary.id, tuple(happened)).state,
        "body_sha256": body_sha256(happened),
        "dirty": False,
        "tokens": _tokens(happened),
        "losses": [_plain(loss) for fact in happened if isinstance(fact, Translated) for loss in fact.report],
        "hashes": {
            "received": _last(fact.sha256 for fact in happened if isinstance(fact, Received)),
            "sent": _last(fact.sha256 for fact in happened if isinstance(fact, AttemptStarted)),
            "reply": _last(fact.sha256 for fact in happened if isinstance(fact, ExchangeFinished | ExchangeFailed)),
        },
        "facts": [told(noted) for noted in facts],
    }
    if fault := next((_fault(fact) for fact in happened if isinstance(fact, ExchangeFailed)), None):
        shown["fault"] = fault
    return shown


def told(noted: Noted) -> JsonObject:
    """A fact with its number and time; the bytes of a frame are in base64, since they may be cut inside a letter."""
    fact = noted.fact
    shown: JsonObject = {"n": noted.n, "at": noted.at, **_plain(fact)}
    if isinstance(fact, FrameArrived):
        shown["data"] = base64.b64encode(fact.data).decode()
    elif isinstance(fact, ExchangeFailed):
        shown["fault"] = _fault(fact)
    return shown


def body_sha256(facts: list[Fact]) -> str:
    """The hash of the body that will be sent, or was: what happens after it went out is about its reply."""
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


def reply_of(facts: list[Noted]) -> bytes:
    """The provider's answer, byte for byte, as far as it came."""
    return b"".join(noted.fact.data for noted in facts if isinstance(noted.fact, FrameArrived))


def _last(hashes: Iterable[str]) -> str | None:
    named = [sha256 for sha256 in hashes if sha256]
    return named[-1] if named else None


def _tokens(facts: list[Fact]) -> Json:
    ended = (fact.usage for fact in facts if isinstance(fact, ExchangeFinished | ExchangeFailed))
    usage = next((usage for usage in ended if usage is not None), Usage())
    counted: JsonObject = _plain(usage)
    return {name: count for name, count in counted.items() if name.endswith("_tokens")}


def _fault(fact: ExchangeFailed) -> JsonObject:
    return {"code": fact.code, "message": fact.message, "hint": fact.hint}


def _plain(value: object) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(value)
    return plain
