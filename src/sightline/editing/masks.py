"""Masks: edits that are kept and repeated on later turns, located by the content that they were made on.

A client resends its conversation with every request. A mask repeats an edit on it: a patch of a text, the removal of a
section, or the stripping of a class of things. It names what it was made on by content; a patch is also located by the
context of its hunks if the rest of the text has changed. If neither is found, or is found more than once, nothing is
changed and the outcome reports it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from sightline.catalog.reading import read_value
from sightline.dialects.dialect import Problem
from sightline.editing.anchors import Anchor, Anchors, Hunk, apply_patch, find
from sightline.editing.cache_edits import CacheEdit, CacheEditMissing, apply_cache_edit
from sightline.editing.changes import cascade_of, check_sound
from sightline.editing.deletions import Deletions, edit_refusal, nearest_of
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Delete, Edit, Keep, SetText, target_of
from sightline.editing.section import Section, SectionPart, text_in
from sightline.editing.validity import argument_problems, schema_problems
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.wire.jsontext import encode

MaskKind = Literal["set_text", "patch", "delete", "strip", "cache"]
Result = Literal["applied", "missing", "ambiguous", "refused"]

_NARROWEST: tuple[Keep, ...] = ("session", "project", "all")
_FIRST: tuple[MaskKind, ...] = ("set_text", "patch", "delete", "strip", "cache")

LEAST_CONTEXT = 12
"""A patch with less context than this many characters is not searched for in sections other than the one that it was
made on, because a text like "yes" occurs more than once. There is usually only one system prompt, so any context is
enough there; the same holds for a patch that was written by hand."""
_SINGULAR = ("system", "developer")

REPORTED = ("at", "applied", "missed", "misses", "last_exchange")
"""Fields that the API reports of a mask in addition to the mask itself. They may be present in a list that is sent
back."""


class Strip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is removed: results or thinking older than this many turns of the user, or the tool of this name."""

    what: Literal["tool_results", "thinking", "tool"] = msgspec.field(name="class")
    older_than: Annotated[int, msgspec.Meta(ge=0)] = 0
    tool: str = ""


