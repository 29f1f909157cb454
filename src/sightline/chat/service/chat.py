"""The one chat of a store: its history as the log has it, and the only way to add to it."""

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from sightline.chat.core.facts import (
    ChatFact,
    ChatImported,
    PairAnswered,
    PairCancelled,
    PairFailed,
    TopicAdded,
    TopicChanged,
    TopicRemoved,
)
from sightline.chat.core.history import ChatHistory, HistoryChange
from sightline.chat.core.imports.pieces import pieces_of
from sightline.chat.core.settings import ChatSettings
from sightline.chat.service.heartbeats import Signs
from sightline.chat.service.preferences import Preferences, apply_preferences, check_preferences
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.model.json import Json, JsonObject
from sightline.store.logbook import Line, Logbook
from sightline.tokens.tokenizer import join_surrogates
from sightline.wire.secrets import Redaction

LOG = "chat"
PREFERENCES = "chat-preferences"

_DECODER: msgspec.json.Decoder[ChatFact] = msgspec.json.Decoder(ChatFact)
_PREFERENCES = msgspec.json.Decoder(Preferences)
_ENCODER = msgspec.json.Encoder()
_HEARD = (PairAnswered, PairFailed, PairCancelled, ChatImported)
"""What is not a person's own words, so that nobody can be asked to write them otherwise."""


def fact_line(fact: ChatFact, redaction: Redaction) -> tuple[bytes, ChatFact]:
    """A fact as the log may have it, without the configured keys, and what it then says."""
    data, fact = _in_whole_characters(fact) if isinstance(fact, _HEARD) else (_encode(fact), fact)
    masked = _redact(data, redaction)
    return (data, fact) if masked is None else (masked, _DECODER.decode(masked))


def preferences_line(preferences: Preferences, redaction: Redaction) -> tuple[bytes, Preferences]:
    """The same for preferences."""
    data = _encode(preferences)
    masked = _redact(data, redaction)
    return (data, preferences) if masked is None else (masked, _PREFERENCES.decode(masked))


def _in_whole_characters(fact: ChatFact) -> tuple[bytes, ChatFact]:
    """A model may cut a character in two; that is no reason to lose what it said."""
    try:
        return _ENCODER.encode(fact), fact
    except UnicodeEncodeError:
        data = join_surrogates(json.dumps(msgspec.to_builtins(fact), ensure_ascii=False)).encode()
        return data, _DECODER.decode(data)


def _redact(data: bytes, redaction: Redaction) -> bytes | None:
    """What may be kept of these bytes; None where that is all of them."""
    masking = redaction.masking()
    shown = masking.feed(data) + masking.close()
    return shown if masking.has_found else None


def _encode(value: ChatFact | Preferences) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        hint = "Take it out: it is half of a character, as a cut text has it."
        raise Fault(Code.INVALID_REQUEST, "the text is not Unicode", hint=hint, status=422) from None


def fact_in(line: Line) -> ChatFact:
    """The fact that a line holds."""
    try:
        return _DECODER.decode(line.data)
    except msgspec.DecodeError as error:
        raise _unreadable(LOG, line.n, error) from None


def preferences_in(line: Line) -> Preferences:
    """The preferences that a line holds."""
    try:
        return _PREFERENCES.decode(line.data)
    except msgspec.DecodeError as error:
        raise _unreadable(PREFERENCES, line.n, error) from None


def _unreadable(log: str, number: int, error: msgspec.DecodeError) -> Fault:
    return Fault(
        Code.CONFIG,
        f"line {number} of the log {log!r} cannot be understood: {error}",
        hint="A newer version of Sightline has written it; use that version, or another data folder.",
    )


EVENT = "chat"
"""How the chat's news are called."""

_MOST_TRIES = 100
"""Another process that adds faster than we read is no person."""

_MOST_NAMED = 1000
"""Of more pairs than this it is not worth saying which."""

_CHANGED = 409
_AT_ONCE = 64_000
"""So many bytes of the log are read before others get their turn."""

_WORDS_AT_ONCE = 1000
"""The same for pairs whose words are read."""

