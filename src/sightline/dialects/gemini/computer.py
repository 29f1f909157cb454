"""Gemini's computer use: one entry among the tools, and a set of functions that the model then calls by itself.

The calls are ordinary function calls. A model of another provider does not know the functions and gets them declared.
"""

from sightline.dialects.fields import rest
from sightline.dialects.gemini.field_names import NAME, both, either, spelling_of
from sightline.model.json import Json, JsonObject
from sightline.model.tools import FunctionTool, OpaqueTool
from sightline.wire.jsontext import encode

_STRING: JsonObject = {"type": "string"}
_FLAG: JsonObject = {"type": "boolean"}
_PLACE: JsonObject = {"type": "integer", "description": "On a grid from 0 to 999 over the screen."}
_DIRECTION: JsonObject = {"type": "string", "enum": ["up", "down", "left", "right"]}
_AT: JsonObject = {"y": _PLACE, "x": _PLACE}

_FUNCTIONS: tuple[tuple[str, str, JsonObject, tuple[str, ...]], ...] = (
    ("open_web_browser", "Open the web browser.", {}, ()),
    ("wait_5_seconds", "Wait five seconds for the page to change.", {}, ()),
    ("go_back", "Go to the page before this one.", {}, ()),
    ("go_forward", "Go to the page after this one.", {}, ()),
    ("search", "Go to the start page of the search engine.", {}, ()),
    ("navigate", "Go to a URL.", {"url": _STRING}, ("url",)),
    ("click_at", "Click at a place.", _AT, ("y", "x")),
    ("hover_at", "Move the mouse to a place.", _AT, ("y", "x")),
    (
        "type_text_at",
        "Click at a place and type a text there.",
        {**_AT, "text": _STRING, "press_enter": _FLAG, "clear_before_typing": _FLAG},
        ("y", "x", "text"),
    ),
    ("key_combination", "Press keys together, such as control+c.", {"keys": _STRING}, ("keys",)),
    ("scroll_document", "Scroll the page.", {"direction": _DIRECTION}, ("direction",)),
    (
        "scroll_at",
        "Scroll what is at a place.",
        {**_AT, "direction": _DIRECTION, "magnitude": _PLACE},
        ("y", "x", "direction"),
    ),
    (
        "drag_and_drop",
        "Drag what is at a place to another one.",
        {**_AT, "destination_y": _PLACE, "destination_x": _PLACE},
        ("y", "x", "destination_y", "destination_x"),
    ),
)
_MODELLED = both("environment", "excludedPredefinedFunctions")


def read_computer(tool: JsonObject, at: str) -> OpaqueTool | None:
    """The entry, whole and as functions; None where it is not computer use."""
    computer = either(tool, "computerUse")
    if not isinstance(computer, dict):
        return None
    excluded = either(computer, "excludedPredefinedFunctions")
    names = excluded if isinstance(excluded, list) else []
    environment = computer.get("environment")
    where = "" if environment is None else f" The environment is {encode(environment).decode()}."
    functions = tuple(
        FunctionTool(name, words + where, _schema(properties, required), at=at)
        for name, words, properties, required in _FUNCTIONS
        if name not in names
    )
    left: JsonObject = rest(tool, both("computerUse"))
    if unread := rest(computer, _MODELLED):
        left = {**left, spelling_of(tool, "computerUse"): unread}
    return OpaqueTool(NAME, tool, functions=functions, at=at, extras=left)


def _schema(properties: JsonObject, required: tuple[str, ...]) -> JsonObject:
    names: list[Json] = list(required)
    return {"type": "object", "properties": properties, "required": names}
