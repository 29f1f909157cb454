"""Calls the hooks of plug-ins with what happens to exchanges, in a thread of its own: none can delay a request."""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from sightline.model.exchange import FrameArrived
from sightline.plugins.loading import LoadedPlugin, Plugins
from sightline.plugins.plugin import ExchangeEvent, ExchangeHook, name_of
from sightline.store.entries import Entry, FactEntry

_LOG = logging.getLogger("sightline")

_MOST_WAITING: Final = 10_000
"""Facts that wait while hooks are slower than the traffic; later ones are left out, with a note in the log."""

_LAST_SECONDS: Final = 5.0
"""How long hooks may take at the end for what still waits."""


class HookThread:
    """Gives every recorded fact but frames to the hooks. One that raises is switched off until the next start."""

    def __init__(self, plugins: Plugins) -> None:
        self._hooks: list[tuple[LoadedPlugin, str, ExchangeHook]] = [
            (owner, f"hook {name_of(hook)}", hook) for owner, plugin in plugins.found() for hook in plugin.hooks
        ]
        self._waiting: queue.Queue[FactEntry | None] = queue.Queue(_MOST_WAITING)
        self._left_out = 0
        self._thread = threading.Thread(target=self._run, name="plug-in hooks", daemon=True)
        self._thread.start()

    def took(self, entries: Sequence[Entry]) -> None:
        """Take what was recorded."""
        for entry in entries:
            if isinstance(entry, FactEntry) and not isinstance(entry.fact, FrameArrived):
                try:
                    self._waiting.put_nowait(entry)
                except queue.Full:
                    if not self._left_out:
                        _LOG.warning("hooks of plug-ins are slower than the traffic: they miss events")
                    self._left_out += 1

    def close(self) -> None:
        """Let the hooks have what waits, for a few seconds at most."""
        try:
            self._waiting.put(None, timeout=_LAST_SECONDS)
        except queue.Full:
            return  # a hook hangs; the thread ends with the process
        self._thread.join(_LAST_SECONDS)

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            event = event_of(entry)
            for each in self._hooks[:]:
                owner, what, hook = each
                try:
                    hook(event)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises, the others are called
                    owner.fail(what, error)
                    self._hooks.remove(each)


def event_of(entry: FactEntry) -> ExchangeEvent:
    """A fact as hooks get it."""
    fact = msgspec.to_builtins(entry.fact, builtin_types=())
    return ExchangeEvent(entry.exchange, entry.at, fact["kind"], fact)


def record_for_hooks(record: Callable[[Sequence[Entry]], None], hooks: HookThread) -> Callable[[Sequence[Entry]], None]:
    """Record first, then tell the hooks: what they hear of is on record."""

    def record_both(entries: Sequence[Entry]) -> None:
        record(entries)
        hooks.took(entries)

    return record_both
