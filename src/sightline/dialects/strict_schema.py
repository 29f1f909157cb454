"""A JSON schema that OpenAI's strict mode takes, made from one that says the same to a reader.

What strict mode refuses is known to `json_schemas`; here it is said in another way: every property is required and may
be null instead, an object has no others, `anyOf` stands for `oneOf`, a `default` is left out (not every server of
OpenAI's models takes it). What has no other way, such as an object with any keys, cannot be strict.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from sightline.dialects.json_schemas import NOT_STRICT, is_object_schema, is_untyped, or_null
from sightline.model.json import Json, JsonObject
from sightline.model.options import SchemaFormat
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import FunctionTool, Tool
from sightline.wire.pointer import join

_NOT_AT_ROOT = ("anyOf", "oneOf", "enum")
"""The root of a strict schema is an object and nothing else."""


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """The schema, what was changed where, or `obstacle`: the place and the reason why it cannot be strict."""

    schema: JsonObject
    changes: tuple[tuple[str, str], ...] = ()
    obstacle: tuple[str, str] | None = None


def strict_schema(schema: JsonObject) -> StrictSchema:
    """The schema as strict mode takes it. Pointers are from its own root."""
    making = _Making()
    making.obstacles += [(f"/{key}", f"its root has {key}") for key in _NOT_AT_ROOT if key in schema]
    made = making.object({"type": "object", **schema}, "")
    if making.obstacles:
        return StrictSchema(schema, obstacle=making.obstacles[0])
    return StrictSchema(made, tuple(making.changes))


@dataclass(slots=True)
class _Making:
    changes: list[tuple[str, str]] = field(default_factory=list)
    obstacles: list[tuple[str, str]] = field(default_factory=list)

    def any(self, value: Json, at: str) -> Json:
        """Any schema below the root."""
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
        """A schema of an object: closed, with every property required."""
        others, has_names = value.get("additionalProperties"), bool(value.get("properties"))
        # Beside names, "others are allowed" is the usual default and says little; alone it means a map.
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
        """Every schema inside of this one."""
        made: JsonObject = {}
        for key, inner in value.items():
            place = join(at, key)
            match key, inner:
                case (("properties" | "$defs" | "definitions"), dict()):
                    made[key] = {name: self.any(each, join(place, name)) for name, each in inner.items()}
                case "items", _:
                    made[key] = self.any(inner, place)
                case (("anyOf" | "oneOf"), list()):
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


WHY = "strict schemas require it"


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a dialect has what belongs to a tool, and the schema of the answer."""

    tool: str
    output: str


_PLACES: Mapping[str, _Places] = {
    "openai-responses": _Places("/tools/{}", "/text/format/schema"),
    "openai-chat": _Places("/tools/{}/function", "/response_format/json_schema/schema"),
}


def with_strict_schemas(request: Request, dialect: str, report: Report) -> Request:
    """The request with its strict schemas made valid, each change reported as an addition. One that cannot be made so
    is not strict any more, which is reported as a loss. What was read from this dialect stays as it was written."""
    places = _PLACES.get(dialect)
    if places is None or request.dialect == dialect:
        return request
    tools = tuple(_tool(tool, places.tool.format(n), report) for n, tool in enumerate(request.tools))
    options = request.options
    if isinstance(options.format, SchemaFormat) and options.format.strict:
        made = _schema(options.format.schema, places.output, report)
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
        report.add(f"{at}{place}", what, WHY)
    return made.schema
