"""The calls of the chats by path and method."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.chat.api.files import Files, parts_from_uploads
from sightline.chat.api.filters import Commanding, Filters
from sightline.chat.api.pairs import ModelPrices, PairCalls, PairShowing, ViewCalls, band
from sightline.chat.api.requests import (
    CommandWanted,
    CompactionUndoWanted,
    CompactionWanted,
    CompareWanted,
    DraftWanted,
    EditWanted,
    IdsWanted,
    MarkWanted,
    PreferencesWanted,
    PreviewWanted,
    QuestionWanted,
    ReaskWanted,
    ResumeWanted,
    SendWanted,
    SwapWanted,
    TopicChangeWanted,
    TopicWanted,
    ViewWanted,
    load_with,
    not_there,
    refusing,
)
from sightline.chat.api.shapes import (
    AskedShown,
    ComparisonShown,
    DraftShown,
    PreferencesShown,
    SettingsShown,
    TopicShown,
    Versioned,
)
from sightline.chat.core.facts import TopicAdded, TopicChanged, TopicRemoved
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.sizing import ChatSettings
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.chat import MAIN, Chat, Preferences
from sightline.chat.service.chats import ChatBrief, Chats
from sightline.chat.service.service import ChatService
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.exchange.recording.records import ForgetResult, Records, forget_exchanges
from sightline.filters.expression import TextTerm
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.predicate import literal
from sightline.model.json import JsonObject
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls, Handler


class TopicCalls:
    """Shows and changes topics. `toolsets` are the names of the configured ones; the page cannot name others."""

    def __init__(self, service: ChatService, toolsets: Sequence[str]) -> None:
        self._service = service
        self._toolsets = toolsets

    async def list_topics(self) -> list[TopicShown]:
        """All topics, each after its parent."""
        history = await self._service.chat.load()
        direct = Counter(pair.topic for pair in history)
        topics = sorted(history.topics, key=lambda topic: [name.lower() for name in history.topics.path(topic.id)])
        return [_topic_shown(history, topic, direct) for topic in topics]

    async def add(self, wanted: TopicWanted) -> TopicShown:
        chat = self._service.chat
        history = await chat.load()
        self._check(history, wanted.parent, wanted.toolsets)
        topic = Topic(id=chat.make_id(), **msgspec.structs.asdict(wanted))
        await chat.happen(TopicAdded(topic))
        return _topic_shown(history, topic, Counter())

    async def change(self, name: str, wanted: TopicChangeWanted) -> TopicShown:
        """Change a topic's name, parent, prompt, model, tools or parameters."""
        history = await self._history_with(name)
        given = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not msgspec.UNSET}
        topic = msgspec.structs.replace(history.topics.get(name), **given)
        self._check(history, topic.parent, topic.toolsets)
        await self._service.chat.happen(TopicChanged(topic))
        return _topic_shown(history, topic, Counter(pair.topic for pair in history))

    async def remove(self, name: str) -> Versioned:
        await self._history_with(name)
        await self._service.chat.happen(TopicRemoved(name))
        return Versioned(self._service.chat.version)

    async def _history_with(self, name: str) -> ChatHistory:
        history = await self._service.chat.load()
        if name not in history.topics:
            raise not_there("topic", name)
        return history

    def _check(self, history: ChatHistory, parent: str, toolsets: tuple[str, ...] | None) -> None:
        if parent not in history.topics:
            raise not_there("topic", parent)
        for name in toolsets or ():
            if name not in self._toolsets:
                hint = nearest(name, self._toolsets) or f"Configure it first, as [tools.{name}]."
                raise Fault(Code.USAGE, f"there is no toolset {quote_word(name)}", hint=hint, status=422)


def _topic_shown(history: ChatHistory, topic: Topic, direct: "Counter[str]") -> TopicShown:
    below = history.topics.below(topic.id)
    return TopicShown(
        **msgspec.structs.asdict(topic),
        path=history.topics.path(topic.id),
        direct=direct[topic.id],
        total=direct[topic.id] + sum(direct[each] for each in below),
    )


