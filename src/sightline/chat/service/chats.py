"""A chat with all of its parts, and all chats of a store: their names, those that are open here, and how chats are
created, forked and deleted."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from sightline.chat.core.facts import ChatFact, ChatImported, TopicChanged, erase_texts, exchanges_in
from sightline.chat.core.history import ChatHistory, HistoryChange
from sightline.chat.core.pair import answer_of
from sightline.chat.core.rewriting import INSTRUCTION, Comparison, compare, drafting
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import (
    FACT_FORMAT,
    LOG,
    MAIN,
    Chat,
    ChatContext,
    apply_fact,
    format_of,
    log_of,
    session_of,
)
from sightline.chat.service.running_send import ending_of_interrupted_pair
from sightline.chat.service.sends import Sends
from sightline.chat.service.views import Models, Views
from sightline.errors import Code, Fault
from sightline.exchange.outbound import prepare
from sightline.exchange.phase import cancellation
from sightline.filters.predicate import fold_case
from sightline.journal.journal import Journal
from sightline.store.store import Log, Logbook

NAME_LOG = "chat-name:"
"""The prefix of the log with a chat's names; the chat's id follows. Only the main chat may have no such log."""

MOST_OPEN = 32
"""This many chats are kept in memory; the least recently used one is closed first."""

LONGEST_NAME = 200
_LONGEST_TITLE = 80
_BEFORE_HIT, _AFTER_HIT = 30, 70
_UNNAMED = {MAIN: "Main chat"}


class SummaryDraft(Comparison, frozen=True, kw_only=True):
    """A summary that a model has written, what it would save, and the exchange in which it was written."""

    text: str
    exchange: str


@dataclass(frozen=True, slots=True)
class ChatService:
    """What a page can do with one chat."""

    chat: Chat
    views: Views
    sends: Sends

    @property
    def is_idle(self) -> bool:
        """Whether, as far as is known here, no pair is waiting for its answer or about to."""
        return self.sends.is_idle and not self.sends.sending

    async def draft_summary(self, view: str, ids: Sequence[str], instruction: str = "") -> SummaryDraft:
        """Let the view's model write a summary. Nothing changes until the user accepts it. Cancelling aborts the
        request."""
        looking = await self.views.get(view)
        pairs, sizer = self.chat.history.in_order(ids), looking.view.sizer
        prompt = drafting(pairs, sizer, instruction.strip() or INSTRUCTION)
        exchanges: list[str] = []
        with cancellation("user"):
            reply = await self.sends.engine.ask(
                prepare(prompt, looking.choice),
                on_event=_ignore,
                tried=_ignore,
                paused=_ignore,
                session=self.chat.session,
                on_recorded=lambda entry: exchanges.append(entry.exchange),
                conversation=self.chat.conversation_in(looking.view.topic),
            )
        if reply.fault is not None:
            raise reply.fault
        text = answer_of(reply).text.strip()
        if not text:
            hint = "Try again, or write the summary yourself."
            raise Fault(Code.UPSTREAM_PROTOCOL, "the model has written no summary", hint=hint, status=502)
        saved = compare(pairs, text, sizer)
        return SummaryDraft(saved.before, saved.after, text=text, exchange=exchanges[-1])

    async def close(self, grace: float) -> None:
        """Give work in progress this many seconds to end. What does not end is aborted, and kept as far as it got."""
        await self.sends.close(grace)
        await self.chat.close()


def _ignore(*_values: object) -> None:
    """Ignored: only the whole reply of a draft is used, and the names of chats are read from their logs."""


def chat_service(context: ChatContext, models: Models, answering: Answerer, name: str = MAIN) -> ChatService:
    """The chat `name` of a logbook, which is read when first needed."""
    chat = Chat(context, name, partial(ending_of_interrupted_pair, answering, context.now))
    views = Views(chat, models, answering)
    return ChatService(chat, views, Sends(chat, views, models, answering))


class ChatName(msgspec.Struct, frozen=True):
    """The name of a chat from now on. If it is empty, the chat is named by its first question."""

    name: str


NAME_FORMAT = format_of(NAME_LOG, ChatName)


class ChatBrief(msgspec.Struct, frozen=True):
    """A chat in the list. `name` is what the user called it; `title` is the name, or the beginning of its first
    question. `latest` is the time of its last change, and `session` the label of its recorded requests. `found` is the
    text around the words that were searched for, in the pair `found_in`."""

    id: str
    name: str
    title: str
    pairs: int
    latest: float
    session: str
    is_sending: bool = False
    found: str = ""
    found_in: str = ""


class Chats:
    """The main chat, which always exists, and the others. `open_service` opens a chat by its id."""

    def __init__(self, context: ChatContext, open_service: Callable[[str], ChatService]) -> None:
        self.context = context
        self._logbook = context.logbook
        self._open_service = open_service
        self._open: dict[str, ChatService] = {}
        self._briefs: dict[str, tuple[tuple[int, int], ChatBrief]] = {}

    @property
    def main(self) -> ChatService:
        """The chat that always exists."""
        return self._service(MAIN)

    async def get(self, chat: str) -> ChatService:
        """The chat with this id, opened if necessary. Raises a fault if there is none."""
        await self._close_deleted(chat)
        if chat not in self._open and chat != MAIN:
            await self._require_chat(chat)
        service = self._service(chat)
        await self._close_idle()
        return service

    async def list_chats(self, words: str = "") -> list[ChatBrief]:
        """All chats, most recently changed first. With `words`, only those whose name, questions or answers contain
        them."""
        logs = {log.name: log for log in await self._logbook.logs(LOG)}
        named = [name.removeprefix(NAME_LOG) for name in logs if name.startswith(NAME_LOG)]
        briefs = [await self._brief(chat, logs) for chat in dict.fromkeys((MAIN, *named))]
        if wanted := fold_case(" ".join(words.split())):
            briefs = [found for brief in briefs if (found := await self._search(brief, wanted)) is not None]
        return sorted(briefs, key=lambda brief: brief.latest, reverse=True)

    async def describe(self, chat: str) -> ChatBrief:
        """One chat. Raises a fault if there is none."""
        await self._require_chat(chat)
        return await self._brief(chat, {log.name: log for log in await self._logbook.logs(LOG)})

    async def create(self, name: str = "") -> str:
        """Create an empty chat with the settings that the main chat has for all topics. Returns its id."""
        history = await self.main.chat.load()
        return await self._begin(name, _root_facts(history))

    async def fork(self, chat: str, pair: str, name: str = "") -> str:
        """Create a chat with the pairs of another up to this one, and with its topics. Returns its id."""
        brief = await self.describe(chat)
        history = await (await self.get(chat)).chat.load()
        if pair not in history or not history.is_live(pair):
            hint = "It may have been deleted in another window; load the page again."
            raise Fault(Code.USAGE, f"there is no pair {pair[:80]!r} in this chat", hint=hint, status=404)
        end = history.key(pair)
        pairs = tuple(each for each in history if history.key(each.id) <= end)
        topics = tuple(topic for topic in history.topics.parents_first() if topic.id != ROOT)
        copied = ChatImported(topics, pairs)
        return await self._begin(name or f"{brief.title} (fork)"[-LONGEST_NAME:], [*_root_facts(history), copied])

    async def rename(self, chat: str, name: str) -> None:
        """Rename a chat. With an empty name, it is named by its first question."""
        await self._require_chat(chat)
        await self._write_name(chat, name)
        self._announce()

    async def delete(self, chat: str) -> None:
        """Delete a chat with all its content; the main chat is empty afterwards. Raises a fault while it waits for an
        answer. The caller has to delete the recorded requests."""
        await self._require_chat(chat)
        service = self._service(chat)
        await service.chat.load()
        if not service.is_idle:
            hint, details = "Stop it first, or wait for it.", {"code": "already_sending"}
            raise Fault(Code.USAGE, "an answer is still arriving in this chat", hint=hint, status=409, details=details)
        await self._close(chat)
        await self._forget(chat)
        self._announce()

    async def erase(self, exchanges: Collection[str]) -> None:
        """Permanently delete the texts of the pairs of these exchanges. An open chat is read again, unless it waits for
        an answer."""
        erased = await erase_exchanges(self._logbook, exchanges)
        for chat in erased:
            self._briefs.pop(chat, None)
            service = self._open.get(chat)
            if service is not None and service.is_idle:
                await self._close(chat)
        if erased:
            self._announce()

    async def resume_run(self, chat: str, pair: str, run: str) -> bool:
        """Resume the run of a pair, as `Sends.resume_run` does; False if the chat is gone."""
        if chat != MAIN and not await self._logbook.lines(NAME_LOG + chat):
            return False
        return await (await self.get(chat)).sends.resume_run(pair, run)

    async def close(self, grace: float) -> None:
        """Give the work in progress in all chats this many seconds to end."""
        await asyncio.gather(*(service.close(grace) for service in self._open.values()))

    # --- what is open ---

    def _service(self, chat: str) -> ChatService:
        """The open chat, marked as most recently used."""
        service = self._open.pop(chat, None) or self._open_service(chat)
        self._open[chat] = service
        return service

    async def _close(self, chat: str) -> None:
        service = self._open.pop(chat, None)
        if service is not None:
            await service.close(0)

    async def _close_deleted(self, chat: str) -> None:
        """Close a chat whose log has fewer facts than are known here: another process has deleted it."""
        service, log = self._open.get(chat), log_of(chat)
        if service is None or not service.chat.version:
            return
        lines = next((each.lines for each in await self._logbook.logs(log) if each.name == log), 0)
        if lines < service.chat.version and self._open.get(chat) is service:
            self._briefs.pop(chat, None)
            await self._close(chat)

    async def _close_idle(self) -> None:
        """Close the least recently used chats beyond `MOST_OPEN`, but none that waits for an answer."""
        for chat, service in list(self._open.items())[:-1]:
            if len(self._open) <= MOST_OPEN:
                return
            if chat != MAIN and service.is_idle:
                await self._close(chat)

    # --- the logs ---

    async def _require_chat(self, chat: str) -> None:
        if chat != MAIN and not await self._logbook.lines(NAME_LOG + chat):
            hint = "It may have been deleted in another window. GET /api/chats lists the chats."
            raise Fault(Code.USAGE, f"there is no chat {chat[:80]!r}", hint=hint, status=404)

    async def _begin(self, name: str, facts: list[ChatFact]) -> str:
        chat = self.context.make_id()
        await self._write_name(chat, name)
        try:
            for fact in facts:
                await self._service(chat).chat.happen(fact)
        except BaseException:
            self._open.pop(chat, None)
            await self._forget(chat)
            raise
        self._announce()
        return chat

    async def _write_name(self, chat: str, name: str) -> None:
        name = " ".join(name.split())
        if len(name) > LONGEST_NAME or not name.isprintable():
            hint = f"Use one line of up to {LONGEST_NAME} characters."
            raise Fault(Code.INVALID_REQUEST, "no chat can have this name", hint=hint, status=422)
        now, secrets = self.context.now, self.context.secrets
        journal: Journal[ChatName, None, None] = Journal(
            self._logbook, NAME_LOG + chat, NAME_FORMAT, None, _ignore, now=now, secrets=secrets
        )
        await journal.append((ChatName(name),))
        self._briefs.pop(chat, None)

    async def _forget(self, chat: str) -> None:
        await self._logbook.forget(log_of(chat))
        await self._logbook.forget(NAME_LOG + chat)
        self._briefs.pop(chat, None)

    async def _brief(self, chat: str, logs: dict[str, Log]) -> ChatBrief:
        """A chat in the list. Its log is read again only if it has grown."""
        log, of_name = logs.get(log_of(chat)), logs.get(NAME_LOG + chat)
        lines = 0 if log is None else log.lines, 0 if of_name is None else of_name.lines
        known = self._briefs.get(chat)
        if known is not None and known[0] == lines:
            return known[1]
        history = await self._history(chat)
        names = await self._logbook.lines(NAME_LOG + chat)
        name = NAME_FORMAT.decode(names[-1]).name if names else ""
        first = next(iter(history), None)
        asked = "" if first is None or chat in _UNNAMED else " ".join(first.user_text.split())
        brief = ChatBrief(
            chat,
            name,
            name or _shorten(asked) or _UNNAMED.get(chat, "New chat"),
            len(history),
            max((each.latest for each in (log, of_name) if each is not None), default=0.0),
            session_of(chat),
            bool(history.sending),
        )
        self._briefs[chat] = lines, brief
        return brief

    async def _history(self, chat: str) -> ChatHistory:
        """The history of a chat, even if it is not open."""
        service = self._open.get(chat)
        if service is not None:
            return await service.chat.load()
        history = ChatHistory()
        journal: Journal[ChatFact, ChatHistory, HistoryChange] = Journal(
            self._logbook, log_of(chat), FACT_FORMAT, history, partial(apply_fact, history), now=self.context.now
        )
        await journal.catch_up()
        return history

    async def _search(self, brief: ChatBrief, wanted: str) -> ChatBrief | None:
        """The chat with the newest occurrence of these words; None if it does not contain them."""
        history = await self._history(brief.id)
        for pair in reversed(list(history)):
            if history.words.hold(wanted, pair):
                found = _excerpt(wanted, f"{pair.user_text}\n{pair.assistant_text}")
                return msgspec.structs.replace(brief, found=found, found_in=pair.id)
        return brief if wanted in fold_case(brief.title) else None

    def _announce(self) -> None:
        """Announce that the list of chats has changed."""
        self.context.hub.announce(LOG, {"kind": "chats"})


def _root_facts(history: ChatHistory) -> list[ChatFact]:
    """The facts that give a new chat the settings that another has for all topics."""
    root = history.topics.get(ROOT)
    return [] if root == Topic(id=ROOT) else [TopicChanged(root)]


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1].rstrip()}…"


def _excerpt(words: str, text: str) -> str:
    """The text around the first occurrence of these words, on one line."""
    at = fold_case(text).find(words)
    first, last = max(0, at - _BEFORE_HIT), at + len(words) + _AFTER_HIT
    shown = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


async def erase_exchanges(logbook: Logbook, exchanges: Collection[str]) -> list[str]:
    """Permanently delete, from the logs of all chats, the texts of the pairs of these exchanges. Returns the ids of the
    chats that had any."""
    erased: list[str] = []
    for log in await logbook.logs(LOG):
        if log.name != LOG and not log.name.startswith(f"{LOG}:"):
            continue
        facts = {line.n: FACT_FORMAT.decode(line) for line in await logbook.lines(log.name)}
        pairs = {
            pair
            for fact in facts.values()
            for pair, named in exchanges_in(fact).items()
            if not set(named).isdisjoint(exchanges)
        }
        after = {n: erase_texts(fact, pairs) for n, fact in facts.items()} if pairs else {}
        changed = {n: FACT_FORMAT.encode(fact)[0] for n, fact in after.items() if fact != facts[n]}
        if changed:
            await logbook.rewrite(log.name, changed)
            erased.append(MAIN if log.name == LOG else log.name.removeprefix(f"{LOG}:"))
    return erased
