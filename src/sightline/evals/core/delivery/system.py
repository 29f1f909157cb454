"""System messages where a target's policy wants them, and what is said before the conversation."""

from sightline.dialects.conversation import SYSTEM_ROLES, with_policy
from sightline.dialects.dialect import SystemPolicy
from sightline.evals.core.delivery.note import Note
from sightline.model.message import Message
from sightline.model.parts import Part, Text
from sightline.model.report import Report

_APART = "\n\n"


def with_system(
    messages: tuple[Message, ...], policy: SystemPolicy, system_prompt: str, guidelines: str
) -> tuple[tuple[Message, ...], tuple[Note, ...]]:
    """The messages with the system prompt and then the guidelines in front of all that the case's own system messages
    say.

    `in_place` moves nothing: what is put in front joins the first message if that is a system message, and is one of
    its own if not. The other policies make one system message of the leading ones, or of all.
    """
    said = tuple(Text(text) for text in (system_prompt, guidelines) if text.strip())
    notes: list[Note] = []
    arranged = messages
    if policy != "in_place":
        report = Report()
        arranged = with_policy(messages, policy, report)
        notes += [Note("moved", loss.what, loss.why) for loss in report.losses]
        before, after = _systems(messages), _systems(arranged)
        if after < before:
            notes.append(Note("merged", f"{before} system messages into {after}", f"the policy is {policy}"))
    if not said:
        return _all_joined(arranged, policy), tuple(notes)
    if arranged and arranged[0].role in SYSTEM_ROLES:
        first = arranged[0]
        notes.append(Note("merged", f"the first {first.role} message", "the system prompt and guidelines go before it"))
        front = Message(first.role, (*said, *first.parts), first.name)
        return _all_joined((front, *arranged[1:]), policy, is_front=True), tuple(notes)
    return _all_joined((Message("system", said), *arranged), policy, is_front=True), tuple(notes)


def _systems(messages: tuple[Message, ...]) -> int:
    return sum(message.role in SYSTEM_ROLES for message in messages)


def _all_joined(messages: tuple[Message, ...], policy: SystemPolicy, *, is_front: bool = False) -> tuple[Message, ...]:
    """The messages with the words of the merged one as one text, a blank line between them."""
    is_merged = is_front or policy != "in_place"
    if not is_merged or not messages or messages[0].role not in SYSTEM_ROLES:
        return messages
    first = messages[0]
    parts: list[Part] = []
    for part in first.parts:
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(f"{last.text}{_APART}{part.text}")
        else:
            parts.append(part)
    is_bare = len(parts) == 1 and isinstance(parts[0], Text)
    return (Message(first.role, tuple(parts), first.name, bare=is_bare), *messages[1:])
