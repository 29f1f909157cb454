"""What each operation does to a draft. Places in operations are places on screen."""

from typing import TYPE_CHECKING, TypeAlias, assert_never

from sightline.dialects.registry import dialect
from sightline.editing.cascade import cascade_of
from sightline.editing.document import WholeDocument
from sightline.editing.leaves import EditableText, Leaf, words_of, words_of_option, words_of_tool
from sightline.editing.operations import (
    Batch,
    Delete,
    Duplicate,
    Insert,
    Move,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetRole,
    SetText,
)
from sightline.editing.part_details import can_gain_text
from sightline.editing.places import edit_refusal, parent_of
from sightline.editing.soundness import check_readable, check_sound
from sightline.editing.spread import spread_over_parts
from sightline.editing.target import EditTarget, target_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.wire import jsontext
from sightline.wire.document import WireDocument
from sightline.wire.pointer import covers, index, join, parse_pointer, refusal, resolve

if TYPE_CHECKING:
    from sightline.editing.draft import Draft


def with_role(name: str, message: Message, item: JsonObject, role: str) -> JsonObject:
    """The members of an item that are others when somebody else says it."""
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
    """The document with this text where the target's was."""
    document = whole.reading.document
    if target.part is not None:
        return _spread_over_leaves(whole, [words_of(target.part, document, whole.reading.name)], text)
    if target.tool is not None:
        return _spread_over_leaves(whole, [words_of_tool(target.tool, document)], text)
    if target.option is not None:
        return _spread_over_leaves(whole, [words_of_option(target.option, resolve(document, target.option))], text)
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
        return _spread_over_leaves(whole, [words_of(part, reading.document, reading.name) for part in chosen], text)
    if not can_gain_text(message, whole.deletions):
        raise edit_refusal("this section has no text of its own", _ONE_BY_ONE)
    return _with_front(whole, message, text) if text else whole


def _spread_over_leaves(whole: WholeDocument, words: list[EditableText], text: str) -> WholeDocument:
    """The text spread over these words; what is read-only may be among them as long as the edit does not touch it."""
    leaves = [leaf for each in words for leaf in each.leaves]
    if not leaves:
        raise edit_refusal("this has no text that can be edited", words[0].reason or _ONE_BY_ONE)
    reasons = [each.reason for each in words for _ in each.leaves]
    for leaf, reason, new in zip(leaves, reasons, spread_over_parts([leaf.text for leaf in leaves], text), strict=True):
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
    """A message without words gets one part of them, in front."""
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


Change: TypeAlias = SetText | Set | Insert | Remove | Move | Delete | Restore | Duplicate | SetRole | SetBody | Batch


def apply_operation(draft: "Draft", operation: Change) -> "Draft":
    """The draft after an operation, checked as that operation promises."""
    after = _apply(draft, operation)
    match operation:
        case SetText():
            if after.whole.deletions == draft.whole.deletions:
                check_readable(draft, after)
            else:  # the edit restored what it is about
                check_sound(draft, after, restores=True)
        case Delete() | Duplicate() | SetRole():
            check_sound(draft, after)
        case Restore():
            check_sound(draft, after, restores=True)
        case Batch():
            # Step by step it may be broken for a while, as long as the whole is sound.
            changes_structure = any(
                isinstance(each, (Delete, Restore, Duplicate, SetRole)) for each in operation.operations
            )
            if changes_structure or after.whole.deletions != draft.whole.deletions:
                check_sound(draft, after, restores=True)
        case _:
            pass
    return after


def _apply(draft: "Draft", operation: Change) -> "Draft":
    if isinstance(operation, Batch):
        for each in operation.operations:
            draft = draft.with_edit(each) if isinstance(each, Reset) else _apply(draft, each)
        return draft
    if isinstance(operation, (SetText, Delete, Restore, Duplicate, SetRole)):
        return draft.with_whole(_by_section(draft, operation))
    return draft.with_whole(_by_place(draft, operation))


def _by_section(draft: "Draft", operation: SetText | Delete | Restore | Duplicate | SetRole) -> WholeDocument:
    match operation:
        case SetText():
            return _set_text(draft, operation)
        case Delete():
            return _delete(draft.whole, target_of(draft.whole, operation.section, operation.part))
        case Restore():
            return _restore(draft.whole, target_of(draft.whole, operation.section, operation.part))
        case Duplicate():
            return _duplicate(draft, operation)
        case SetRole():
            return _set_role(draft.whole, operation)
        case unreachable:
            assert_never(unreachable)


def _by_place(draft: "Draft", operation: Set | Insert | Remove | Move | SetBody) -> WholeDocument:
    match operation:
        case Set():
            return _set(draft, operation)
        case Insert():
            return _insert(draft, operation)
        case Remove():
            return draft.whole.remove(_there(draft, operation.pointer))
        case Move():
            return _move(draft, operation)
        case SetBody():
            return _set_body(draft, operation)
        case unreachable:
            assert_never(unreachable)


def _there(draft: "Draft", pointer: str) -> str:
    """A place on screen as it is called in the whole document; a fault if there is nothing."""
    resolve(draft.document, pointer)
    return draft.whole.deletions.to_whole(pointer)


