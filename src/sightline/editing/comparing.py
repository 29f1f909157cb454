"""Compares two requests section by section: what is the same, changed, added, removed or moved.

Sections are matched by content, not by position: an inserted turn moves everything after it. A feature that keeps its
own copy of a conversation takes the user's changes from here; otherwise its next request would send the old text again.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from sightline.editing.anchors import Anchors
from sightline.editing.draft import Draft
from sightline.editing.mask_making import is_same
from sightline.editing.section import Kind, Section, SectionPart
from sightline.editing.texts import divide_over_parts
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.request import Message

Comparison = Literal["same", "changed", "added", "removed", "moved"]
_NAMED_BY = {"tools": "Tool", "options": "Option"}


class Side(msgspec.Struct, frozen=True):
    """A section, or one of its tools or options, as it is in one of the two requests."""

    section: str
    text: str
    part: str = ""
    pointer: str = ""


class Compared(msgspec.Struct, frozen=True):
    """A line of a structural diff; `before` is None for an addition, `after` for a removal."""

    change: Comparison
    label: str
    kind: Kind
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: Kind
    label: str
    name: str
    content: str
    side: Side


_Pair = tuple[_Entry | None, _Entry | None]
"""The old entry and the new one."""


def compare_drafts(before: Draft, after: Draft) -> list[Compared]:
    """Every section of both drafts, in the order of the later one; what was removed is at its old position."""
    old, new = list(_entries(before)), list(_entries(after))
    head = _common_length(old, new)
    tail = _common_length(old[head:][::-1], new[head:][::-1])
    middle = _with_moves(list(_middle(old[head : len(old) - tail], new[head : len(new) - tail])))
    ends = zip(old[len(old) - tail :], new[len(new) - tail :], strict=True)
    begun = zip(old[:head], new[:head], strict=True)
    return [*(_line(*pair) for pair in begun), *middle, *(_line(*pair) for pair in ends)]


def _entries(draft: Draft) -> Iterator[_Entry]:
    anchors = Anchors(draft)
    for section in draft.sections:
        if section.deleted:
            continue
        if section.kind in _NAMED_BY:
            contents = anchors.parts(section)
            for part in section.parts:
                if part.id in contents:
                    label = f"{_NAMED_BY[section.kind]} · {part.name}"
                    side = Side(section.id, part.text, part.id, part.pointer)
                    yield _Entry(section.kind, label, part.name, contents[part.id].content, side)
        else:
            lines = [_part_text(part) for part in section.parts if not part.deleted and part.type != "cache_breakpoint"]
            side = Side(section.id, "\n".join(lines) if lines else section.text, "", section.pointer)
            yield _Entry(section.kind, section.label, section.role, anchors.sections[section.id].content, side)


def _part_text(part: SectionPart) -> str:
    match part.type:
        case "tool_call":
            return f"{part.name}({part.text})"
        case "image" | "document" | "audio":
            url = "" if part.url.startswith("data:") else part.url
            return f"[{' '.join(filter(None, (part.type, part.media_type, url, part.name)))}]"
        case _:
            return part.text


def _common_length(old: Sequence[_Entry], new: Sequence[_Entry]) -> int:
    """How many entries are the same from the start."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one.content != other.content or one.kind != other.kind:
            break
        count += 1
    return count


def _middle(old: Sequence[_Entry], new: Sequence[_Entry]) -> Iterator[_Pair]:
    matcher = SequenceMatcher(None, [each.content for each in old], [each.content for each in new], autojunk=False)
    for tag, start, stop, begin, end in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(old[start:stop], new[begin:end], strict=True)
        else:
            yield from _pair_by_kind(old[start:stop], new[begin:end])


def _pair_by_kind(old: Sequence[_Entry], new: Sequence[_Entry]) -> Iterator[_Pair]:
    """Pair entries that replaced each other: those of the same kind, in the same order."""
    kinds = [(each.kind, each.name) for each in old], [(each.kind, each.name) for each in new]
    for tag, start, stop, begin, end in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(old[start:stop], new[begin:end], strict=True)
        else:
            yield from ((each, None) for each in old[start:stop])
            yield from ((None, each) for each in new[begin:end])


