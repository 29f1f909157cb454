"""Another text for a section or a part: which leaves of the document it goes to."""

from sightline.editing.document import WholeDocument
from sightline.editing.leaves import EditableText, Leaf, words_of, words_of_option, words_of_tool
from sightline.editing.part_details import can_gain_text
from sightline.editing.places import edit_refusal
from sightline.editing.spelling import text_part
from sightline.editing.spread import spread_over_parts
from sightline.editing.target import EditTarget
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.wire import jsontext
from sightline.wire.pointer import join, resolve

_ONE_BY_ONE = "Edit its parts one by one, or a value by its place."


def replace_text(whole: WholeDocument, target: EditTarget, text: str) -> WholeDocument:
    """The document with this text where the target's was."""
    document = whole.reading.document
    if target.part is not None:
        return _spread_over_leaves(whole, [words_of(target.part, document)], text)
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
        return _spread_over_leaves(whole, [words_of(part, whole.reading.document) for part in chosen], text)
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
    name, item = whole.reading.name, resolve(whole.reading.document, message.at)
    part = text_part(name, message.role, text)
    if isinstance(item, list):
        return whole.insert(join(message.at, 0), part)
    key = "parts" if name == "gemini" else "content"
    held = item.get(key) if isinstance(item, dict) else None
    place = join(message.at, key)
    if isinstance(held, list):
        return whole.insert(join(place, 0), part)
    if held is not None or not isinstance(item, dict):
        raise edit_refusal("there is no list that could take a text", "Set the value by its place.", pointer=place)
    new: Json = [part]
    return whole.set(place, new) if key in item else whole.insert(place, new)