class SendCalls:
    """Passes calls to the service. Each returns as soon as the pair is in the history; the rest arrives as events."""

    def __init__(self, service: ChatService) -> None:
        self._service = service

    async def send(self, wanted: SendWanted) -> AskedShown:
        """Ask a question."""
        parts = parts_from_uploads(wanted.attachments)
        await load_with(self._service.chat, (wanted.replaces,) if wanted.replaces else ())
        pair = await self._service.sends.send(
            wanted.view,
            wanted.text,
            parts,
            replaces=wanted.replaces,
            hold=wanted.hold,
            step=wanted.step,
            expect_sha256=wanted.expect_sha256,
            quota=wanted.quota,
        )
        return AskedShown(pair)

    async def reask(self, pair: str, wanted: ReaskWanted) -> AskedShown:
        """Ask it again at its place."""
        await load_with(self._service.chat, (pair,))
        new_pair = await self._service.sends.reask(
            pair, wanted.view, model=wanted.model, hold=wanted.hold, step=wanted.step, quota=wanted.quota
        )
        return AskedShown(new_pair)

    async def cancel(self) -> Versioned:
        """Cancel what is being sent; what has arrived stays."""
        await self._service.chat.load()
        await self._service.sends.cancel()
        return Versioned(self._service.chat.version)

    async def resume(self, wanted: ResumeWanted) -> Versioned:
        """Resume a send that waits for its quota."""
        await self._service.chat.load()
        self._service.sends.resume(anyway=wanted.anyway)
        return Versioned(self._service.chat.version)


class PreferenceCalls:
    """`configured` are the settings of the configuration. A setting that the user leaves at its configured value
    follows later changes of the configuration."""

    def __init__(self, chat: Chat, configured: ChatSettings) -> None:
        self._chat = chat
        self._configured = configured

    async def get(self) -> PreferencesShown:
        """The active preferences."""
        await self._chat.load()
        settings = SettingsShown(**msgspec.structs.asdict(self._chat.settings))
        return PreferencesShown(settings, self._chat.preferences.saved_filters)

    async def update(self, wanted: PreferencesWanted) -> PreferencesShown:
        """Change the preferences."""
        await self._chat.load()
        before = self._chat.preferences
        saved = before.saved_filters if wanted.saved_filters is None else wanted.saved_filters
        for each in saved:
            _check(each.name, each.filter)
        settings = before.settings if wanted.settings is None else self._own(wanted.settings)
        await self._chat.prefer(Preferences(settings, saved))
        return await self.get()

    def _own(self, settings: JsonObject) -> JsonObject:
        """The settings that differ from the configuration."""
        names = {field.name: field.encode_name for field in msgspec.structs.fields(ChatSettings)}
        usual = {names[name]: value for name, value in msgspec.structs.asdict(self._configured).items()}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}
        return {name: value for name, value in settings.items() if name not in plain or plain[name] != value}


def _check(name: str, text: str) -> None:
    if not name.strip() or any(character.isspace() or character in "&|+!()'\":<>=@" for character in name):
        hint = "A name is one word of letters, digits, - and _, because it is written as @name."
        raise Fault(Code.INVALID_REQUEST, f"no filter can be called {name[:40]!r}", hint=hint, status=422)
    try:
        parse(text, scope=FilterScope.CHAT)
    except Fault as fault:
        message = f"the filter @{name} cannot be read: {fault.message}"
        raise Fault(fault.code, message, hint=fault.hint, status=422) from None


class CompactionCalls:
    """Passes calls to the service. A draft is cancelled if its client disconnects."""

    def __init__(self, service: ChatService) -> None:
        self._service = service

    async def draft(self, wanted: DraftWanted) -> DraftShown:
        """Draft a summary with the model."""
        await load_with(self._service.chat, wanted.ids)
        draft = await self._service.compacting.draft(wanted.view, wanted.ids, wanted.instruction)
        before, after = band(draft.comparison.before), band(draft.comparison.after)
        return DraftShown(text=draft.text, before=before, after=after, exchange=draft.exchange)

    async def compare(self, wanted: CompareWanted) -> ComparisonShown:
        """The tokens before and after, for this text."""
        await load_with(self._service.chat, wanted.ids)
        comparison = await self._service.compacting.compare(wanted.view, wanted.ids, wanted.text)
        return ComparisonShown(band(comparison.before), band(comparison.after))

    async def accept(self, wanted: CompactionWanted) -> AskedShown:
        """Replace the pairs by the summary."""
        await load_with(self._service.chat, wanted.ids)
        return AskedShown(await self._service.compacting.accept(wanted.ids, wanted.text))

    async def undo(self, wanted: CompactionUndoWanted) -> Versioned:
        """Bring the pairs back and remove the summary."""
        await load_with(self._service.chat, (wanted.id,))
        await self._service.compacting.undo(wanted.id)
        return Versioned(self._service.chat.version)


