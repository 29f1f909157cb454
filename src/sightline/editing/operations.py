"""Operations: what the user can do to a document under edit, as values that are read from and written to JSON. Also
finds the section and part that an operation targets, and writes a new text or role there.

`keep` asks for the edit to be repeated on later requests. Only the owner of the masks reads it; nothing here does.
"""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from sightline.catalog.reading import read_value
from sightline.dialects.registry import dialect
from sightline.editing.deletions import edit_refusal
from sightline.editing.document import OTHER, TOOLS, WholeDocument
from sightline.editing.section import can_gain_text
from sightline.editing.texts import EditableText, Leaf, divide_over_parts, words_of
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.request import Message
from sightline.wire import jsontext
from sightline.wire.pointer import join, resolve

_HINT = "Look at the request as it stands: its sections and their parts have ids."


class EditTarget(NamedTuple):
    """The targeted places of the whole document. `message` is the item of the conversation if all of it is targeted;
    `words` is the text of a part, of a message or of another section."""

    places: tuple[str, ...]
    message: Message | None = None
    words: EditableText | None = None


def target_of(whole: WholeDocument, section: str, part: str | None) -> EditTarget:
    """What these ids name. Raises a Fault if they name nothing."""
    key = whole.names.key_of(section)
    if key is None or (key != OTHER and whole.reading.request is None):
        raise edit_refusal(f"there is no section {section!r}", _HINT)
    contents, ids = whole.reading.contents[key], whole.names.sections[key].parts
    if part is None:
        request = whole.reading.request
        message = next((each for each in request.messages if each.at == key), None) if request is not None else None
        if message is not None:
            return EditTarget((key,), message)
        # Options are deleted one by one: a request without a model cannot be sent.
        return EditTarget(tuple(tool.at for tool in contents) if key == TOOLS else ())
    for name, content in zip(whole.reading.outline[key], contents, strict=True):
        if ids[name] == part:
            return EditTarget((content.at,), words=words_of(content, whole.reading.document, whole.reading.name))
    raise edit_refusal(f"there is no part {part!r} in section {section!r}", _HINT)


def with_role(name: str, message: Message, item: JsonObject, role: str) -> JsonObject:
    """The members of an item that change with its role. Raises a Fault if the item cannot have this role."""
    editing = dialect(name).editing
    known = editing.roles
    if role not in known:
        raise edit_refusal(f"no message of {name} can be given the role {role!r}", f"Known here: {', '.join(known)}.")
    if any(isinstance(part, (ToolCall, ToolResult)) for part in message.parts):
        raise edit_refusal("this has no role of its own to change", "Move its words into a message first.")
    if "role" not in item and not editing.adds_role:
        raise edit_refusal("this has no role of its own to change", "Only a message has one.")
    changed: JsonObject = {} if item.get("role") == known[role] else {"role": known[role]}
    content = item.get("content")
    if isinstance(content, list):
        respelled = [editing.respell_part(part, role) for part in content]
        changed |= {} if respelled == content else {"content": respelled}
    return changed


_ONE_BY_ONE = "Edit its parts one by one, or a value by its place."


def replace_text(whole: WholeDocument, target: EditTarget, text: str) -> WholeDocument:
    """The document with this text in place of the target's."""
    if target.words is not None:
        return _write_over_leaves(whole, [target.words], text)
    if target.message is None:
        raise edit_refusal("this section has no text of its own", _ONE_BY_ONE)
    return _replace_message_text(whole, target.message, text)


def _replace_message_text(whole: WholeDocument, message: Message, text: str) -> WholeDocument:
    live = [part for part in message.parts if not whole.deletions.holds(part.at)]
    words: list[Part] = [part for part in live if isinstance(part, Text)]
    paired: list[Part] = [part for part in live if isinstance(part, (ToolCall, ToolResult))]
    chosen = words or (paired if len(paired) == 1 else [])
    if chosen:
        reading = whole.reading
        return _write_over_leaves(whole, [words_of(part, reading.document, reading.name) for part in chosen], text)
    if not can_gain_text(message, whole.deletions):
        raise edit_refusal("this section has no text of its own", _ONE_BY_ONE)
    return _with_front(whole, message, text) if text else whole


def _write_over_leaves(whole: WholeDocument, words: list[EditableText], text: str) -> WholeDocument:
    """Distribute the text over these leaves. Read-only text may be among them as long as the edit does not touch it."""
    leaves = [leaf for each in words for leaf in each.leaves]
    if not leaves:
        raise edit_refusal("this has no text that can be edited", words[0].reason or _ONE_BY_ONE)
    reasons = [each.reason for each in words for _ in each.leaves]
    for leaf, reason, new in zip(leaves, reasons, divide_over_parts([leaf.text for leaf in leaves], text), strict=True):
        if new == leaf.text:
            continue
        if reason:
            raise edit_refusal("the edit touches a part that is read-only", reason, pointer=leaf.pointer)
        whole = _write_leaf(whole, leaf, new)
    return whole


