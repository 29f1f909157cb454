"""Masks: edits that stay for later turns, found again by what they were made on.

A client sends its conversation again with every request. A mask repeats an edit on it: the same text put in the place
of the same text, or the same section left out. What it was made on is named by its content; where that is not there, or
is there more than once, nothing is changed and the outcome says so.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from sightline.dialects.dialect import Problem
from sightline.edit.anchor import Anchor, Anchors
from sightline.edit.draft import Draft
from sightline.edit.limits import argument_problems, schema_problems
from sightline.edit.operations import Batch, Delete, Edit, Keep, Set, SetText
from sightline.edit.section import Section, SectionPart
from sightline.edit.soundness import check_sound
from sightline.edit.stripping import Strip, stripped
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.request import Request
from sightline.wire.jsontext import MISFIT, encode
from sightline.wire.pointer import covers

MaskKind = Literal["set_text", "delete", "strip"]
Result = Literal["applied", "missing", "ambiguous", "refused"]

_NARROWEST: tuple[Keep, ...] = ("session", "project", "all")
_FIRST: tuple[MaskKind, ...] = ("set_text", "delete", "strip")


class Mask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One edit that stays. `name` is the session or project that it is for.

    `anchor` is the section that it was made on, as the client sends it, and `part` the part; a strip has neither.
    """

    id: str = ""
    scope: Keep = "session"
    name: str = ""
    kind: MaskKind
    anchor: Anchor | None = None
    part: Anchor | None = None
    text: str | None = None
    strip: Strip | None = None
    label: str = ""
    created: float = 0.0


class Outcome(msgspec.Struct, frozen=True):
    """What became of a mask on one request; `why` says what kept it from being applied."""

    mask: str
    outcome: Result
    section: str = ""
    why: str = ""


def read_masks(value: Json) -> tuple[Mask, ...]:
    """The masks that a JSON list holds; a fault says what is wrong with it, and then none of them counts."""
    try:
        masks = msgspec.convert(value, tuple[Mask, ...])
    except MISFIT as error:
        raise _wrong(f"not a list of masks: {error}") from None
    for number, mask in enumerate(masks):
        lacks = (mask.strip is None) if mask.kind == "strip" else (mask.anchor is None or mask.strip is not None)
        if lacks or (mask.kind == "set_text") != (mask.text is not None):
            raise _wrong(f"mask {number} is a {mask.kind!r} without what that needs, or with what it cannot have")
        if mask.strip is not None and (mask.strip.what == "tool") != bool(mask.strip.tool):
            raise _wrong(f"mask {number} strips {mask.strip.what!r} and names the tool {mask.strip.tool!r}")
        if (mask.scope == "all") != (mask.name == ""):
            raise _wrong(f"mask {number} is for {mask.scope!r} and names {mask.name!r}")
    return tuple(mask if mask.id else _identified(mask) for mask in masks)


def _wrong(message: str) -> Fault:
    hint = "A mask is what an edit with `keep` made, or a strip: kind, scope, name and anchor and text, or strip."
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


def project_of(session: str) -> str:
    """The project of a session: what stands behind the last `@` of its name."""
    return session.rpartition("@")[2] if "@" in session else ""


def mask_of(before: Draft, operation: Edit, after: Draft, scope: Keep, name: str) -> Mask:
    """The mask that repeats this edit; a fault if that cannot be done.

    It is anchored to what the client sent, not to what earlier edits made of it.
    """
    section, part = _target(before, operation)
    sent = next((each for each in after.first.sections if each.id == section), None)
    if sent is None:
        raise _unkeepable("the client did not send this section, so it will not send it again")
    anchors = Anchors(after.first)
    part_anchor = anchors.parts(sent).get(part) if part else None
    if part and part_anchor is None:
        raise _unkeepable("the client did not send this part, so it will not send it again")
    kind: MaskKind = "delete" if isinstance(operation, Delete) else "set_text"
    text = _text(after.section(section), part) if kind == "set_text" else None
    return _identified(
        Mask(
            scope=scope,
            name="" if scope == "all" else name,
            kind=kind,
            anchor=anchors.sections[section],
            part=part_anchor,
            text=text,
            label=sent.label,
        )
    )


def strip_of(strip: Strip, scope: Keep, name: str) -> Mask:
    """The mask that strips a class of things from every request."""
    made = Mask(scope=scope, name="" if scope == "all" else name, kind="strip", strip=strip, label=strip.label)
    return _identified(made)


def meant_for(masks: Sequence[Mask], *, session: str, project: str) -> tuple[Mask, ...]:
    """The masks for the requests of a session and a project."""
    return tuple(mask for mask in masks if _is_for(mask, session, project))


def masked(draft: Draft, masks: Sequence[Mask], *, session: str, project: str) -> tuple[Draft, tuple[Outcome, ...]]:
    """The draft with all masks that are for it, and what became of each.

    For the same anchor the narrowest scope counts, and of equal ones the last; the others are not heard. Everything is
    looked up in the document as it came, before any mask has changed it.
    """
    anchors = Anchors(draft)
    found = [(mask, _found(mask, draft, anchors)) for mask in meant_for(masks, session=session, project=project)]
    outcomes: list[Outcome] = []
    for mask, places in _heard(found):
        draft, outcome = _applied(draft, mask, places)
        outcomes.append(outcome)
    return draft, tuple(outcomes)


def _unkeepable(message: str) -> Fault:
    hint = "New texts of sections, parts and options, and deletions, can be kept for later turns."
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)


