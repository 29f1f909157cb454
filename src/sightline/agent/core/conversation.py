"""The conversation of a run as it grows, in a form that the provider accepts with every request."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal, TypeAlias

import msgspec

from sightline.agent.core.tool import NOTHING, ToolOutcome, result_of
from sightline.dialects.dialect import Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import write_request
from sightline.errors import Fault
from sightline.model.parts import CacheBreakpoint, Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Options, Request, ToolChoice
from sightline.wire.jsontext import decode

AmendmentKind: TypeAlias = Literal[
    "orphan_result", "missing_result", "id", "part", "call_left_out", "reply_left_out", "tool_choice"
]


class Amendment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change to the conversation: its kind, what was changed, and why. `pointer` is the place in the original
    document."""

    kind: AmendmentKind
    what: str
    why: str
    pointer: str = ""


NO_RESULT = "There is no result: the call was not completed."


def pair_calls(
    messages: tuple[Message, ...], *, named: bool, stateful: bool = False
) -> tuple[tuple[Message, ...], tuple[Amendment, ...]]:
    """Give every call a result, and drop results that answer no call. With `named`, results carry their function's
    name.

    A result counts if it comes anywhere after its call; a missing result is added after the turn that made the call.
    With `stateful`, the provider has more of the conversation, so a result may answer a call that is not in these
    messages.
    """
    matched, orphans = _match_calls(messages)
    if stateful:
        orphans = set()
    amendments: list[Amendment] = []
    out: list[Message] = []
    owed: list[ToolCall] = []
    for message in messages:
        if owed and not _is_same_turn(message):
            _append_missing_results(out, owed, named=named)
            owed = []
        kept = tuple(part for part in message.parts if id(part) not in orphans)
        dropped = [part for part in message.parts if isinstance(part, ToolResult) and id(part) in orphans]
        amendments += [
            Amendment("orphan_result", f"result {part.id!r}", "it answers no call", part.at) for part in dropped
        ]
        if not dropped:
            out.append(message)
        elif any(not isinstance(part, CacheBreakpoint) for part in kept):
            out.append(msgspec.structs.replace(message, parts=kept))
        unanswered = [part for part in message.parts if isinstance(part, ToolCall) and id(part) not in matched]
        amendments += [
            Amendment("missing_result", f"result of {call.name!r} ({call.id!r})", "every call needs one", call.at)
            for call in unanswered
        ]
        owed += unanswered
    if owed:
        _append_missing_results(out, owed, named=named)
    return tuple(out), tuple(amendments)


def _match_calls(messages: tuple[Message, ...]) -> tuple[set[int], set[int]]:
    """The calls that are answered, and the results that answer no call, by object identity: ids may be used twice."""
    waiting: list[ToolCall] = []
    matched: set[int] = set()
    orphans: set[int] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.append(part)
            elif isinstance(part, ToolResult):
                call = next((call for call in waiting if _answers(part, call)), None)
                if call is None:
                    orphans.add(id(part))
                else:
                    matched.add(id(call))
                    waiting = [each for each in waiting if each is not call]
    return matched, orphans


def _answers(result: ToolResult, call: ToolCall) -> bool:
    return result.id == call.id if result.id and call.id else result.name == call.name


def _is_same_turn(message: Message) -> bool:
    """Whether the message still belongs to the turn that made the calls, or to their results."""
    kind = ToolCall if message.role == "assistant" else ToolResult
    return message.role == "tool" or (bool(message.parts) and all(isinstance(part, kind) for part in message.parts))


def _append_missing_results(out: list[Message], owed: list[ToolCall], *, named: bool) -> None:
    parts: tuple[Part, ...] = tuple(
        ToolResult(
            call.id, (Text(NO_RESULT),), call.name if named or not call.id else None, is_error=True, kind=call.kind
        )
        for call in owed
    )
    if out[-1].role == "tool":
        out[-1] = msgspec.structs.replace(out[-1], parts=(*out[-1].parts, *parts))
    else:
        out.append(Message("tool", parts))


_MODEL = "m"
_QUESTION = Message("user", (Text("."),))


