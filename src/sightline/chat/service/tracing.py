"""The exchanges of one send, followed as they are recorded, and what the chat adds to them."""

import logging
from collections.abc import Callable, Iterable

import msgspec

from sightline.chat.core.plan import SendTelemetry, Stage
from sightline.errors import Fault
from sightline.exchange.hub import Hub
from sightline.model.exchange import Budgeted, Dropped
from sightline.model.json import JsonObject
from sightline.store.entries import FactEntry

_LOG = logging.getLogger(__name__)
_BEGINNINGS: frozenset[Stage] = frozenset({"attempt", "overflow_retry"})
_BEFORE: frozenset[Stage] = frozenset({"preflight", "waiting", *_BEGINNINGS})
"""What is told of an attempt before it is made; everything else is what came of the one before."""


class Tracing:
    """`exchange` is the latest one. `mask` takes secrets out of what is told."""

    def __init__(self, hub: Hub, now: Callable[[], float], mask: Callable[[str], str]) -> None:
        self.exchange = ""
        self.was_dropped = False
        self._hub = hub
        self._now = now
        self._mask = mask
        self._next = 0

    def on_recorded(self, noted: FactEntry) -> None:
        """A fact of an exchange is on record."""
        self.exchange = noted.exchange
        self._next = noted.n + 1
        self.was_dropped = isinstance(noted.fact, Dropped)

    def plan_telemetry(self, telemetry: Iterable[SendTelemetry]) -> tuple[JsonObject, ...]:
        """What belongs to the exchange that is about to begin. What came of the one before is added to that."""
        telemetry = tuple(telemetry)
        self.add(each for each in telemetry if each.stage not in _BEFORE)
        return tuple(self._plain(each) for each in telemetry if each.stage in _BEFORE)

    def add(self, telemetry: Iterable[SendTelemetry]) -> None:
        """Add what came of the latest exchange; where there was none, nothing is on record of it."""
        for each in telemetry:
            if self.exchange:
                budgeted = FactEntry(self.exchange, self._next, self._now(), Budgeted(self._plain(each)))
                self._next += 1
                try:
                    self._hub.record([budgeted])
                except Fault as fault:  # the answer is worth more than what is told of it
                    _LOG.error("telemetry of %s could not be recorded: %s", self.exchange, fault.message)
                    self._hub.owe([budgeted])

    def _plain(self, telemetry: SendTelemetry) -> JsonObject:
        """As JSON. The messages stand with the attempt that they are of, and not again with what came of it."""
        if telemetry.stage not in _BEGINNINGS:
            telemetry = msgspec.structs.replace(telemetry, messages=())
        plain: JsonObject = msgspec.json.decode(self._mask(msgspec.json.encode(telemetry).decode()))
        return plain
