"""A Messages request body and a canonical request, both ways: `system`, the messages, and what goes with them."""

from typing import TypeAlias

import msgspec

from sightline.dialects.anthropic.blocks import BlockWriter, bare_text, read_content
from sightline.dialects.anthropic.names import NAME, ROLES
from sightline.dialects.anthropic.options import MODELLED, read_settings, write_settings
from sightline.dialects.anthropic.tools import read_choice, read_tools, write_choice, write_tools
from sightline.dialects.conversation import (
    SYSTEM_ROLES,
    as_turns,
    leading_count,
    with_answers,
    with_ids,
    with_policy,
    with_somebody,
)
from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_list, as_object, merge, opt_str, rest, str_of, unknown
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Opaque, Part, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request

_REQUEST = MODELLED | {"model", "system", "messages", "tools", "tool_choice"}
_MESSAGE = frozenset({"role", "content"})


def read_request(document: Json) -> Request:
    """The request that this body asks."""
    body = as_object(document, "")
    messages = [
        _read_message(value, f"/messages/{index}")
        for index, value in enumerate(as_list(body.get("messages"), "/messages"))
    ]
    if body.get("system") is not None:
        parts, bare = read_content(body["system"], "/system")
        messages.insert(0, Message("system", parts, bare=bare, at="/system"))
    choice, parallel = read_choice(body)
    options, unread = read_settings(body)
    if parallel is not None:
        options.places["parallel_tool_calls"] = "/tool_choice/disable_parallel_tool_use"
    return Request(
        model=opt_str(body, "model", "") or "",
        messages=tuple(messages),
        tools=read_tools(body),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        options=options,
        dialect=NAME,
        extras=rest(body, _REQUEST) | unread,
    )


def _read_message(value: Json, at: str) -> Message:
    message = as_object(value, at)
    role = str_of(message, "role", at)
    if role not in ROLES:
        raise unknown(role, f"{at}/role", "role", ROLES)
    parts, bare = read_content(message.get("content"), f"{at}/content")
    return Message(ROLES[role], parts, bare=bare, at=at, extras=rest(message, _MESSAGE))


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


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body that asks the same."""
    same = request.dialect == NAME
    messages = request.messages
    if not same:
        _lose_identity(messages, report)
        messages = tuple(message for message in messages if not _is_mirrored(message))
    messages = with_policy(messages, target.system, report)
    if not same:
        messages = with_turns(messages, report)
    body: JsonObject = {"model": request.model} if request.model else {}
    is_taken = target.facts is None or target.facts.inline_system is True
    _Conversation(messages, report, same=same, takes_system=is_taken).write(
        body, keep_places=same and target.system == "in_place"
    )
    write_tools(request, body, report, same=same)
    write_choice(request, body, report, same=same)
    write_settings(request.options, target, body, report, same=same)
    return merge(body, request.extras) if same else body


def _lose_identity(messages: tuple[Message, ...], report: Report) -> None:
    """Report what a message of this API does not say about itself, before messages are joined."""
    for message in messages:
        if message.role == "developer" and not _is_mirrored(message):
            report.lose(message.at, "role developer", f"{NAME} calls it system", "identity")
        if message.id is not None:
            report.lose(message.at, "id of the message", f"{NAME} has no such field", "identity")
        if message.name is not None:
            report.lose(f"{message.at}/name", "name of the speaker", f"{NAME} has no such field", "option")


def _is_mirrored(message: Message) -> bool:
    """Whether everything in this message also stands elsewhere in the request."""
    return bool(message.parts) and all(isinstance(part, Opaque) and part.mirrored for part in message.parts)


class _Conversation:
    """The messages of one request on their way into its body. `takes_system`: the model takes system messages among
    them; where nothing is known of the model's, what the API takes counts."""

    def __init__(self, messages: tuple[Message, ...], report: Report, *, same: bool, takes_system: bool) -> None:
        self._messages = messages
        self._report = report
        self._same = same
        self._takes_system = takes_system
        self._blocks = BlockWriter(report, same=same)

    def write(self, body: JsonObject, *, keep_places: bool) -> None:
        """Fill in `system` and `messages`. `keep_places`: a system message among the messages stays there."""
        written = [(message, blocks) for message in self._messages if (blocks := self._content(message)) is not None]
        if not self._same:
            written = place_system(written, self._report, is_taken=self._takes_system)
        messages = tuple(message for message, _ in written)
        if not self._same:
            if not messages:
                at = self._messages[-1].at if self._messages else ""
                self._report.lose(at, "every message", "nothing is left to answer", "content")
            messages = with_somebody(messages, self._report, NAME)
            if messages and messages[-1].role == "assistant":
                self._blocks.trim_end()
        count = leading_count(messages)
        if keep_places:
            count = next((i for i, m in enumerate(messages[:count]) if m.at.startswith("/messages")), count)
        # Only now: a cache mark may have been put on a block of an earlier message.
        if count:
            joined = [block for _, blocks in written[:count] for block in blocks]
            bare = bare_text(joined) if count == 1 and messages[0].bare else None
            body["system"] = joined if bare is None else bare
        spoken = zip(messages[count:], written[count:], strict=True)
        body["messages"] = [self._message(message, blocks) for message, (_, blocks) in spoken]

    def _content(self, message: Message) -> list[Json] | None:
        """The blocks of a message; None if it comes to nothing and so cannot be sent."""
        is_system = message.role in SYSTEM_ROLES
        blocks = self._blocks.write_words(message.parts) if is_system else self._blocks.write(message.parts)
        if not self._same and not blocks:
            # What it held is reported part by part; this is for the message itself, its role and its place.
            self._report.lose(message.at, "a message of which nothing is left", f"{NAME} rejects it", "identity")
            return None
        return blocks

    def _message(self, message: Message, blocks: list[Json]) -> JsonObject:
        bare = bare_text(blocks) if message.bare else None
        role = "system" if message.role in SYSTEM_ROLES else "assistant" if message.role == "assistant" else "user"
        written: JsonObject = {"role": role, "content": blocks if bare is None else bare}
        return merge(written, message.extras) if self._same else written