@dataclass(frozen=True, slots=True)
class DialectCheck:
    """A request of the dialect `source` (empty if composed here) that is sent to a provider of the dialect `spoken`."""

    source: str
    spoken: str

    def takes(self, *messages: Message) -> bool:
        """Whether the provider accepts these messages after a question."""
        read = self.round_trip((_QUESTION, *messages))
        return read is not None and all(each.severity != "error" for each in dialect(self.spoken).problems(read))

    def takes_part(self, part: Part) -> bool:
        """Whether the provider accepts this part in an assistant's turn."""
        return self.takes(Message("assistant", (part, Text("."))), _QUESTION)

    def takes_in_result(self, part: Part) -> bool:
        """Whether the provider accepts this part in a tool's result."""
        call = ToolCall("call_1", "f", "{}")
        result = ToolResult("call_1", (Text("."), part), self.name_for(call))
        return self.takes(Message("assistant", (call,)), Message("tool", (result,)))

    def takes_ids(self, *rounds: tuple[str, ...]) -> bool:
        """Whether the provider accepts calls with these ids, by round, and still matches every result with its call."""
        # Without an id, only the name identifies the call.
        has_all = dialect(self.spoken).rules.needs_result_names or all(all(ids) for ids in rounds)
        return has_all and _takes_ids(self, rounds)

    def name_for(self, call: ToolCall) -> str | None:
        """The tool name for the result of a call; None if the id is enough."""
        return call.name if dialect(self.spoken).rules.needs_result_names or not call.id else None

    def round_trip(self, messages: tuple[Message, ...]) -> Request | None:
        """The messages as the provider would read them; None if it could not."""
        request = Request(_MODEL, messages, options=Options(max_tokens=1024), dialect=self.source)
        try:
            body = write_request(request, self.spoken, Target(), Report(), with_url=True)
            read = dialect(self.spoken).read_request(decode(body))
        except Fault:
            return None
        # If the URL names the model, the body does not.
        return read if read.model else Request(_MODEL, read.messages, options=read.options, dialect=read.dialect)


@lru_cache(maxsize=1024)
def _takes_ids(check: DialectCheck, rounds: tuple[tuple[str, ...], ...]) -> bool:
    messages: list[Message] = []
    names: list[str] = []
    for ids in rounds:
        calls = [ToolCall(each, f"f{len(names) + index}", "{}") for index, each in enumerate(ids)]
        names += [call.name for call in calls]
        messages.append(Message("assistant", tuple(calls)))
        results = (ToolResult(call.id, (Text("."),), check.name_for(call)) for call in calls)
        messages.append(Message("tool", tuple(results)))
    if not check.takes(*messages):
        return False
    read = check.round_trip((_QUESTION, *messages))
    found = [part.name for m in (read.messages if read else ()) for part in m.parts if isinstance(part, ToolResult)]
    return not dialect(check.spoken).rules.needs_result_names or found == names


_LONGEST_STEM = 24


