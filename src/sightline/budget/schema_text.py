"""A JSON Schema as the type declarations that OpenAI's models are shown in its place; the count follows that text."""

import json
from collections.abc import Iterator

from sightline.model.json import Json, JsonObject
from sightline.model.tools import FunctionTool

_DEEPEST = 16
_REFERENCES = 200


def declarations(tools: tuple[FunctionTool, ...]) -> str:
    """The functions of a request as one namespace of types."""
    lines = ["namespace functions {", ""]
    for tool in tools:
        lines += [f"// {line}" for line in (tool.description or "").splitlines()]
        schema = tool.schema or {}
        if members := list(_Writer(schema).members(schema, 0)):
            lines += [f"type {tool.name} = (_: {{", *members, "}) => any;", ""]
        else:
            lines += [f"type {tool.name} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def declaration(schema: JsonObject) -> str:
    """One schema as a type."""
    return _Writer(schema).type(schema, 0)


class _Writer:
    """Writes one schema. References are followed so and so often, then no more: some schemas never end."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._references = _REFERENCES

    def members(self, schema: JsonObject, depth: int) -> Iterator[str]:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict):
            return
        for name, member in properties.items():
            is_required = isinstance(required, list) and name in required
            if isinstance(member, dict) and isinstance(about := member.get("description"), str):
                yield from (f"// {line}" for line in about.splitlines())
            line = f"{name}{'' if is_required else '?'}: {self.type(member, depth + 1)},"
            if isinstance(member, dict) and "default" in member:
                line += f" // default: {json.dumps(member['default'], ensure_ascii=False)}"
            yield line

    def type(self, schema: Json, depth: int) -> str:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return "any"
        if isinstance(reference := schema.get("$ref"), str):
            return self.type(self._resolved(reference), depth + 1)
        if isinstance(values := schema.get("enum"), list):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        for several in ("anyOf", "oneOf", "allOf"):
            if isinstance(kinds := schema.get(several), list):
                return " | ".join(self.type(kind, depth + 1) for kind in kinds)
        named = schema.get("type")
        if isinstance(named, list):
            return " | ".join(self._simple(kind, schema, depth) for kind in named)
        return self._simple(named, schema, depth)

    def _simple(self, kind: Json, schema: JsonObject, depth: int) -> str:
        match kind:
            case "string" | "boolean" | "null" | "number":
                return str(kind)
            case "integer":
                return "number"
            case "array":
                return f"{self.type(schema.get('items'), depth + 1)}[]"
            case "object":
                members = list(self.members(schema, depth))
                return "\n".join(["{", *members, "}"]) if members else "object"
            case _:
                return "any"

    def _resolved(self, reference: str) -> Json:
        self._references -= 1
        value: Json = self._root if self._references >= 0 else None
        for step in filter(None, reference.removeprefix("#").split("/")):
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        return value
