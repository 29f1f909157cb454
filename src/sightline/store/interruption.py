"""How exchanges end whose process died: nobody else can say it any more."""

from collections.abc import Iterable
from typing import NamedTuple

from sightline.model.exchange import ExchangeCancelled, ExchangeFailed, State
from sightline.store.entries import FactEntry

OPEN_STATES: tuple[State, ...] = ("received", "held", "sending")
CODE = "interrupted"
_MESSAGE = "Sightline ended before the answer was whole"
_HINT = "Send it again."


class Unfinished(NamedTuple):
    """An exchange that has not ended, and the number of its next fact."""

    exchange: str
    n: int
    state: State


def interruptions(unfinished: Iterable[Unfinished], at: float) -> list[FactEntry]:
    """A hold is cancelled; whatever else was under way has failed."""
    cancelled, failed = ExchangeCancelled("interrupted"), ExchangeFailed(CODE, _MESSAGE, _HINT)
    return [FactEntry(exchange, n, at, cancelled if state == "held" else failed) for exchange, n, state in unfinished]
