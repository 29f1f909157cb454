"""Whether a dialect takes something, asked of the dialect itself: it is written, read back and held to its rules.

The loop keeps no list of what each provider refuses. It shows the dialect the very pieces that it is about to add, and
what is refused is sent in another form, or left out, and reported.
"""

from dataclasses import dataclass
from functools import lru_cache

from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import write_request
from sightline.errors import Fault
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode

_MODEL = "m"
_QUESTION = Message("user", (Text("."),))
NAMES_RESULTS = frozenset({"gemini"})
"""Dialects whose results say which function they are of; others know it by the id."""


@dataclass(frozen=True, slots=True)
class Ear:
    """A request of the dialect `source` (empty: composed here) on its way to a provider of the dialect `spoken`."""

    source: str
    spoken: str

    def takes(self, *messages: Message) -> bool:
        """Whether these messages can follow a question."""
        return not self._errors((_QUESTION, *messages))

    def takes_part(self, part: Part) -> bool:
        """Whether an assistant's turn may hold this part."""
        return self.takes(Message("assistant", (part, Text("."))), _QUESTION)

    def takes_in_result(self, part: Part) -> bool:
        """Whether a tool's result may hold this part."""
        call = ToolCall("call_1", "f", "{}")
        result = ToolResult("call_1", (Text("."), part), self.name_for(call))
        return self.takes(Message("assistant", (call,)), Message("tool", (result,)))

    def takes_ids(self, *rounds: tuple[str, ...]) -> bool:
        """Whether calls may have these ids, round by round, and every result still meets its own call."""
        # Without an id only the name tells which call is meant.
        has_all = self.spoken in NAMES_RESULTS or all(all(ids) for ids in rounds)
        return has_all and _takes_ids(self, rounds)

    def name_for(self, call: ToolCall) -> str | None:
        """The name that the result of a call is given."""
        return call.name if self.spoken in NAMES_RESULTS or not call.id else None

    def _errors(self, messages: tuple[Message, ...]) -> bool:
        read = self.round_trip(messages)
        return read is None or any(each.severity == "error" for each in dialect(self.spoken).problems(read))

    def round_trip(self, messages: tuple[Message, ...]) -> Request | None:
        """What the provider would read; None where it could not."""
        request = Request(_MODEL, messages, options=Options(max_tokens=1024), dialect=self.source)
        try:
            body = write_request(request, self.spoken, Target(), Report(), with_url=True)
            read = dialect(self.spoken).read_request(decode(body))
        except Fault:
            return None
        # Where the URL names the model, the body does not.
        return read if read.model else Request(_MODEL, read.messages, options=read.options, dialect=read.dialect)


@lru_cache(maxsize=1024)
def _takes_ids(ear: Ear, rounds: tuple[tuple[str, ...], ...]) -> bool:
    messages: list[Message] = []
    names: list[str] = []
    for ids in rounds:
        calls = [ToolCall(each, f"f{len(names) + index}", "{}") for index, each in enumerate(ids)]
        names += [call.name for call in calls]
        messages.append(Message("assistant", tuple(calls)))
        results = (ToolResult(call.id, (Text("."),), ear.name_for(call)) for call in calls)
        messages.append(Message("tool", tuple(results)))
    if not ear.takes(*messages):
        return False
    read = ear.round_trip((_QUESTION, *messages))
    told = [part.name for m in (read.messages if read else ()) for part in m.parts if isinstance(part, ToolResult)]
    return ear.spoken not in NAMES_RESULTS or told == names