def _identified(mask: Mask) -> Mask:
    """The mask with an id that is the same for the same place in the same scope, so that a later edit replaces it."""
    what = mask.strip and (mask.strip.what, mask.strip.tool)
    place = encode(msgspec.to_builtins((mask.scope, mask.name, what, mask.anchor, mask.part)))
    return msgspec.structs.replace(mask, id=f"m_{hashlib.blake2b(place, digest_size=8).hexdigest()}")


def _target(before: Draft, operation: Edit) -> tuple[str, str]:
    """The section that an edit is about, and the part if it is about one."""
    if isinstance(operation, SetText | Delete):
        return operation.section, operation.part or ""
    if isinstance(operation, Set):
        for section in before.sections:
            for part in section.parts:
                if part.pointer and not part.deleted and part.editable and covers(part.pointer, operation.pointer):
                    return section.id, part.id
    raise _unkeepable("this kind of edit cannot be repeated on later requests")


def _text(section: Section, part: str) -> str:
    return next((each.text for each in section.parts if each.id == part), section.text)


_Place = tuple[Section, SectionPart | None]


def _is_for(mask: Mask, session: str, project: str) -> bool:
    match mask.scope:
        case "session":
            return mask.name == session
        case "project":
            return bool(project) and mask.name == project
        case "all":
            return True
        case unreachable:
            assert_never(unreachable)


def _heard(found: list[tuple[Mask, list[_Place]]]) -> list[tuple[Mask, list[_Place]]]:
    """The masks that count, in the order in which they are applied: what is broader first, deletions behind texts."""
    best: dict[object, tuple[Mask, list[_Place]]] = {}
    for mask, places in sorted(found, key=lambda each: -_NARROWEST.index(each[0].scope)):
        key: object = id(mask)
        if mask.strip is not None:
            key = mask.strip.what, mask.strip.tool
        elif len(places) == 1:
            section, part = places[0]
            key = section.id, part and part.id
        best[key] = mask, places
    return sorted(best.values(), key=lambda each: _FIRST.index(each[0].kind))


def _found(mask: Mask, draft: Draft, anchors: Anchors) -> list[_Place]:
    """The places that a mask can mean."""
    if mask.anchor is None:
        return []
    shown = [section for section in draft.sections if not section.deleted and section.kind == mask.anchor.kind]
    if mask.part is None:
        exact = [section for section in shown if anchors.sections[section.id].content == mask.anchor.content]
        return [(section, None) for section in _told_apart(exact, anchors, mask.anchor)]
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
    if len(places) < 2:
        return places
    within = {
        section.id
        for section in _told_apart(
            [each for each in shown if anchors.sections[each.id].content == mask.anchor.content], anchors, mask.anchor
        )
    }
    for narrower in ([each for each in places if each[0].id in within], neighbours):
        if len(narrower) == 1:
            return narrower
    both = [each for each in neighbours if each[0].id in within]
    return both if len(both) == 1 else places


def _told_apart(sections: list[Section], anchors: Anchors, anchor: Anchor) -> list[Section]:
    """Of equal sections the one with the same neighbour, if that is one."""
    if len(sections) < 2:
        return sections
    near = [section for section in sections if anchors.sections[section.id].before == anchor.before]
    return near if len(near) == 1 else sections


def _applied(draft: Draft, mask: Mask, places: list[_Place]) -> tuple[Draft, Outcome]:
    if mask.strip is not None:
        return _strip(draft, mask, mask.strip)
    if not places:
        return draft, Outcome(mask.id, "missing", why="what this mask was made on is not in this request")
    if len(places) > 1:
        why = f"what this mask was made on is in this request {len(places)} times"
        return draft, Outcome(mask.id, "ambiguous", why=why)
    section, part = places[0]
    name = None if part is None else part.id
    if mask.kind == "delete":
        edit: Edit = Delete(section=section.id, part=name)
    else:
        edit = SetText(section=section.id, part=name, text=mask.text or "")
    try:
        return _sound(draft, draft.applied(edit), section.id), Outcome(mask.id, "applied", section.id)
    except Fault as fault:
        return draft, Outcome(mask.id, "refused", section.id, fault.message)


def _sound(before: Draft, after: Draft, name: str) -> Draft:
    """The draft after a mask, without texts that it left empty where the dialect forbids that; a fault if that does not
    help. A person sees such a problem and chooses; a mask works where nobody looks."""
    try:
        check_sound(before, after)
    except Fault:
        empty = [part for part in after.section(name).parts if part.type == "text" and not part.text.strip()]
        after = after.applied(Batch(operations=tuple(Delete(section=name, part=part.id) for part in empty)))
        check_sound(before, after)
    for problem in _useless(after):
        if problem.message not in {known.message for known in _useless(before)}:
            raise Fault(Code.INVALID_REQUEST, problem.message, hint="Take the mask away, or make it anew.", status=422)
    return after


def _useless(draft: Draft) -> list[Problem]:
    """Arguments and tools that could not be used, which not every API minds."""
    request = draft.request or Request()
    return [each for each in (*argument_problems(request), *schema_problems(request)) if each.severity == "error"]


def _strip(draft: Draft, mask: Mask, strip: Strip) -> tuple[Draft, Outcome]:
    result = stripped(draft, strip)
    if result.kept:
        return result.draft, Outcome(mask.id, "refused", result.kept[0], result.why)
    if not result.gone and strip.what == "tool":
        return draft, Outcome(mask.id, "missing", why=f"no tool named {strip.tool!r} is in this request")
    return result.draft, Outcome(mask.id, "applied", result.gone[0] if result.gone else "")
