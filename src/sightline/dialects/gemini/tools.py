"""Reads and writes tools and the tool choice, and their schemas.

`tools` is a list of objects, each with function declarations or server tools or both. A declaration knows its place, so
that writing in the same dialect puts each back into its object. Google's OpenAPI form of schemas (`OBJECT`, `nullable`,
numbers as strings) is read as JSON Schema; what is written is the subset of JSON Schema that the API takes. A schema in
another form than ours remembers that form and its key, so that writing in the same dialect is exact.
"""

from collections.abc import Mapping
from typing import assert_never

from sightline.dialects.fields import as_list, as_object, as_str, compact, opt_list, opt_object, opt_str, rest, str_of
from sightline.dialects.gemini.field_names import NAME, both, either, read_enum, restore_extras, spelling_of
from sightline.dialects.json_schemas import STRING, SchemaKeys, map_schema, object_schema
from sightline.dialects.losses import describe
from sightline.dialects.tool_names import fit_choice, function_for, function_instead, tool_names
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report, Severity
from sightline.model.request import ChoiceMode, CustomTool, FunctionTool, OpaqueTool, Request, Tool, ToolChoice
from sightline.wire.jsontext import encode

# Gemini CLI 0.61 writes types in capitals even under `responseJsonSchema`, in the request that picks its model.
_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_SCHEMA_WORDS: Mapping[str, str] = {
    "additional_properties": "additionalProperties",
    "any_of": "anyOf",
    "defs": "$defs",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "prefix_items": "prefixItems",
    "property_ordering": "propertyOrdering",
    "ref": "$ref",
}
_KEYS = SchemaKeys(
    frozenset({"properties", "$defs", "defs", "definitions", "patternProperties"}),
    frozenset({"anyOf", "any_of", "oneOf", "allOf", "prefixItems", "prefix_items"}),
    frozenset({"items", "additionalProperties", "additional_properties", "not"}),
)
_REFUSED: Mapping[str, Severity] = {
    "$schema": "identity",
    "$comment": "identity",
    "uniqueItems": "option",
    "enumDescriptions": "option",
}
"""Keywords for which the API refuses a schema; the first two do not affect which values are valid."""


class WireSchema(dict[str, Json]):
    """A JSON Schema, and the form (`wire`) and key in which the document had it."""

    __slots__ = ("key", "wire")

    def __init__(self, schema: JsonObject, key: str, wire: JsonObject) -> None:
        super().__init__(schema)
        self.key = key
        self.wire = wire


def read_schema(wire: JsonObject, key: str, *, is_openapi: bool) -> JsonObject:
    """The JSON Schema under `key`. Lower-case types show that it is JSON Schema already."""
    root = wire.get("type")
    if type(root) is str and root.islower():
        return WireSchema(wire, key, wire) if is_openapi else wire
    return WireSchema(map_schema(wire, _as_json_schema, _KEYS), key, wire)


def write_schema(schema: JsonObject, key: str) -> tuple[str, JsonObject]:
    """The key and the form of a schema of this dialect: as it was read, otherwise under `key`."""
    if isinstance(schema, WireSchema):
        return schema.key, schema.wire
    return key, schema


def strip_refused(schema: JsonObject, at: str, place: str, report: Report, name: str = "the schema") -> JsonObject:
    """A foreign JSON Schema without what the API refuses; `at` is its place in the source, `place` its place in the
    written body, and `name` what the report calls it."""

    def clean(node: JsonObject, path: str) -> JsonObject:
        for key, severity in _REFUSED.items():
            if key in node:
                report.lose(at, f"{key} at {path or 'the root'} of {name}", "gemini refuses the keyword", severity)
        kept = {key: value for key, value in node.items() if key not in _REFUSED}
        if "$ref" in kept and not all(key[:1] == "$" for key in kept):
            if "anyOf" in kept:
                what = f"anyOf at {path or 'the root'} of {name}"
                report.lose(at, what, "gemini takes it or the $ref beside it, not both", "option")
            kept["anyOf"] = [
                {"$ref": kept.pop("$ref")}
            ]  # the same schema, in the form that allows other keywords beside it
        return kept

    cleaned = map_schema(schema, clean, _KEYS)
    if "type" not in cleaned:
        report.add(f"{place}/type", f"type object of {name}", "gemini wants a type at the root of a schema")
        cleaned = clean({"type": "object", **cleaned}, "")
    return cleaned


