"""The calls of the chats, by path and method."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, get_type_hints
from urllib.parse import unquote

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.chat.api import files, filters, pairs, requests
from sightline.chat.api.requests import ChatParts, OneChat, load_with, not_there, refusing
from sightline.chat.api.shapes import AskedShown, PreferencesShown, TopicShown, Versioned
from sightline.chat.core.facts import CompactionUndone, TopicAdded, TopicChanged, TopicRemoved
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.rewriting import Comparison, compaction_fact, compare
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.chat import MAIN, Preferences, SettingsShown
from sightline.chat.service.chats import ChatBrief, Chats, SummaryDraft
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import ForgetResult, Records, forget_exchanges
from sightline.filters.expression import TextTerm
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.predicate import literal
from sightline.model.json import JsonObject
from sightline.settings import ChatSettings
from sightline.web.bodies import Nothing, Query, read_body
from sightline.web.routes import ApiCall, Calls


async def list_topics(chat: OneChat) -> list[TopicShown]:
    """All topics, each after its parent."""
    history = await chat.service.chat.load()
    direct = Counter(pair.topic for pair in history)
    topics = sorted(history.topics, key=lambda topic: [name.lower() for name in history.topics.path(topic.id)])
    return [_topic_shown(history, topic, direct) for topic in topics]


async def add_topic(chat: OneChat, wanted: requests.TopicWanted) -> TopicShown:
    history = await chat.service.chat.load()
    _check_topic(chat, history, wanted.parent, wanted.toolsets)
    topic = Topic(id=chat.service.chat.make_id(), **msgspec.structs.asdict(wanted))
    await chat.service.chat.happen(TopicAdded(topic))
    return _topic_shown(history, topic, Counter())


async def change_topic(chat: OneChat, name: str, wanted: requests.TopicChangeWanted) -> TopicShown:
    """Change a topic's name, parent, prompt, model, tools or parameters."""
    history = await _history_with(chat, name)
    given = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not msgspec.UNSET}
    topic = msgspec.structs.replace(history.topics.get(name), **given)
    _check_topic(chat, history, topic.parent, topic.toolsets)
    await chat.service.chat.happen(TopicChanged(topic))
    return _topic_shown(history, topic, Counter(pair.topic for pair in history))


async def change_root(chat: OneChat, wanted: requests.TopicChangeWanted) -> TopicShown:
    """Change the root topic, which has an empty id."""
    return await change_topic(chat, ROOT, wanted)


async def remove_topic(chat: OneChat, name: str) -> Versioned:
    await _history_with(chat, name)
    await chat.service.chat.happen(TopicRemoved(name))
    return Versioned(chat.service.chat.version)


async def _history_with(chat: OneChat, name: str) -> ChatHistory:
    history = await chat.service.chat.load()
    if name not in history.topics:
        raise not_there("topic", name)
    return history


def _check_topic(chat: OneChat, history: ChatHistory, parent: str, toolsets: tuple[str, ...] | None) -> None:
    if parent not in history.topics:
        raise not_there("topic", parent)
    for name in toolsets or ():
        if name not in chat.parts.toolsets:
            hint = nearest(name, chat.parts.toolsets) or f"Configure it first, as [tools.{name}]."
            raise Fault(Code.USAGE, f"there is no toolset {quote_word(name)}", hint=hint, status=422)


def _topic_shown(history: ChatHistory, topic: Topic, direct: "Counter[str]") -> TopicShown:
    below = history.topics.below(topic.id)
    return TopicShown(
        **msgspec.structs.asdict(topic),
        path=history.topics.path(topic.id),
        direct=direct[topic.id],
        total=direct[topic.id] + sum(direct[each] for each in below),
    )


