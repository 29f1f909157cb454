"""Tools that Anthropic defines and the client runs: a shell, a text editor, a computer, a memory.

Their calls are ordinary `tool_use` blocks. Only the definition says nothing but a type, because the model knows the
rest; a model of another provider gets a function that says it.
"""

from collections.abc import Mapping

from sightline.dialects.anthropic.blocks_read import read_cache
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import rest
from sightline.model.json import Json, JsonObject
from sightline.model.tools import FunctionTool, OpaqueTool
from sightline.wire.jsontext import encode

_KNOWN = frozenset({"type", "name", "cache_control"})
_SCREEN = frozenset({"display_width_px", "display_height_px"})

_STRING: JsonObject = {"type": "string"}
_NUMBER: JsonObject = {"type": "integer"}
_POINT: JsonObject = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}


def _words(*words: Json) -> JsonObject:
    return {"type": "string", "enum": list(words)}


def _object(required: list[Json], **properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required}


_FILE: JsonObject = {
    "path": {"type": "string", "description": "The file or folder."},
    "view_range": {**_POINT, "description": "The first and last line to show; -1 is the end."},
    "file_text": {"type": "string", "description": "The content of a new file."},
    "old_str": {"type": "string", "description": "The text to replace, which must be there exactly once."},
    "new_str": {"type": "string", "description": "The text in its place."},
    "insert_line": {"type": "integer", "description": "The line behind which to insert; 0 is the top."},
    "insert_text": {"type": "string", "description": "The text to insert."},
}

_COMPUTER = _object(
    ["action"],
    action=_words(
        *("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click"),
        *("triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "screenshot"),
        *("cursor_position", "zoom"),
    ),
    coordinate={**_POINT, "description": "x and y on the screen."},
    start_coordinate={**_POINT, "description": "Where a drag begins."},
    text={"type": "string", "description": "The text to type, or the keys to press."},
    scroll_direction=_words("up", "down", "left", "right"),
    scroll_amount=_NUMBER,
    duration={"type": "number", "description": "Seconds to wait or to hold."},
    region={"type": "array", "items": _NUMBER, "description": "x1, y1, x2, y2 of the part of the screen to show."},
)

_TOOLS: Mapping[str, tuple[str, JsonObject]] = {
    "bash_": (
        "Run a command in a bash session that lasts from call to call, and return its output.",
        _object([], command=_STRING, restart={"type": "boolean", "description": "Start a new session instead."}),
    ),
    "text_editor_": (
        "View, create and edit text files.",
        _object(["command", "path"], command=_words("view", "create", "str_replace", "insert", "undo_edit"), **_FILE),
    ),
    "computer_": ("Control a computer with mouse and keyboard. A screenshot shows the result.", _COMPUTER),
    "memory_": (
        "Keep notes across conversations in files below /memories.",
        _object(
            ["command"],
            command=_words("view", "create", "str_replace", "insert", "delete", "rename"),
            **_FILE,
            old_path=_STRING,
            new_path=_STRING,
        ),
    ),
}
"""Description and schema by the beginning of the type, which ends in a date."""


def read_client_tool(tool: JsonObject, at: str) -> OpaqueTool | None:
    """The tool, whole and as a function; None where it is not one of these."""
    kind, name = str(tool["type"]), tool.get("name")
    found = next((entry for head, entry in _TOOLS.items() if kind.startswith(head)), None)
    if found is None or not isinstance(name, str):
        return None
    description, schema = found
    known = _KNOWN
    if kind.startswith("computer_"):
        width, height = (encode(tool.get(key)).decode() for key in ("display_width_px", "display_height_px"))
        description, known = f"{description} The screen has {width} by {height} pixels.", _KNOWN | _SCREEN
    function = FunctionTool(name, description, schema, cache=read_cache(tool, at), at=at)
    return OpaqueTool(NAME, tool, functions=(function,), at=at, extras=rest(tool, known))
