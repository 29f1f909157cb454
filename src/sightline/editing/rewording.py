"""Another text for a section or a part: which leaves of the document it goes to."""

from sightline.editing.leaves import Leaf, Words, words_of, words_of_option, words_of_tool
from sightline.editing.places import refused
from sightline.editing.spelling import text_part
from sightline.editing.spread import spread
from sightline.editing.target import Target
from sightline.editing.telling import can_gain_text
from sightline.editing.whole import Whole
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.wire import jsontext
from sightline.wire.pointer import join, resolve

_ONE_BY_ONE = "Edit its parts one by one, or a value by its place."


def reworded(whole: Whole, target: Target, text: str) -> Whole:
    """The document with this text where the target's was."""
    document = whole.reading.document
    if target.part is not None:
        return _replaced(whole, [words_of(target.part, document)], text)
    if target.tool is not None:
        return _replaced(whole, [words_of_tool(target.tool, document)], text)
    if target.option is not None:
        return _replaced(whole, [words_of_option(target.option, resolve(document, target.option))], text)
    if target.message is None:
        raise refused("this section has no text of its own", _ONE_BY_ONE)
    return _said(whole, target.message, text)


def _said(whole: Whole, message: Message, text: str) -> Whole:
    live = [part for part in message.parts if not whole.deletions.holds(part.at)]
    words: list[Part] = [part for part in live if isinstance(part, Text)]
    paired: list[Part] = [part for part in live if isinstance(part, (ToolCall, ToolResult))]
    chosen = words or (paired if len(paired) == 1 else [])
    if chosen:
        return _replaced(whole, [words_of(part, whole.reading.document) for part in chosen], text)
    if not can_gain_text(message, whole.deletions):
        raise refused("this section has no text of its own", _ONE_BY_ONE)
    return _with_front(whole, message, text) if text else whole


def _replaced(whole: Whole, words: list[Words], text: str) -> Whole:
    """The text spread over these words; what is read-only may be among them as long as the edit does not touch it."""
    leaves = [leaf for each in words for leaf in each.leaves]
    if not leaves:
        raise refused("this has no text that can be edited", words[0].reason or _ONE_BY_ONE)
    reasons = [each.reason for each in words for _ in each.leaves]
    for leaf, reason, new in zip(leaves, reasons, spread([leaf.text for leaf in leaves], text), strict=True):
        if new == leaf.text:
            continue
        if reason:
            raise refused("the edit touches a part that is read-only", reason, pointer=leaf.pointer)
        whole = _put(whole, leaf, new)
    return whole


def _put(whole: Whole, leaf: Leaf, text: str) -> Whole:
    value: Json = jsontext.decode(text) if leaf.is_json else text
    if not leaf.is_there:
        return whole.insert(leaf.pointer, value)
    if leaf.is_json and jsontext.encode(value) == jsontext.encode(resolve(whole.reading.document, leaf.pointer)):
        return whole
    return whole.set(leaf.pointer, value)


def _with_front(whole: Whole, message: Message, text: str) -> Whole:
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
        raise refused("there is no list that could take a text", "Set the value by its place.", pointer=place)
    new: Json = [part]
    return whole.set(place, new) if key in item else whole.insert(place, new)
