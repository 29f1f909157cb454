"""A reply out of the record, for a run that ended between its coming and its being noted.

The provider has done its work and may have been paid for it, so that asking again is the worse choice, but only where
the record holds all that the run would have heard. Where it does not, because the answer broke off, a person wrote or
changed it, or a body is gone, the request is sent again as a new exchange.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange, read_request
from sightline.model.exchange import Answered, Edited, ExchangeFinished
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.store.entries import FactEntry
from sightline.store.folding import summary_of
from sightline.store.store import Store


@dataclass(frozen=True, slots=True)
class Recalled:
    """A reply as it came, and the request that was sent in place of the one asked for, if a person had edited it."""

    reply: Reply
    sent: Request | None = None


async def recall_reply(store: Store, exchange: str, choice: ModelChoice) -> Recalled | None:
    """What came of an exchange, if all of it is on record."""
    await store.settle()
    facts = await store.facts(exchange)
    if not _is_whole(facts) or not _tells_its_end(choice):
        return None
    try:
        found = await load_exchange(store, summary_of(exchange, facts, lambda _provider, _model: None))
        return Recalled(found.reply(), _sent_request(found, choice) if is_edited(facts) else None)
    except Fault:
        return None  # a body is gone, or cannot be read


def is_edited(facts: Sequence[FactEntry]) -> bool:
    """Whether a person changed the request; masks are put on each request anew."""
    return any(isinstance(noted.fact, Edited) and noted.fact.operation != "mask" for noted in facts)


def _is_whole(facts: Sequence[FactEntry]) -> bool:
    kinds = [type(noted.fact) for noted in facts]
    return ExchangeFinished in kinds and Answered not in kinds


def _tells_its_end(choice: ModelChoice) -> bool:
    """Some servers say of a reply that was cut that it is complete, which is put right only when it is heard."""
    return choice.provider.quirks.reports_length or not dialect(choice.dialect).rules.may_hide_length


def _sent_request(found: RecordedExchange, choice: ModelChoice) -> Request:
    return read_request(found.spoken, found.sent, choice.model)
