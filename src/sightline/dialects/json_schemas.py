"""JSON Schemas in requests: walking them, what APIs refuse in them, and the form that strict mode takes.

What OpenAI's strict mode refuses is expressed differently: every property is required and may be null instead, an
object has no additional properties, `anyOf` replaces `oneOf`, a `default` is left out (not every server of OpenAI's
models takes it). A schema that cannot be expressed differently, such as an object with any keys, cannot be strict.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from sightline.dialects.dialect import Problem
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.request import FunctionTool, Request, SchemaFormat, Tool
from sightline.wire.pointer import join

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types of JSON Schema."""

SCHEMA_TYPE, CLOSED, REQUIRED, UNTYPED = "schema_type", "closed_object", "required_properties", "untyped"
KEYWORD = "strict_keyword"
"""The rules whose violations an edit can fix."""

_DEPTH = 100
"""A schema nested deeper than this is neither checked nor changed below that level."""


@dataclass(frozen=True, slots=True)
class SchemaKeys:
    """The keys below which a schema holds other schemas: by name, in a list, or a single one."""

    maps: frozenset[str]
    lists: frozenset[str]
    nodes: frozenset[str]


JSON_SCHEMA = SchemaKeys(
    frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}),
    frozenset({"anyOf", "oneOf", "allOf", "prefixItems"}),
    frozenset({"items", "additionalProperties", "not", "if", "then", "else"}),
)
STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}


def object_schema(required: Iterable[str], **properties: Json) -> JsonObject:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties, "required": list(required)}


SchemaRule = Callable[[JsonObject, str], JsonObject]
"""A node of a schema and its path -> the node as it should be."""

