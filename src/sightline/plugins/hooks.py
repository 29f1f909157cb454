"""Calls the hooks of plug-ins with the events of exchanges, each hook in its own thread, so that none can delay a
request or another hook."""

import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from sightline.errors import Fault
from sightline.plugins.guard import LoadedPlugin
from sightline.plugins.loading import Plugins
from sightline.plugins.plugin import ExchangeEvent, ExchangeHook, name_of
from sightline.store.entries import FactEntry, KeptEntry

_LOG = logging.getLogger("sightline")

_MOST_WAITING: Final = 10_000
"""How many facts may wait while hooks are slower than the traffic. Later ones are dropped, with a note in the log."""

HOOK_SECONDS: Final = 60.0
"""How long a hook may take for one event."""

_DRAIN_SECONDS: Final = 5.0
"""How long hooks may take at the end for facts that still wait."""


class HookThread:
    """Passes every recorded fact except frames to one hook. If the hook raises or hangs, it is switched off until the
    next start."""

    def __init__(self, owner: LoadedPlugin, hook: ExchangeHook) -> None:
        self._what = f"hook {name_of(hook)}"
        self._owner = owner
        self._hook = owner.guard(self._what, hook, seconds=HOOK_SECONDS)
        self._waiting: queue.Queue[FactEntry | None] = queue.Queue(_MOST_WAITING)
        self._left_out = 0
        self._thread = threading.Thread(target=self._run, name=f"plug-in {self._what}", daemon=True)
        self._thread.start()

    def took(self, entries: Sequence[KeptEntry]) -> None:
        if self._what in self._owner.off:
            return
        for entry in entries:
            if isinstance(entry, FactEntry):
                try:
                    self._waiting.put_nowait(entry)
                except queue.Full:
                    if not self._left_out:
                        _LOG.warning(
                            "the plug-in %r (%s) is slower than the traffic: it misses events",
                            self._owner.named,
                            self._what,
                        )
                    self._left_out += 1

    def end(self) -> None:
        """Signal the thread that no more facts follow."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return  # it hangs; the thread ends with the process

    def join(self, seconds: float) -> None:
        """Wait until the hook has handled what still waits."""
        if self._what not in self._owner.off:
            self._thread.join(seconds)

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            try:
                self._hook(event_of(entry))
            except Fault as fault:
                self._owner.fail(self._what, fault)  # including its own faults: there is no request to fail
                self._owner.off.add(self._what)
                return


@contextmanager
def open_hooks(plugins: Plugins) -> Iterator[Callable[[Sequence[KeptEntry]], None]]:
    """Run the hooks of plug-ins, each in its own thread, so that none waits for another. Yields the function that takes
    what was recorded. At the end, the hooks have a few seconds for what still waits."""
    hooks = [HookThread(owner, hook) for owner, plugin in plugins.working() for hook in plugin.hooks]

    def took(entries: Sequence[KeptEntry]) -> None:
        for each in hooks:
            each.took(entries)

    try:
        yield took
    finally:
        for each in hooks:
            each.end()
        for each in hooks:
            each.join(_DRAIN_SECONDS)


def event_of(entry: FactEntry) -> ExchangeEvent:
    """A fact as hooks get it."""
    fact = msgspec.to_builtins(entry.fact, builtin_types=())
    return ExchangeEvent(entry.exchange, entry.at, fact["kind"], fact)
