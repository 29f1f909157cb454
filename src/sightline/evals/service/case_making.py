"""Exchanges of the record as a case of a suite."""

from collections.abc import Sequence

from sightline.errors import Code, Fault
from sightline.evals.core.making.case import MadeCase, make_case
from sightline.evals.core.making.recording import RecordedExchange as Told
from sightline.evals.core.making.recording import join_exchanges, turns_of
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.store.store import Store
from sightline.wire.secrets import Redaction


async def conversation(store: Store, ids: Sequence[str], *, now: float) -> tuple[Told, ...]:
    """The exchanges of these ids, or beginnings of ids, in the order in which they were held."""
    found: dict[str, RecordedExchange] = {}
    for each in ids:
        summary = await find_exchange(store, each, now=now)
        found[summary.id] = await load_exchange(store, summary)
    return tuple(_turn_of(found[name]) for name in sorted(found))


def make_masked_case(
    turns: Sequence[Told], name: str, secrets: Sequence[str], from_turn: int | None = None
) -> MadeCase:
    """A case of a conversation. None of the secrets stands in it."""
    redaction = Redaction(secrets)

    def mask(text: str) -> str:
        masking = redaction.masking()
        data = masking.feed(text.encode("utf-8", "surrogatepass")) + masking.close()
        return data.decode("utf-8", "surrogatepass")

    return make_case(turns, name, mask, from_turn=from_turn)


def turns_in(turns: Sequence[Told]) -> int:
    """How many turns of a user a conversation has."""
    whole = join_exchanges(turns)
    return len(turns_of((*whole.messages, *whole.said))[1])


def _turn_of(exchange: RecordedExchange) -> Told:
    if exchange.is_count:
        hint = "Name an exchange in which the model was asked."
        raise Fault(Code.USAGE, f"{exchange.id} only counts tokens", hint=hint, status=422)
    return Told(exchange.request(), exchange.reply() if exchange.frames else None)
