"""The one chat of a store: its history as the log has it, and the only way to add to it."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from sightline.chat.core.facts import (
    ChatFact,
    ChatImported,
    PairFailed,
    TopicAdded,
    TopicChanged,
    TopicRemoved,
)
from sightline.chat.core.history import ChatHistory, HistoryChange
from sightline.chat.core.imports.reading import pieces_of
from sightline.chat.core.sizing import ChatSettings
from sightline.chat.service.chat_log import (
    FACT_FORMAT,
    LOG,
    PREFERENCES,
    PREFERENCES_FORMAT,
    Preferences,
    apply_preferences,
    check_preferences,
)
from sightline.chat.service.heartbeats import Heartbeats
from sightline.errors import Fault
from sightline.exchange.hub import Hub
from sightline.journal.journal import Journal
from sightline.model.json import Json, JsonObject
from sightline.store.store import Logbook

EVENT = "chat"
"""How the chat's news are called."""

_MOST_NAMED = 1000
"""A change of more pairs than this is announced without their ids."""

_PAIRS_AT_ONCE = 1000
"""After reading the words of so many pairs, other tasks of the event loop get their turn."""

_FREEZE_FROM = 100_000
"""So many new objects are excluded from later garbage collections."""

_LOOK = 2.0
"""Seconds between two looks at what other processes have added."""

_LOG = logging.getLogger(__name__)

Recovering: TypeAlias = Callable[[PairFailed, str], Awaitable[ChatFact]]
"""How a pair ends that would fail so, given the run that was under way for it."""

Listener: TypeAlias = Callable[[HistoryChange | None], None]
"""Who wants to know of each change of the history; None is a change of the settings."""


