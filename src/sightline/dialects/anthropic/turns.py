"""What another dialect's conversation needs before it can be told in messages: ids, whole turns, answers in place."""

import msgspec

from sightline.dialects.anthropic.words import NAME
from sightline.dialects.conversation import as_turns, with_ids
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, ToolCall, ToolResult
from sightline.model.report import Report


def with_turns(messages: tuple[Message, ...], report: Report) -> tuple[Message, ...]:
    """The messages as turns in which every call is answered by the message that follows it, results first."""
    turns = list(as_turns(with_ids(messages, report)))
    index = 0
    while index < len(turns):
        if turns[index].role == "assistant":
            turns = _answered(turns, index, report)
        index += 1
    return tuple(_results_first(turn, report) for turn in turns)


def _answered(turns: list[Message], index: int, report: Report) -> list[Message]:
    """The turns with the results of this turn's calls directly behind it, also if somebody else spoke in between."""
    waiting = _call_ids(turns[index])
    position = index + 1
    while position < len(turns) and any(isinstance(part, ToolResult) for part in turns[position].parts):
        waiting -= {part.id for part in turns[position].parts if isinstance(part, ToolResult)}
        position += 1
    found: list[Part] = []
    later: list[Message] = []
    for turn in turns[position:] if waiting else []:
        waiting -= _call_ids(turn)  # an id that is used again is answered again
        late = [part for part in turn.parts if isinstance(part, ToolResult) and part.id in waiting]
        kept = tuple(part for part in turn.parts if part not in late)
        found.extend(late)
        if kept or not late:
            later.append(msgspec.structs.replace(turn, parts=kept) if late else turn)
    if not found:
        return turns
    for part in found:
        report.lose(part.at, "place of a tool result", f"{NAME} wants it directly after the call", "content")
    return [*turns[:position], Message("tool", tuple(found), at=found[0].at), *later]


def _call_ids(turn: Message) -> set[str]:
    return {part.id for part in turn.parts if isinstance(part, ToolCall)}


def _results_first(message: Message, report: Report) -> Message:
    """The message with its tool results in front, each with the cache mark behind it."""
    results: list[Part] = []
    others: list[Part] = []
    moved: list[Part] = []
    current = others
    for part in message.parts:
        if isinstance(part, ToolResult):
            current = results
            if others:
                moved.append(part)
        elif not isinstance(part, CacheBreakpoint):
            current = others
        current.append(part)
    for part in moved:
        report.lose(part.at, "order of parts", f"{NAME} wants tool results before anything else", "content")
    return msgspec.structs.replace(message, parts=(*results, *others)) if moved else message
