"""Two requests side by side: which section is the same, changed, new, gone or elsewhere.

They are laid together by what they say. What stands at the same place is no sign of anything: a turn that was put in
moves all that follows.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from sightline.editing.anchor import Anchors
from sightline.editing.draft import Draft
from sightline.editing.section import Kind, Section, SectionPart

Comparison = Literal["same", "changed", "added", "removed", "moved"]
_NAMED_BY = {"tools": "Tool", "options": "Option"}


class Side(msgspec.Struct, frozen=True):
    """A section, or one tool or option of it, as it is in one of the two."""

    section: str
    text: str
    part: str = ""
    pointer: str = ""


class Compared(msgspec.Struct, frozen=True):
    """One line of a structural diff; `before` is None for what was added, `after` for what was removed."""

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
"""What stood before, and what stands now."""


def compare_drafts(before: Draft, after: Draft) -> list[Compared]:
    """All of both, in the order of the later one; what is gone stands where it stood."""
    old, new = list(_entries(before)), list(_entries(after))
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
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
            side = Side(section.id, _text_of(section), "", section.pointer)
            yield _Entry(section.kind, section.label, section.role, anchors.sections[section.id].content, side)


def _text_of(section: Section) -> str:
    """All that a section says, part by part."""
    lines = [_words(part) for part in section.parts if not part.deleted and part.type != "cache_breakpoint"]
    return "\n".join(lines) if lines else section.text


def _words(part: SectionPart) -> str:
    match part.type:
        case "tool_call":
            return f"{part.name}({part.text})"
        case "image" | "document" | "audio":
            url = "" if part.url.startswith("data:") else part.url
            return f"[{' '.join(filter(None, (part.type, part.media_type, url, part.name)))}]"
        case _:
            return part.text


def _alike(old: Sequence[_Entry], new: Sequence[_Entry]) -> int:
    """How many say the same from the start."""
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
    """What took the place of what: of the same kind, in the same order."""
    kinds = [(each.kind, each.name) for each in old], [(each.kind, each.name) for each in new]
    for tag, start, stop, begin, end in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(old[start:stop], new[begin:end], strict=True)
        else:
            yield from ((each, None) for each in old[start:stop])
            yield from ((None, each) for each in new[begin:end])


def _with_moves(pairs: list[_Pair]) -> list[Compared]:
    """The lines of all pairs; what is gone at one place and new at another has moved."""
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
    return Compared(_change(before, after), shown.label, shown.kind, old, new)


def _change(before: _Entry | None, after: _Entry | None) -> Comparison:
    if before is None or after is None:
        return "added" if before is None else "removed"
    return "same" if before.content == after.content else "changed"
