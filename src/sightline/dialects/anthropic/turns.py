"""What another dialect's conversation needs before it can be told in messages: ids, whole turns, answers in place, and
system messages where the API takes them."""

from typing import TypeAlias

import msgspec

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.conversation import SYSTEM_ROLES, as_turns, leading_count, with_ids
from sightline.dialects.result_order import with_answers
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, ToolResult
from sightline.model.report import Report

Written: TypeAlias = tuple[Message, list[Json]]
"""A message and the blocks that it comes to."""

_UNTAKEN = "the model takes none inside the conversation: demoted to user"
_UNFOLLOWED = f"{NAME} takes one behind a user's turn only: demoted to user"


def place_system(written: list[Written], report: Report, *, is_taken: bool) -> list[Written]:
    """The messages with each system message where the API takes it; `is_taken` by this model at all.

    Behind the leading ones, which become `system`, a system message must follow a user's turn and must come before
    the assistant's or at the end, and no two may follow each other (platform.claude.com, "Mid-conversation system
    messages", 2026-11). One that stands before the user's turn goes behind it: it is read for the same answer. One
    that no user's turn is near to speaks as the user.
    """
    count = leading_count(tuple(message for message, _ in written))
    out = written[:count]
    waiting: list[tuple[int, Written]] = []
    for each in written[count:]:
        message = each[0]
        if message.role in SYSTEM_ROLES:
            if is_taken:
                waiting.append((len(out), each))
            else:
                out.append(_demote(each, _UNTAKEN, report))
            continue
        if message.role == "assistant":
            _settle(out, waiting, report)
            waiting = []
        out.append(each)
    _settle(out, waiting, report)
    return out


def _settle(out: list[Written], waiting: list[tuple[int, Written]], report: Report) -> None:
    """Put the system messages that wait for the end of the user's turn behind it, as one."""
    if not waiting:
        return
    if not out or out[-1][0].role not in ("user", "tool"):
        out.extend(_demote(each, _UNFOLLOWED, report) for _, each in waiting)
        return
    for place, (message, _) in waiting:
        if place != len(out):
            why = f"{NAME} takes it behind the user's turn"
            report.lose(message.at, f"place of a {message.role} message", why, "option")
    (_, (first, blocks)), *others = waiting
    for _, (message, more) in others:
        report.lose(message.at, "a system message of its own", f"{NAME} takes no two in a row: joined", "identity")
        blocks = [*blocks, *more]
    out.append((first, blocks))


def _demote(written: Written, why: str, report: Report) -> Written:
    message, blocks = written
    report.lose(message.at, f"role of a {message.role} message", why, "content")
    return msgspec.structs.replace(message, role="user"), blocks


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
