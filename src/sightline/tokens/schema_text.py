"""A JSON Schema as the type declarations that OpenAI's models are shown in its place; the count follows that text."""

import json
from collections.abc import Iterator

from sightline.model.json import Json, JsonObject
from sightline.model.tools import FunctionTool

_DEEPEST = 16
_REFERENCES = 200
LONGEST = 1_000_000
"""About as many characters are written, which is more than any model reads; the rest is `any`."""


def declarations(tools: tuple[FunctionTool, ...]) -> str:
    """The functions of a request as one namespace of types."""
    lines = ["namespace functions {", ""]
    left = LONGEST
    for tool in tools:
        lines += [f"// {line}" for line in (tool.description or "").splitlines()]
        schema = tool.schema or {}
        writer = _Writer(schema, left)
        members = list(writer.members(schema, 0))
        left = writer.left
        if members:
            lines += [f"type {tool.name} = (_: {{", *members, "}) => any;", ""]
        else:
            lines += [f"type {tool.name} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def declaration(schema: JsonObject) -> str:
    """One schema as a type."""
    return _Writer(schema, LONGEST).type(schema, 0)


class _Writer:
    """Writes one schema. References are followed so and so often, then no more: some schemas never end.

    `left` is how many characters may still be written.
    """

    def __init__(self, root: JsonObject, left: int) -> None:
        self.left = left
        self._root = root
        self._references = _REFERENCES

    def members(self, schema: JsonObject, depth: int) -> Iterator[str]:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict):
            return
        needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else frozenset()
        for name, member in properties.items():
            if self.left <= 0:
                return
            if isinstance(member, dict) and isinstance(about := member.get("description"), str):
                yield from (f"// {line}" for line in self._spend(about).splitlines())
            line = f"{self._spend(name)}{'' if name in needed else '?'}: {self.type(member, depth + 1)},"
            if isinstance(member, dict) and "default" in member and self.left > 0:
                line += f" // default: {self._json(member['default'])}"
            yield line

    def type(self, schema: Json, depth: int) -> str:
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left <= 0:
            return self._spend("any")
        if isinstance(reference := schema.get("$ref"), str):
            return self.type(self._resolve(reference), depth + 1)
        if isinstance(values := schema.get("enum"), list):
            return " | ".join(self._json(value) for value in values)
        if "const" in schema:
            return self._json(schema["const"])
        for several in ("anyOf", "oneOf", "allOf"):
            if isinstance(kinds := schema.get(several), list):
                return " | ".join(self.type(kind, depth + 1) for kind in kinds)
        named = schema.get("type")
        if isinstance(named, list):
            kinds_named = dict.fromkeys(kind if isinstance(kind, str) else "" for kind in named)
            return " | ".join(self._simple(kind, schema, depth) for kind in kinds_named)
        return self._simple(named, schema, depth)

    def _simple(self, kind: Json, schema: JsonObject, depth: int) -> str:
        match kind:
            case "string" | "boolean" | "null" | "number":
                return self._spend(str(kind))
            case "integer":
                return self._spend("number")
            case "array":
                return f"{self.type(schema.get('items'), depth + 1)}[]"
            case "object":
                members = list(self.members(schema, depth))
                return "\n".join(["{", *members, "}"]) if members else "object"
            case _:
                return self._spend("any")

    def _json(self, value: Json) -> str:
        return self._spend(json.dumps(value, ensure_ascii=False))

    def _spend(self, text: str) -> str:
        self.left -= len(text)
        return text

    def _resolve(self, reference: str) -> Json:
        self._references -= 1
        value: Json = self._root if self._references >= 0 else None
        for step in filter(None, reference.removeprefix("#").split("/")):
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        return value
