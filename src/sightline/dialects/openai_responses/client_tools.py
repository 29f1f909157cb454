"""Built-in tools that the client runs: shells, patches, a computer, a search for tools.

The API has an item type of its own for the calls and the results of each. They are read as tool calls and results like
any other; the kind of the call records which item it was, so that it is written back as that item. A model of another
provider does not know these tools and gets a function for each, whose arguments are the content of the item.
"""

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sightline.dialects.fields import as_object, compact, from_url, rest, to_url
from sightline.dialects.json_schemas import INTEGER, STRING, object_schema
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.tool_names import arguments_object
from sightline.model.json import Json, JsonObject
from sightline.model.parts import FileId, Image, Inline, Link, Text, ToolCall, ToolKind, ToolResult
from sightline.model.report import Report
from sightline.model.request import FunctionTool, OpaqueTool
from sightline.wire.jsontext import encode
from sightline.wire.pointer import join


@dataclass(frozen=True, slots=True)
class ClientTool:
    """One of these tools: the types of its items, the fields that hold a call's action, the prefix of new item ids."""

    kind: ToolKind
    call: str
    output: str
    fields: tuple[str, ...]
    stem: str


_TOOLS = (
    ClientTool("local_shell", "local_shell_call", "local_shell_call_output", ("action",), "lsh"),
    ClientTool("shell", "shell_call", "shell_call_output", ("action",), "sh"),
    ClientTool("apply_patch", "apply_patch_call", "apply_patch_call_output", ("operation",), "apc"),
    ClientTool("computer", "computer_call", "computer_call_output", ("action", "actions"), "cu"),
    ClientTool("tool_search", "tool_search_call", "tool_search_output", ("arguments",), "tsc"),
)
BY_KIND: Mapping[str, ClientTool] = {tool.kind: tool for tool in _TOOLS}
BY_CALL: Mapping[str, ClientTool] = {tool.call: tool for tool in _TOOLS}
BY_OUTPUT: Mapping[str, ClientTool] = {tool.output: tool for tool in _TOOLS}

_CALL = frozenset({"type", "id", "call_id"})
_OUTPUT = frozenset({"type", "id", "call_id", "output"})
_SCREENSHOT = frozenset({"type", "image_url", "file_id"})
_PATCH_RESULT = ("status", "output")


# --- calls ---


def is_client_call(item: JsonObject) -> bool:
    """Whether the client runs what this item asks for. A shell in a container and a hosted search run elsewhere."""
    tool = BY_CALL.get(str(item.get("type")))
    if tool is None or not isinstance(call_id_of(item), str):
        return False
    environment = item.get("environment")
    if isinstance(environment, dict) and str(environment.get("type")).startswith("container"):
        return False
    return tool.kind != "tool_search" or item.get("execution") == "client"


def call_id_of(item: JsonObject) -> Json:
    """The id that the result of a call refers to: its `call_id`, or the item's id if a server gives no other."""
    return item.get("id") if item.get("call_id") is None else item["call_id"]


def read_action(item: JsonObject) -> tuple[str | None, JsonObject]:
    """The action of a call as a JSON object, None if the item has none; and the item's other fields."""
    field = arguments_field(item)
    if field is None:
        return None, rest(item, _CALL)
    value = item[field]
    arguments = encode({field: value} if isinstance(value, list) else value).decode()
    return arguments, rest(item, _CALL | {field})


def arguments_field(item: JsonObject) -> str | None:
    """The field that holds the action of a call's item: an object, or a list for a computer. None if there is none."""
    for field in BY_CALL[str(item["type"])].fields:
        if isinstance(item.get(field), list if field == "actions" else dict):
            return field
    return None


def read_call(item: JsonObject, at: str) -> ToolCall | None:
    """The call in this item, None if it is not one for the client or has no action."""
    arguments, extras = read_action(item) if is_client_call(item) else (None, {})
    item_id = item.get("id")
    if arguments is None or not isinstance(item_id, (str, type(None))) or not isinstance(item.get("call_id"), str):
        return None
    tool = BY_CALL[str(item["type"])]
    return ToolCall(str(item["call_id"]), tool.kind, arguments, kind=tool.kind, item=item_id, at=at, extras=extras)


def write_call(kind: ToolKind, arguments: str, head: JsonObject) -> JsonObject | None:
    """The item of a call, None if its arguments are not an action that an item could hold."""
    tool = BY_KIND[kind]
    value = arguments_object(arguments) if arguments else None
    if value is None:
        return None
    item: JsonObject = {"type": tool.call, **head}
    if kind == "computer" and list(value) == ["actions"] and isinstance(value["actions"], list):
        return {**item, **value}
    return {**item, tool.fields[0]: value}


