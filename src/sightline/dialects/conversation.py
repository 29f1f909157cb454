"""Passes over canonical messages that the writers of several dialects apply before they write them."""

import hashlib
import re
from itertools import chain

import msgspec

from sightline.dialects.dialect import Dialect, SystemPolicy
from sightline.dialects.losses import describe
from sightline.dialects.tool_names import CALLS_AND_RESULTS
from sightline.model.json import JsonObject
from sightline.model.parts import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Request, change_parts, parts_of
from sightline.wire.pointer import join

SYSTEM_ROLES = frozenset({"system", "developer"})


def leading_count(messages: tuple[Message, ...]) -> int:
    """How many system and developer messages precede the conversation."""
    for count, message in enumerate(messages):
        if message.role not in SYSTEM_ROLES:
            return count
    return len(messages)


def with_policy(messages: tuple[Message, ...], policy: SystemPolicy, report: Report) -> tuple[Message, ...]:
    """The messages with system messages where the policy wants them; each move is reported."""
    if policy == "in_place":
        return messages
    count = leading_count(messages)
    leading, others = messages[:count], messages[count:]
    if policy == "merge_all":
        for message in others:
            if message.role in SYSTEM_ROLES:
                report.lose(
                    message.at, f"place of a {message.role} message", "merge_all moves it to the front", "option"
                )
        leading = (*leading, *(message for message in others if message.role in SYSTEM_ROLES))
        others = tuple(message for message in others if message.role not in SYSTEM_ROLES)
    return (*_merge_leading(leading, report), *others)


def _merge_leading(leading: tuple[Message, ...], report: Report) -> tuple[Message, ...]:
    """Merge system messages into one, with the role of the first and the parts of all."""
    if len(leading) < 2:
        return leading
    extras: JsonObject = {}
    for message in leading:
        extras |= message.extras
        if message.name is not None:
            report.lose(message.at, "name of a message", "it is merged with others", "option")
        if message.role != leading[0].role:
            report.lose(
                message.at, f"role {message.role}", f"it is merged into a {leading[0].role} message", "identity"
            )
    parts = tuple(part for message in leading for part in message.parts)
    return (Message(leading[0].role, parts, at=leading[0].at, extras=extras),)


def without_private_lines(request: Request, source: Dialect, report: Report) -> Request:
    """The request without the lines of its system prompt that only the provider of `source` should read."""
    beginnings = source.unread.private_lines
    count = leading_count(request.messages) if beginnings else 0
    parts = (part for message in request.messages[:count] for part in message.parts)
    if not any(isinstance(part, Text) and part.text.startswith(beginnings) for part in parts):
        return request

    def strip(part: Part) -> Part | None:
        if not isinstance(part, Text) or not part.text.startswith(beginnings):
            return part
        line, _, others = part.text.partition("\n")
        what = f"{line.partition(':')[0]} in the system prompt"
        why = f"only {source.name} reads it; it changes with every request and would spoil every prompt cache"
        report.lose(part.at, what, why, "identity")
        return msgspec.structs.replace(part, text=others) if others else None

    leading = [
        msgspec.structs.replace(message, parts=kept)
        for message in request.messages[:count]
        if (kept := tuple(part for part in map(strip, message.parts) if part is not None)) or not message.parts
    ]
    return msgspec.structs.replace(request, messages=(*leading, *request.messages[count:]))


_SAID_IN_WORDS: frozenset[type[Part]] = frozenset({Opaque, ToolResult})


def with_words(messages: tuple[Message, ...], report: Report, target: str) -> tuple[Message, ...]:
    """The messages with text in place of parts that the target does not know and that can be expressed as text."""

    def as_text(part: Part) -> Part:
        if isinstance(part, ToolResult) and Opaque in map(type, part.parts):
            return msgspec.structs.replace(part, parts=tuple(as_text(inner) for inner in part.parts))
        if not isinstance(part, Opaque) or not part.text or part.dialect == target:
            return part
        report.lose(part.at, describe(part), f"{target} does not know it: its words are sent as text", "identity")
        for key in ("citations", "cache_control"):
            if isinstance(part.value, dict) and part.value.get(key) is not None:
                report.lose(join(part.at, key), f"{key} of it", "it is text now", "option")
        return Text(part.text, at=part.at)

    parts = parts_of(messages)
    inner = chain.from_iterable([part.parts for part in parts if type(part) is ToolResult])
    is_known = Opaque not in map(type, parts) and Opaque not in map(type, inner)
    return messages if is_known else change_parts(messages, _SAID_IN_WORDS, as_text)


def with_user_message(messages: tuple[Message, ...], report: Report, dialect: str) -> tuple[Message, ...]:
    """The messages with at least one to answer: if all are system messages, the last one becomes the user's."""
    if not messages or any(message.role not in SYSTEM_ROLES for message in messages):
        return messages
    *others, last = messages
    report.lose(last.at, f"role of a {last.role} message", f"{dialect} needs a message to answer", "content")
    return (*others, msgspec.structs.replace(last, role="user"))