def _with_moves(pairs: list[_Pair]) -> list[Compared]:
    """The lines of all pairs. An entry that was removed in one place and added in another has moved."""
    gone: dict[tuple[str, str], deque[_Entry]] = defaultdict(deque)
    for before, after in pairs:
        if before is not None and after is None:
            gone[before.kind, before.content].append(before)
    found: list[_Pair] = []
    moved: dict[int, _Entry] = {}
    for before, after in pairs:
        source = gone.get((after.kind, after.content)) if after is not None and before is None else None
        if source:
            before = source.popleft()
            moved[id(before)] = before
        found.append((before, after))
    return [
        msgspec.structs.replace(line, change="moved") if id(pair[0]) in moved else line
        for pair, line in ((pair, _line(*pair)) for pair in found)
        if pair[1] is not None or id(pair[0]) not in moved
    ]


def _line(before: _Entry | None, after: _Entry | None) -> Compared:
    shown = after or before
    assert shown is not None
    old, new = None if before is None else before.side, None if after is None else after.side
    change: Comparison = "added" if before is None else "removed"
    if before is not None and after is not None:
        change = "same" if before.content == after.content else "changed"
    return Compared(change, shown.label, shown.kind, old, new)


class SectionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A section that the user changed. `who` is its speaker, `nth` counts the earlier sections of that speaker with the
    same text.

    `is_question` marks the last section of the user, which is the question. `gone` are the numbers of the deleted
    parts, out of `count`; a deleted section has no text left.
    """

    who: str
    old: str
    new: str
    nth: int
    count: int
    gone: tuple[int, ...] = ()
    is_question: bool = False


def changes_between(start: Draft, now: Draft) -> tuple[SectionChange, ...]:
    """What differs in the conversation, in order. Added sections do not count as changes."""
    after = {section.id: section for section in now.sections}
    conversation = [section for section in start.sections if section.role and not section.deleted]
    last_question = next((section.id for section in reversed(conversation) if _who(section) == "user"), "")
    seen = Counter[tuple[str, str]]()
    found: list[SectionChange] = []
    for section in conversation:
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
                is_question=section.id == last_question,
            )
        )
    return tuple(found)


def carry_over(messages: Sequence[Message], changes: Sequence[SectionChange]) -> tuple[Message, ...]:
    """The messages with the changes made to one request, each applied where its old text is. Deletions are not applied,
    and a change whose text is not found has no effect."""
    after = list(messages)
    for change in changes:
        sought = change.who, change.old
        places = [number for number, message in enumerate(messages) for each in slots_of(message) if each == sought]
        if change.new and change.nth < len(places):
            at = places[change.nth]
            after[at] = with_new_text(after[at], change)
    return tuple(after)


def slots_of(message: Message) -> Iterator[tuple[str, str]]:
    """The speaker and text of each slot of a message, in the terms of `SectionChange`."""
    if words := "".join(texts_of(message.parts)):
        yield message.role, words
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield "call", part.arguments
        elif isinstance(part, ToolResult):
            yield "tool", "".join(texts_of(part.parts))


def with_new_text(message: Message, change: SectionChange) -> Message:
    """The message with the new text in place of the old: across its texts, or in the one call or result."""
    return msgspec.structs.replace(message, parts=tuple(_parts_with_new_text(message.parts, change)))


def texts_of(parts: Sequence[Part]) -> list[str]:
    """The texts among these parts."""
    return [part.text for part in parts if isinstance(part, Text)]


def _who(section: Section) -> str:
    return {"tool_result": "tool", "tool_call": "call"}.get(section.kind, section.role)


def _parts_with_new_text(parts: Sequence[Part], change: SectionChange) -> Iterator[Part]:
    is_done = False
    words = iter(divide_over_parts(texts_of(parts), change.new) if change.who not in ("call", "tool") else ())
    for part in parts:
        if isinstance(part, Text) and change.who not in ("call", "tool"):
            part = msgspec.structs.replace(part, text=next(words))
        elif isinstance(part, ToolCall) and change.who == "call" and part.arguments == change.old and not is_done:
            part, is_done = msgspec.structs.replace(part, arguments=change.new), True
        elif isinstance(part, ToolResult) and change.who == "tool" and not is_done:
            texts = texts_of(part.parts)
            if "".join(texts) == change.old:
                texts_left = iter(divide_over_parts(texts, change.new))
                inner = tuple(Text(next(texts_left)) if isinstance(each, Text) else each for each in part.parts)
                part, is_done = msgspec.structs.replace(part, parts=inner, structured=None), True
        yield part
