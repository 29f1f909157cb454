"""What differs between two drafts of one conversation, section by section, and the same changes made in messages.

Whoever keeps a conversation of its own takes over here what a person changed in a request: else the next request would
send the words that were edited away.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from sightline.editing.draft import Draft
from sightline.editing.mask_making import is_same
from sightline.editing.section import Section
from sightline.editing.spread import spread_over_parts
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult


class SectionChange(msgspec.Struct, frozen=True, kw_only=True):
    """One section that a person changed. `who` says it, `nth` counts the sections before it that said the same words.

    `is_question` marks the last of the user's: the question that is asked. `gone` are the numbers of the parts that
    were deleted, of `count`; a section that was deleted has no words left.
    """

    who: str
    old: str
    new: str
    nth: int
    count: int
    gone: tuple[int, ...] = ()
    is_question: bool = False


def changes_between(start: Draft, now: Draft) -> tuple[SectionChange, ...]:
    """What differs in the conversation, in its order. What was added is no change of what is there."""
    after = {section.id: section for section in now.sections}
    spoken = [section for section in start.sections if section.role and not section.deleted]
    asked = next((section.id for section in reversed(spoken) if _who(section) == "user"), "")
    seen = Counter[tuple[str, str]]()
    found: list[SectionChange] = []
    for section in spoken:
        who, new = _who(section), after.get(section.id)
        nth = seen[who, section.text]
        seen[who, section.text] += 1
        if new is not None and is_same(section, new):
            continue
        is_gone = new is None or new.deleted
        parts = [part for part in section.parts if part.type != "cache_breakpoint" and not part.deleted]
        left = set() if new is None or is_gone else {part.id for part in new.parts if not part.deleted}
        found.append(
            SectionChange(
                who=who,
                old=section.text,
                new="" if new is None or is_gone else new.text,
                nth=nth,
                count=len(parts),
                gone=tuple(number for number, part in enumerate(parts) if part.id not in left),
                is_question=section.id == asked,
            )
        )
    return tuple(found)


def carry_over(messages: Sequence[Message], changes: Sequence[SectionChange]) -> tuple[Message, ...]:
    """The messages with these changes of one request, each where its old words are; what was deleted stays, and a
    change whose words are not there changes nothing."""
    after = list(messages)
    for change in changes:
        sought = change.who, change.old
        said = [number for number, message in enumerate(messages) for each in slots_of(message) if each == sought]
        if change.new and change.nth < len(said):
            at = said[change.nth]
            after[at] = with_new_text(after[at], change)
    return tuple(after)


def slots_of(message: Message) -> Iterator[tuple[str, str]]:
    """Who says what in a message, as `Change` names it."""
    if words := "".join(texts_of(message.parts)):
        yield message.role, words
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield "call", part.arguments
        elif isinstance(part, ToolResult):
            yield "tool", "".join(texts_of(part.parts))


def with_new_text(message: Message, change: SectionChange) -> Message:
    """The message with the new words where the old ones were: over its texts, or in the one call or result."""
    return msgspec.structs.replace(message, parts=tuple(_parts_with_new_text(message.parts, change)))


def texts_of(parts: Sequence[Part]) -> list[str]:
    """The texts among these parts."""
    return [part.text for part in parts if isinstance(part, Text)]


def _who(section: Section) -> str:
    match section.kind:
        case "tool_result":
            return "tool"
        case "tool_call":
            return "call"
        case _:
            return section.role


def _parts_with_new_text(parts: Sequence[Part], change: SectionChange) -> Iterator[Part]:
    is_done = False
    words = iter(spread_over_parts(texts_of(parts), change.new) if change.who not in ("call", "tool") else ())
    for part in parts:
        if isinstance(part, Text) and change.who not in ("call", "tool"):
            part = msgspec.structs.replace(part, text=next(words))
        elif isinstance(part, ToolCall) and change.who == "call" and part.arguments == change.old and not is_done:
            part, is_done = msgspec.structs.replace(part, arguments=change.new), True
        elif isinstance(part, ToolResult) and change.who == "tool" and not is_done:
            texts = texts_of(part.parts)
            if "".join(texts) == change.old:
                told = iter(spread_over_parts(texts, change.new))
                inner = tuple(Text(next(told)) if isinstance(each, Text) else each for each in part.parts)
                part, is_done = msgspec.structs.replace(part, parts=inner, structured=None), True
        yield part
