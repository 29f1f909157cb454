"""What goes along when something is deleted, so that what stays is a request that its API takes."""

from collections.abc import Iterator
from itertools import pairwise

from sightline.dialects.registry import dialect
from sightline.editing.deletions import Deletions
from sightline.editing.places import parent_of
from sightline.editing.reading import DocumentReading
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Thinking, ToolCall
from sightline.model.request import Request
from sightline.model.tools import OpaqueTool, Tool
from sightline.wire.pointer import resolve


def cascade_of(
    reading: DocumentReading, request: Request, deletions: Deletions, targets: frozenset[str]
) -> frozenset[str]:
    """Every place that goes when these do, without those that are gone already."""
    cascade = _Cascade(reading, request, deletions)
    cascade.gone |= targets
    count = 0
    while count != len(cascade.gone):
        count = len(cascade.gone)
        cascade.follow()
    return frozenset(
        place for place in cascade.gone if place not in deletions.places and not cascade.holds(parent_of(place))
    )


class _Cascade:
    def __init__(self, reading: DocumentReading, request: Request, deletions: Deletions) -> None:
        self._reading = reading
        self._request = request
        self._before = deletions
        self.gone: set[str] = set(deletions.places)

    def holds(self, pointer: str) -> bool:
        """Whether a place is gone."""
        while pointer:
            if pointer in self.gone:
                return True
            pointer = parent_of(pointer)
        return False

    def follow(self) -> None:
        """One step further."""
        for one, other in self._reading.pairs:
            self._together([one, other])
        for pieces in _thoughts(self._request):
            self._together(pieces)
        for message in self._request.messages:
            if self._says_nothing(message):
                self.gone.add(message.at)
        self._reasoning()
        self._drop_orphan_text()
        self._tools()
        self._drop_empty_holders()

    def _together(self, parts: list[Part]) -> None:
        if any(self.holds(part.at) for part in parts):
            self.gone |= {part.at for part in parts if not self.holds(part.at)}

    def _says_nothing(self, message: Message) -> bool:
        """Whether a message has lost something, and what it still holds is no message: marks, or a mere thought."""
        if self.holds(message.at) or not any(self.holds(part.at) for part in message.parts):
            return False
        return all(self.holds(part.at) or _is_silent(part) for part in message.parts)

    def _reasoning(self) -> None:
        """An item of reasoning goes with what it led to, where reasoning is an item."""
        if not dialect(self._reading.name).editing.drops_reasoning:
            return
        messages = self._request.messages
        before = [message for message in messages if not self._before.holds(message.at)]
        followers = dict(pairwise(message.at for message in before))
        after = [message for message in messages if not self.holds(message.at)]
        for message, follower in zip(after, (*after[1:], None), strict=False):
            led_to = followers.get(message.at)
            is_left = follower is None or follower.role != "assistant" or _is_reasoning(follower)
            if is_left and _is_reasoning(message) and led_to is not None and self.holds(led_to):
                self.gone.add(message.at)

    def _drop_orphan_text(self) -> None:
        """Where two turns of the model must not follow each other, what was said to a call that is gone goes too."""
        if not dialect(self._reading.name).editing.alternates:
            return
        after = [message for message in self._request.messages if not self.holds(message.at)]
        for message, follower in pairwise(after):
            is_doubled = message.role == follower.role == "assistant" and self._has_call(follower, gone=False)
            if is_doubled and self._has_call(message, gone=True):
                self.gone.add(message.at)

    def _has_call(self, message: Message, *, gone: bool) -> bool:
        return any(isinstance(part, ToolCall) and self.holds(part.at) == gone for part in message.parts)

    def _tools(self) -> None:
        """A choice among tools goes with the tools, or with the one that it names."""
        request = self._request
        lost = [tool for tool in request.tools if self.holds(tool.at)]
        if not lost:
            return
        kept = [tool for tool in request.tools if not self.holds(tool.at)]
        choice = request.tool_choice
        names = {name for tool in kept for name in _names(tool)}
        is_lost = any(name not in names for tool in lost for name in _names(tool))
        if choice is not None and (not kept or (is_lost and choice.names and not names.issuperset(choice.names))):
            self._drop(choice.at)
        if not kept and request.parallel_tool_calls is not None:
            self._drop(request.parallel_at)

    def _drop(self, place: str) -> None:
        if not self.holds(place):
            self.gone.add(place)

    def _drop_empty_holders(self) -> None:
        """A list or an object goes with the last thing in it, except the conversation and the document."""
        for holder in {parent_of(place) for place in self.gone}:
            if holder in ("", self._reading.container) or self.holds(holder):
                continue
            value = resolve(self._reading.document, holder)
            if sum(parent_of(place) == holder for place in self.gone) == len(value):  # type: ignore[arg-type]
                self.gone.add(holder)


def _names(tool: Tool) -> list[str]:
    """The names under which a choice can ask for a tool."""
    return [function.name for function in tool.functions] if isinstance(tool, OpaqueTool) else [tool.name]


def _is_silent(part: Part) -> bool:
    return isinstance(part, (CacheBreakpoint, Thinking)) or (isinstance(part, Opaque) and part.mirrored)


def _is_reasoning(message: Message) -> bool:
    return any(isinstance(part, Thinking) for part in message.parts)


def _thoughts(request: Request) -> Iterator[list[Part]]:
    """The pieces of each thought that is told in pieces: one without the others is refused."""
    keys = dialect(request.dialect).editing.signature_keys
    pieces: list[Part] = []
    for message in request.messages:
        for part in message.parts:
            if keys and isinstance(part, Opaque) and part.mirrored:
                pieces.append(part)
                is_sealed = isinstance(part.value, dict) and not keys.isdisjoint(part.value)
                if is_sealed:
                    yield pieces
                    pieces = []
