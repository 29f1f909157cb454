"""Exchanges of the record as a case of a suite."""

from collections.abc import Sequence

from sightline.errors import Code, Fault
from sightline.evals.core.making.case import Made, make_case
from sightline.evals.core.making.recorded import Recorded as Told
from sightline.evals.core.making.recorded import joined, turns_of
from sightline.exchange.recording.recorded import Recorded, recorded, resolved
from sightline.exchange.redaction import Redaction
from sightline.store.store import Store


async def conversation(store: Store, ids: Sequence[str], *, now: float) -> tuple[Told, ...]:
    """The exchanges of these ids, or beginnings of ids, in the order in which they were held."""
    found: dict[str, Recorded] = {}
    for each in ids:
        summary = await resolved(store, each, now=now)
        found[summary.id] = await recorded(store, summary)
    return tuple(_told(found[name]) for name in sorted(found))


def made_of(told: Sequence[Told], name: str, secrets: Sequence[str], from_turn: int | None = None) -> Made:
    """A case of a conversation. None of the secrets stands in it."""
    redaction = Redaction(secrets)

    def masked(text: str) -> str:
        masking = redaction.masking()
        data = masking.feed(text.encode("utf-8", "surrogatepass")) + masking.close()
        return data.decode("utf-8", "surrogatepass")

    return make_case(told, name, masked, from_turn=from_turn)


def turns_in(told: Sequence[Told]) -> int:
    """How many turns of a user a conversation has."""
    whole = joined(told)
    return len(turns_of((*whole.messages, *whole.said))[1])


def _told(exchange: Recorded) -> Told:
    if exchange.is_count:
        hint = "Name an exchange in which the model was asked."
        raise Fault(Code.USAGE, f"{exchange.id} only counts tokens", hint=hint, status=422)
    return Told(exchange.request(), exchange.reply() if exchange.frames else None)
