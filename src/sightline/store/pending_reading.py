"""What can wait after facts were stored: reading the request and the reply that they tell of."""

from collections.abc import Iterable, Sequence

from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Fact, Received, Translated
from sightline.store.entries import FactEntry

REQUEST, REPLY = 1, 2
"""Bits of the number that says what is still to be read of an exchange."""


def to_read(facts: Iterable[FactEntry]) -> int:
    """What there is to read because of these facts."""
    todo = 0
    for noted in facts:
        if isinstance(noted.fact, Received):
            todo |= REQUEST
        elif isinstance(noted.fact, ExchangeFinished | ExchangeFailed):
            todo |= REPLY
    return todo


def reply_dialect(facts: Sequence[Fact]) -> str:
    """The dialect of the reply: that of the last attempt, else the one in which it was asked for last."""
    name, sent = "", ""
    for fact in facts:
        if isinstance(fact, AttemptStarted):
            sent = fact.dialect or sent
        elif isinstance(fact, Received | Translated):
            name = fact.dialect
    return sent or name