def _as_json_schema(node: JsonObject, _path: str) -> JsonObject:
    out: JsonObject = {}
    for key, value in node.items():
        key = _SCHEMA_WORDS.get(key, key)
        if key == "type" and type(value) is str and value in _TYPES:
            value = value.lower()
        elif key in _COUNTS and type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        out[key] = value
    if out.get("nullable") is True and type(out.get("type")) is str:
        del out["nullable"]
        out["type"] = [out["type"], "null"]
    return out


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
    ("navigate", "Go to a URL.", {"url": STRING}, ("url",)),
    ("click_at", "Click at a place.", _AT, ("y", "x")),
    ("hover_at", "Move the mouse to a place.", _AT, ("y", "x")),
    (
        "type_text_at",
        "Click at a place and type a text there.",
        {**_AT, "text": STRING, "press_enter": _FLAG, "clear_before_typing": _FLAG},
        ("y", "x", "text"),
    ),
    ("key_combination", "Press keys together, such as control+c.", {"keys": STRING}, ("keys",)),
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
    """The entry, unchanged and as functions; None if it is not computer use."""
    computer = either(tool, "computerUse")
    if not isinstance(computer, dict):
        return None
    excluded = either(computer, "excludedPredefinedFunctions")
    names = excluded if isinstance(excluded, list) else []
    environment = computer.get("environment")
    where = "" if environment is None else f" The environment is {encode(environment).decode()}."
    functions = tuple(
        FunctionTool(name, words + where, object_schema(required, **properties), at=at)
        for name, words, properties, required in _FUNCTIONS
        if name not in names
    )
    left: JsonObject = rest(tool, both("computerUse"))
    if unread := rest(computer, _MODELLED):
        left = {**left, spelling_of(tool, "computerUse"): unread}
    return OpaqueTool(NAME, tool, functions=functions, at=at, extras=left)


_DECLARATIONS = both("functionDeclarations")
_NAMED = frozenset({"name", "description"})
_WITH_JSON_SCHEMA = _NAMED | both("parametersJsonSchema")
_WITH_OPENAPI_SCHEMA = _NAMED | {"parameters"}
_MODES: Mapping[str, ChoiceMode] = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
_WORDS: Mapping[str, str] = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_NUMBERED_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_CHOICE = both("mode", "allowedFunctionNames")


def read_tools(value: Json, at: str) -> tuple[Tool, ...]:
    """The tools in order; anything that is not a declared function is opaque."""
    tools: list[Tool] = []
    for index, item in enumerate(as_list(value, at)):
        place = f"{at}/{index}"
        holder = as_object(item, place)
        key = spelling_of(holder, "functionDeclarations")
        declared = opt_list(holder, key, place)
        tools.extend(_declaration(entry, f"{place}/{key}/{number}") for number, entry in enumerate(declared))
        others = rest(holder, _DECLARATIONS) if declared else holder
        if others or not declared:
            tools.append(read_computer(others, place) or OpaqueTool(NAME, others, at=place))
    return tuple(tools)


def _declaration(value: Json, at: str) -> FunctionTool:
    entry = as_object(value, at)
    key, known = spelling_of(entry, "parametersJsonSchema"), _WITH_JSON_SCHEMA
    schema = opt_object(entry, key, at)
    if schema is not None:
        schema = read_schema(schema, "parametersJsonSchema", is_openapi=False)
    else:
        known = _WITH_OPENAPI_SCHEMA
        schema = opt_object(entry, "parameters", at)
        if schema is not None:
            schema = read_schema(schema, "parameters", is_openapi=True)
    return FunctionTool(
        str_of(entry, "name", at), opt_str(entry, "description", at), schema, at=at, extras=rest(entry, known)
    )


