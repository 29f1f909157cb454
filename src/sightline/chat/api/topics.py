"""The calls about the tree of topics."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.chat.api.bodies import TopicChangeWanted, TopicWanted
from sightline.chat.api.refusals import not_there
from sightline.chat.api.shapes import TopicShown, Versioned
from sightline.chat.core.facts import TopicAdded, TopicChanged, TopicRemoved
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.topics import Topic
from sightline.chat.service.service import ChatService
from sightline.errors import Code, Fault


class TopicCalls:
    """Shows the topics and changes them. `toolsets` are the names of those that are configured; no page can name
    others."""

    def __init__(self, service: ChatService, toolsets: Sequence[str]) -> None:
        self._service = service
        self._toolsets = toolsets

    async def list_topics(self) -> list[TopicShown]:
        """All of them, each behind the one above it."""
        history = await self._service.chat.load()
        direct = Counter(pair.topic for pair in history)
        topics = sorted(history.topics, key=lambda topic: [name.lower() for name in history.topics.path(topic.id)])
        return [_topic_shown(history, topic, direct) for topic in topics]

    async def add(self, wanted: TopicWanted) -> TopicShown:
        """One more."""
        chat = self._service.chat
        history = await chat.load()
        self._check(history, wanted.parent, wanted.toolsets)
        topic = Topic(id=chat.make_id(), **_fields(wanted))  # type: ignore[arg-type]
        await chat.happen(TopicAdded(topic))
        return _topic_shown(history, topic, Counter())

    async def change(self, name: str, wanted: TopicChangeWanted) -> TopicShown:
        """Another name, place, prompt, model, tools or parameters."""
        history = await self._history_with(name)
        topic = msgspec.structs.replace(history.topics.get(name), **_fields(wanted))
        self._check(history, topic.parent, topic.toolsets)
        await self._service.chat.happen(TopicChanged(topic))
        return _topic_shown(history, topic, Counter(pair.topic for pair in history))

    async def remove(self, name: str) -> Versioned:
        """One less."""
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


def _fields(wanted: TopicWanted | TopicChangeWanted) -> dict[str, object]:
    told = msgspec.structs.asdict(wanted)
    return {name: value for name, value in told.items() if value is not msgspec.UNSET}


def _topic_shown(history: ChatHistory, topic: Topic, direct: "Counter[str]") -> TopicShown:
    below = history.topics.below(topic.id)
    return TopicShown(
        id=topic.id,
        name=topic.name,
        parent=topic.parent,
        system_prompt=topic.system_prompt,
        instructions=topic.instructions,
        model=topic.model,
        style_directives=topic.style_directives,
        parameters=topic.parameters,
        toolsets=topic.toolsets,
        path=history.topics.path(topic.id),
        direct=direct[topic.id],
        total=direct[topic.id] + sum(direct[each] for each in below),
    )