# OpenAI answers keywords that are not among those of "Supported schemas" (developers.openai.com, "Structured model
# outputs", 2026-11) with "'allOf' is not permitted", "'uniqueItems' is not permitted" and the like. OpenAI takes a
# `default` today and did not before; Azure still refuses it.
NOT_STRICT = (
    *("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "prefixItems"),
    *("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties"),
    *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
)
"""Keywords that strict mode refuses and that cannot be expressed differently; `oneOf` can, as `anyOf`."""

_TYPED = frozenset({"type", "anyOf", "oneOf", "$ref", "enum", "const"})
"""A schema without any of these allows any value, which strict mode cannot enforce."""


def schema_nodes(schema: JsonObject, at: str, depth: int = 0) -> Iterator[tuple[str, JsonObject]]:
    """A schema and every schema within it, each with its pointer; never values such as defaults and enums."""
    yield at, schema
    if depth >= _DEPTH:
        return
    for key, value in schema.items():
        children: list[tuple[str, Json]] = []
        if key in JSON_SCHEMA.maps and isinstance(value, dict):
            children = [(join(at, key, name), inner) for name, inner in value.items()]
        elif key in JSON_SCHEMA.lists and isinstance(value, list):
            children = [(join(at, key, index), inner) for index, inner in enumerate(value)]
        elif key in JSON_SCHEMA.nodes:
            children = [(join(at, key), value)]
        for place, inner in children:
            if isinstance(inner, dict):
                yield from schema_nodes(inner, place, depth + 1)


def map_schema(
    node: JsonObject, rule: SchemaRule, keys: SchemaKeys = JSON_SCHEMA, path: str = "", depth: int = 0
) -> JsonObject:
    """The schema with the rule applied to every node, the inner ones first; never to values such as defaults."""
    if depth > _DEPTH:
        return node

    def child(value: Json, *tokens: str | int) -> Json:
        return map_schema(value, rule, keys, join(path, *tokens), depth + 1) if isinstance(value, dict) else value

    out: JsonObject = {}
    for key, value in node.items():
        if key in keys.maps and isinstance(value, dict):
            out[key] = {name: child(inner, key, name) for name, inner in value.items()}
        elif key in keys.lists and isinstance(value, list):
            out[key] = [child(inner, key, index) for index, inner in enumerate(value)]
        else:
            out[key] = child(value, key) if key in keys.nodes else value
    return rule(out, path)


def type_problems(schema: JsonObject, at: str) -> Iterator[Problem]:
    """Types that do not exist."""
    for place, node in schema_nodes(schema, at):
        kind = node.get("type")
        for word in kind if isinstance(kind, list) else [] if kind is None else [kind]:
            if word not in TYPES:
                yield Problem(f"{place}/type", f"there is no schema type {word!r}", rule=SCHEMA_TYPE)


def strict_problems(schema: JsonObject, at: str) -> Iterator[Problem]:
    """What keeps a schema from being strict: open objects, optional properties, refused keywords, untyped values."""
    for place, node in schema_nodes(schema, at):
        if is_object_schema(node):
            if node.get("additionalProperties") is not False:
                yield Problem(place, "an object of a strict schema must have additionalProperties false", rule=CLOSED)
            missing = ", ".join(map(repr, optional_properties(node)))
            if missing:
                yield Problem(place, f"a strict schema must require every property: {missing}", rule=REQUIRED)
        for key in ("oneOf", *NOT_STRICT):
            if key in node:
                yield Problem(join(place, key), f"a strict schema cannot use {key}", rule=KEYWORD)
        for where in [*([place] if is_untyped(node) else []), *_true_schema_places(node, place)]:
            yield Problem(where, "a strict schema must say the type of every value", rule=UNTYPED)


def _true_schema_places(node: JsonObject, at: str) -> Iterator[str]:
    """The places of the direct subschemas that are `true`, which allows anything."""
    properties = node.get("properties")
    if isinstance(properties, dict):
        yield from (join(at, "properties", name) for name, inner in properties.items() if inner is True)
    if node.get("items") is True:
        yield f"{at}/items"


def is_untyped(node: JsonObject) -> bool:
    """Whether a schema does not state the type of its values."""
    return not _TYPED.intersection(node) and not any(key in node for key in NOT_STRICT)


def or_null(schema: Json) -> Json:
    """The schema with null allowed: how strict mode expresses a property that may be left out."""
    if not isinstance(schema, dict):
        return schema
    null: JsonObject = {"type": "null"}
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        return schema if null in branches else {**schema, "anyOf": [*branches, null]}
    if "$ref" in schema or "const" in schema or "type" not in schema:
        about = {key: inner for key, inner in schema.items() if key == "description"}
        rest: JsonObject = {key: inner for key, inner in schema.items() if key != "description"}
        return {**about, "anyOf": [rest, null]}
    kind = schema["type"]
    types = kind if isinstance(kind, list) else [kind]
    if "null" in types:
        return schema
    made: JsonObject = {**schema, "type": [*types, "null"]}
    if isinstance(options := schema.get("enum"), list) and None not in options:
        made["enum"] = [*options, None]
    return made


def fit_strict(value: FunctionTool | SchemaFormat, report: Report, dialect: str) -> bool | None:
    """Whether OpenAI can enforce the schema of another dialect, whose rules may be milder."""
    # A schema without a place was not read from a request but is our own, and is made valid where it is composed.
    if value.strict and value.schema and value.at and any(strict_problems(value.schema, "")):
        why = f"{dialect} keeps only to schemas whose objects are closed and require every property"
        report.lose(value.at, "strict", why, "option")
        return False
    return value.strict


def is_object_schema(node: JsonObject) -> bool:
    """Whether a schema describes objects."""
    kind = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or (kind is None and "properties" in node)


def optional_properties(node: JsonObject) -> list[str]:
    """The properties that are not required."""
    properties, required = node.get("properties"), node.get("required")
    kept = required if isinstance(required, list) else []
    return [name for name in properties if name not in kept] if isinstance(properties, dict) else []


_NOT_AT_ROOT = ("anyOf", "oneOf", "enum")
"""The root of a strict schema must be a plain object."""


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """The schema, the changes with their places, or `obstacle`: the place and the reason why it cannot be strict."""

    schema: JsonObject
    changes: tuple[tuple[str, str], ...] = ()
    obstacle: tuple[str, str] | None = None


def strict_schema(schema: JsonObject) -> StrictSchema:
    """The schema in the form that strict mode takes. Pointers are relative to its root."""
    making = _StrictConverter()
    making.obstacles += [(f"/{key}", f"its root has {key}") for key in _NOT_AT_ROOT if key in schema]
    made = making.object({"type": "object", **schema}, "")
    if making.obstacles:
        return StrictSchema(schema, obstacle=making.obstacles[0])
    return StrictSchema(made, tuple(making.changes))


@dataclass(slots=True)
class _StrictConverter:
    changes: list[tuple[str, str]] = field(default_factory=list)
    obstacles: list[tuple[str, str]] = field(default_factory=list)

    def any(self, value: Json, at: str) -> Json:
        """Convert any schema below the root."""
        if not isinstance(value, dict):
            if value is True:
                self.obstacles.append((at, "it may be anything"))
            return value
        if is_object_schema(value):
            if not value.get("properties") and value.get("additionalProperties") is None:
                self.obstacles.append((at, "it is an object with any keys"))
            return self.object(value, at)
        if is_untyped(value):
            self.obstacles.append((at, "it may be anything"))
        return self._plain(value, at)

    def object(self, value: JsonObject, at: str) -> JsonObject:
        """Convert the schema of an object: closed, with every property required."""
        others, has_names = value.get("additionalProperties"), bool(value.get("properties"))
        # With named properties, "others are allowed" is the usual default and means little; without any it means a map.
        if others not in (None, False) and not (others is True and has_names):
            self.obstacles.append((f"{at}/additionalProperties", "it is an object with any keys"))
        made = self._plain(value, at)
        before = made.get("properties")
        named = before if isinstance(before, dict) else {}
        stated = made.get("required")
        required = [name for name in stated if isinstance(name, str)] if isinstance(stated, list) else []
        properties: JsonObject = {}
        for name, each in named.items():
            place = join(at, "properties", name)
            if name in required:
                properties[name] = each
            else:
                properties[name] = or_null(each)
                self.changes.append((place, "required, with null for an absent value"))
        if stated is not None and set(required) - set(properties):
            self.changes.append((f"{at}/required", "only names of properties"))
        if "type" not in made:
            made = {"type": "object", **made}
            self.changes.append((f"{at}/type", "set to object"))
        if made.get("additionalProperties") is not False:
            self.changes.append((f"{at}/additionalProperties", "set to false"))
        return {**made, "properties": properties, "required": list(properties), "additionalProperties": False}

    def _plain(self, value: JsonObject, at: str) -> JsonObject:
        """Convert every schema inside this one."""
        made: JsonObject = {}
        for key, inner in value.items():
            place = join(at, key)
            match key, inner:
                case (("properties" | "$defs" | "definitions"), dict()):
                    made[key] = {name: self.any(each, join(place, name)) for name, each in inner.items()}
                case "items", _:
                    made[key] = self.any(inner, place)
                case (("anyOf" | "oneOf"), list()):
                    if "anyOf" in made:
                        self.obstacles.append((place, "strict mode cannot require one of two lists at once"))
                    if key == "oneOf":
                        self.changes.append((place, "replaced by anyOf"))
                    made["anyOf"] = [self.any(each, f"{place}/{n}") for n, each in enumerate(inner)]
                case "default", _:
                    self.changes.append((place, "removed"))
                case _ if key in NOT_STRICT:
                    self.obstacles.append((place, f"strict mode has no {key}"))
                case _:
                    made[key] = inner
        return made


_PLACES: Mapping[str, tuple[str, str]] = {
    "openai-responses": ("/tools/{}", "/text/format/schema"),
    "openai-chat": ("/tools/{}/function", "/response_format/json_schema/schema"),
}
"""Where a dialect has the fields of a tool, and the schema of the answer."""


def with_strict_schemas(request: Request, dialect: str, report: Report) -> Request:
    """The request with its strict schemas made valid, each change reported as an addition. A schema that cannot be made
    valid is no longer strict, which is reported as a loss. A request that was read from this dialect stays as it was
    written."""
    if dialect not in _PLACES or request.dialect == dialect:
        return request
    tool_at, output_at = _PLACES[dialect]
    tools = tuple(_tool(tool, tool_at.format(n), report) for n, tool in enumerate(request.tools))
    options = request.options
    if isinstance(options.format, SchemaFormat) and options.format.strict:
        made = _schema(options.format.schema, output_at, report)
        changed = {"strict": False} if made is None else {"schema": made}
        options = msgspec.structs.replace(options, format=msgspec.structs.replace(options.format, **changed))
    return msgspec.structs.replace(request, tools=tools, options=options)


def _tool(tool: Tool, at: str, report: Report) -> Tool:
    if not isinstance(tool, FunctionTool) or not tool.strict:
        return tool
    made = _schema(tool.schema or {}, f"{at}/parameters", report)
    if made is None:
        return msgspec.structs.replace(tool, strict=False)
    description = tool.description
    if not (description or "").strip():
        description = f"The tool {tool.name}."
        report.add(f"{at}/description", "added", "strict tools need a description")
    return msgspec.structs.replace(tool, schema=made, description=description)


def _schema(schema: JsonObject, at: str, report: Report) -> JsonObject | None:
    made = strict_schema(schema)
    if made.obstacle is not None:
        place, why = made.obstacle
        report.lose(f"{at}{place}", "strict", f"the schema cannot be strict here: {why}", "option")
        return None
    for place, what in made.changes:
        report.add(f"{at}{place}", what, "strict schemas require it")
    return made.schema
