"""JSON Schemas in requests: walking them, and what an API that reads them refuses."""

from collections.abc import Iterator

from sightline.dialects.dialect import Problem
from sightline.model.json import Json, JsonObject
from sightline.model.options import SchemaFormat
from sightline.model.report import Report
from sightline.model.tools import FunctionTool
from sightline.wire.pointer import join

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types that JSON Schema has."""

SCHEMA_TYPE, CLOSED, REQUIRED = "schema_type", "closed_object", "required_properties"
"""The rules that an edit can mend."""

_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NODES = frozenset({"items", "additionalProperties", "not", "if", "then", "else"})
_DEPTH = 100
"""A schema nested deeper than this is not looked at below that level."""

# "Some type-specific keywords are not yet supported" and the errors "'oneOf' is not permitted", "'allOf' is not
# permitted" (developers.openai.com, "Structured model outputs", 2026-11).
_NOT_STRICT = ("oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")


def schema_nodes(schema: JsonObject, at: str, depth: int = 0) -> Iterator[tuple[str, JsonObject]]:
    """A schema and every schema within it, each with its place; never values such as defaults and enums."""
    yield at, schema
    if depth >= _DEPTH:
        return
    for key, value in schema.items():
        children: list[tuple[str, Json]] = []
        if key in _MAPS and isinstance(value, dict):
            children = [(join(at, key, name), inner) for name, inner in value.items()]
        elif key in _LISTS and isinstance(value, list):
            children = [(join(at, key, index), inner) for index, inner in enumerate(value)]
        elif key in _NODES:
            children = [(join(at, key), value)]
        for place, inner in children:
            if isinstance(inner, dict):
                yield from schema_nodes(inner, place, depth + 1)


def type_problems(schema: JsonObject, at: str) -> Iterator[Problem]:
    """Types that do not exist."""
    for place, node in schema_nodes(schema, at):
        kind = node.get("type")
        for word in kind if isinstance(kind, list) else [] if kind is None else [kind]:
            if word not in TYPES:
                yield Problem(f"{place}/type", f"there is no schema type {word!r}", rule=SCHEMA_TYPE)


def strict_problems(schema: JsonObject, at: str) -> Iterator[Problem]:
    """What keeps a schema from being strict: an open object, an optional property, a keyword."""
    for place, node in schema_nodes(schema, at):
        if is_object_schema(node):
            if node.get("additionalProperties") is not False:
                yield Problem(place, "an object of a strict schema must have additionalProperties false", rule=CLOSED)
            missing = ", ".join(map(repr, optional_properties(node)))
            if missing:
                yield Problem(place, f"a strict schema must require every property: {missing}", rule=REQUIRED)
        for key in _NOT_STRICT:
            if key in node:
                yield Problem(join(place, key), f"a strict schema cannot use {key}")


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
