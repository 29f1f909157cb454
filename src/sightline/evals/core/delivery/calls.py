"""Calls of tools and their results, with the ids that hold them together."""

from collections.abc import Iterable
from itertools import count

from sightline.evals.core.reading.pairing import find_call
from sightline.evals.core.suite import CallSegment, CaseMessage
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import ToolCall, ToolResult
from sightline.wire import jsontext

UNNAMED = "tool"


class CallLedger:
    """The calls of one conversation. Ids that the suite gives are kept; those that are made differ from all of them."""

    def __init__(self, messages: Iterable[CaseMessage | Message]) -> None:
        self._taken: set[str] = set()
        for message in messages:
            if isinstance(message, CaseMessage):
                calls = (segment for segment in message.segments if isinstance(segment, CallSegment))
                self._taken.update(call.id for call in calls)
                self._taken.add(message.call_id)
            else:
                self._taken.update(part.id for part in message.parts if isinstance(part, ToolCall | ToolResult))
        self._numbers = count(1)
        self._waiting: list[CallSegment] = []
        self._ids: dict[int, str] = {}

    def add_call(self, segment: CallSegment) -> ToolCall:
        """The call as a part; it waits for its result from now on."""
        call_id = segment.id or self.fresh()
        self._waiting.append(segment)
        self._ids[id(segment)] = call_id
        return ToolCall(call_id, segment.name, argument_text(segment.arguments))

    def add_reply(self, message: Message) -> None:
        """A reply has been given: its calls wait as well."""
        for part in message.parts:
            if isinstance(part, ToolCall):
                segment = CallSegment(part.name, part.arguments, part.id)
                self._waiting.append(segment)
                self._ids[id(segment)] = part.id

    def take_answered(self, message: CaseMessage) -> tuple[str, str] | None:
        """Id and name of the call that a tool message answers; None where there is none that waits."""
        call = find_call(message, self._waiting)
        if call is None:
            return None
        self._waiting = [each for each in self._waiting if each is not call]
        return self._ids[id(call)], call.name

    def fresh(self) -> str:
        """An id that nobody has."""
        made = next(name for number in self._numbers if (name := f"call_{number}") not in self._taken)
        self._taken.add(made)
        return made


def argument_text(arguments: Json) -> str:
    """Arguments as a model writes them: text stays as it is, anything else is JSON."""
    return arguments if isinstance(arguments, str) else jsontext.encode({} if arguments is None else arguments).decode()
