"""The calls that export and import chats as files."""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.chat.api.downloads import download
from sightline.chat.api.filters import Filters
from sightline.chat.api.shapes import ImportShown
from sightline.chat.core.commands import ExportAs
from sightline.chat.core.exports import to_json, to_jsonl, to_markdown
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.conversations import Gathered
from sightline.chat.core.imports.reading import read_chat
from sightline.chat.core.pair import MessagePair
from sightline.chat.service.service import ChatService
from sightline.errors import Code, Fault
from sightline.web.asgi import Receive, WebResponse
from sightline.web.bodies import Query
from sightline.web.request_body import read_bytes

MOST_IMPORTED: Final = 200 * 1024 * 1024
"""The largest import. Larger exports must be split first."""

_KINDS: Final[Mapping[str, tuple[ExportAs, str, str]]] = {
    "markdown": ("markdown", "chat.md", "text/markdown; charset=utf-8"),
    "json": ("json", "chat.json", "application/json"),
    "jsonl": ("jsonl", "chat.jsonl", "application/x-ndjson"),
}


class Files:
    """Reads and writes whole chats in a thread, so that the event loop stays free."""

    def __init__(self, service: ChatService, filters: Filters) -> None:
        self._service = service
        self._filters = filters

    async def export(self, query: Query) -> WebResponse:
        """The pairs that match a filter, those that a view shows, or all of them."""
        kind = query.text("as") or "json"
        if kind not in _KINDS:
            hint = nearest(kind, _KINDS)
            raise Fault(Code.INVALID_REQUEST, f"nothing is exported as {quote_word(kind[:40])}", hint=hint, status=400)
        to, name, media_type = _KINDS[kind]
        history = await self._service.chat.load()
        pairs, filter_text = await self._choose(query, history)
        is_whole = query.is_set("whole_topics")
        # Pairs never change; of the rest of the history only the topics are looked at.
        still = ChatHistory()
        still.topics = history.topics.copy()
        settings, now = self._service.chat.settings, self._service.chat.now()

        def write() -> bytes:
            match to:
                case "markdown":
                    return to_markdown(still, pairs)
                case "json":
                    return to_json(still, pairs, now=now, filter_text=filter_text)
                case "jsonl":
                    return to_jsonl(still, pairs, settings, whole_topics=is_whole)

        return download(await asyncio.to_thread(write), query.text("name") or name, media_type)

    async def bring_in(self, query: Query, receive: Receive) -> ImportShown:
        """Import a file; with `dry_run`, only report what it contains."""
        is_dry = query.is_set("dry_run")
        data = await read_bytes(receive, MOST_IMPORTED)
        if not data.strip():
            hint = "Send the file as the body of the request."
            raise Fault(Code.INVALID_REQUEST, "the file is empty", hint=hint, status=422)
        try:
            gathered = await asyncio.to_thread(read_chat, data, query.text("name"))
        except Fault as fault:
            fault.status = 422
            raise
        history = await self._service.chat.load()
        _check_topics(gathered, history)
        topics = _new_topics(gathered, history)
        fresh = {pair.id: pair for pair in gathered.fact.pairs if pair.id not in history}
        if fresh and not is_dry:
            await self._service.chat.happen(msgspec.structs.replace(gathered.fact, pairs=tuple(fresh.values())))
        return ImportShown(
            pairs=len(fresh),
            topics=topics if fresh else 0,
            skipped=len(gathered.fact.pairs) - len(fresh),
            format=gathered.source,
            problems=gathered.notes,
        )

    async def _choose(self, query: Query, history: ChatHistory) -> tuple[list[MessagePair], str]:
        if "view" not in query:
            if query.text("filter"):
                hint = "Give the view in which it is used."
                raise Fault(Code.INVALID_REQUEST, "the filter has no view", hint=hint, status=400)
            return list(history), ""
        looking = await self._service.views.get(query.text("view"))
        if "filter" not in query:
            return list(looking.view.visible), looking.filter
        text = query.text("filter")
        return looking.view.match(self._filters.read(text), self._service.chat.now()), text


def _check_topics(gathered: Gathered, history: ChatHistory) -> None:
    """Refuse an export whose pairs name topics that are neither in it nor here."""
    known = {topic.id for topic in gathered.fact.topics}
    named = ((f"the topic {topic.name!r}", topic.parent) for topic in gathered.fact.topics)
    for what, topic in (*named, *((f"the pair {pair.id!r}", pair.topic) for pair in gathered.fact.pairs)):
        if topic not in known and topic not in history.topics:
            message = f"{what} is in the topic {topic[:80]!r}, which is neither in the file nor in this chat"
            hint = "Export it again with its topics, or correct the topic's id in the file. Nothing was imported."
            raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


def _new_topics(gathered: Gathered, history: ChatHistory) -> int:
    """How many of its topics are new here, by their paths."""
    paths: dict[str, tuple[str, ...]] = {}
    count = 0
    for topic in gathered.fact.topics:
        above = paths.get(topic.parent)
        if above is None:
            above = history.topics.path(topic.parent) if topic.parent in history.topics else ()
        paths[topic.id] = (*above, topic.name)
        count += history.topics.at(paths[topic.id]) is None and topic.id not in history.topics
    return count
