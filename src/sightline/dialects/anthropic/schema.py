"""Schemas to which the API keeps the model: every object in them must say that it has no other properties."""

from dataclasses import replace

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.json_schemas import JSON_SCHEMA, map_schema
from sightline.model.json import JsonObject
from sightline.model.report import Report

_KEY = "additionalProperties"
_WHY = f"{NAME} keeps to schemas only whose objects are closed"
_KEYS = replace(JSON_SCHEMA, nodes=JSON_SCHEMA.nodes - {_KEY})
"""What may be in other properties is not looked at: there are none in the end."""


def close_objects(schema: JsonObject, at: str, place: str, report: Report) -> JsonObject:
    """A foreign schema with every object closed. `at` is its place in the source, `place` where it goes."""

    def close(node: JsonObject, path: str) -> JsonObject:
        if not _is_open(node):
            return node
        if _KEY in node:
            report.lose(at, f"other properties at {path or 'the root'} of the schema", _WHY, "option")
        else:
            report.add(f"{place}{path}/{_KEY}", "false", _WHY)
        return {**node, _KEY: False}

    return map_schema(schema, close, _KEYS)


def any_open(schema: JsonObject) -> bool:
    """Whether an object of this schema takes other properties and says so."""
    return any(_KEY in node for node in open_objects(schema).values())


def open_objects(schema: JsonObject) -> dict[str, JsonObject]:
    """The objects of a schema that are not closed, by their pointers within it."""
    found: dict[str, JsonObject] = {}

    def look(node: JsonObject, path: str) -> JsonObject:
        if _is_open(node):
            found[path] = node
        return node

    map_schema(schema, look, _KEYS)
    return found


def _is_open(node: JsonObject) -> bool:
    kind = node.get("type")
    return (kind == "object" or (isinstance(kind, list) and "object" in kind)) and node.get(_KEY) is not False
