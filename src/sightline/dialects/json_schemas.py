"""JSON Schemas in requests: walking them, and what an API that reads them refuses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sightline.dialects.dialect import Problem
from sightline.model.json import Json, JsonObject
from sightline.model.options import SchemaFormat
from sightline.model.report import Report
from sightline.model.tools import FunctionTool
from sightline.wire.pointer import join

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types that JSON Schema has."""

SCHEMA_TYPE, CLOSED, REQUIRED, UNTYPED = "schema_type", "closed_object", "required_properties", "untyped"
KEYWORD = "strict_keyword"
"""The rules that an edit can mend."""

_DEPTH = 100
"""A schema nested deeper than this is not looked at, and stays as it is, below that level."""


@dataclass(frozen=True, slots=True)
class SchemaKeys:
    """The keys below which a schema holds others: by name, in a list, or one."""

    maps: frozenset[str]
    lists: frozenset[str]
    nodes: frozenset[str]


JSON_SCHEMA = SchemaKeys(
    frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}),
    frozenset({"anyOf", "oneOf", "allOf", "prefixItems"}),
    frozenset({"items", "additionalProperties", "not", "if", "then", "else"}),
)
SchemaRule = Callable[[JsonObject, str], JsonObject]
"""One node of a schema and its path -> the node as it is to be."""

# What is not among the keywords of "Supported schemas" (developers.openai.com, "Structured model outputs", 2026-11) is
# answered with "'allOf' is not permitted", "'uniqueItems' is not permitted" and the like. A `default` is taken by
# OpenAI today and was not before; Azure still refuses it.
NOT_STRICT = (
    *("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "prefixItems"),
    *("patternProperties", "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties"),
    *("unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems"),
)
"""Keywords that strict mode refuses and that have no other spelling; `oneOf` has one, `anyOf`."""

_TYPED = frozenset({"type", "anyOf", "oneOf", "$ref", "enum", "const"})
"""A schema without any of these may be anything, which strict mode cannot keep to."""


def schema_nodes(schema: JsonObject, at: str, depth: int = 0) -> Iterator[tuple[str, JsonObject]]:
    """A schema and every schema within it, each with its place; never values such as defaults and enums."""
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
    """What keeps a schema from being strict: an open object, an optional property, a keyword, a value of any type."""
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
    """The places of the schemas right within this one that are `true`, which is anything."""
    properties = node.get("properties")
    if isinstance(properties, dict):
        yield from (join(at, "properties", name) for name, inner in properties.items() if inner is True)
    if node.get("items") is True:
        yield f"{at}/items"


def is_untyped(node: JsonObject) -> bool:
    """Whether a schema does not say what its values are."""
    return not _TYPED.intersection(node) and not any(key in node for key in NOT_STRICT)


def or_null(schema: Json) -> Json:
    """The same or null: what strict mode has for a property that may be left out."""
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
    """Whether OpenAI can keep to the schema of another dialect, whose rules may be milder."""
    # What was not read anywhere is our own, and is made valid where it is composed.
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
    """The properties that an object may do without."""
    properties, required = node.get("properties"), node.get("required")
    kept = required if isinstance(required, list) else []
    return [name for name in properties if name not in kept] if isinstance(properties, dict) else []
