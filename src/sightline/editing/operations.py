"""Operations: what a person can do to a document under edit, as values that come and go as JSON.

`keep` asks that the edit be repeated on later requests; the owner of the masks reads it, nothing here does.
"""

from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.reading import read_value
from sightline.model.json import Json

Keep = Literal["session", "project", "all"]


class Operation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="op"
):
    """What all operations share."""

    keep: Keep | None = None


class SetText(Operation, frozen=True, kw_only=True, tag="set_text"):
    """Another text for a section, spread over its text parts, or for one part of it."""

    section: str
    part: str | None = None
    text: str


class Set(Operation, frozen=True, kw_only=True, tag="set"):
    """Another value in the place of one that is there."""

    pointer: str
    value: Json


class Insert(Operation, frozen=True, kw_only=True, tag="insert"):
    """A new element before a position or at the end (`-`), or a new key."""

    pointer: str
    value: Json


class Remove(Operation, frozen=True, kw_only=True, tag="remove"):
    """Take a value out for good; only undo brings it back."""

    pointer: str


class Move(Operation, frozen=True, kw_only=True, tag="move"):
    """Take a value out and put it at `pointer`, which is read after it is gone."""

    source: str = msgspec.field(name="from")
    pointer: str


class Delete(Operation, frozen=True, kw_only=True, tag="delete"):
    """Delete a section or a part, with what is invalid without it; it can be restored."""

    section: str
    part: str | None = None


class Restore(Operation, frozen=True, kw_only=True, tag="restore"):
    """Bring back what a deletion took."""

    section: str
    part: str | None = None


class Duplicate(Operation, frozen=True, kw_only=True, tag="duplicate"):
    """A second one of an item of the conversation, behind it."""

    section: str


class SetRole(Operation, frozen=True, kw_only=True, tag="set_role"):
    """Another speaker for an item of the conversation; `role` is a canonical role."""

    section: str
    role: str


class SetBody(Operation, frozen=True, kw_only=True, tag="set_body"):
    """Another document, sent exactly as it is written here."""

    body: str


class Batch(Operation, frozen=True, kw_only=True, tag="batch"):
    """Several edits as one: all of them or none, and one step to undo."""

    operations: tuple["Edit", ...]


class Undo(Operation, frozen=True, kw_only=True, tag="undo"):
    """Back by one step."""


class Redo(Operation, frozen=True, kw_only=True, tag="redo"):
    """Forward again by one step that was undone."""


class Reset(Operation, frozen=True, kw_only=True, tag="reset"):
    """Back to the document as it came; this too can be undone."""


class KeepEdits(Operation, frozen=True, kw_only=True, tag="keep"):
    """Repeat the edits that were made so far on later requests, too. The document stays as it is."""

    scope: Keep


Edit: TypeAlias = (
    SetText | Set | Insert | Remove | Move | Delete | Restore | Duplicate | SetRole | SetBody | Batch | Reset
)
"""What changes one draft into another."""

AnyOperation: TypeAlias = Edit | Undo | Redo
"""What a person can do to a document; undo and redo need the history."""

HoldOperation: TypeAlias = AnyOperation | KeepEdits
"""What a person can do to what is held: also keep the edits for later requests, which needs the masks."""

_HINT = (
    "Known operations: set_text, set, insert, remove, move, delete, restore, duplicate, set_role, set_body, batch, "
    "expand, keep, undo, redo, reset; the documentation of the API lists the fields of each."
)


def operation(value: Json) -> HoldOperation:
    """The operation that a JSON value asks for; a fault says what is wrong with it."""
    read: HoldOperation = read_value(value, HoldOperation, subject="the edit", hint=_HINT, status=400)
    return read
