"""Schemas: Google's OpenAPI form (`OBJECT`, `nullable`, numbers as strings) read as JSON Schema, and JSON Schema in the
part of it that the API takes.

A schema that stood in another form than ours remembers that form and its key, so that a same-dialect write is exact.
"""

from collections.abc import Mapping

from sightline.dialects.json_schemas import SchemaKeys, map_schema
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report, Severity

_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_WORDS: Mapping[str, str] = {
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
"""Keywords for which the API refuses a schema; the first two say nothing about what fits it."""


class WireSchema(dict[str, Json]):
    """A JSON Schema, and the form (`wire`) and key in which the document had it."""

    __slots__ = ("key", "wire")

    def __init__(self, schema: JsonObject, key: str, wire: JsonObject) -> None:
        super().__init__(schema)
        self.key = key
        self.wire = wire


def read_schema(wire: JsonObject, key: str, *, is_openapi: bool) -> JsonObject:
    """The JSON Schema that stood under `key`. Lower-case types say that it is JSON Schema already."""
    root = wire.get("type")
    if type(root) is str and root.islower():
        return WireSchema(wire, key, wire) if is_openapi else wire
    return WireSchema(map_schema(wire, _as_json_schema, _KEYS), key, wire)


def write_schema(schema: JsonObject, key: str) -> tuple[str, JsonObject]:
    """Where a schema of this dialect goes and in which form: as it stood, else under `key`."""
    if isinstance(schema, WireSchema):
        return schema.key, schema.wire
    return key, schema


def strip_refused(schema: JsonObject, at: str, place: str, report: Report, name: str = "the schema") -> JsonObject:
    """A foreign JSON Schema without what the API refuses; `at` is its place in the source, `place` where it goes, and
    `name` what the report calls it."""

    def clean(node: JsonObject, path: str) -> JsonObject:
        for key, severity in _REFUSED.items():
            if key in node:
                report.lose(at, f"{key} at {path or 'the root'} of {name}", "gemini refuses the keyword", severity)
        kept = {key: value for key, value in node.items() if key not in _REFUSED}
        if "$ref" in kept and not all(key[:1] == "$" for key in kept):
            if "anyOf" in kept:
                what = f"anyOf at {path or 'the root'} of {name}"
                report.lose(at, what, "gemini takes it or the $ref beside it, not both", "option")
            kept["anyOf"] = [{"$ref": kept.pop("$ref")}]  # the same schema, in the form that may have neighbours
        return kept

    cleaned = map_schema(schema, clean, _KEYS)
    if "type" not in cleaned:
        report.add(f"{place}/type", f"type object of {name}", "gemini wants a type at the root of a schema")
        cleaned = clean({"type": "object", **cleaned}, "")
    return cleaned


def _as_json_schema(node: JsonObject, _path: str) -> JsonObject:
    out: JsonObject = {}
    for key, value in node.items():
        key = _WORDS.get(key, key)
        if key == "type" and type(value) is str and value in _TYPES:
            value = value.lower()
        elif key in _COUNTS and type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        out[key] = value
    if out.get("nullable") is True and type(out.get("type")) is str:
        del out["nullable"]
        out["type"] = [out["type"], "null"]
    return out