class Chat:
    """The history, loaded when it is first needed, and the preferences. `version` is the number of facts in the log.

    Several processes may have the chat of one store open: each reads what the others have added.
    """

    def __init__(
        self,
        logbook: Logbook,
        hub: Hub,
        *,
        settings: ChatSettings,
        now: Callable[[], float],
        make_id: Callable[[], str],
        secrets: tuple[str, ...] = (),
        process: str = "",
        is_alive: Callable[[str], bool] = lambda _process: True,
    ) -> None:
        self.history = ChatHistory()
        self.preferences = Preferences()
        self.settings = settings
        self.now = now
        self.make_id = make_id
        self.heartbeats = Heartbeats(logbook, now, process or make_id(), is_alive)
        self._hub = hub
        self._configured = settings
        self._facts: Journal[ChatFact, ChatHistory, HistoryChange] = Journal(
            logbook,
            LOG,
            FACT_FORMAT,
            self.history,
            self._apply,
            now=now,
            secrets=secrets,
            announce=self._announce_facts,
        )
        self._preferences: Journal[Preferences, None, None] = Journal(
            logbook, PREFERENCES, PREFERENCES_FORMAT, None, self._prefer, now=now, secrets=secrets
        )
        self._lock = asyncio.Lock()
        self._recovering: Recovering | None = None
        self._listeners: list[Listener] = []
        self._appending: set[asyncio.Task[list[HistoryChange] | None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    @property
    def version(self) -> int:
        """The number of facts in the log that are known here."""
        return self._facts.version

    def listen(self, listener: Listener) -> None:
        """Tell this one of each change, before it is announced."""
        self._listeners.append(listener)

    def recover(self, recovering: Recovering) -> None:
        """Ask this one how a pair ends whose run was under way when its process ended."""
        self._recovering = recovering

    def announce(self, value: JsonObject) -> None:
        """Announce news to the watchers."""
        self._hub.announce(EVENT, value)

    def touch(self, pair: str) -> None:
        """Tell that a pair can be seen differently although no fact has changed it."""
        self._announce(HistoryChange((pair,)))

    @property
    def is_watched(self) -> bool:
        """Whether anything watches."""
        return self._hub.is_watched

    async def load(self) -> ChatHistory:
        """The history as the log has it now. A send whose process has died is ended here."""
        async with self._lock:
            await self._catch_up()
            await self._preferences.catch_up()
            interrupted = self.history.interruption()
            if interrupted is not None and not await self.heartbeats.is_alive(interrupted.id):
                await self._end(interrupted)
        return self.history

    def follow(self) -> None:
        """Check from now on, as long as anything watches, whether another process has added facts."""
        if self._following is None and self._hub.is_watched:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    def warm(self) -> None:
        """Load the history in the background, so that the first caller need not wait."""
        self._warming = asyncio.get_running_loop().create_task(self._warm())

    async def close(self) -> None:
        """Look no more, and wait until what was to be added is added."""
        for task in (self._following, self._warming):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        await asyncio.gather(*self._appending, return_exceptions=True)

    async def happen(self, fact: ChatFact) -> HistoryChange:
        """Append a fact and return what it changed. It is durable when this returns, and is appended also if the caller
        is cancelled. A fact that does not fit the history is a fault, and nothing has changed."""
        if not self._facts.is_loaded:
            async with self._lock:
                await self._catch_up()
        facts = pieces_of(fact) if isinstance(fact, ChatImported) else (fact,)
        task = asyncio.get_running_loop().create_task(self._facts.append(facts, check=self.history.check))
        self._appending.add(task)
        task.add_done_callback(self._appending.discard)
        changes = await asyncio.shield(task)
        assert changes  # a shared log is tried again after a conflict
        return changes[0]

    async def prefer(self, preferences: Preferences) -> None:
        """Keep what a person has set; a fault if it does not fit."""
        apply_preferences(self._configured, check_preferences(preferences))
        await self._preferences.append((preferences,))

    # --- the logs ---

    async def _catch_up(self) -> None:
        if self._facts.is_loaded:
            await self._facts.catch_up()
            return
        with _without_gc():
            await self._facts.catch_up()
        self._notify_listeners(HistoryChange(is_wide=True))

    async def _end(self, interrupted: PairFailed) -> None:
        """End the pair of a sender that has died, with what its run has come to. If another process was first, the pair
        has ended already."""
        run = self.history.get(interrupted.id).run
        fact: ChatFact = interrupted
        if run and self._recovering is not None:
            fact = await self._recovering(interrupted, run)
        if await self._facts.append((fact,), check=self.history.check, retry=False) is not None:
            await self.heartbeats.forget(interrupted.id)

    def _apply(self, fact: ChatFact, _at: float) -> HistoryChange:
        try:
            return self.history.apply(fact)
        except Fault as fault:  # only the log of another version has such a fact
            _LOG.warning("line %d of the chat changes nothing: %s", self.version + 1, fault.message)
            return HistoryChange()

    def _prefer(self, preferences: Preferences, _at: float) -> None:
        if preferences != self.preferences:
            self.preferences = preferences
            self.settings = apply_preferences(self._configured, preferences)
            self._notify_listeners(None)
        self.announce({"kind": "preferences"})

    async def _follow(self) -> None:
        while self._hub.is_watched:
            await asyncio.sleep(_LOOK)
            await self._try_to_open()
        self._following = None

    async def _warm(self) -> None:
        """The words, too: the first filter would have to read all of them."""
        await self._try_to_open()
        with _without_gc():
            for number, pair in enumerate(list(self.history), 1):
                self.history.words.of(pair)
                if not number % _PAIRS_AT_ONCE:
                    await asyncio.sleep(0)

    async def _try_to_open(self) -> None:
        try:
            await self.load()
        except Fault as fault:  # the next caller of load gets the fault
            _LOG.warning("the chat could not be read: %s", fault.message)

    def _announce_facts(self, applied: Sequence[tuple[ChatFact, HistoryChange]]) -> None:
        """The first fact stands for all: only an import appends several, and its first change says that it is wide."""
        fact, change = applied[0]
        seen = change if len(change.ids) <= _MOST_NAMED else HistoryChange(is_wide=True)
        self._notify_listeners(seen)
        self._announce(seen)
        if isinstance(fact, TopicAdded | TopicChanged | TopicRemoved):
            self.announce({"kind": "topics"})

    def _announce(self, change: HistoryChange) -> None:
        if self._hub.is_watched:
            ids: list[Json] = list(change.ids)
            self.announce({"kind": "changed", "version": self.version, "ids": ids, "wide": change.is_wide})

    def _notify_listeners(self, change: HistoryChange | None) -> None:
        for listener in self._listeners:
            listener(change)

    def mask(self, text: str) -> str:
        """A text without the configured keys."""
        return self._facts.redaction.text(text)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Without looking for garbage: all that is read is kept, and looking through it again and again takes the most
    time. What is a lot is not looked through later either, which would hold up everything for a good while."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _FREEZE_FROM:
                gc.freeze()
            gc.enable()
