"""How long the record is kept: looked after while a server runs, and never while it is in somebody's way."""

import logging
from dataclasses import dataclass

from sightline.errors import Fault
from sightline.store.store import Store
from sightline.transport.clock import Clock

EVERY = 3600.0
_DAY = 86_400.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """Forgets exchanges that are older than `days`, and the oldest of more than `megabytes`; 0 is without a limit."""

    store: Store
    clock: Clock
    days: int = 0
    megabytes: int = 0

    async def run(self) -> None:
        """Look after it at once and every hour, until cancelled."""
        while self.days or self.megabytes:
            await self.once()
            await self.clock.sleep(EVERY)

    async def once(self) -> None:
        """Forget what is over. A record that cannot be changed now is looked after the next time."""
        older = self.clock.now() - self.days * _DAY if self.days else None
        larger = self.megabytes << 20 if self.megabytes else None
        try:
            pruned = await self.store.prune(older_than=older, larger_than=larger)
        except Fault as fault:
            _LOG.warning("the record could not be pruned: %s", fault.message)
            return
        if pruned.exchanges:
            _LOG.info("%d exchanges were forgotten, %d bytes freed", pruned.exchanges, pruned.bytes_freed)