async def send(chat: OneChat, wanted: requests.SendWanted) -> AskedShown:
    """Ask a question. This returns as soon as the pair is in the history; the rest arrives as events."""
    parts = files.parts_from_uploads(wanted.attachments)
    await load_with(chat, (wanted.replaces,) if wanted.replaces else ())
    pair = await chat.service.sends.send(
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


async def reask(chat: OneChat, pair: str, wanted: requests.ReaskWanted) -> AskedShown:
    """Ask the question of a pair again, in place."""
    await load_with(chat, (pair,))
    new_pair = await chat.service.sends.reask(
        pair, wanted.view, model=wanted.model, hold=wanted.hold, step=wanted.step, quota=wanted.quota
    )
    return AskedShown(new_pair)


async def cancel(chat: OneChat, _nothing: Nothing) -> Versioned:
    """Cancel the send in progress; what has arrived is kept."""
    await chat.service.chat.load()
    await chat.service.sends.cancel()
    return Versioned(chat.service.chat.version)


async def resume(chat: OneChat, wanted: requests.ResumeWanted) -> Versioned:
    """Resume a send that waits for its quota."""
    await chat.service.chat.load()
    chat.service.sends.resume(anyway=wanted.anyway)
    return Versioned(chat.service.chat.version)


async def get_preferences(chat: OneChat) -> PreferencesShown:
    await chat.service.chat.load()
    settings = SettingsShown(**msgspec.structs.asdict(chat.service.chat.settings))
    return PreferencesShown(settings, chat.service.chat.preferences.saved_filters)


async def update_preferences(chat: OneChat, wanted: requests.PreferencesWanted) -> PreferencesShown:
    await chat.service.chat.load()
    before = chat.service.chat.preferences
    saved = before.saved_filters if wanted.saved_filters is None else wanted.saved_filters
    for each in saved:
        _check_filter(each.name, each.filter)
    settings = (
        before.settings
        if wanted.settings is None
        else _settings_unlike(chat.parts.chats.context.settings, wanted.settings)
    )
    await chat.service.chat.prefer(Preferences(settings, saved))
    return await get_preferences(chat)


def _settings_unlike(configured: ChatSettings, settings: JsonObject) -> JsonObject:
    """The settings that differ from the configuration; the others follow later changes of it."""
    usual: JsonObject = msgspec.to_builtins(SettingsShown(**msgspec.structs.asdict(configured)))
    return {name: value for name, value in settings.items() if name not in usual or usual[name] != value}


def _check_filter(name: str, text: str) -> None:
    if not name.strip() or any(character.isspace() or character in "&|+!()'\":<>=@" for character in name):
        hint = "A name is one word of letters, digits, - and _, because it is written as @name."
        raise Fault(Code.INVALID_REQUEST, f"no filter can be called {name[:40]!r}", hint=hint, status=422)
    try:
        parse(text, scope=FilterScope.CHAT)
    except Fault as fault:
        message = f"the filter @{name} cannot be read: {fault.message}"
        raise Fault(fault.code, message, hint=fault.hint, status=422) from None


async def draft_summary(chat: OneChat, wanted: requests.DraftWanted) -> SummaryDraft:
    """Draft a summary with the model. It is cancelled if its client disconnects."""
    await load_with(chat, wanted.ids)
    return await chat.service.draft_summary(wanted.view, wanted.ids, wanted.instruction)


async def compare_summary(chat: OneChat, wanted: requests.CompareWanted) -> Comparison:
    """Compare the tokens of the pairs with those of this summary."""
    history = await load_with(chat, wanted.ids)
    looking = await chat.service.views.get(wanted.view)
    return compare(history.in_order(wanted.ids), wanted.text, looking.view.sizer)


async def accept_summary(chat: OneChat, wanted: requests.CompactionWanted) -> AskedShown:
    """Replace the pairs with the summary. The pairs are kept."""
    history = await load_with(chat, wanted.ids)
    fact = compaction_fact(history, wanted.ids, wanted.text, new_id=chat.service.chat.make_id())
    await chat.service.chat.happen(fact)
    return AskedShown(fact.summary.id)


async def undo_summary(chat: OneChat, wanted: requests.CompactionUndoWanted) -> Versioned:
    """Bring the pairs back and remove the summary."""
    await load_with(chat, (wanted.id,))
    await chat.service.chat.happen(CompactionUndone(wanted.id))
    return Versioned(chat.service.chat.version)


class ChatWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a chat. Without one, the chat is named by its first question."""

    name: str = ""


class ForkWanted(ChatWanted, frozen=True):
    """A new chat with the pairs of another up to this one."""

    pair: str = ""


@dataclass(frozen=True, slots=True)
class ChatListCalls:
    """Lists, creates, renames, forks and deletes chats."""

    chats: Chats
    records: Records

    async def list_chats(self, query: Query) -> list[ChatBrief]:
        """All chats; with `text`, only those that contain these words."""
        return await self.chats.list_chats(query.text("text"))

    async def get(self, chat: str) -> ChatBrief:
        return await self.chats.describe(chat)

    async def create(self, wanted: ChatWanted) -> ChatBrief:
        return await self.get(await self.chats.create(wanted.name))

    async def fork(self, chat: str, wanted: ForkWanted) -> ChatBrief:
        """Create a chat with the pairs of another up to this one."""
        return await self.get(await self.chats.fork(chat, wanted.pair, wanted.name))

    async def rename(self, chat: str, wanted: ChatWanted) -> ChatBrief:
        await self.chats.rename(chat, wanted.name)
        return await self.get(chat)

    async def delete(self, chat: str, query: Query) -> ForgetResult:
        """Delete a chat so that no file contains it any more; with `requests`, also its recorded requests and its
        runs."""
        brief, store = await self.chats.describe(chat), self.records.store
        await self.chats.delete(chat)
        if not query.is_set("requests"):
            await store.forget([])  # removes all traces of what was just deleted
            return ForgetResult(0, 0)
        wanted = TextTerm("session", literal(brief.session))
        found, ids = await forget_exchanges(store, wanted, now=self.chats.context.now(), with_copies=True)
        self.chats.context.hub.announce("forgotten", {"exchanges": list(ids)})
        return found


Act: TypeAlias = Callable[..., Awaitable[object]]


async def _answer(act: Act, call: ApiCall, *first: object) -> object:
    """Call a function with these arguments, followed by what its other parameters are annotated as: names in the path,
    the query, the call itself, or the body."""
    given, names = list(first), iter(call.names)
    kinds = [kind for name, kind in get_type_hints(act).items() if name != "return"]
    for kind in kinds[len(first) :]:
        if kind is str:
            given.append(unquote(next(names)))  # ids of imported pairs may contain any characters
        elif kind is Query:
            given.append(Query(call.query))
        elif kind is ApiCall:
            given.append(call)
        else:
            given.append(await read_body(call.receive, kind))
    return await act(*given)


_CALLS: Mapping[str, Mapping[str, Act]] = {
    "views/*": {"GET": pairs.get_view, "PUT": pairs.update_view},
    "views/*/rows": {"GET": pairs.get_rows},
    "views/*/place": {"GET": pairs.find_place},
    "estimate": {"POST": pairs.estimate_question},
    "preview": {"POST": pairs.preview_send},
    "send": {"POST": send},
    "cancel": {"POST": cancel},
    "resume": {"POST": resume},
    "pairs/*": {"GET": pairs.get_pair},
    "pairs/*/media/*": {"GET": pairs.get_media},
    "pairs/*/reask": {"POST": reask},
    "pairs/*/edit": {"POST": pairs.edit_pair},
    "pairs/*/swap": {"POST": pairs.swap_answer},
    "mark": {"POST": pairs.mark_pairs},
    "delete": {"POST": pairs.delete_pairs},
    "restore": {"POST": pairs.restore_pairs},
    "topics": {"GET": list_topics, "POST": add_topic, "PUT": change_root},
    "topics/*": {"PUT": change_topic, "DELETE": remove_topic},
    "compaction": {"POST": accept_summary},
    "compaction/draft": {"POST": draft_summary},
    "compaction/compare": {"POST": compare_summary},
    "compaction/undo": {"POST": undo_summary},
    "preferences": {"GET": get_preferences, "PUT": update_preferences},
    "command": {"POST": filters.run_command},
    "export": {"GET": files.export},
    "import": {"POST": files.bring_in},
    "filter": {"GET": filters.describe_filter},
}
"""The calls of a chat, by the end of their path and by method."""


def chat_calls(parts: ChatParts, records: Records) -> Calls:
    """All calls below `/api/chats`. Those of the main chat are also below `/api/chat`."""
    chats = ChatListCalls(parts.chats, records)
    listed: dict[str, dict[str, Act]] = {
        "chats": {"GET": chats.list_chats, "POST": chats.create},
        "chats/*": {"GET": chats.get, "PUT": chats.rename, "DELETE": chats.delete},
        "chats/*/fork": {"POST": chats.fork},
    }

    async def in_main(act: Act, call: ApiCall) -> object:
        return await _answer(act, call, OneChat(parts, await parts.chats.get(MAIN), records))

    async def in_chat(act: Act, call: ApiCall) -> object:
        service = await parts.chats.get(unquote(call.name))
        return await _answer(act, replace(call, names=call.names[1:]), OneChat(parts, service, records))

    tables = (("", listed, _answer), ("chat/", _CALLS, in_main), ("chats/*/", _CALLS, in_chat))
    return {
        f"{above}{path}": {method: refusing(partial(answer, act)) for method, act in methods.items()}
        for above, calls, answer in tables
        for path, methods in calls.items()
    }
