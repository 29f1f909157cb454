"""Stripping a class of things from a request: old tool results, thinking, or one tool's definition.

Each thing is deleted as a person deletes it, with what is invalid without it, so that what is left is a
request that its API takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, assert_never

import msgspec

from sightline.editing.changes import cascade_of, check_sound
from sightline.editing.deletions import Deletions, parent_of
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete
from sightline.editing.section import Section, SectionPart
from sightline.editing.targets import target_of
from sightline.errors import Fault

StripClass = Literal["tool_results", "thinking", "tool"]
_SPOKEN = ("text", "image", "document", "audio")


class Strip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which things go: results or thinking older than so many turns of the user, or the tool of this name."""

    what: StripClass = msgspec.field(name="class")
    older_than: Annotated[int, msgspec.Meta(ge=0)] = 0
    tool: str = ""

    @property
    def label(self) -> str:
        """For a person."""
        match self.what:
            case "tool":
                return f"Tool {self.tool}"
            case "tool_results":
                return f"Tool results older than {self.older_than} turns" if self.older_than else "All tool results"
            case "thinking":
                return f"Thinking older than {self.older_than} turns" if self.older_than else "All thinking"
            case unreachable:
                assert_never(unreachable)


@dataclass(frozen=True, slots=True)
class Stripped:
    """The draft without them; the sections from which something is gone, and those where it had to stay and why."""

    draft: Draft
    gone: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    why: str = ""


def apply_strip(draft: Draft, strip: Strip) -> Stripped:
    """The draft without what the strip names."""
    chosen = list(_parts_to_strip(draft, strip))
    if not chosen:
        return Stripped(draft)
    sections = tuple(dict.fromkeys(section.id for section, _ in chosen))
    after = _together(draft, chosen)
    try:
        check_sound(draft, after)
    except Fault:
        return _one_by_one(draft, chosen)
    return Stripped(after, sections)


def _together(draft: Draft, chosen: list[tuple[Section, SectionPart]]) -> Draft:
    """The draft without all of these, looked through once: a long conversation has hundreds of them.

    What had to go together is one deletion, so that each can be restored by itself.
    """
    whole, request = draft.whole, draft.whole.reading.request
    assert request is not None  # there are sections to choose from
    places = [place for section, part in chosen for place in target_of(whole, section.id, part.id).places]
    deleted = cascade_of(whole.reading, request, whole.deletions, frozenset(places))
    groups = _groups(deleted, [(one.at, other.at) for one, other in whole.reading.pairs])
    deletions = Deletions.of((*whole.deletions.groups, *groups), whole.reading.document)
    return draft.with_whole(whole.with_deletions(deletions))


def _groups(deleted: frozenset[str], pairs: list[tuple[str, str]]) -> list[frozenset[str]]:
    """What was taken, parted so that the two halves of a pair are never apart."""
    group = {place: {place} for place in sorted(deleted)}
    for one, other in pairs:
        mine, theirs = _covering(deleted, one), _covering(deleted, other)
        if mine and theirs and group[mine] is not group[theirs]:
            joined = group[mine] | group[theirs]
            group |= dict.fromkeys(joined, joined)
    return [frozenset(places) for places in {id(places): places for places in group.values()}.values()]


def _covering(deleted: frozenset[str], place: str) -> str:
    while place and place not in deleted:
        place = parent_of(place)
    return place


def _one_by_one(draft: Draft, chosen: list[tuple[Section, SectionPart]]) -> Stripped:
    """Where all at once is refused, as much as can go."""
    gone: dict[str, None] = {}
    kept: dict[str, None] = {}
    why = ""
    for section, part in chosen:
        try:
            draft = draft.with_edit(Delete(section=section.id, part=part.id))
            gone[section.id] = None
        except Fault as fault:
            kept[section.id] = None
            why = why or fault.message
    return Stripped(draft, tuple(gone), tuple(kept), why)


def _parts_to_strip(draft: Draft, strip: Strip) -> Iterator[tuple[Section, SectionPart]]:
    shown = [section for section in draft.sections if not section.deleted]
    if strip.what == "tool":
        tools = [section for section in shown if section.kind == "tools"]
        yield from ((section, part) for section, part in _parts(tools, "tool") if part.name == strip.tool)
        return
    turns = [index for index, section in enumerate(shown) if _is_turn(section)]
    older_than = strip.older_than
    if strip.what == "thinking" and shown and _is_under_way(shown):
        # Providers want the thinking of a turn back for as long as its tools are being called.
        older_than = max(1, older_than)
    end = len(shown) if not older_than else turns[-older_than] if len(turns) >= older_than else 0
    yield from _parts(shown[:end], "tool_result" if strip.what == "tool_results" else "thinking")


def _parts(sections: list[Section], kind: str) -> Iterator[tuple[Section, SectionPart]]:
    for section in sections:
        for part in section.parts:
            if part.type == kind and not part.deleted:
                yield section, part


def _is_turn(section: Section) -> bool:
    """Whether this is a person's turn; results and reminders in the user's role are not."""
    return section.kind == "user" and any(part.type in _SPOKEN and not part.deleted for part in section.parts)


def _is_under_way(shown: list[Section]) -> bool:
    """Whether the conversation ends with results, so that the model goes on with its turn."""
    last = next((section for section in reversed(shown) if section.kind not in ("tools", "options")), None)
    return last is not None and any(part.type == "tool_result" and not part.deleted for part in last.parts)
