"""The conversation of a run as it grows, such that every request made of it is one that the provider takes."""

from collections.abc import Sequence
from itertools import count

import msgspec

from sightline.agent.core.acceptance import NAMES_RESULTS, Ear
from sightline.agent.core.amendment import Amendment, AmendmentKind
from sightline.agent.core.orphans import pair_calls
from sightline.agent.core.output import NOTHING, ToolOutcome
from sightline.dialects.openai_responses.rules import brings_state
from sightline.dialects.registry import dialect
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import ToolChoice

_LONGEST_STEM = 24
_FORCING = ("required", "named")
_USER = Message("user", (Text("."),))


class RunConversation:
    """Grows by turns. `request` asks with all of it; what had to be changed for that is told as amendments."""

    def __init__(self, request: Request, spoken: str) -> None:
        self._spoken = spoken
        self._amendments: list[Amendment] = []
        self.request = Request()
        self.replace(request)

    def replace(self, request: Request) -> None:
        """Go on with this request, which is another than was asked for or is the first."""
        stateful = brings_state(request) or bool(
            request.dialect and any(request.extras.get(key) for key in dialect(request.dialect).unread.stateful)
        )
        messages, amendments = pair_calls(request.messages, named=self._spoken in NAMES_RESULTS, stateful=stateful)
        self._amendments += amendments
        self._ear = Ear(request.dialect, self._spoken)
        self.request = msgspec.structs.replace(request, messages=messages) if amendments else request

    def take_amendments(self) -> tuple[Amendment, ...]:
        """The amendments since the last time."""
        amendments, self._amendments = tuple(self._amendments), []
        return amendments

    def amend(self, kind: AmendmentKind, what: str, why: str) -> None:
        """Tell of a change."""
        self._amendments.append(Amendment(kind, what, why))

    def outgoing_ids(self, calls: Sequence[ToolCall]) -> list[str]:
        """The ids under which these calls go back: the model's own, unless the provider would refuse it."""
        before = {part.id for message in self.request.messages for part in message.parts if isinstance(part, ToolCall)}
        now: list[str] = []
        for call in calls:
            fits = self._ear.takes_ids((call.id,))
            fits = fits and (call.id not in before or self._ear.takes_ids((call.id,), (call.id,)))
            fits = fits and (call.id not in now or self._ear.takes_ids((call.id, call.id)))
            spelled = call.id if fits else self._fresh(call.id, before.union(now, (each.id for each in calls)))
            if not fits:
                self.amend("id", f"id {call.id!r} of a call of {call.name!r}", f"it is sent as {spelled!r}")
            now.append(spelled)
        return now

    def _fresh(self, call_id: str, used: set[str]) -> str:
        stem = call_id[:_LONGEST_STEM]
        stem = stem if stem and self._ear.takes_ids((stem,)) else "call"
        return next(name for n in count(2) if (name := f"{stem}_{n}") not in used)

    def add_turn(self, parts: tuple[Part, ...], *, is_open: bool = False) -> None:
        """The model has spoken and called nothing. `is_open`: it will go on, and nobody speaks in between."""
        kept = self._acceptable_parts(parts, () if is_open else (_USER,))
        self._append(self._turn(kept))

    def add_calls(self, parts: tuple[Part, ...], results: tuple[ToolResult, ...], context: str) -> None:
        """The model has called tools; every call in `parts` has its result, in the same order."""
        kept = self._acceptable_parts(parts, (Message("tool", tuple(_plain(result) for result in results)),))
        settled, moved = self._split_results(results)
        self._append(self._turn(kept))
        self._append(Message("tool", settled))
        words = (Text(context),) if context.strip() else ()
        self._append(Message("user", (*moved, *words)))
        self._relax()

    def add_words(self, text: str) -> None:
        """Somebody tells the model something."""
        self._append(Message("user", (Text(text),)))

    def result_for(self, call: ToolCall, call_id: str, outcome: ToolOutcome) -> ToolResult:
        """The result of a call that is sent under this id."""
        name = self._ear.name_for(msgspec.structs.replace(call, id=call_id))
        return ToolResult(
            call_id,
            outcome.parts,
            name,
            is_error=outcome.is_error or None,
            kind=call.kind,
            structured=outcome.structured,
            bare=True,  # one text goes as a string also behind a request that somebody edited: not all take lists
        )

    def _append(self, message: Message) -> None:
        if message.parts:
            self.request = msgspec.structs.replace(self.request, messages=(*self.request.messages, message))

    def _turn(self, parts: tuple[Part, ...]) -> Message:
        """The model's turn, together with what it had begun to say before."""
        messages = self.request.messages
        if not parts or not messages or messages[-1].role != "assistant":
            return Message("assistant", parts, bare=True)
        self.request = msgspec.structs.replace(self.request, messages=messages[:-1])
        return msgspec.structs.replace(messages[-1], parts=(*messages[-1].parts, *parts), bare=True)

    def _acceptable_parts(self, parts: tuple[Part, ...], after: tuple[Message, ...]) -> tuple[Part, ...]:
        """The model's parts, without those that the provider would not take back."""
        if not parts or self._ear.takes(Message("assistant", parts), *after):
            return parts
        kept = tuple(part for part in parts if isinstance(part, ToolCall) or self._ear.takes_part(part))
        for part in parts:
            if part not in kept:
                self.amend("part", f"a {type(part).__name__.lower()} of the reply", f"{self._spoken} refuses it")
        if not kept or self._ear.takes(Message("assistant", kept), *after):
            return kept
        if isinstance(last := kept[-1], Text) and last.text != last.text.rstrip():
            self.amend("part", "white space at the end of the reply", f"{self._spoken} refuses it")
            return (*kept[:-1], msgspec.structs.replace(last, text=last.text.rstrip()))
        self.amend("reply_left_out", "all but the calls of the reply", f"{self._spoken} refuses it")
        return tuple(part for part in kept if isinstance(part, ToolCall))

    def _split_results(self, results: tuple[ToolResult, ...]) -> tuple[tuple[ToolResult, ...], tuple[Part, ...]]:
        """The results with what they may hold, and what has to stand behind them in the user's name."""
        settled: list[ToolResult] = []
        moved: list[Part] = []
        for result in results:
            kept: list[Part] = []
            for part in result.parts:
                if isinstance(part, Text) or self._ear.takes_in_result(part):
                    kept.append(part)
                    continue
                what = f"{type(part).__name__.lower()} of a result"
                if self._ear.takes(Message("user", (part,))):
                    self.amend("part", what, "it stands behind the results")
                    moved.append(part)
                else:
                    self.amend("part", what, f"{self._spoken} refuses it")
            settled.append(
                msgspec.structs.replace(result, parts=tuple(kept) or ((Text(NOTHING),) if result.parts else ()))
            )
        return tuple(settled), tuple(moved)

    def _relax(self) -> None:
        """A model that must call would call for ever."""
        choice = self.request.tool_choice
        if choice is not None and choice.mode in _FORCING:
            names = choice.names if choice.mode == "required" else ()
            self.request = msgspec.structs.replace(self.request, tool_choice=ToolChoice("auto", names))
            self.amend("tool_choice", f"tool choice {choice.mode}", "it has been followed; from here on it is auto")


def _plain(result: ToolResult) -> ToolResult:
    """A result of the same call with nothing in it that anybody could refuse."""
    return msgspec.structs.replace(result, parts=(Text("."),), structured=None)
