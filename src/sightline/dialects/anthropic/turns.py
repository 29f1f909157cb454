"""What another dialect's conversation needs before it can be told in messages: ids, whole turns, answers in place."""

import msgspec

from sightline.dialects.answers import with_answers
from sightline.dialects.anthropic.words import NAME
from sightline.dialects.conversation import as_turns, with_ids
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, ToolResult
from sightline.model.report import Report


def with_turns(messages: tuple[Message, ...], report: Report) -> tuple[Message, ...]:
    """The messages as turns in which every call is answered by the message that follows it, results first."""
    turns = with_answers(as_turns(with_ids(messages, report)), report, NAME)
    return tuple(_results_first(turn, report) for turn in turns)


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