class RunConversation:
    """A conversation that grows by turns. `request` has all of it; changes that the provider required are recorded as
    amendments."""

    def __init__(self, request: Request, spoken: str) -> None:
        self._spoken = spoken
        self._amendments: list[Amendment] = []
        self.request = Request()
        self.replace(request)

    def replace(self, request: Request) -> None:
        """Go on with this request, which is another than was asked for or is the first."""
        from sightline.dialects.openai_responses import brings_state  # no dialect is loaded before it is needed

        stateful = brings_state(request) or bool(
            request.dialect and any(request.extras.get(key) for key in dialect(request.dialect).unread.stateful)
        )
        messages, amendments = pair_calls(
            request.messages, named=dialect(self._spoken).rules.needs_result_names, stateful=stateful
        )
        self._amendments += amendments
        self._check = DialectCheck(request.dialect, self._spoken)
        self.request = msgspec.structs.replace(request, messages=messages) if amendments else request

    def take_amendments(self) -> tuple[Amendment, ...]:
        """Return the amendments since the last call of this method, and forget them."""
        amendments, self._amendments = tuple(self._amendments), []
        return amendments

    def amend(self, kind: AmendmentKind, what: str, why: str) -> None:
        self._amendments.append(Amendment(kind, what, why))

    def outgoing_ids(self, calls: Sequence[ToolCall]) -> list[str]:
        """The ids under which these calls are sent back: the model's own, unless the provider would refuse it."""
        before = {part.id for message in self.request.messages for part in message.parts if isinstance(part, ToolCall)}
        now: list[str] = []
        for call in calls:
            fits = self._check.takes_ids((call.id,))
            fits = fits and (call.id not in before or self._check.takes_ids((call.id,), (call.id,)))
            fits = fits and (call.id not in now or self._check.takes_ids((call.id, call.id)))
            spelled = call.id if fits else self._unused_id(call.id, before.union(now, (each.id for each in calls)))
            if not fits:
                self.amend("id", f"id {call.id!r} of a call of {call.name!r}", f"it is sent as {spelled!r}")
            now.append(spelled)
        return now

    def _unused_id(self, call_id: str, used: set[str]) -> str:
        stem = call_id[:_LONGEST_STEM]
        stem = stem if stem and self._check.takes_ids((stem,)) else "call"
        return next(name for n in count(2) if (name := f"{stem}_{n}") not in used)

    def add_turn(self, parts: tuple[Part, ...], *, is_open: bool = False) -> None:
        """Add a turn of the model without calls. With `is_open`, the model continues it without another message in
        between."""
        self._append(self._turn(self._acceptable_parts(parts, () if is_open else (_QUESTION,))))

    def add_calls(self, parts: tuple[Part, ...], results: tuple[ToolResult, ...], context: str) -> None:
        """Add a turn of the model with calls, and their results. Every call in `parts` has its result, in the same
        order."""
        # Results of the same calls, without any content that a provider could refuse.
        plain = tuple(msgspec.structs.replace(result, parts=(Text("."),), structured=None) for result in results)
        kept = self._acceptable_parts(parts, (Message("tool", plain),))
        settled, moved = self._split_results(results)
        self._append(self._turn(kept))
        self._append(Message("tool", settled))
        self._append(Message("user", (*moved, *([Text(context)] if context.strip() else []))))
        self._relax_tool_choice()

    def add_words(self, text: str) -> None:
        """Add a text for the model as a message of the user."""
        self._append(Message("user", (Text(text),)))

    def result_for(self, call: ToolCall, call_id: str, outcome: ToolOutcome) -> ToolResult:
        """The result of a call that is sent under this id."""
        name = self._check.name_for(msgspec.structs.replace(call, id=call_id))
        # A single text is sent as a string, even after an edited request: not every provider accepts lists.
        return result_of(outcome, call_id, name, call.kind, bare=True)

    def _append(self, message: Message) -> None:
        if message.parts:
            self.request = msgspec.structs.replace(self.request, messages=(*self.request.messages, message))

    def _turn(self, parts: tuple[Part, ...]) -> Message:
        """The model's turn, joined with the unfinished turn before it, if there is one."""
        messages = self.request.messages
        if not parts or not messages or messages[-1].role != "assistant":
            return Message("assistant", parts, bare=True)
        self.request = msgspec.structs.replace(self.request, messages=messages[:-1])
        return msgspec.structs.replace(messages[-1], parts=(*messages[-1].parts, *parts), bare=True)

    def _acceptable_parts(self, parts: tuple[Part, ...], after: tuple[Message, ...]) -> tuple[Part, ...]:
        """The parts of the model's turn without those that the provider would not accept back."""
        if not parts or self._check.takes(Message("assistant", parts), *after):
            return parts
        kept = tuple(part for part in parts if isinstance(part, ToolCall) or self._check.takes_part(part))
        for part in parts:
            if part not in kept:
                self.amend("part", f"a {type(part).__name__.lower()} of the reply", f"{self._spoken} refuses it")
        if not kept or self._check.takes(Message("assistant", kept), *after):
            return kept
        if isinstance(last := kept[-1], Text) and last.text != last.text.rstrip():
            self.amend("part", "white space at the end of the reply", f"{self._spoken} refuses it")
            return (*kept[:-1], msgspec.structs.replace(last, text=last.text.rstrip()))
        self.amend("reply_left_out", "all but the calls of the reply", f"{self._spoken} refuses it")
        return tuple(part for part in kept if isinstance(part, ToolCall))

    def _split_results(self, results: tuple[ToolResult, ...]) -> tuple[tuple[ToolResult, ...], tuple[Part, ...]]:
        """The results without the parts that they may not contain, and the parts that have to follow in a user
        message."""
        settled: list[ToolResult] = []
        moved: list[Part] = []
        for result in results:
            kept: list[Part] = []
            for part in result.parts:
                if isinstance(part, Text) or self._check.takes_in_result(part):
                    kept.append(part)
                    continue
                what = f"{type(part).__name__.lower()} of a result"
                if self._check.takes(Message("user", (part,))):
                    self.amend("part", what, "it follows the results")
                    moved.append(part)
                else:
                    self.amend("part", what, f"{self._spoken} refuses it")
            settled.append(
                msgspec.structs.replace(result, parts=tuple(kept) or ((Text(NOTHING),) if result.parts else ()))
            )
        return tuple(settled), tuple(moved)

    def _relax_tool_choice(self) -> None:
        """Set a tool choice that forces calls to auto: otherwise the model would call tools forever."""
        choice = self.request.tool_choice
        if choice is not None and choice.mode in ("required", "named"):
            names = choice.names if choice.mode == "required" else ()
            self.request = msgspec.structs.replace(self.request, tool_choice=ToolChoice("auto", names))
            self.amend("tool_choice", f"tool choice {choice.mode}", "it has been followed; from here on it is auto")