def _set_text(draft: "Draft", operation: SetText) -> WholeDocument:
    """Another text; what is deleted is restored by it, with what was deleted along with it."""
    target = target_of(draft.whole, operation.section, operation.part)
    whole = draft.whole
    if target.places and all(whole.deletions.holds(place) for place in target.places):
        whole = _restore(whole, target)
    return replace_text(whole, target, operation.text)


def _set(draft: "Draft", operation: Set) -> WholeDocument:
    text = jsontext.encode(operation.value)
    if not operation.pointer:
        return draft.whole if _says(draft.data, text) else draft.whole.replace_document(text)
    place = _there(draft, operation.pointer)
    # What is deleted within the value is not on screen, and so is no difference.
    if jsontext.encode(resolve(draft.document, operation.pointer)) == text:
        return draft.whole
    return draft.whole.set(place, operation.value)


def _says(data: bytes, text: bytes) -> bool:
    try:
        return jsontext.encode(jsontext.decode(data)) == text
    except Fault:
        return False


def _insert(draft: "Draft", operation: Insert) -> WholeDocument:
    whole, pointer = draft.whole, operation.pointer
    if not pointer:
        raise refusal(pointer, "the document is there already", hint="Set it to another value.")
    parse_pointer(pointer)
    holder, token = resolve(draft.document, parent_of(pointer)), parse_pointer(pointer)[-1]
    if isinstance(holder, list) and token != "-":
        index(token, len(holder) + 1, pointer)
    place = whole.deletions.to_whole(pointer)
    if isinstance(holder, dict) and token not in holder and whole.deletions.holds(place):
        # The new value takes the place of one that was deleted, which cannot be restored beside it.
        whole = whole.remove(place)
    return whole.insert(place, operation.value)


def _move(draft: "Draft", operation: Move) -> WholeDocument:
    parse_pointer(operation.pointer)
    source = _there(draft, operation.source)
    if operation.source == operation.pointer:
        return draft.whole
    if covers(operation.source, operation.pointer):
        raise refusal(operation.pointer, f"{operation.source!r} cannot be moved into itself")
    if not operation.pointer:
        raise refusal(operation.pointer, "the document is there already", hint="Set it to another value.")
    return draft.whole.move(source, operation.pointer)


def _delete(whole: WholeDocument, target: EditTarget) -> WholeDocument:
    request = whole.reading.request
    if request is None or not target.places:
        raise edit_refusal("this cannot be deleted as a whole", "Delete its parts, or remove a value by its place.")
    if all(whole.deletions.holds(place) for place in target.places):
        return whole
    taken = cascade_of(whole.reading, request, whole.deletions, frozenset(target.places))
    return whole.with_deletions(whole.deletions.with_group(taken, whole.reading.document))


def _restore(whole: WholeDocument, target: EditTarget) -> WholeDocument:
    deletions = whole.deletions
    for place in target.places:
        deletions = deletions.restore(place)
    return whole if deletions is whole.deletions else whole.with_deletions(deletions)


def _duplicate(draft: "Draft", operation: Duplicate) -> WholeDocument:
    whole = draft.whole
    message = target_of(whole, operation.section, None).message
    if message is None or not _is_item(whole, message.at):
        raise edit_refusal("this cannot be doubled", "Only an item of the conversation can stand there twice.")
    if whole.deletions.holds(message.at):
        raise edit_refusal("what is deleted cannot be doubled", "Restore it first.")
    shown = whole.deletions.to_screen(message.at)
    text = _text_of(draft, shown)
    behind = f"{parent_of(message.at)}/{int(parse_pointer(message.at)[-1]) + 1}"
    return whole.insert(behind, resolve(draft.document, shown), text)


def _text_of(draft: "Draft", pointer: str) -> bytes:
    """The exact bytes of a value on screen."""
    return WireDocument(draft.data).text_of(pointer)


def _is_item(whole: WholeDocument, place: str) -> bool:
    return parent_of(place) == whole.reading.container and parse_pointer(place)[-1].isdecimal()


def _set_role(whole: WholeDocument, operation: SetRole) -> WholeDocument:
    message = target_of(whole, operation.section, None).message
    if message is None or not _is_item(whole, message.at):
        raise edit_refusal("this has no role of its own to change", "Only an item of the conversation has one.")
    if whole.deletions.holds(message.at):
        raise edit_refusal("what is deleted cannot be edited", "Restore it first.")
    item = resolve(whole.reading.document, message.at)
    assert isinstance(item, dict)
    for key, value in with_role(whole.reading.name, message, item, operation.role).items():
        whole = whole.set(join(message.at, key), value) if key in item else whole.insert(join(message.at, key), value)
    return whole


def _set_body(draft: "Draft", operation: SetBody) -> WholeDocument:
    try:
        data = operation.body.encode("utf-8")
    except UnicodeEncodeError:
        raise Fault(
            Code.INVALID_REQUEST,
            "the body holds half a surrogate pair, which UTF-8 cannot carry",
            hint="Write that character as an escape, \\ud800 for example.",
            status=400,
        ) from None
    if data == draft.data:
        return draft.whole
    return draft.whole.replace_document(data)