def write_tools(request: Request, report: Report) -> list[Json]:
    """The tools in the API's form."""
    if request.dialect == NAME:
        return _write_unchanged(request.tools)
    declared: list[Json] = []
    for tool in request.tools:
        match tool:
            case OpaqueTool():
                report.lose(tool.at, describe(tool), "gemini has no such tool", "option")
            case CustomTool():
                place = f"/tools/0/functionDeclarations/{len(declared)}"
                declared.append(_write_declaration(function_instead(tool, place, report, NAME), len(declared), report))
            case FunctionTool():
                declared.append(_write_declaration(tool, len(declared), report))
            case unreachable:
                assert_never(unreachable)
        if tool.cache is not None:
            report.lose(tool.cache.at or tool.at, "cache breakpoint", "gemini has no cache breakpoints", "option")
    return [{"functionDeclarations": declared}] if declared else []


def _write_declaration(tool: FunctionTool, index: int, report: Report) -> JsonObject:
    entry = compact({"name": tool.name, "description": tool.description})
    if tool.schema is not None:
        place = f"/tools/0/functionDeclarations/{index}/parametersJsonSchema"
        entry["parametersJsonSchema"] = strip_refused(tool.schema, tool.at, place, report, f"the schema of {tool.name}")
    if tool.strict is not None:
        why = "gemini has no strict flag on a function"
        report.lose(tool.at, "strict", why, "option" if tool.strict else "identity")
    return entry


def _write_unchanged(tools: tuple[Tool, ...]) -> list[Json]:
    holders: dict[str, JsonObject] = {}
    for tool in tools:
        place = "/".join(tool.at.split("/")[:3])
        holder = holders.setdefault(place, {})
        if isinstance(tool, OpaqueTool):
            restore_extras(holder, as_object(tool.value, tool.at))
            continue
        function = function_for(tool) if isinstance(tool, CustomTool) else tool
        entry = compact({"name": function.name, "description": function.description})
        if function.schema is not None:
            key, schema = write_schema(function.schema, "parametersJsonSchema")
            entry[key] = schema
        declared = holder.setdefault("functionDeclarations", [])
        as_list(declared, tool.at).append(restore_extras(entry, function.extras))
    return list(holders.values())


def read_choice(config: JsonObject, at: str) -> ToolChoice | None:
    """The choice of a `functionCallingConfig`; a mode without an equivalent elsewhere is kept beside ours."""
    if not config:
        return None
    word = read_enum(config, "mode", _NUMBERED_MODES, at)
    key = spelling_of(config, "allowedFunctionNames")
    names = tuple(as_str(name, f"{at}/{key}/{index}") for index, name in enumerate(opt_list(config, key, at)))
    mode = _MODES.get((word or "").upper())
    if mode is None:
        return ToolChoice("opaque", value=config, at=at)
    extras = rest(config, _CHOICE)
    if word is not None and word.upper() == "VALIDATED":
        extras = {**extras, "mode": word}
    return ToolChoice(mode, names, at=at, extras=extras)


def write_choice(request: Request, declared: list[Json], report: Report) -> JsonObject | None:
    """The `functionCallingConfig` of a choice; it is not allowed without functions."""
    choice = request.tool_choice
    if choice is None:
        return None
    if request.dialect == NAME and choice.mode == "opaque":
        return dict(as_object(choice.value, choice.at))
    if request.dialect == NAME:
        return restore_extras(_calling_config(_WORDS[choice.mode], choice.names), choice.extras)
    choice = fit_choice(choice, tool_names(request.tools), report, NAME, has_tools=bool(declared))
    if choice is None:
        return None
    # If calls are optional and the names restricted, only VALIDATED takes names.
    word = "VALIDATED" if choice.mode == "auto" and choice.names else _WORDS[choice.mode]
    return _calling_config(word, choice.names)


def _calling_config(word: str, names: tuple[str, ...]) -> JsonObject:
    return {"mode": word, "allowedFunctionNames": list(names)} if names else {"mode": word}


def read_tool_config(config: JsonObject, at: str) -> tuple[ToolChoice | None, JsonObject]:
    """The choice, and the members of `toolConfig` that are not modelled."""
    key = spelling_of(config, "functionCallingConfig")
    calling = either(config, "functionCallingConfig")
    choice = None if calling is None else read_choice(as_object(calling, f"{at}/{key}"), f"{at}/{key}")
    known = frozenset() if choice is None else both("functionCallingConfig")
    return choice, rest(config, known)
