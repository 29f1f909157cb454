"""Calls without results and results without calls, which no provider takes, made whole and reported."""

import msgspec

from sightline.agent.core.amendment import Amendment
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, Text, ToolCall, ToolResult

NO_RESULT = "There is no result: the call was not completed."


def pair_calls(
    messages: tuple[Message, ...], *, named: bool, stateful: bool = False
) -> tuple[tuple[Message, ...], tuple[Amendment, ...]]:
    """The messages with every call answered and no answer to nothing. `named`: results say their function's name.

    A result counts wherever it comes after its call; the answer that is missing is put behind the turn that asked.
    `stateful`: the provider knows more of the conversation, so a result may answer a call that is not here.
    """
    matched, orphans = _match_calls(messages)
    if stateful:
        orphans = set()
    amendments: list[Amendment] = []
    out: list[Message] = []
    owed: list[ToolCall] = []
    for message in messages:
        if owed and not _belongs(message):
            _pay(out, owed, named=named)
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
        _pay(out, owed, named=named)
    return tuple(out), tuple(amendments)


def _match_calls(messages: tuple[Message, ...]) -> tuple[set[int], set[int]]:
    """The calls that are answered, and the results that answer nothing, by identity: ids may come twice."""
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


def _belongs(message: Message) -> bool:
    """Whether the turn that made the calls, or their results, still goes on."""
    return message.role == "tool" or _is_all(message, ToolCall if message.role == "assistant" else ToolResult)


def _is_all(message: Message, kind: type[ToolCall | ToolResult]) -> bool:
    return bool(message.parts) and all(isinstance(part, kind) for part in message.parts)


def _pay(out: list[Message], owed: list[ToolCall], *, named: bool) -> None:
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
