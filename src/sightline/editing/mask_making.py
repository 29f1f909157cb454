"""Turns edits into masks: a single edit as it is made, or everything that differs between two drafts of one
document."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sightline.editing.anchors import Anchors, hunks_between
from sightline.editing.deletions import edit_refusal
from sightline.editing.draft import Draft
from sightline.editing.masks import Mask, apply_masks, masks_beside, with_id
from sightline.editing.operations import Delete, Edit, Keep, Set, SetText
from sightline.editing.section import Section, text_in
from sightline.errors import Fault
from sightline.wire.jsontext import encode
from sightline.wire.pointer import covers


class MaskMaker:
    """Makes masks for one document and one scope; `name` is the session or project. Masks are anchored to `first`, the
    draft of what the client sent, not to the result of earlier edits. A text becomes a patch of `beneath`, the draft
    after the masks that stay beside the new ones, so that no mask repeats what another does in its own scope."""

    def __init__(self, first: Draft, scope: Keep, name: str, beneath: Draft | None = None) -> None:
        self._anchors = Anchors(first)
        self._beneath = {section.id: section for section in (beneath or first).sections}
        self._sent = {section.id: section for section in first.sections}
        self._scope = scope
        self._name = "" if scope == "all" else name

    def of_edit(self, before: Draft, operation: Edit, after: Draft) -> tuple[str, Mask]:
        """The mask that repeats this edit, and the id of its section. Raises a Fault if no mask can."""
        section, part = _target(before, operation)
        sent = self._sent.get(section)
        if sent is None:
            raise unkeepable("the client did not send this section, so it will not send it again")
        if part and part not in self._anchors.parts(sent):
            raise unkeepable("the client did not send this part, so it will not send it again")
        if isinstance(operation, Delete):
            return section, self._make_mask(Mask(kind="delete"), sent, part)
        return section, self._text(sent, part, after.section(section))

    def between(self, start: Draft, now: Draft) -> list[tuple[str, Mask]]:
        """The masks that repeat all changes since `start`, each with the id of its section. Raises a Fault if there is
        something that the client did not send."""
        before = {section.id: section for section in start.sections}
        found: list[tuple[str, Mask]] = []
        for section in now.sections:
            sent, old = self._sent.get(section.id), before.get(section.id)
            if sent is None or old is None:
                raise unkeepable("a section was added, and the client will not send it")
            if not is_same(old, section):
                found += [(section.id, mask) for mask in self._changes(sent, old, section)]
        return found

    def _changes(self, sent: Section, old: Section, new: Section) -> Iterator[Mask]:
        if new.deleted:
            yield self._make_mask(Mask(kind="delete"), sent, "")
            return
        before = {part.id: part for part in old.parts}
        gone_before = {part.id for part in old.parts if part.deleted}
        gone = [part for part in new.parts if part.deleted and part.id not in gone_before]
        for part in gone:
            yield self._make_mask(Mask(kind="delete"), sent, part.id)
        words = {part.id for part in new.parts if part.type == "text"}
        is_whole = not gone and (new.text != old.text or old.deleted)
        if is_whole:
            yield self._text(sent, "", new)
        for part in new.parts:
            is_in_text = part.id in words if words else new.text != ""
            if part.deleted or (is_whole and is_in_text):
                continue
            if part.id not in before or part.text != before[part.id].text:
                if part.id not in self._anchors.parts(sent):
                    raise unkeepable("a part was added, and the client will not send it")
                yield self._text(sent, part.id, new)

    def _text(self, sent: Section, part: str, now: Section) -> Mask:
        """A patch; the whole text for a value that is not prose, or if there was no text before."""
        old, new = text_in(self._beneath.get(sent.id, sent), part), text_in(now, part)
        is_value = any(each.id == part and each.type == "option" for each in sent.parts)
        if is_value or not old:
            return self._make_mask(Mask(kind="set_text", text=new), sent, part)
        return self._make_mask(Mask(kind="patch", hunks=hunks_between(old, new)), sent, part)

    def _make_mask(self, mask: Mask, sent: Section, part: str) -> Mask:
        anchor, inner = self._anchors.sections[sent.id], self._anchors.parts(sent)[part] if part else None
        return with_id(replace(mask, scope=self._scope, name=self._name, anchor=anchor, part=inner, label=sent.label))


def keeper_beside(first: Draft, masks: Sequence[Mask], scope: Keep, *, session: str, project: str) -> MaskMaker:
    """A keeper whose masks are added to the active ones."""
    beneath, _ = apply_masks(first, masks_beside(masks, scope), session=session, project=project)
    return MaskMaker(first, scope, project if scope == "project" else session, beneath)


def check_counts(first: Draft, mask: Mask, masks: Sequence[Mask], *, session: str, project: str) -> None:
    """Raise a Fault if this mask would not be applied to the request that it was made on: a mask of a narrower scope
    takes precedence, or its context is not there."""
    _, outcomes = apply_masks(first, masks, session=session, project=project)
    outcome = next((each.outcome for each in outcomes if each.mask == mask.id), "missing")
    if outcome in ("missing", "ambiguous"):
        hint = "Keep it for the narrower scope, or take that mask away first."
        message = "a kept edit of a narrower scope changes the same words, and would count instead of this one"
        raise edit_refusal(message, hint)


def check_repeats(now: Draft, masks: Sequence[Mask], *, session: str, project: str) -> None:
    """Raise a Fault unless these masks turn what the client sent into what is on screen: an edit that they cannot
    repeat would be silently lost."""
    after, _ = apply_masks(now.first, masks, session=session, project=project)
    if encode(after.document) != encode(now.document):
        raise unkeepable("not all of the edits can be repeated on later requests")


def is_same(one: Section, other: Section) -> bool:
    """Whether two states of a section have the same content."""
    if (one.deleted, one.text, one.role) != (other.deleted, other.text, other.role):
        return False
    return [(part.id, part.deleted, part.text) for part in one.parts] == [
        (part.id, part.deleted, part.text) for part in other.parts
    ]


def unkeepable(message: str) -> Fault:
    """The fault for an edit that no mask can repeat."""
    hint = "New texts of sections, parts and options, and deletions, can be kept; send the rest without keep."
    return edit_refusal(message, hint)


def _target(before: Draft, operation: Edit) -> tuple[str, str]:
    """The section that an edit concerns, and the part if it concerns one."""
    if isinstance(operation, SetText | Delete):
        return operation.section, operation.part or ""
    if isinstance(operation, Set):
        for section in before.sections:
            for part in section.parts:
                if part.pointer and not part.deleted and part.editable and covers(part.pointer, operation.pointer):
                    return section.id, part.id
    raise unkeepable("this kind of edit cannot be repeated on later requests")