def _write_leaf(whole: WholeDocument, leaf: Leaf, text: str) -> WholeDocument:
    value: Json = jsontext.decode(text) if leaf.is_json else text
    if not leaf.is_there:
        return whole.insert(leaf.pointer, value)
    if leaf.is_json and jsontext.encode(value) == jsontext.encode(resolve(whole.reading.document, leaf.pointer)):
        return whole
    return whole.set(leaf.pointer, value)


def _with_front(whole: WholeDocument, message: Message, text: str) -> WholeDocument:
    """Add a text part at the front of a message that has none."""
    editing, item = dialect(whole.reading.name).editing, resolve(whole.reading.document, message.at)
    part = editing.text_part(message.role, text)
    if isinstance(item, list):
        return whole.insert(join(message.at, 0), part)
    key = editing.parts_key
    held = item.get(key) if isinstance(item, dict) else None
    place = join(message.at, key)
    if isinstance(held, list):
        return whole.insert(join(place, 0), part)
    if held is not None or not isinstance(item, dict):
        raise edit_refusal("there is no list that could take a text", "Set the value by its place.", pointer=place)
    new: Json = [part]
    return whole.set(place, new) if key in item else whole.insert(place, new)


Keep = Literal["session", "project", "all"]


class Operation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="op"
):
    """The fields that all operations share."""

    keep: Keep | None = None


class SetText(Operation, frozen=True, kw_only=True, tag="set_text"):
    """Replace the text of a section, distributed over its text parts, or of one part."""

    section: str
    part: str | None = None
    text: str


class Set(Operation, frozen=True, kw_only=True, tag="set"):
    """Replace an existing value."""

    pointer: str
    value: Json


class Insert(Operation, frozen=True, kw_only=True, tag="insert"):
    """Insert an element before a position or at the end (`-`), or a new key."""

    pointer: str
    value: Json


class Remove(Operation, frozen=True, kw_only=True, tag="remove"):
    """Remove a value permanently; only undo brings it back."""

    pointer: str


class Move(Operation, frozen=True, kw_only=True, tag="move"):
    """Remove a value and insert it at `pointer`, which is resolved after the removal."""

    source: str = msgspec.field(name="from")
    pointer: str


class Delete(Operation, frozen=True, kw_only=True, tag="delete"):
    """Delete a section or a part, with everything that is invalid without it. It can be restored."""

    section: str
    part: str | None = None


class Restore(Operation, frozen=True, kw_only=True, tag="restore"):
    """Restore what a deletion removed."""

    section: str
    part: str | None = None


class Duplicate(Operation, frozen=True, kw_only=True, tag="duplicate"):
    """Insert a copy of an item of the conversation after it."""

    section: str


class SetRole(Operation, frozen=True, kw_only=True, tag="set_role"):
    """Change the role of an item of the conversation; `role` is a canonical role."""

    section: str
    role: str


class SetBody(Operation, frozen=True, kw_only=True, tag="set_body"):
    """Replace the document with this body, which is sent exactly as written."""

    body: str


class Batch(Operation, frozen=True, kw_only=True, tag="batch"):
    """Apply several edits as one: all of them or none, and one step to undo."""

    operations: tuple["Edit", ...]


class Undo(Operation, frozen=True, kw_only=True, tag="undo"):
    """Go back one step."""


class Redo(Operation, frozen=True, kw_only=True, tag="redo"):
    """Repeat one undone step."""


class Reset(Operation, frozen=True, kw_only=True, tag="reset"):
    """Go back to the document as it arrived; this too can be undone."""


class KeepEdits(Operation, frozen=True, kw_only=True, tag="keep"):
    """Repeat the edits made so far on later requests too. The document is not changed."""

    scope: Keep


Edit: TypeAlias = (
    SetText | Set | Insert | Remove | Move | Delete | Restore | Duplicate | SetRole | SetBody | Batch | Reset
)
"""An operation that changes one draft into another."""

AnyOperation: TypeAlias = Edit | Undo | Redo
"""An operation on a document; undo and redo need the history."""

HoldOperation: TypeAlias = AnyOperation | KeepEdits
"""An operation on a held request: it can also keep the edits for later requests, which needs the masks."""

_READING_HINT = (
    "Known operations: set_text, set, insert, remove, move, delete, restore, duplicate, set_role, set_body, batch, "
    "expand, keep, undo, redo, reset; the documentation of the API lists the fields of each."
)


def operation(value: Json) -> HoldOperation:
    """The operation in a JSON value. Raises a Fault that reports what is wrong with it."""
    read: HoldOperation = read_value(value, HoldOperation, subject="the edit", hint=_READING_HINT, status=400)
    return read
