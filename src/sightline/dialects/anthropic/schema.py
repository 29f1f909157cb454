"""Schemas to which the API keeps the model: every object in them must say that it has no other properties."""

from collections.abc import Callable

from sightline.dialects.anthropic.names import NAME
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.wire.pointer import join

_KEY = "additionalProperties"
_WHY = f"{NAME} keeps to schemas only whose objects are closed"
_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NODES = frozenset({"items", "not", "if", "then", "else"})
_DEPTH = 100
"""A schema nested deeper than this is left as it is below that level."""


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

    return _map_schema(schema, close, "", 0)


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

    _map_schema(schema, look, "", 0)
    return found


def _is_open(node: JsonObject) -> bool:
    kind = node.get("type")
    return (kind == "object" or (isinstance(kind, list) and "object" in kind)) and node.get(_KEY) is not False


def _map_schema(node: JsonObject, rule: Callable[[JsonObject, str], JsonObject], path: str, depth: int) -> JsonObject:
    """The schema with the rule applied to every node, never to values such as defaults and enums."""
    if depth > _DEPTH:
        return node

    def child(value: Json, *tokens: str | int) -> Json:
        return _map_schema(value, rule, join(path, *tokens), depth + 1) if isinstance(value, dict) else value

    out: JsonObject = {}
    for key, value in node.items():
        if key in _MAPS and isinstance(value, dict):
            out[key] = {name: child(inner, key, name) for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            out[key] = [child(inner, key, index) for index, inner in enumerate(value)]
        else:
            out[key] = child(value, key) if key in _NODES else value
    return rule(out, path)
