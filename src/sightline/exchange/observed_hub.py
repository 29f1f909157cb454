"""The way of one request, overheard by whoever sent it: attempts, translations and its end as they are recorded."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sightline.exchange.hub import Hub, PendingWrite
from sightline.model.exchange import FrameArrived
from sightline.store.entries import Entry, FactEntry

Telling: TypeAlias = Callable[[FactEntry], None]


class ObservedHub(Hub):
    """The same hub for one journey; `tell` gets its facts once they are on record, and also where no record is kept.

    Frames are not told: whoever asked gets the answer itself.
    """

    def __init__(self, hub: Hub, tell: Telling) -> None:
        super().__init__(hub.record, hub.hear)
        self.watching = hub.watching
        self._hub = hub
        self._tell = tell

    def record(self, entries: Sequence[Entry]) -> None:
        """Write these down, then tell them."""
        try:
            self._hub.record(entries)
        finally:
            for entry in entries:
                if isinstance(entry, FactEntry) and not isinstance(entry.fact, FrameArrived):
                    self._tell(entry)

    def owe(self, entries: Sequence[Entry]) -> bool:
        """Write these down later."""
        return self._hub.owe(entries)

    def lose(self, exchange: str) -> None:
        """Write nothing more of an exchange."""
        self._hub.lose(exchange)

    def expect(self, unwritten: PendingWrite) -> None:
        """Somebody listens, so it is written down at once."""
        unwritten.commit()