_REQUIRED_FIELDS: Mapping[str, Mapping[tuple[str, ...], Json]] = {
    "local_shell_call": {("action", "type"): "exec", ("action", "env"): {}, ("status",): "completed"},
    "apply_patch_call": {("status",): "completed"},
    "computer_call": {("pending_safety_checks",): [], ("status",): "completed"},
    "tool_search_call": {("execution",): "client"},
}
"""The fields that the API's schema requires, and their values for a call that was made without them."""

_WITH_ID = frozenset({"local_shell_call", "computer_call"})
"""The calls whose item must have an id of its own."""


def complete_call(item: JsonObject, at: str, report: Report) -> JsonObject:
    """A call with every field that the API requires; `at` is its place in the document that is written."""
    complete = copy.deepcopy(item)
    if item["type"] in _WITH_ID and "id" not in item:
        stem = BY_CALL[str(item["type"])].stem
        digest = hashlib.sha256(str(item["call_id"]).encode("utf-8", "surrogatepass")).hexdigest()
        complete = {"type": item["type"], "id": f"{stem}_{digest[:24]}", **complete}
        report.add(f"{at}/id", "id of an item", f"{NAME} demands one", "identity")
    for (*above, last), value in _REQUIRED_FIELDS.get(str(item["type"]), {}).items():
        holder = as_object(complete[above[0]], at) if above else complete
        if last not in holder:
            holder[last] = copy.deepcopy(value)
            report.add(join(at, *above, last), f"{last} of a call", f"{NAME} demands it", "identity")
    return complete


# --- results ---


def read_output(item: JsonObject, at: str) -> ToolResult | None:
    """The result in this item, None if it does not name the call that it answers."""
    tool = BY_OUTPUT[str(item["type"])]
    call_id, item_id = item.get("call_id"), item.get("id")
    extras = rest(item, _OUTPUT)
    if call_id is None and tool.kind == "local_shell" and isinstance(item_id, str):
        # The API's schema names the call here by `id`; clients send `call_id` as everywhere else.
        call_id, item_id, extras = item_id, None, {**extras, "call_id": None}
    is_hosted = tool.kind == "tool_search" and item.get("execution") != "client"
    if not isinstance(call_id, str) or not isinstance(item_id, (str, type(None))) or is_hosted:
        return None
    result = ToolResult(call_id, kind=tool.kind, item=item_id, at=at, extras=extras)
    return msgspec.structs.replace(result, **_read_content(tool, item, at, extras))


def _read_content(tool: ClientTool, item: JsonObject, at: str, extras: JsonObject) -> dict[str, object]:
    if tool.kind == "apply_patch":
        content = {key: item[key] for key in _PATCH_RESULT if key in item}
        return {"structured": content, "extras": rest(extras, frozenset(_PATCH_RESULT))}
    if tool.kind == "tool_search":
        extras = {**extras, **_only_key(item, "output")}
        return {"structured": _only_key(item, "tools"), "extras": rest(extras, frozenset({"tools"}))}
    output = item.get("output")
    if isinstance(output, str):
        return {"parts": (Text(output, at=f"{at}/output"),), "bare": True}
    if (image := _read_screenshot(output, f"{at}/output")) is not None:
        return {"parts": (image,)}
    return {"structured": _only_key(item, "output")}


def _only_key(item: JsonObject, key: str) -> JsonObject:
    return {key: item[key]} if key in item else {}


def _read_screenshot(output: Json, at: str) -> Image | None:
    if not isinstance(output, dict) or output.get("type") != "computer_screenshot":
        return None
    url, file_id = output.get("image_url"), output.get("file_id")
    if isinstance(url, str):
        return Image(from_url(url), at=at, extras=rest(output, _SCREENSHOT - {"file_id"}))
    if isinstance(file_id, str):
        return Image(FileId(file_id), at=at, extras=rest(output, _SCREENSHOT - {"image_url"}))
    return None


def write_output(
    result: ToolResult, kind: ToolKind, head: JsonObject, report: Report, *, same: bool
) -> JsonObject | None:
    """The item of a result, None if the tool's own item cannot hold it."""
    item: JsonObject = {"type": BY_KIND[kind].output, **head}
    if same and "call_id" in result.extras:
        item = {"type": item["type"], "id": item["call_id"]}
    elif kind == "local_shell" and not same:
        # The API's schema names the call by `id`, its guide by `call_id`: both are written, so that it is found either
        # way.
        item = {"type": item["type"], "id": item["call_id"], **item}
    if result.structured is not None and (same or result.kind == kind):
        return {**item, **result.structured}
    only = result.parts[0] if len(result.parts) == 1 else None
    if kind == "computer" and isinstance(only, Image):
        output: JsonObject = {"type": "computer_screenshot"}
        match only.source:
            case Inline() | Link():
                output["image_url"] = to_url(only.source)
            case FileId(file_id):
                output["file_id"] = file_id
            case _:
                return None
        return {**item, "output": {**output, **only.extras} if same else output}
    if same and isinstance(only, Text):
        return {**item, "output": only.text}
    if kind in ("computer", "tool_search") or not all(isinstance(part, Text) for part in result.parts):
        return None
    return {**item, **_write_text_result(result, kind, report)}


