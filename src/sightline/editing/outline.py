"""The outline of a request: which sections and parts there are, before anybody has read them."""

from collections.abc import Sequence

from sightline.editing.reading import DocumentReading
from sightline.editing.section import PartType
from sightline.editing.section_ids import Outline, part_key
from sightline.model.json import Json
from sightline.model.parts import Part
from sightline.model.tools import Tool
from sightline.wire.pointer import covers, join

TOOLS, OPTIONS, OTHER = "tools", "options", "other"
"""The keys of the sections that are no items of the conversation."""


def type_of(part: Part) -> PartType:
    """The type of a part, as the API calls it."""
    tag: PartType = part.__struct_config__.tag  # type: ignore[assignment]  # the tags of the union are these words
    return tag


def tools_of(reading: DocumentReading) -> tuple[Tool, ...]:
    """The tools of a request, without those that an item of the conversation brings."""
    if reading.request is None:
        return ()
    return tuple(tool for tool in reading.request.tools if not covers(reading.container, tool.at))


def options_of(reading: DocumentReading) -> dict[str, Json]:
    """What stands beside the conversation and the tools, by its place."""
    document, request = reading.document, reading.request
    if not isinstance(document, dict) or request is None:
        return {}
    shown = {reading.container, *(message.at for message in request.messages)}
    shown |= {list_of(tool.at) for tool in tools_of(reading)}
    found: dict[str, Json] = {}
    for key, value in document.items():
        place = join("", key)
        if place in shown:
            continue
        if isinstance(value, dict) and any(covers(place, other) for other in shown):
            # Settings that hold the tools too are shown one by one.
            found |= {join(place, inner): each for inner, each in value.items() if join(place, inner) not in shown}
        else:
            found[place] = value
    return found


def list_of(place: str) -> str:
    """The outermost list that holds a tool."""
    tokens = place.split("/")
    first = next(number for number, token in enumerate(tokens) if token.isdecimal())
    return "/".join(tokens[:first])


def outline_of(reading: DocumentReading, only: str = "") -> Outline:
    """The keys of everything that gets an id, or of one message only."""
    request = reading.request
    if request is None:
        return [(OTHER, [])]
    outline: list[tuple[str, Sequence[str]]] = [
        (message.at, [part_key(type_of(part), part.at, message.at) for part in message.parts])
        for message in request.messages
        if not only or message.at == only
    ]
    if only:
        return outline
    if tools := tools_of(reading):
        outline.append((TOOLS, [part_key("tool", tool.at, TOOLS) for tool in tools]))
    if options := options_of(reading):
        outline.append((OPTIONS, [part_key("option", place, OPTIONS) for place in options]))
    return outline