def with_ids(messages: tuple[Message, ...], report: Report) -> tuple[Message, ...]:
    """The messages with an id on every call and result; a result without one answers its name's oldest open call."""
    if not [part for part in parts_of(messages) if isinstance(part, (ToolCall, ToolResult)) and not part.id]:
        return messages
    waiting: list[ToolCall] = []
    count = 0

    def give_id(part: Part) -> Part:
        nonlocal count
        if isinstance(part, ToolCall):
            if not part.id:
                count += 1
                part = msgspec.structs.replace(part, id=f"call_{count}")
                report.add(part.at, "id of a tool call", "a call and its result must share an id", "identity")
            waiting.append(part)
            return part
        assert isinstance(part, ToolResult)  # it is given calls and results only
        call = _call_for_result(part, waiting)
        if call is not None:
            waiting.remove(call)
        if not part.id:
            part = msgspec.structs.replace(part, id="call_0" if call is None else call.id)
            report.add(part.at, "id of a tool result", "a call and its result must share an id", "identity")
        return part

    return change_parts(messages, CALLS_AND_RESULTS, give_id)


def _call_for_result(result: ToolResult, waiting: list[ToolCall]) -> ToolCall | None:
    """The call that a result answers: the one with its id, whatever its name, or without an id by name."""
    if result.id:
        return next((call for call in reversed(waiting) if call.id == result.id), None)
    return next((call for call in waiting if call.name == (result.name or "")), None)


def as_turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Join items that other dialects hold as one message.

    Some APIs hold a turn as several items (reasoning, text, one call each), others as one message. An assistant message
    that is only an item joins its neighbour; a tool result joins the one before it. Whole messages of the same role
    that follow each other stay separate, as their author wrote them.
    """
    turns: list[Message] = []
    for message in messages:
        if turns and _belongs_to(turns[-1], message):
            previous = turns[-1]
            turns[-1] = msgspec.structs.replace(previous, parts=(*previous.parts, *message.parts), bare=False)
        else:
            turns.append(message)
    return tuple(turns)


def _belongs_to(previous: Message, message: Message) -> bool:
    if previous.role != message.role:
        return False
    if message.role == "assistant":
        return _is_item(previous) or _is_item(message)
    return message.role == "tool"


_ITEMS: frozenset[type[Part]] = frozenset({Thinking, ToolCall, Opaque})
"""The parts that are items of their own in other dialects."""


def _is_item(message: Message) -> bool:
    return _ITEMS.issuperset(map(type, message.parts))


def plain_text(parts: tuple[Part, ...]) -> str:
    """The text of these parts, as one string."""
    return "".join(part.text for part in parts if isinstance(part, Text))


_SAFE_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def safe_id(call_id: str, at: str, report: Report, dialect: str) -> str:
    """The id itself if the dialect takes it, otherwise a stable replacement, so that call and result still match."""
    if _SAFE_ID.fullmatch(call_id):
        return call_id
    report.lose(at, "spelling of a tool call's id", f"{dialect} takes ids of letters, digits, _ and - only", "identity")
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def is_mirrored(message: Message) -> bool:
    """Whether everything in this message is also elsewhere in the request."""
    return Opaque in map(type, message.parts) and all(
        isinstance(part, Opaque) and part.mirrored for part in message.parts
    )


def with_answers(turns: tuple[Message, ...], report: Report, dialect: str) -> tuple[Message, ...]:
    """The turns with every late result moved to follow its call, past anything in between; each move is reported."""
    late, ends = _find_late_results(turns)
    if not late:
        return turns
    moved = {id(part) for parts in late.values() for part in parts}
    for part in (part for parts in late.values() for part in parts):
        report.lose(part.at, "place of a tool result", f"{dialect} wants it directly after the call", "content")
    owners = {ends[owner]: owner for owner in late}
    out: list[Message] = []
    for index, turn in enumerate(turns):
        kept = tuple(part for part in turn.parts if id(part) not in moved)
        if kept or not turn.parts:
            out.append(turn if len(kept) == len(turn.parts) else msgspec.structs.replace(turn, parts=kept))
        if index in owners:
            _answer(out, tuple(late[owners[index]]))
    return tuple(out)


def _find_late_results(turns: tuple[Message, ...]) -> tuple[dict[int, list[Part]], dict[int, int]]:
    """The late results, by the turn that they answer, and where the results of each turn end."""
    late: dict[int, list[Part]] = {}
    ends: dict[int, int] = {}
    owner_of: dict[str, int] = {}
    asking: int | None = None
    for index, turn in enumerate(turns):
        kinds = set(map(type, turn.parts))
        if ToolResult not in kinds:
            asking = None
        else:
            if asking is not None:
                ends[asking] = index
            for part in turn.parts:
                if isinstance(part, ToolResult):
                    owner = owner_of.pop(part.id, None)
                    if owner is not None and owner != asking:
                        late.setdefault(owner, []).append(part)
        if ToolCall in kinds:
            calls = [part.id for part in turn.parts if isinstance(part, ToolCall) and part.id]
            if calls:
                asking = index
                ends[index] = index
                owner_of.update(dict.fromkeys(calls, index))
    return late, ends


def _answer(out: list[Message], parts: tuple[Part, ...]) -> None:
    """Append results: to the last message if that holds results already, otherwise as a new message."""
    if out[-1].role == "tool":
        out[-1] = msgspec.structs.replace(out[-1], parts=(*out[-1].parts, *parts))
    else:
        out.append(Message("tool", parts, at=parts[0].at))