W = TypeVar("W", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class ChatParts:
    """What the calls of the chats need. `settings` are the configured ones, `models` the names to offer, `toolsets`
    those of the configuration."""

    chats: Chats
    hub: Hub
    now: Callable[[], float]
    settings: ChatSettings
    prices: ModelPrices
    zone: tzinfo
    models: Sequence[str] = ()
    toolsets: Sequence[str] = ()


class ChatWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a chat; without one it is called after its first question."""

    name: str = ""


class ForkWanted(ChatWanted, frozen=True):
    """A chat that begins with what another has up to this pair."""

    pair: str = ""


class ChatListCalls:
    """Lists chats, and makes, renames, forks and deletes them."""

    def __init__(self, chats: Chats, records: Records, hub: Hub, now: Callable[[], float]) -> None:
        self._chats = chats
        self._records = records
        self._hub = hub
        self._now = now

    async def list_chats(self, query: Query) -> list[ChatBrief]:
        """All chats; with `text`, those with these words."""
        return await self._chats.list_chats(query.text("text"))

    async def get(self, chat: str) -> ChatBrief:
        return await self._chats.describe(chat)

    async def create(self, wanted: ChatWanted) -> ChatBrief:
        """Begin a chat."""
        return await self.get(await self._chats.create(wanted.name))

    async def fork(self, chat: str, wanted: ForkWanted) -> ChatBrief:
        """Begin a chat with what another has up to a pair."""
        return await self.get(await self._chats.fork(chat, wanted.pair, wanted.name))

    async def rename(self, chat: str, wanted: ChatWanted) -> ChatBrief:
        """Call a chat something else."""
        await self._chats.rename(chat, wanted.name)
        return await self.get(chat)

    async def delete(self, chat: str, query: Query) -> ForgetResult:
        """Delete a chat so that no file has it any more; with `requests`, also what is on record of its requests, and
        its runs."""
        brief, store = await self._chats.describe(chat), self._records.store
        await self._chats.delete(chat)
        if not query.is_set("requests"):
            await store.forget([])  # it leaves no trace of what was removed just now
            return ForgetResult(0, 0)
        wanted = TextTerm("session", literal(brief.session))
        found, ids = await forget_exchanges(store, wanted, now=self._now(), with_copies=True)
        self._hub.announce("forgotten", {"exchanges": list(ids)})
        return found


class OneChat:
    """The calls of one chat."""

    def __init__(self, parts: ChatParts, service: ChatService, records: Records) -> None:
        showing = PairShowing(service, parts.prices)
        self.filters = Filters(service.chat, parts.zone, parts.models)
        self.views = ViewCalls(service, self.filters, showing)
        self.pairs = PairCalls(service, showing, records)
        self.sends = SendCalls(service)
        self.topics = TopicCalls(service, parts.toolsets)
        self.compactions = CompactionCalls(service)
        self.preferences = PreferenceCalls(service.chat, parts.settings)
        self.files = Files(service, self.filters)
        self.commands = Commanding(service, self.filters)


ChatHandler: TypeAlias = Callable[[OneChat, ApiCall], Awaitable[object]]


def _with_body(kind: type[W], act: Callable[[OneChat, ApiCall, W], Awaitable[object]]) -> ChatHandler:
    async def handle(chat: OneChat, call: ApiCall) -> object:
        return await act(chat, call, await read_body(call.receive, kind))

    return handle


def _name(call: ApiCall) -> str:
    """The id in the path; ids of imported pairs may contain any characters."""
    return unquote(call.name)


_CALLS: Mapping[str, Mapping[str, ChatHandler]] = {
    "views/*": {
        "GET": lambda chat, call: chat.views.get(_name(call), Query(call.query)),
        "PUT": _with_body(ViewWanted, lambda chat, call, wanted: chat.views.update(_name(call), wanted)),
    },
    "views/*/rows": {"GET": lambda chat, call: chat.views.rows(_name(call), Query(call.query))},
    "views/*/place": {"GET": lambda chat, call: chat.views.place(_name(call), Query(call.query))},
    "estimate": {"POST": _with_body(QuestionWanted, lambda chat, _call, wanted: chat.views.estimate(wanted))},
    "preview": {"POST": _with_body(PreviewWanted, lambda chat, _call, wanted: chat.views.preview(wanted))},
    "send": {"POST": _with_body(SendWanted, lambda chat, _call, wanted: chat.sends.send(wanted))},
    "cancel": {"POST": _with_body(Nothing, lambda chat, _call, _nothing: chat.sends.cancel())},
    "resume": {"POST": _with_body(ResumeWanted, lambda chat, _call, wanted: chat.sends.resume(wanted))},
    "pairs/*": {"GET": lambda chat, call: chat.pairs.get(_name(call), Query(call.query))},
    "pairs/*/media/*": {"GET": lambda chat, call: chat.pairs.media(_name(call), call.names[1], Query(call.query))},
    "pairs/*/reask": {
        "POST": _with_body(ReaskWanted, lambda chat, call, wanted: chat.sends.reask(_name(call), wanted))
    },
    "pairs/*/edit": {
        "POST": _with_body(
            EditWanted, lambda chat, call, wanted: chat.pairs.edit(_name(call), wanted, Query(call.query))
        )
    },
    "pairs/*/swap": {
        "POST": _with_body(
            SwapWanted, lambda chat, call, wanted: chat.pairs.swap(_name(call), wanted, Query(call.query))
        )
    },
    "mark": {"POST": _with_body(MarkWanted, lambda chat, _call, wanted: chat.pairs.mark(wanted))},
    "delete": {"POST": _with_body(IdsWanted, lambda chat, _call, wanted: chat.pairs.delete(wanted))},
    "restore": {"POST": _with_body(IdsWanted, lambda chat, _call, wanted: chat.pairs.restore(wanted))},
    "topics": {
        "GET": lambda chat, _call: chat.topics.list_topics(),
        "POST": _with_body(TopicWanted, lambda chat, _call, wanted: chat.topics.add(wanted)),
        # The topic of all topics has an empty id.
        "PUT": _with_body(TopicChangeWanted, lambda chat, _call, wanted: chat.topics.change(ROOT, wanted)),
    },
    "topics/*": {
        "PUT": _with_body(TopicChangeWanted, lambda chat, call, wanted: chat.topics.change(_name(call), wanted)),
        "DELETE": lambda chat, call: chat.topics.remove(_name(call)),
    },
    "compaction": {"POST": _with_body(CompactionWanted, lambda chat, _call, wanted: chat.compactions.accept(wanted))},
    "compaction/draft": {"POST": _with_body(DraftWanted, lambda chat, _call, wanted: chat.compactions.draft(wanted))},
    "compaction/compare": {
        "POST": _with_body(CompareWanted, lambda chat, _call, wanted: chat.compactions.compare(wanted))
    },
    "compaction/undo": {
        "POST": _with_body(CompactionUndoWanted, lambda chat, _call, wanted: chat.compactions.undo(wanted))
    },
    "preferences": {
        "GET": lambda chat, _call: chat.preferences.get(),
        "PUT": _with_body(PreferencesWanted, lambda chat, _call, wanted: chat.preferences.update(wanted)),
    },
    "command": {"POST": _with_body(CommandWanted, lambda chat, _call, wanted: chat.commands.run(wanted))},
    "export": {"GET": lambda chat, call: chat.files.export(Query(call.query))},
    "import": {"POST": lambda chat, call: chat.files.bring_in(Query(call.query), call.receive)},
    "filter": {"GET": lambda chat, call: chat.filters.describe(Query(call.query))},
}
"""The calls of a chat by the end of their path and by method."""


def chat_calls(parts: ChatParts, records: Records) -> Calls:
    """All calls below `/api/chats`. Those of the main chat are below `/api/chat`, too."""
    chats = ChatListCalls(parts.chats, records, parts.hub, parts.now)

    def in_chat(handler: ChatHandler, *, is_main: bool) -> Handler:
        async def handle(call: ApiCall) -> object:
            service = await parts.chats.get(MAIN if is_main else _name(call))
            names = call.names if is_main else call.names[1:]
            return await handler(OneChat(parts, service, records), replace(call, names=names))

        return handle

    calls: dict[str, dict[str, Handler]] = {
        "chats": {
            "GET": lambda call: chats.list_chats(Query(call.query)),
            "POST": lambda call: _then(read_body(call.receive, ChatWanted), chats.create),
        },
        "chats/*": {
            "GET": lambda call: chats.get(_name(call)),
            "PUT": lambda call: _then(read_body(call.receive, ChatWanted), partial(chats.rename, _name(call))),
            "DELETE": lambda call: chats.delete(_name(call), Query(call.query)),
        },
        "chats/*/fork": {
            "POST": lambda call: _then(read_body(call.receive, ForkWanted), partial(chats.fork, _name(call)))
        },
    }
    for path, methods in _CALLS.items():
        calls[f"chat/{path}"] = {name: in_chat(handler, is_main=True) for name, handler in methods.items()}
        calls[f"chats/*/{path}"] = {name: in_chat(handler, is_main=False) for name, handler in methods.items()}
    return {path: {method: refusing(handler) for method, handler in methods.items()} for path, methods in calls.items()}


async def _then(body: Awaitable[W], act: Callable[[W], Awaitable[object]]) -> object:
    return await act(await body)