def _write_text_result(result: ToolResult, kind: ToolKind, report: Report) -> JsonObject:
    """The fields of the item of a shell or of a patch for a result that is text."""
    words = "".join(part.text for part in result.parts if isinstance(part, Text))
    if result.structured is not None:
        words = encode(dict(result.structured)).decode() + words
    if kind == "local_shell":
        if result.is_error:
            report.lose(result.at, "error flag of a tool result", f"{NAME} has none", "option")
        return {"output": words}
    if kind == "apply_patch":
        return compact({"status": "failed" if result.is_error else "completed", "output": words or None})
    report.add(result.at, "exit code of a shell", f"{NAME} demands one", "option")
    chunk: JsonObject = {
        "stdout": words,
        "stderr": "",
        "outcome": {"type": "exit", "exit_code": int(bool(result.is_error))},
    }
    return {"output": [chunk]}


# --- the tools themselves ---


def _list_of(items: JsonObject, description: str) -> JsonObject:
    return {"type": "array", "items": items, "description": description}


_POINT = object_schema(["x", "y"], x=INTEGER, y=INTEGER)
_ACTION: JsonObject = object_schema(
    ["type"],
    type={
        "type": "string",
        "enum": ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"],
    },
    x=INTEGER,
    y=INTEGER,
    button={"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
    scroll_x=INTEGER,
    scroll_y=INTEGER,
    keys=_list_of(STRING, "Keys to press, or to hold during the action."),
    text={"type": "string", "description": "What to type."},
    path=_list_of(_POINT, "The points of a drag."),
)

_COMPUTER = "Control a computer with mouse and keyboard. Each call runs actions in order and returns a screenshot."
_FUNCTIONS: Mapping[str, FunctionTool] = {
    "local_shell": FunctionTool(
        "local_shell",
        "Run a command on the user's machine and return its output.",
        object_schema(
            ["command"],
            command=_list_of(STRING, "The program and its arguments."),
            working_directory=STRING,
            timeout_ms=INTEGER,
            env={"type": "object", "description": "Environment variables to set.", "additionalProperties": STRING},
        ),
    ),
    "shell": FunctionTool(
        "shell",
        "Run shell commands, in order, and return the standard output, standard error and exit code of each.",
        object_schema(
            ["commands"],
            commands=_list_of(STRING, "The commands to run."),
            timeout_ms=INTEGER,
            max_output_length={"type": "integer", "description": "The most characters to return from each command."},
        ),
    ),
    "apply_patch": FunctionTool(
        "apply_patch",
        "Create, update or delete one file. `diff` is a V4A diff: lines to add begin with +, lines to remove with -, "
        "and @@ lines say where; for a new file every line begins with +.",
        object_schema(
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=STRING,
            diff={"type": "string", "description": "The change; none where a file is deleted."},
        ),
    ),
    "computer": FunctionTool(
        "computer", _COMPUTER, object_schema(["actions"], actions=_list_of(_ACTION, "What to do."))
    ),
    "computer_use_preview": FunctionTool(
        "computer", _COMPUTER.replace("runs actions in order", "is one action"), _ACTION
    ),
}
_SCREEN = frozenset({"type", "display_width", "display_height", "environment"})


def read_tool(holder: JsonObject, at: str) -> OpaqueTool:
    """A tool that is not a function: unchanged, and with the function that replaces it if the client runs it."""
    function, left = _function(holder)
    if function is None:
        return OpaqueTool(NAME, holder, at=at)
    function = msgspec.structs.replace(function, at=at)
    kind: ToolKind = BY_KIND[function.name].kind
    return OpaqueTool(NAME, holder, functions=(function,), kind=kind, at=at, extras=left)


def _function(holder: JsonObject) -> tuple[FunctionTool | None, JsonObject]:
    """The function, and the fields of the tool that it does not express; None if there is no function for it."""
    kind, environment = str(holder.get("type")), holder.get("environment")
    if kind == "tool_search":
        schema, words = holder.get("parameters"), holder.get("description")
        if holder.get("execution") != "client" or not isinstance(schema, (dict, type(None))):
            return None, {}
        if not isinstance(words, (str, type(None))):
            return None, {}
        search = FunctionTool("tool_search", words or "Search for tools that can be called next.", schema)
        return search, rest(holder, frozenset({"type", "description", "parameters", "execution"}))
    function = _FUNCTIONS.get(kind)
    if function is None or (isinstance(environment, dict) and str(environment.get("type")).startswith("container")):
        return None, {}
    if kind != "computer_use_preview":
        return function, rest(holder, frozenset({"type"}))
    size = f"{encode(holder.get('display_width')).decode()} by {encode(holder.get('display_height')).decode()} pixels"
    described = f"{function.description} The screen has {size}; the environment is {encode(environment).decode()}."
    return msgspec.structs.replace(function, description=described), rest(holder, _SCREEN)
