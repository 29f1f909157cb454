"""What an operation is about: the section and the part that its ids name, and where they stand."""

from typing import NamedTuple

from sightline.editing.document import WholeDocument
from sightline.editing.outline import OPTIONS, OTHER, TOOLS, options_of, tools_of, type_of
from sightline.editing.places import edit_refusal
from sightline.editing.section_ids import part_key
from sightline.model.message import Message
from sightline.model.parts import Part
from sightline.model.tools import Tool

_HINT = "Look at the request as it stands: its sections and their parts have ids."


class EditTarget(NamedTuple):
    """The places of the whole document that are meant, and what was read there.

    `message` is the item of the conversation, `part` the part of it; `tool` and `option` are parts of other sections.
    """

    places: tuple[str, ...]
    message: Message | None = None
    part: Part | None = None
    tool: Tool | None = None
    option: str | None = None


def target_of(whole: WholeDocument, section: str, part: str | None) -> EditTarget:
    """What these ids name; a fault if they name nothing."""
    key = whole.names.key_of(section)
    if key is None or (key != OTHER and whole.reading.request is None):
        raise edit_refusal(f"there is no section {section!r}", _HINT)
    keys = whole.names.sections[key].parts
    chosen = None if part is None else next((each for each, name in keys.items() if name == part), None)
    if part is not None and chosen is None:
        raise edit_refusal(f"there is no part {part!r} in section {section!r}", _HINT)
    found = _in_bundle(whole, key, chosen) if key in (TOOLS, OPTIONS, OTHER) else _in_message(whole, key, chosen)
    if found is None:
        raise edit_refusal(f"there is no part {part!r} in section {section!r}", _HINT)
    return found


def _in_message(whole: WholeDocument, place: str, chosen: str | None) -> EditTarget | None:
    request = whole.reading.request
    assert request is not None
    message = next(message for message in request.messages if message.at == place)
    if chosen is None:
        return EditTarget((place,), message)
    for part in message.parts:
        if part_key(type_of(part), part.at, place) == chosen:
            return EditTarget((part.at,), message, part)
    return None


def _in_bundle(whole: WholeDocument, key: str, chosen: str | None) -> EditTarget | None:
    if key == TOOLS:
        tools = tools_of(whole.reading)
        if chosen is None:
            return EditTarget(tuple(tool.at for tool in tools))
        return next(
            (EditTarget((each.at,), tool=each) for each in tools if part_key("tool", each.at, TOOLS) == chosen), None
        )
    if chosen is None:
        # The options are deleted one by one: without a model nobody can be asked.
        return EditTarget(())
    places = [place for place in options_of(whole.reading) if part_key("option", place, OPTIONS) == chosen]
    return EditTarget((places[0],), option=places[0]) if places else None
