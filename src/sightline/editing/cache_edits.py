"""Kept edits that make a prompt stable, so that the provider's cache finds it again.

Such an edit is made from two turns of a conversation and repeated on every later one: text that changes from turn to
turn is frozen, stripped, or moved after everything that is cached; tools are put in a fixed order; an option keeps its
value; cache marks are placed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from sightline.dialects.registry import dialect
from sightline.editing.anchors import occurrences
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Edit, Insert, Move, Remove, Set, SetText
from sightline.editing.section import Section, text_in
from sightline.editing.texts import differing_stretches
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.wire.pointer import join, resolve

CacheAction = Literal["freeze", "strip", "move", "order", "option", "mark"]

_CONTEXT, _MOST_CONTEXT = 16, 400
"""How many characters beside a span identify its place, and the most that are used if fewer occur more than once."""
_LONGEST = 4_000
"""If there is more than this between the two contexts of a span, it is something else."""
_SENTENCE = 400


class FixedSpan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Text between `before` and `after` that is replaced by `text`. An empty `before` means the start of the text, an
    empty `after` its end."""

    before: str = ""
    after: str = ""
    text: str = ""


class CacheEdit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is made stable. Text is that of the section with this `index` among those of the kind `section`, counted
    from 0, or of its part of this name. `names` are the tools in their order; `pointer` and `value` are an option's,
    where None means that the option is absent; `ttl` is the lifetime that marks request. Without one the marks are
    placed anew."""

    action: CacheAction
    section: str = ""
    index: int = 0
    part: str = ""
    spans: tuple[FixedSpan, ...] = ()
    names: tuple[str, ...] = ()
    pointer: str = ""
    value: Json = None
    ttl: str = ""


class CacheEditMissing(Exception):
    """What an edit applies to is not in this request."""


def apply_cache_edit(draft: Draft, edit: CacheEdit) -> tuple[Draft, str]:
    """The draft after the edit, and the section that it changed. Raises `CacheEditMissing` if there is nothing to
    change, and a Fault if the change is refused."""
    match edit.action:
        case "freeze" | "strip" | "move":
            return _hold_words(draft, edit)
        case "order":
            return _order_tools(draft, edit.names)
        case "option":
            return draft.with_edit(_set_option(draft.document, edit.pointer, edit.value)), ""
        case _:
            return _set_marks(draft, edit), ""


# --- text ---


def _hold_words(draft: Draft, edit: CacheEdit) -> tuple[Draft, str]:
    section, part = _place(draft, edit)
    old = text_in(section, part)
    text = replace_spans(old, edit.spans)
    if text is None:
        raise CacheEditMissing("the text that it concerns is not in this section")
    after = draft.with_edit(SetText(section=section.id, part=part or None, text=text))
    words = "\n".join(filter(None, _texts_at(old, edit.spans)))
    if edit.action == "move" and words:
        after = after.with_edit(_append_words(after, words))
    return after, section.id


def _place(draft: Draft, edit: CacheEdit) -> tuple[Section, str]:
    """The section, and the id of the part; empty if the edit is for the whole section."""
    alike = [section for section in draft.sections if section.kind == edit.section and not section.deleted]
    if edit.index >= len(alike):
        raise CacheEditMissing("its section is not in this request")
    section = alike[edit.index]
    part = next((each.id for each in section.parts if each.name == edit.part and not each.deleted), "")
    if edit.part and not part:
        raise CacheEditMissing(f"{edit.part} is not in this request")
    return section, part if edit.part else ""


def _append_words(draft: Draft, words: str) -> Edit:
    """The edit that adds text after everything else: to the newest message if it is the user's, otherwise as a new
    message."""
    request, editing = draft.request, dialect(draft.dialect).editing
    newest = request.messages[-1] if request is not None and request.messages else None
    if newest is None or newest.role == "assistant":
        raise CacheEditMissing("there is no message of the user at the end")
    part = editing.text_part("user", words)
    place = join(newest.at, editing.parts_key)
    item = resolve(draft.document, newest.at)
    held = item.get(editing.parts_key) if isinstance(item, dict) else None
    if newest.role == "user" and isinstance(held, list):
        return Insert(pointer=join(place, "-"), value=part)
    if newest.role == "user" and isinstance(held, str):
        return Set(pointer=place, value=[editing.text_part("user", held), part])
    message: Json = {"role": editing.roles["user"], editing.parts_key: [part]}
    return Insert(pointer=join(f"/{editing.container}", "-"), value=message)


def find_span(text: str, span: FixedSpan) -> tuple[int, int] | None:
    """The position of a span; None if it is not found, or found more than once."""
    found = []
    for start in [at + len(span.before) for at in occurrences(text, span.before)] if span.before else [0]:
        stop = text.find(span.after, start) if span.after else len(text)
        if 0 <= stop - start <= _LONGEST:
            found.append((start, stop))
    return found[0] if len(found) == 1 else None


def _texts_at(text: str, spans: Sequence[FixedSpan]) -> tuple[str, ...]:
    """The text that these spans have in a text, for those that are found."""
    places = (find_span(text, span) for span in spans)
    return tuple(text[place[0] : place[1]].strip() for place in places if place is not None)


def replace_spans(text: str, spans: Sequence[FixedSpan]) -> str | None:
    """The text with each span replaced; None if one of them is not found."""
    places = [(find_span(text, span), span) for span in spans]
    for place, span in sorted(places, key=lambda each: each[0] or (0, 0), reverse=True):
        if place is None:
            return None
        text = text[: place[0]] + span.text + text[place[1] :]
    return text


# --- tools, options, marks ---


def _order_tools(draft: Draft, names: Sequence[str]) -> tuple[Draft, str]:
    section = next((each for each in draft.sections if each.kind == "tools" and not each.deleted), None)
    parts = [] if section is None else [part for part in section.parts if part.type == "tool" and not part.deleted]
    if section is None or not parts:
        raise CacheEditMissing("no tools are in this request")
    places = [part.pointer for part in parts]
    if len({place.rpartition("/")[0] for place in places}) > 1:
        raise CacheEditMissing("the tools of this request are in several lists")
    rank = {name: number for number, name in enumerate(names)}
    wanted = sorted(parts, key=lambda part: rank.get(part.name, len(rank)))  # new tools come last
    moves: list[Edit] = []
    now = list(parts)
    for number, part in enumerate(wanted):
        at = now.index(part)
        if at != number:
            moves.append(Move(source=places[at], pointer=places[number]))
            now.insert(number, now.pop(at))
    return (draft.with_edit(Batch(operations=tuple(moves))) if moves else draft), section.id


def _set_option(document: Json, pointer: str, value: Json) -> Edit:
    try:
        resolve(document, pointer)
    except Fault:
        return Batch(operations=()) if value is None else Insert(pointer=pointer, value=value)
    return Remove(pointer=pointer) if value is None else Set(pointer=pointer, value=value)


def _set_marks(draft: Draft, edit: CacheEdit) -> Draft:
    place_marks = dialect(draft.dialect).cache.place_marks
    if place_marks is None or not isinstance(draft.document, dict):
        raise CacheEditMissing("requests of this provider have no cache marks")
    for pointer, value in place_marks(draft.document, edit.ttl):
        draft = draft.with_edit(_set_option(draft.document, pointer, value))
    return draft


# --- making edits ---


@dataclass(frozen=True)
class TurnPair:
    """Two turns of one conversation as they were sent, and the place in the later one where they diverge."""

    before: Draft
    now: Draft
    pointer: str = ""

    def hold_words(self, action: CacheAction) -> CacheEdit | None:
        """The edit that makes the text of both turns equal where they diverge; None if no edit of text can."""
        section = self._section()
        if section is None:
            return None
        alike = [each for each in self.now.sections if each.kind == section.kind]
        index = alike.index(section)
        others = [each for each in self.before.sections if each.kind == section.kind]
        if index >= len(others):
            return None
        name = ""
        if section.kind == "tools":
            was = {part.name: part.text for part in others[index].parts}
            changed = (part.name for part in section.parts if was.get(part.name, part.text) != part.text)
            name = next(changed, "")
            if not name:
                return None
        old, new = (_text_of(each, name) for each in (others[index], section))
        spans = spans_between(old, new, whole_sentences=action != "freeze")
        if spans is None:
            return None
        if action != "freeze":
            spans = tuple(msgspec.structs.replace(span, text="") for span in spans)
        return CacheEdit(action=action, section=section.kind, index=index, part=name, spans=spans)

    def order_tools(self) -> CacheEdit:
        """The edit that puts the tools in the order of the previous turn."""
        return CacheEdit(action="order", names=_tool_names(self.before))

    def new_tools(self) -> tuple[str, ...]:
        """The tools that the previous turn did not have, if it had no tool that is missing now; otherwise empty."""
        old, new = (set(_tool_names(draft)) for draft in (self.before, self.now))
        return tuple(sorted(new - old)) if old <= new else ()

    def keep_option(self, pointers: Sequence[str]) -> CacheEdit | None:
        """The edit that restores the previous value of the first of these options that differs; None if none does."""
        for pointer in pointers:
            old, new = (_value_at(draft.document, pointer) for draft in (self.before, self.now))
            if old != new:
                return CacheEdit(action="option", pointer=pointer, value=old)
        return None

    def option_with(self, value: Json) -> str:
        """The place of an option with this value, in either turn; empty if there is none."""
        for draft in (self.before, self.now):
            for section in draft.sections:
                places = [part.pointer for part in section.parts if part.type == "option"]
                if found := next((place for place in places if _value_at(draft.document, place) == value), ""):
                    return found
        return ""

    def words_of(self, edit: CacheEdit) -> tuple[str, ...]:
        """The text of the later turn at the spans of an edit."""
        if not edit.spans:
            return ()
        section, part = _place(self.now, edit)
        text = text_in(section, part)
        return _texts_at(text, edit.spans)

    def _section(self) -> Section | None:
        name = self.now.section_at(self.pointer) if self.pointer else ""
        return next((each for each in self.now.sections if each.id == name), None)


def spans_between(old: str, new: str, *, whole_sentences: bool = False) -> tuple[FixedSpan, ...] | None:
    """The spans that make `old` and `new` equal, each with the text of `old`; None if no short spans do."""
    stretches = differing_stretches(old, new)  # widened to whole words or sentences
    places = [_widen(old, start, stop, whole_sentences=whole_sentences) for start, stop, _ in stretches]
    spans: list[FixedSpan] = []
    for number, (start, stop) in enumerate(places):
        first = max(places[number - 1][1] if number else 0, start - _MOST_CONTEXT)
        last = places[number + 1][0] if number + 1 < len(places) else len(old)
        # The text before a span identifies its place and must occur exactly once; the text after it only marks its end.
        longer = (old[max(first, start - size) : start] for size in range(_CONTEXT, _MOST_CONTEXT, _CONTEXT))
        single = (words for words in longer if not words or old.count(words) == new.count(words) == 1)
        before = next(single, old[first:start])
        spans.append(FixedSpan(before, old[stop : min(last, stop + _CONTEXT)], old[start:stop]))
    made = [replace_spans(text, spans) for text in (old, new)]
    return tuple(spans) if spans and made[0] is not None and made[0] == made[1] else None


def _widen(text: str, start: int, stop: int, *, whole_sentences: bool) -> tuple[int, int]:
    if whole_sentences:
        left = max(text.rfind("\n", 0, start) + 1, text.rfind(". ", 0, start) + 2 if ". " in text[:start] else 0)
        ends = [at for at in (text.find("\n", stop), text.find(". ", stop)) if at >= 0]
        right = min(ends) + 1 if ends else len(text)
        if right - left <= _SENTENCE:
            return left, right
    while start and not text[start - 1].isspace():
        start -= 1
    while stop < len(text) and not text[stop].isspace():
        stop += 1
    return start, stop


def _text_of(section: Section, part: str) -> str:
    """The text of a section, or of its part of this name."""
    return next((each.text for each in section.parts if part and each.name == part), section.text)


def _tool_names(draft: Draft) -> tuple[str, ...]:
    tools = (section for section in draft.sections if section.kind == "tools" and not section.deleted)
    return tuple(part.name for section in tools for part in section.parts if part.type == "tool" and not part.deleted)


def _value_at(document: Json, pointer: str) -> Json:
    try:
        return resolve(document, pointer)
    except Fault:
        return None