class Mask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A kept edit. `name` is the session or project that it is for; with `is_off` it is kept but not applied.

    `anchor` is the section that it was made on, as the client sends it, and `part` the part; a strip has neither, nor
    does a `cache` mask, which keeps a prompt stable. A patch has `hunks`; a `set_text` has the whole `text`, for values
    that are not prose.
    """

    id: str = ""
    scope: Keep = "session"
    name: str = ""
    kind: MaskKind
    anchor: Anchor | None = None
    part: Anchor | None = None
    text: str | None = None
    hunks: tuple[Hunk, ...] | None = None
    strip: Strip | None = None
    cache: CacheEdit | None = None
    label: str = ""
    created: float = 0.0
    is_off: bool = False


class MaskOutcome(msgspec.Struct, frozen=True):
    """The result of a mask on one request; `why` is what prevented it from being applied."""

    mask: str
    outcome: Result
    section: str = ""
    why: str = ""


def read_masks(value: Json) -> tuple[Mask, ...]:
    """The masks in a JSON list. Raises a Fault that reports what is wrong if any of them is invalid."""
    bare: Json = [_bare(each) for each in value] if isinstance(value, list) else value
    masks: tuple[Mask, ...] = read_value(bare, tuple[Mask, ...], subject="the masks", hint=_HINT, status=422)
    for number, mask in enumerate(masks):
        needed = {"strip": mask.strip, "cache": mask.cache}.get(mask.kind, mask.anchor)
        given = (mask.strip, mask.cache, mask.anchor)
        lacks = needed is None or sum(each is not None for each in given) > 1
        is_text, is_patch = mask.text is not None, mask.hunks is not None
        if lacks or (mask.kind == "set_text") != is_text or (mask.kind == "patch") != is_patch:
            message = f"mask {number} is a {mask.kind!r} without what that needs, or with what it cannot have"
            raise edit_refusal(message, _HINT)
        if mask.strip is not None and (mask.strip.what == "tool") != bool(mask.strip.tool):
            message = f"mask {number} strips {mask.strip.what!r} and names the tool {mask.strip.tool!r}"
            raise edit_refusal(message, _HINT)
        if (mask.scope == "all") != (mask.name == ""):
            raise edit_refusal(f"mask {number} is for {mask.scope!r} and names {mask.name!r}", _HINT)
    return tuple(mask if mask.id else with_id(mask) for mask in masks)


def _bare(value: Json) -> Json:
    """A mask without the fields that are only reported."""
    return {key: each for key, each in value.items() if key not in REPORTED} if isinstance(value, dict) else value


_HINT = "A mask is what an edit with `keep` made, or a strip: kind, scope, name and anchor and hunks, or strip."


def project_of(session: str) -> str:
    """The project of a session: what follows the last `@` of its name, up to a `#`, which begins a tag."""
    return session.rpartition("@")[2].partition("#")[0] if "@" in session else ""


def meant_for(masks: Sequence[Mask], *, session: str, project: str) -> tuple[Mask, ...]:
    """The active masks for the requests of a session and a project."""
    names = {"session": session, "project": project, "all": ""}
    return tuple(
        mask
        for mask in masks
        if not mask.is_off and mask.name == names[mask.scope] and (mask.name or mask.scope != "project")
    )


def apply_masks(
    draft: Draft, masks: Sequence[Mask], *, session: str, project: str
) -> tuple[Draft, tuple[MaskOutcome, ...]]:
    """The draft with all masks that apply to it, and the outcome of each.

    For the same anchor the narrowest scope wins, and within a scope the last mask; patches of broader scopes also apply
    if they are compatible with it. The others are ignored. Everything is looked up in the document as it arrived,
    before any mask has changed it; a patch that is not found there may be of text that a broader mask has inserted.
    """
    anchors = Anchors(draft)
    found = [(mask, _places_of(mask, draft, anchors)) for mask in meant_for(masks, session=session, project=project)]
    outcomes: list[MaskOutcome] = []
    for mask, places in _effective_masks(found):
        draft, outcome = _apply_mask(draft, mask, places or _places_of(mask, draft, anchors))
        outcomes.append(outcome)
    return draft, tuple(outcomes)


def with_id(mask: Mask) -> Mask:
    """The mask with an id that is the same for the same place in the same scope, so that a later edit replaces it."""
    what: object = mask.strip and (mask.strip.what, mask.strip.tool)
    if mask.cache is not None:
        what = (mask.cache.action, mask.cache.section, mask.cache.index, mask.cache.part, mask.cache.pointer)
    if _is_by_hand(mask):
        what = mask.hunks
    place = encode(msgspec.to_builtins((mask.scope, mask.name, what, mask.anchor, mask.part)))
    return msgspec.structs.replace(mask, id=f"m_{hashlib.blake2b(place, digest_size=8).hexdigest()}")


def _is_by_hand(mask: Mask) -> bool:
    """Whether this patch was written by hand: it names no content, so that one section can have several."""
    return mask.hunks is not None and mask.anchor is not None and not mask.anchor.content


_Place = tuple[Section, SectionPart | None]


def masks_beside(masks: Sequence[Mask], scope: Keep) -> list[Mask]:
    """The masks that still apply when a section gets one of this scope: those of other scopes, strips, and those
    written by hand."""
    return [mask for mask in masks if mask.scope != scope or mask.strip is not None or _is_by_hand(mask)]


_Found = tuple[Mask, list[_Place]]


def _effective_masks(found: list[_Found]) -> list[_Found]:
    """The masks that apply, in the order of application: broader scopes first, deletions after texts."""
    best: dict[object, list[_Found]] = {}
    for mask, places in sorted(found, key=_breadth):
        key: object = id(mask)
        if mask.strip is not None:
            key = mask.strip.what, mask.strip.tool
            best.pop(key, None)
        elif len(places) == 1:
            section, part = places[0]
            key = section.id, part and part.id
        best.setdefault(key, []).append((mask, places))
    counted = [each for group in best.values() for each in _compatible(group)]
    return sorted(counted, key=lambda each: (_FIRST.index(each[0].kind), _breadth(each)))


def _breadth(found: _Found) -> tuple[int, bool]:
    """Sort key: broader scopes first, and within a scope masks written by hand before those made by an edit."""
    return -_NARROWEST.index(found[0].scope), not _is_by_hand(found[0])


def _compatible(group: list[_Found]) -> list[_Found]:
    """Of the masks for one place, broadest first, those that apply: the last one made by an edit, and the patches
    before it that leave its context intact. Masks written by hand are tried one after another."""
    by_hand = [each for each in group if _is_by_hand(each[0])]
    counted: list[_Found] = []
    for each in reversed([each for each in group if not _is_by_hand(each[0])]):
        if not counted or (each[0].scope != counted[0][0].scope and _fit_together([each, *counted])):
            counted = [each, *counted]
    return [*(each for each in by_hand if not counted or _fit_together([each, *counted])), *counted]


def _fit_together(group: list[_Found]) -> bool:
    """Whether the masks for one place are patches that can be applied one after another."""
    section, part = group[0][1][0]
    text: str | None = text_in(section, part.id if part else "")
    for mask, _ in group:
        text = None if mask.hunks is None or text is None else apply_patch(text, mask.hunks)
    return text is not None


def _places_of(mask: Mask, draft: Draft, anchors: Anchors) -> list[_Place]:
    """The places that a mask can refer to."""
    if mask.anchor is None:
        return []
    shown = [section for section in draft.sections if not section.deleted and section.kind == mask.anchor.kind]
    if mask.part is None:
        exact = [section for section in shown if anchors.sections[section.id].content == mask.anchor.content]
        if not exact and mask.hunks:
            exact = [section for section, _ in _patchable([(section, None) for section in shown], mask, mask.hunks)]
        return [(section, None) for section in _with_same_neighbour(exact, anchors, mask.anchor)]
    places: list[_Place] = []
    neighbours: list[_Place] = []
    for section in shown:
        own = anchors.parts(section)
        for part in section.parts:
            anchor = own.get(part.id)
            if anchor is not None and (anchor.kind, anchor.content) == (mask.part.kind, mask.part.content):
                places.append((section, part))
                if anchor.before == mask.part.before:
                    neighbours.append((section, part))
    if not places and mask.hunks:
        alike: list[_Place] = [
            (section, part)
            for section in shown
            for part in section.parts
            if part.type == mask.part.kind and not part.deleted
        ]
        return _patchable(alike, mask, mask.hunks)
    if len(places) < 2:
        return places
    within = {
        section.id
        for section in _with_same_neighbour(
            [each for each in shown if anchors.sections[each.id].content == mask.anchor.content], anchors, mask.anchor
        )
    }
    for narrower in ([each for each in places if each[0].id in within], neighbours):
        if len(narrower) == 1:
            return narrower
    both = [each for each in neighbours if each[0].id in within]
    return both if len(both) == 1 else places


def _patchable(places: list[_Place], mask: Mask, hunks: Sequence[Hunk]) -> list[_Place]:
    """The places in which the context of every hunk is found. A place in which it is found more than once is listed
    twice: such a patch is ambiguous, like one that fits two places."""
    assert mask.anchor is not None  # only strips and cache masks have none
    context = sum(len(hunk.sought.strip()) for hunk in hunks)
    if context < (1 if mask.anchor.kind in _SINGULAR or _is_by_hand(mask) else LEAST_CONTEXT):
        return []
    found: list[_Place] = []
    for place in places:
        section, part = place
        counts = [len(find(section.text if part is None else part.text, hunk)) for hunk in hunks]
        if all(counts):
            found += [place] * max(counts)
    return found


def _with_same_neighbour(sections: list[Section], anchors: Anchors, anchor: Anchor) -> list[Section]:
    """Of equal sections, the one with the same preceding section if there is exactly one; otherwise all of them."""
    if len(sections) < 2:
        return sections
    near = [section for section in sections if anchors.sections[section.id].before == anchor.before]
    return near if len(near) == 1 else sections


def _apply_mask(draft: Draft, mask: Mask, places: list[_Place]) -> tuple[Draft, MaskOutcome]:
    if mask.strip is not None:
        return _strip(draft, mask, mask.strip)
    if mask.cache is not None:
        return _apply_cache_mask(draft, mask, mask.cache)
    if not places:
        return draft, MaskOutcome(mask.id, "missing", why="what this mask was made on is not in this request")
    if len(places) > 1:
        why = f"what this mask was made on is in this request {len(places)} times"
        return draft, MaskOutcome(mask.id, "ambiguous", why=why)
    section, part = places[0]
    name = None if part is None else part.id
    if mask.kind == "delete":
        edit: Edit = Delete(section=section.id, part=name)
        now = draft.section(section.id)
        if now.deleted or any(each.deleted for each in now.parts if each.id == name):  # another deletion removed it too
            return draft, MaskOutcome(mask.id, "applied", section.id)
    elif mask.hunks is None:
        edit = SetText(section=section.id, part=name, text=mask.text or "")
    else:
        text = apply_patch(text_in(draft.section(section.id), name or ""), mask.hunks)
        if text is None:
            return draft, MaskOutcome(mask.id, "missing", section.id, "the context of this edit is not in this section")
        edit = SetText(section=section.id, part=name, text=text)
    try:
        return _without_empty_texts(draft, draft.with_edit(edit), section.id), MaskOutcome(
            mask.id, "applied", section.id
        )
    except Fault as fault:
        return draft, MaskOutcome(mask.id, "refused", section.id, fault.message)


def _without_empty_texts(before: Draft, after: Draft, name: str) -> Draft:
    """The draft after a mask, without texts that it left empty if the dialect forbids those. Raises a Fault if that
    does not help. The user sees such a problem and decides; a mask is applied unattended."""
    try:
        check_sound(before, after)
    except Fault:
        empty = [part for part in after.section(name).parts if part.type == "text" and not part.text.strip()]
        after = after.with_edit(Batch(operations=tuple(Delete(section=name, part=part.id) for part in empty)))
        check_sound(before, after)
    for problem in _useless(after):
        if problem.message not in {known.message for known in _useless(before)}:
            raise edit_refusal(problem.message, "Remove the kept edit, or make it again.")
    return after


def _useless(draft: Draft) -> list[Problem]:
    """Problems with arguments and tools that make them unusable, which not every API rejects."""
    request = draft.request or Request()
    return [each for each in (*argument_problems(request), *schema_problems(request)) if each.severity == "error"]


def _apply_cache_mask(draft: Draft, mask: Mask, edit: CacheEdit) -> tuple[Draft, MaskOutcome]:
    try:
        after, section = apply_cache_edit(draft, edit)
        check_sound(draft, after)
    except CacheEditMissing as missing:
        return draft, MaskOutcome(mask.id, "missing", why=str(missing))
    except Fault as fault:
        return draft, MaskOutcome(mask.id, "refused", why=fault.message)
    return after, MaskOutcome(mask.id, "applied", section)


def _strip(draft: Draft, mask: Mask, strip: Strip) -> tuple[Draft, MaskOutcome]:
    result = apply_strip(draft, strip)
    if result.kept:
        return result.draft, MaskOutcome(mask.id, "refused", result.kept[0], result.why)
    if not result.gone and strip.what == "tool":
        return draft, MaskOutcome(mask.id, "missing", why=f"no tool named {strip.tool!r} is in this request")
    return result.draft, MaskOutcome(mask.id, "applied", result.gone[0] if result.gone else "")


@dataclass(frozen=True, slots=True)
class StripResult:
    """The draft after stripping, the sections from which something was removed, those in which it had to stay, and
    why."""

    draft: Draft
    gone: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    why: str = ""


def apply_strip(draft: Draft, strip: Strip) -> StripResult:
    """The draft without what the strip names."""
    chosen = list(_parts_to_strip(draft, strip))
    if not chosen:
        return StripResult(draft)
    sections = tuple(dict.fromkeys(section.id for section, _ in chosen))
    after = _together(draft, chosen)
    try:
        check_sound(draft, after)
    except Fault:
        return _one_by_one(draft, chosen)
    return StripResult(after, sections)


def _together(draft: Draft, chosen: list[tuple[Section, SectionPart]]) -> Draft:
    """The draft without all of these, in a single pass: a long conversation has hundreds of them.

    Things that must be deleted together are one deletion, so that each deletion can be restored on its own.
    """
    whole, request = draft.whole, draft.whole.reading.request
    assert request is not None  # there are sections to choose from
    places = [place for section, part in chosen for place in target_of(whole, section.id, part.id).places]
    deleted = cascade_of(whole.reading, request, whole.deletions, frozenset(places))
    groups = _groups(deleted, [(one.at, other.at) for one, other in whole.reading.pairs])
    deletions = Deletions.of((*whole.deletions.groups, *groups), whole.reading.document)
    return draft.with_whole(whole.with_deletions(deletions))


def _groups(deleted: frozenset[str], pairs: list[tuple[str, str]]) -> list[frozenset[str]]:
    """The deleted places, grouped so that the two halves of a pair are always in the same group."""
    group = {place: {place} for place in sorted(deleted)}
    for one, other in pairs:
        mine, theirs = nearest_of(one, deleted), nearest_of(other, deleted)
        if mine and theirs and group[mine] is not group[theirs]:
            joined = group[mine] | group[theirs]
            group |= dict.fromkeys(joined, joined)
    return [frozenset(places) for places in {id(places): places for places in group.values()}.values()]


def _one_by_one(draft: Draft, chosen: list[tuple[Section, SectionPart]]) -> StripResult:
    """Delete as many as possible, one at a time, if deleting all at once is refused."""
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
    return StripResult(draft, tuple(gone), tuple(kept), why)


def _parts_to_strip(draft: Draft, strip: Strip) -> Iterator[tuple[Section, SectionPart]]:
    shown = [section for section in draft.sections if not section.deleted]
    if strip.what == "tool":
        tools = [section for section in shown if section.kind == "tools"]
        yield from ((section, part) for section, part in _parts(tools, "tool") if part.name == strip.tool)
        return
    turns = [index for index, section in enumerate(shown) if _is_turn(section)]
    older_than = strip.older_than
    if strip.what == "thinking" and shown and _awaits_model(shown):
        # Providers require the thinking of a turn for as long as its tools are being called.
        older_than = max(1, older_than)
    end = len(shown) if not older_than else turns[-older_than] if len(turns) >= older_than else 0
    yield from _parts(shown[:end], "tool_result" if strip.what == "tool_results" else "thinking")


def _parts(sections: list[Section], kind: str) -> Iterator[tuple[Section, SectionPart]]:
    for section in sections:
        for part in section.parts:
            if part.type == kind and not part.deleted:
                yield section, part


def _is_turn(section: Section) -> bool:
    """Whether the section is a turn of the user; results and reminders in the user's role are not."""
    return section.kind == "user" and any(
        part.type in ("text", "image", "document", "audio") and not part.deleted for part in section.parts
    )


def _awaits_model(shown: list[Section]) -> bool:
    """Whether the conversation ends with tool results, so that the model continues its turn."""
    last = next((section for section in reversed(shown) if section.kind not in ("tools", "options")), None)
    return last is not None and any(part.type == "tool_result" and not part.deleted for part in last.parts)