_A_LOT = 100_000
"""Objects that were made and are kept."""

_LOOK = 2.0
"""Seconds between two looks at what other processes have added."""

_LOG = logging.getLogger(__name__)

Recovering: TypeAlias = Callable[[PairFailed, str], Awaitable[ChatFact]]
"""How a pair ends that would fail so, given the run that was under way for it."""

Listener: TypeAlias = Callable[[HistoryChange | None], None]
"""Who wants to know of each change of the history; None is a change of the settings."""


class Chat:
    """The history, loaded when it is first needed. `version` is the number of facts in the log, here and in every other
    process on it.

    A fact is checked, added to the log, applied and announced, in this order and one at a time. Where another process
    was first, its facts are read before it is tried again.
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
        self.version = 0
        self.preferences = Preferences()
        self.settings = settings
        self.now = now
        self.make_id = make_id
        self.signs = Signs(logbook, now, process or make_id(), is_alive)
        self._logbook = logbook
        self._hub = hub
        self._configured = settings
        self._preferred = 0
        self._redaction = Redaction(secrets)
        self._lock = asyncio.Lock()
        self._is_loaded = False
        self._recovering: Recovering | None = None
        self._listeners: list[Listener] = []
        self._working: set[asyncio.Task[HistoryChange]] = set()
        self._following: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    def listen(self, listener: Listener) -> None:
        """Tell this one of each change, before it is announced."""
        self._listeners.append(listener)

    def recover(self, recovering: Recovering) -> None:
        """Ask this one how a pair ends whose run was under way when its process ended."""
        self._recovering = recovering

    def announce(self, value: JsonObject) -> None:
        """Tell whoever watches."""
        self._hub.announce(EVENT, value)

    def touch(self, pair: str) -> None:
        """Tell that a pair can be seen differently although no fact has changed it."""
        self._announce(HistoryChange((pair,)))

    @property
    def is_watched(self) -> bool:
        """Whether anybody would hear of it."""
        return self._hub.is_watched

    async def load(self) -> ChatHistory:
        """The history as the log has it now. A send that died with its process is ended here."""
        async with self._lock:
            await self._catch_up()
            await self._read_preferences()
            interrupted = self.history.interruption()
            if interrupted is not None and not await self.signs.is_alive(interrupted.id):
                await self._end(interrupted)
        return self.history

    def follow(self) -> None:
        """Look from now on, as long as anybody watches, whether another process has added something."""
        if self._following is None and self._hub.is_watched:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    def warm(self) -> None:
        """Load the history before anybody asks for it, so that whoever does need not wait."""
        self._warming = asyncio.get_running_loop().create_task(self._warm())

    async def close(self) -> None:
        """Look no more, and wait until what was to be added is added."""
        for task in (self._following, self._warming):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        await asyncio.gather(*self._working, return_exceptions=True)

    async def happen(self, fact: ChatFact) -> HistoryChange:
        """Let this be true. It is in the log when this returns, whatever becomes of the caller; a fault changes
        nothing."""
        task = asyncio.get_running_loop().create_task(self._happen(fact))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)

    async def prefer(self, preferences: Preferences) -> None:
        """Keep what a person has set."""
        apply_preferences(self._configured, check_preferences(preferences))
        data, preferences = preferences_line(preferences, self._redaction)
        async with self._lock:
            for _ in range(_MOST_TRIES):
                await self._read_preferences()
                if await self._try_append(PREFERENCES, self._preferred, [data]):
                    self._preferred += 1
                    self._take(preferences)
                    return
        raise _contention_fault()

    # --- the log ---

    async def _happen(self, fact: ChatFact) -> HistoryChange:
        pieces = [fact_line(each, self._redaction) async for each in _pieces(fact)]
        async with self._lock:
            if not self._is_loaded:
                await self._catch_up()
            for _ in range(_MOST_TRIES):
                apply = self.history.check(pieces[0][1])
                if await self._try_append(LOG, self.version, [data for data, _ in pieces]):
                    change = apply()
                    self.version += 1
                    for _, piece in pieces[1:]:
                        await asyncio.sleep(0)
                        self.history.apply(piece)
                        self.version += 1
                    return self._tell(fact, change)
                await self._catch_up()
        raise _contention_fault()

    async def _end(self, interrupted: PairFailed) -> None:
        """End what nobody sends any more; where another process was first, it has ended already."""
        run = self.history.get(interrupted.id).run
        fact: ChatFact = interrupted
        if run and self._recovering is not None:
            fact = await self._recovering(interrupted, run)
        data, fact = fact_line(fact, self._redaction)
        apply = self.history.check(fact)
        if await self._try_append(LOG, self.version, [data]):
            self.version += 1
            self._tell(fact, apply())
            await self.signs.forget(interrupted.id)
        else:
            await self._catch_up()

    async def _try_append(self, log: str, after: int, data: Sequence[bytes]) -> bool:
        """Whether they are in the log; not, where another process was first."""
        try:
            await self._logbook.append(log, after, data, self.now())
        except Fault as fault:
            if fault.status != _CHANGED:
                raise
            return False
        return True

    async def _catch_up(self) -> None:
        """Read what is in the log and not here."""
        lines = await self._logbook.lines(LOG, self.version)
        if not self._is_loaded:
            with _without_gc():
                read = 0
                for line in lines:
                    self._apply(line)
                    read += len(line.data)
                    if read >= _AT_ONCE:
                        read = 0
                        await asyncio.sleep(0)
            self._is_loaded = True
            self._notify_listeners(HistoryChange(is_wide=True))
            return
        for line in lines:
            self._tell(*self._apply(line))

    def _apply(self, line: Line) -> tuple[ChatFact, HistoryChange]:
        """A fact that is in the log. One that cannot be here, as only another version's can, changes nothing."""
        fact, change = fact_in(line), HistoryChange()
        try:
            change = self.history.apply(fact)
        except Fault as fault:
            _LOG.warning("line %d of the chat changes nothing: %s", line.n, fault.message)
        self.version = line.n
        return fact, change

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
                if not number % _WORDS_AT_ONCE:
                    await asyncio.sleep(0)

    async def _try_to_open(self) -> None:
        try:
            await self.load()
        except Fault as fault:  # whoever asks for the chat is told
            _LOG.warning("the chat could not be read: %s", fault.message)

    def _tell(self, fact: ChatFact, change: HistoryChange) -> HistoryChange:
        seen = change if len(change.ids) <= _MOST_NAMED else HistoryChange(is_wide=True)
        self._notify_listeners(seen)
        self._announce(seen)
        if isinstance(fact, TopicAdded | TopicChanged | TopicRemoved):
            self.announce({"kind": "topics"})
        return change

    def _announce(self, change: HistoryChange) -> None:
        if self._hub.is_watched:
            ids: list[Json] = list(change.ids)
            self.announce({"kind": "changed", "version": self.version, "ids": ids, "wide": change.is_wide})

    async def _read_preferences(self) -> None:
        lines = await self._logbook.lines(PREFERENCES, self._preferred)
        if lines:
            self._preferred = lines[-1].n
            self._take(preferences_in(lines[-1]))

    def _take(self, preferences: Preferences) -> None:
        if preferences != self.preferences:
            self.preferences = preferences
            self.settings = apply_preferences(self._configured, preferences)
            self._notify_listeners(None)
        self.announce({"kind": "preferences"})

    def _notify_listeners(self, change: HistoryChange | None) -> None:
        for listener in self._listeners:
            listener(change)

    def mask(self, text: str) -> str:
        """A text without the configured keys."""
        return self._redaction.text(text)


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
            if gc.get_count()[0] > _A_LOT:
                gc.freeze()
            gc.enable()


async def _pieces(fact: ChatFact) -> AsyncIterator[ChatFact]:
    """What stands in one line each; others get their turn in between."""
    for piece in pieces_of(fact) if isinstance(fact, ChatImported) else (fact,):
        yield piece
        await asyncio.sleep(0)


def _contention_fault() -> Fault:
    hint = "Try again."
    return Fault(Code.OVERLOADED, "other processes change the chat all the time", hint=hint, status=503)
