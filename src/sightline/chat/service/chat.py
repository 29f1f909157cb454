"""A chat of a store: its history, read from its log, and the only way to append to it."""

import asyncio
import gc
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from sightline.catalog.reading import read_value
from sightline.chat.core.facts import (
    INTERRUPTED,
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
from sightline.chat.core.imports.reading import pieces_of
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.journal.journal import FactFormat, Journal
from sightline.model.json import Json, JsonObject
from sightline.settings import ChatSettings
from sightline.store.store import Line, Logbook
from sightline.tokens.text_count import join_surrogates

HEARTBEAT_LOG = "chat-sending:"
"""The name of the log of heartbeats, followed by the pair's id. It is removed once the pair has ended."""

BEAT = 10.0
"""Seconds between two heartbeats."""

SILENCE = 35.0
"""After this many seconds without a heartbeat, the sender is considered dead."""


class Heartbeats:
    """Heartbeats of the process that sends a pair. `process` is a unique name for this process, with its machine before
    a colon. `is_alive` tells whether another process of the same machine is still running."""

    def __init__(
        self, logbook: Logbook, now: Callable[[], float], process: str, is_alive: Callable[[str], bool]
    ) -> None:
        self._logbook = logbook
        self._now = now
        self._process = process
        self._is_alive = is_alive
        self._pair = ""
        self._count = 0
        self._beating: asyncio.Task[None] | None = None

    async def begin(self, pair: str) -> None:
        """Write heartbeats for this pair until `end`."""
        self._pair, self._count = pair, 0
        await self.beat()
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def end(self) -> None:
        pair, self._pair = self._pair, ""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
            self._beating = None
        await self.forget(pair)

    async def beat(self) -> None:
        """Write one heartbeat. If that fails, the send continues."""
        try:
            await self._logbook.append(HEARTBEAT_LOG + self._pair, self._count, [self._process.encode()], self._now())
            self._count += 1
        except Fault as fault:
            _LOG.warning("a heartbeat could not be written: %s", fault.message)

    async def forget(self, pair: str) -> None:
        """Remove the heartbeats of a pair that has ended."""
        try:
            await self._logbook.forget(HEARTBEAT_LOG + pair)
        except Fault as fault:
            _LOG.warning("heartbeats could not be removed: %s", fault.message)

    async def is_alive(self, pair: str) -> bool:
        """Whether a process is sending this pair, as far as can be known from here."""
        if pair == self._pair:
            return True
        lines = await self._logbook.lines(HEARTBEAT_LOG + pair)
        if not lines:
            return False
        process, latest = lines[-1].data.decode(), lines[-1].at
        if process == self._process:
            return False  # neither its end could be stored nor the heartbeats removed
        if process.partition(":")[0] == self._process.partition(":")[0]:  # the same machine
            return self._is_alive(process)  # a suspended process has no heartbeats, and continues later
        return self._now() - latest < SILENCE

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            await self.beat()


LOG = "chat"
PREFERENCES = "chat-preferences"
MAIN = "main"
"""The id of the chat that every store has."""

SESSION = "chat"
"""The label of that chat's exchanges; for other chats, their id is appended."""

MOST_FILTERS = 1000

T = TypeVar("T")


class SavedFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter and its unique name."""

    name: str
    filter: str


class Preferences(msgspec.Struct, frozen=True):
    """What the user has set on the page. `settings` has the changed ones by their JSON names."""

    settings: JsonObject = {}
    saved_filters: tuple[SavedFilter, ...] = ()


if TYPE_CHECKING:

    class SettingsShown(ChatSettings, frozen=True, kw_only=True): ...
else:  # `rename` applies to the fields that a struct defines itself, and not to inherited ones
    SettingsShown = msgspec.defstruct(
        "SettingsShown",
        [(field.name, field.type, field.default) for field in msgspec.structs.fields(ChatSettings)],
        bases=(ChatSettings,),
        namespace={"__doc__": "All active settings of the chat, under their public names."},
        frozen=True,
        kw_only=True,
        omit_defaults=False,
        forbid_unknown_fields=False,
        rename="camel",
    )


def apply_preferences(configured: ChatSettings, preferences: Preferences) -> ChatSettings:
    """The settings with the preferences applied to the configuration. Raises a fault that names a value that is
    invalid."""
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(SettingsShown)}
    hint = f"The settings are {', '.join(fields)}."
    own: SettingsShown = read_value(preferences.settings, SettingsShown, subject="settings", hint=hint, status=422)
    changed = {fields[name]: getattr(own, fields[name]) for name in preferences.settings}
    return msgspec.structs.replace(configured, **changed)


def check_preferences(preferences: Preferences) -> Preferences:
    """The preferences. Raises a fault unless each saved filter has a unique name."""
    names = [each.name for each in preferences.saved_filters]
    if len(set(names)) != len(names) or not all(name.strip() for name in names) or len(names) > MOST_FILTERS:
        hint = f"Give each a name of its own; {MOST_FILTERS} are the most."
        raise Fault(Code.INVALID_REQUEST, "the saved filters need names of their own", hint=hint, status=422)
    return preferences


_ENCODER = msgspec.json.Encoder()
_FACTS: msgspec.json.Decoder[ChatFact] = msgspec.json.Decoder(ChatFact)
_GENERATED = (PairAnswered, PairFailed, PairCancelled, ChatImported)
"""Facts whose text was not just typed by the user, so that no one can be asked to correct it."""


def _encode_fact(fact: ChatFact) -> tuple[bytes, ChatFact]:
    if not isinstance(fact, _GENERATED):
        return _encode_typed(fact)
    try:
        return _ENCODER.encode(fact), fact
    except UnicodeEncodeError:
        # A model may split a character, which leaves half of a surrogate pair.
        data = join_surrogates(json.dumps(msgspec.to_builtins(fact), ensure_ascii=False)).encode()
        return data, _FACTS.decode(data)


def _encode_typed(value: T) -> tuple[bytes, T]:
    try:
        return _ENCODER.encode(value), value
    except UnicodeEncodeError:
        hint = "Take it out: it is half of a character, as a cut text has it."
        raise Fault(Code.INVALID_REQUEST, "the text is not Unicode", hint=hint, status=422) from None


def _decoder(log: str, decode: Callable[[bytes], T]) -> Callable[[Line], T]:
    def decode_line(line: Line) -> T:
        try:
            return decode(line.data)
        except msgspec.DecodeError as error:
            message = f"line {line.n} of the log {log!r} cannot be understood: {error}"
            hint = "A newer version of Sightline has written it; use that version, or another data folder."
            raise Fault(Code.CONFIG, message, hint=hint) from None

    return decode_line


FACT_FORMAT: FactFormat[ChatFact] = FactFormat(_encode_fact, _decoder(LOG, _FACTS.decode))


def format_of(log: str, kind: type[T]) -> FactFormat[T]:
    """The format in which values that the user typed are written to a log."""
    return FactFormat(_encode_typed, _decoder(log, msgspec.json.Decoder(kind).decode))


PREFERENCES_FORMAT = format_of(PREFERENCES, Preferences)


def log_of(chat: str) -> str:
    return LOG if chat == MAIN else f"{LOG}:{chat}"


def session_of(chat: str) -> str:
    """The label of a chat's exchanges."""
    return SESSION if chat == MAIN else f"{SESSION}-{chat}"


EVENT = "chat"
"""The name of the chat's events."""

_MOST_NAMED = 1000
"""A change of more pairs than this is announced without their ids."""

_PAIRS_AT_ONCE = 1000
"""After reading the words of this many pairs, other tasks of the event loop get a turn."""

_FREEZE_FROM = 100_000
"""If there are more new objects than this, they are excluded from later garbage collections."""

_LOOK = 2.0
"""Seconds between two checks for facts that other processes have added."""

_LOG = logging.getLogger(__name__)

RecoverPair: TypeAlias = Callable[[PairFailed, str], Awaitable[ChatFact]]
"""Returns the fact that ends a pair, given the failure it would otherwise have and the run that was in progress for
it."""

Listener: TypeAlias = Callable[[HistoryChange | None], None]
"""Called with each change of the history; None means a change of the settings."""


def apply_fact(history: ChatHistory, fact: ChatFact, at: float) -> HistoryChange:
    """Apply a fact that was written to the log at this time."""
    try:
        return history.apply(fact)
    except Fault as fault:  # only the log of another version has such a fact
        _LOG.warning("a fact of the chat from %.0f changes nothing: %s", at, fault.message)
        return HistoryChange()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatContext:
    """What the chats of a store share. `process` is a unique name for this process, with its machine before a colon;
    `is_alive` tells whether the process with such a name is still running on this machine."""

    logbook: Logbook
    hub: Hub
    settings: ChatSettings
    now: Callable[[], float]
    make_id: Callable[[], str]
    secrets: tuple[str, ...] = ()
    process: str = ""
    is_alive: Callable[[str], bool] = lambda _process: True


class Chat:
    """The history, loaded when it is first needed, and the preferences, which all chats share. `version` is the number
    of facts in the log.

    Several processes may have the chat of one store open; each reads what the others have added. `recovering` returns
    how a pair ends whose run was in progress when its process ended.
    """

    def __init__(self, context: ChatContext, name: str = MAIN, recovering: RecoverPair | None = None) -> None:
        self.id = name
        self.history = ChatHistory()
        self.preferences = Preferences()
        self.settings = self._configured = context.settings
        self.now = context.now
        self.make_id = context.make_id
        self.hub = context.hub
        self.heartbeats = Heartbeats(
            context.logbook, context.now, context.process or context.make_id(), context.is_alive
        )
        self._facts: Journal[ChatFact, ChatHistory, HistoryChange] = Journal(
            context.logbook,
            log_of(name),
            FACT_FORMAT,
            self.history,
            partial(apply_fact, self.history),
            now=context.now,
            secrets=context.secrets,
            announce=self._announce_facts,
        )
        self._preferences: Journal[Preferences, None, None] = Journal(
            context.logbook,
            PREFERENCES,
            PREFERENCES_FORMAT,
            None,
            self._prefer,
            now=context.now,
            secrets=context.secrets,
        )
        self._lock = asyncio.Lock()
        self._recovering = recovering
        self._listeners: list[Listener] = []
        self._appending: set[asyncio.Task[list[HistoryChange] | None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None

    @property
    def session(self) -> str:
        """The label of its exchanges."""
        return session_of(self.id)

    @property
    def version(self) -> int:
        """The number of facts in the log that have been read here."""
        return self._facts.version

    def conversation_in(self, topic: str) -> str:
        """The name of the recorded conversation: each topic has its own."""
        return f"{self.session}:{topic}" if topic else self.session

    def listen(self, listener: Listener) -> None:
        """Call the listener with each change, before it is announced."""
        self._listeners.append(listener)

    def announce(self, value: JsonObject) -> None:
        self.hub.announce(EVENT, {"chat": self.id, **value})

    def touch(self, pair: str) -> None:
        """Announce that a pair looks different although no fact has changed it."""
        self._announce(HistoryChange((pair,)))

    async def load(self) -> ChatHistory:
        """Read the log and return the current history. A send whose process has died is ended here."""
        async with self._lock:
            await self._catch_up()
            await self._preferences.catch_up()
            sending = self.history.sending
            if sending and not await self.heartbeats.is_alive(sending):
                await self._end(PairFailed(sending, INTERRUPTED))
        return self.history

    def follow(self) -> None:
        """From now on, as long as there are watchers, check whether another process has added facts."""
        if self._following is None and self.hub.is_watched:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    def warm(self) -> None:
        """Load the history in the background, so that the first caller does not have to wait."""
        self._warming = asyncio.get_running_loop().create_task(self._warm())

    async def close(self) -> None:
        """Stop following the log, and wait until pending facts have been appended."""
        for task in (self._following, self._warming):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        await asyncio.gather(*self._appending, return_exceptions=True)

    async def happen(self, fact: ChatFact) -> HistoryChange:
        """Append a fact and return what it changed. It is durable when this returns, and is appended even if the caller
        is cancelled. Raises a fault, without changing anything, if the fact does not fit the history."""
        if not self._facts.is_loaded:
            async with self._lock:
                await self._catch_up()
        facts = pieces_of(fact) if isinstance(fact, ChatImported) else (fact,)
        task = asyncio.get_running_loop().create_task(self._facts.append(facts, check=self.history.check))
        self._appending.add(task)
        task.add_done_callback(self._appending.discard)
        # The caller may be an HTTP call whose client has gone; what it began is finished anyway.
        changes = await asyncio.shield(task)
        assert changes  # a shared log is retried after a conflict
        return changes[0]

    async def prefer(self, preferences: Preferences) -> None:
        """Store the user's preferences. Raises a fault if they are invalid."""
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
        """End the pair of a sender that has died, with the result of its run so far. If another process was faster, the
        pair has already ended."""
        run = self.history.get(interrupted.id).run
        fact: ChatFact = interrupted
        if run and self._recovering is not None:
            fact = await self._recovering(interrupted, run)
        if await self._facts.append((fact,), check=self.history.check, retry=False) is not None:
            await self.heartbeats.forget(interrupted.id)

    def _prefer(self, preferences: Preferences, _at: float) -> None:
        if preferences != self.preferences:
            self.preferences = preferences
            self.settings = apply_preferences(self._configured, preferences)
            self._notify_listeners(None)
        self.announce({"kind": "preferences"})

    async def _follow(self) -> None:
        while self.hub.is_watched:
            await asyncio.sleep(_LOOK)
            await self._try_to_open()
        self._following = None

    async def _warm(self) -> None:
        """Load the history and the words of its pairs: the first filter would otherwise have to read all of them."""
        await self._try_to_open()
        with _without_gc():
            for number, pair in enumerate(list(self.history), 1):
                self.history.words.of(pair)
                if not number % _PAIRS_AT_ONCE:
                    await asyncio.sleep(0)

    async def _try_to_open(self) -> None:
        try:
            await self.load()
        except Fault as fault:  # the next caller of `load` gets the fault
            _LOG.warning("the chat could not be read: %s", fault.message)

    def _announce_facts(self, applied: Sequence[tuple[ChatFact, HistoryChange]]) -> None:
        """Announce the first fact. Only an import appends several, and its first change is wide already."""
        fact, change = applied[0]
        seen = change if len(change.ids) <= _MOST_NAMED else HistoryChange(is_wide=True)
        self._notify_listeners(seen)
        self._announce(seen)
        if isinstance(fact, TopicAdded | TopicChanged | TopicRemoved):
            self.announce({"kind": "topics"})

    def _announce(self, change: HistoryChange) -> None:
        if self.hub.is_watched:
            ids: list[Json] = list(change.ids)
            self.announce({"kind": "changed", "version": self.version, "ids": ids, "wide": change.is_wide})

    def _notify_listeners(self, change: HistoryChange | None) -> None:
        for listener in self._listeners:
            listener(change)

    def mask(self, text: str) -> str:
        return self._facts.redaction.text(text)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disable garbage collection: everything that is read is kept, and scanning it again and again would take most of
    the time. A large history is also excluded from later collections, since each would block the event loop."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _FREEZE_FROM:
                gc.freeze()
            gc.enable()
