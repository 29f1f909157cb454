"""The tree of topics, and what a topic inherits."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from sightline.errors import Code, Fault
from sightline.settings import ChatSettings

ROOT = ""
"""The topic that contains all others. It has no name and cannot be moved."""

_DEEPEST = 32


class Parameters(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of requests in a topic; None means inherited."""

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    effort: str | None = None
    verbosity: str | None = None

    def over(self, above: "Parameters") -> "Parameters":
        """These parameters, with those of `above` where they are None."""
        own = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(above, **own)


class Topic(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A topic. For `system_prompt`, `instructions`, `model`, `style_directives` and `toolsets`, None means inherited;
    an empty text means none.

    A system prompt replaces the base instructions of the model's family; `instructions` follow either. `toolsets` are
    names in the configuration.
    """

    id: str
    name: str = ""
    parent: str = ROOT
    system_prompt: str | None = None
    instructions: str | None = None
    model: str | None = None
    style_directives: tuple[str, ...] | None = None
    toolsets: tuple[str, ...] | None = None
    parameters: Parameters = Parameters()


class Inherited(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The settings of a topic, its own and inherited ones. Without `has_system_prompt`, neither the topic nor one above
    it has a system prompt, not even an empty one."""

    system_prompt: str = ""
    has_system_prompt: bool = False
    instructions: str = ""
    model: str = ""
    style_directives: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    parameters: Parameters = Parameters()


_INHERITED = ("system_prompt", "instructions", "model", "style_directives", "toolsets")
"""The fields of a topic for which None means the value of the topic above."""


class Topics:
    """All topics. The children of one topic have different names, ignoring case."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {ROOT: Topic(id=ROOT)}
        self._children: dict[str, dict[str, str]] = {ROOT: {}}

    def copy(self) -> "Topics":
        other = Topics()
        other._topics = dict(self._topics)
        other._children = {topic: dict(children) for topic, children in self._children.items()}
        return other

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def parents_first(self) -> list[Topic]:
        """All topics, each after the one above it. A topic may be older than the one that it was moved below."""
        return sorted(self, key=lambda topic: len(self._above(topic.id)))

    def get(self, topic: str) -> Topic:
        found = self._topics.get(topic)
        if found is None:
            raise Fault(Code.USAGE, f"there is no topic {topic!r}", hint="Choose one that is in the tree.")
        return found

    def add(self, topic: Topic) -> None:
        if topic.id in self._topics:
            raise Fault(Code.USAGE, f"there is a topic {topic.id!r} already", hint="Give it another id.")
        self._check_name(topic)
        if len(self.path(topic.parent)) >= _DEEPEST:
            raise Fault(Code.USAGE, "the tree of topics is too deep", hint=f"{_DEEPEST} levels are the most.")
        self._topics[topic.id] = topic
        self._children[topic.id] = {}
        self._children[topic.parent][topic.name.strip().lower()] = topic.id

    def change(self, topic: Topic) -> None:
        """Replace the topic with this id, even if its parent changes."""
        before = self.get(topic.id)
        if topic.id == ROOT:
            if topic.parent != ROOT or topic.name:
                message = "the root topic has no name and no topic above it"
                raise Fault(Code.USAGE, message, hint="Change another topic.")
        else:
            self._check_name(topic)
            if topic.id in self._above(topic.parent):
                message = f"{before.name!r} cannot be moved below itself"
                raise Fault(Code.USAGE, message, hint="Choose a topic outside of it.")
            del self._children[before.parent][before.name.strip().lower()]
            self._children[topic.parent][topic.name.strip().lower()] = topic.id
        self._topics[topic.id] = topic

    def remove(self, topic: str) -> None:
        """Remove a topic. The history checks whether it has pairs."""
        found = self.get(topic)
        if topic == ROOT or self._children[topic]:
            what = "the topic of all topics" if topic == ROOT else f"{found.name!r}, which has topics below it,"
            raise Fault(Code.USAGE, f"{what} cannot be removed", hint="Remove or move those below it first.")
        del self._children[found.parent][found.name.strip().lower()]
        del self._children[topic], self._topics[topic]

    def path(self, topic: str) -> tuple[str, ...]:
        """The names of the topics from the root down to this one."""
        return tuple(self._topics[each].name for each in reversed(self._above(topic)))

    def at(self, path: tuple[str, ...]) -> str | None:
        """The id of the topic with these names from the root down; None if there is none."""
        topic: str | None = ROOT
        for name in path:
            topic = self._children[topic].get(name.strip().lower()) if topic is not None else None
        return topic

    def below(self, topic: str) -> list[str]:
        """The ids of all topics below this one."""
        children = self._children[self.get(topic).id].values()
        return [each for child in children for each in (child, *self.below(child))]

    def settings_for(self, topic: str) -> Inherited:
        """The settings of a topic, including inherited ones."""
        found = Inherited()
        for each in (self._topics[ROOT], *(self._topics[above] for above in reversed(self._above(topic)))):
            own = {name: value for name in _INHERITED if (value := getattr(each, name)) is not None}
            found = msgspec.structs.replace(
                found,
                **own,
                has_system_prompt=found.has_system_prompt or "system_prompt" in own,
                parameters=each.parameters.over(found.parameters),
            )
        return found

    def _above(self, topic: str) -> list[str]:
        """The topic and all above it except the root, from the bottom up."""
        found: list[str] = []
        while topic != ROOT:
            found.append(topic)
            topic = self.get(topic).parent
        return found

    def _check_name(self, topic: Topic) -> None:
        name = topic.name.strip()
        if not name:
            raise Fault(Code.USAGE, "a topic needs a name", hint="Write one.")
        self.get(topic.parent)
        if self._children[topic.parent].get(name.lower(), topic.id) != topic.id:
            raise Fault(Code.USAGE, f"there is a topic {name!r} here already", hint="Choose another name.")


def compose_system_prelude(topic: Inherited, settings: ChatSettings, base: str = "") -> str:
    """The text of the system message; empty if there is none. It starts with the system prompt, or, if no topic has
    one, with `base`, the base instructions of the model's family. Then come the topic's instructions, then the
    directives of the topic and of the chat, each on its own line and only once."""
    directives = dict.fromkeys(filter(None, map(str.strip, (*topic.style_directives, *settings.style_directives))))
    first = topic.system_prompt if topic.has_system_prompt or topic.system_prompt else base
    return "\n\n".join(filter(None, (first.strip(), topic.instructions.strip(), "\n".join(directives))))
