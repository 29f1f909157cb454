"""A JSON schema that OpenAI's strict mode takes, made from one that says the same to a reader.

Strict mode demands that every property is required and that an object has no others; what may be left out is said by a
null. It knows `anyOf` and not `oneOf`, takes no `default`, and has no word for objects with any keys: a schema with one
of those cannot be strict.
"""

from dataclasses import dataclass, field

from sightline.model.json import Json, JsonObject
from sightline.wire.pointer import join

_NEVER = ("allOf", "not", "if", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems")
"""Keywords that strict mode refuses and that have no other spelling."""


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """The schema, what was changed where, or `obstacle`: the place and the reason why it cannot be strict."""

    schema: JsonObject
    changes: tuple[tuple[str, str], ...] = ()
    obstacle: tuple[str, str] | None = None


def strict_schema(schema: JsonObject) -> StrictSchema:
    """The schema as strict mode takes it. Pointers are from its own root."""
    making = _Making()
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
        is_object = "properties" in value or "object" in _types(value)
        return self.object(value, at) if is_object else self._plain(value, at)

    def object(self, value: JsonObject, at: str) -> JsonObject:
        """A schema of an object: closed, with every property required."""
        others, has_names = value.get("additionalProperties"), bool(value.get("properties"))
        # Beside names, "others are allowed" is the usual default and says little; alone it means a map.
        if others not in (None, False) and not (others is True and has_names):
            self.obstacles.append((f"{at}/additionalProperties", "it is an object with any keys"))
        made = self._plain(value, at)
        before = made.get("properties")
        named = before if isinstance(before, dict) else {}
        told = made.get("required")
        required = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
        properties: JsonObject = {}
        for name, each in named.items():
            place = join(at, "properties", name)
            if name in required:
                properties[name] = each
            else:
                properties[name] = _nullable(each)
                self.changes.append((place, "required, with null for an absent value"))
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
                case _ if key in _NEVER:
                    self.obstacles.append((place, f"strict mode has no {key}"))
                case _:
                    made[key] = inner
        return made


def _types(value: JsonObject) -> list[Json]:
    kind = value.get("type")
    return kind if isinstance(kind, list) else [kind]


def _nullable(value: Json) -> Json:
    """The same or null."""
    if not isinstance(value, dict):
        return value
    null: JsonObject = {"type": "null"}
    branches = value.get("anyOf")
    if isinstance(branches, list):
        return value if null in branches else {**value, "anyOf": [*branches, null]}
    if "$ref" in value or "const" in value or "type" not in value:
        about = {key: inner for key, inner in value.items() if key == "description"}
        rest: JsonObject = {key: inner for key, inner in value.items() if key != "description"}
        return {**about, "anyOf": [rest, null]}
    types = _types(value)
    if "null" in types:
        return value
    made: JsonObject = {**value, "type": [*types, "null"]}
    if isinstance(options := value.get("enum"), list) and None not in options:
        made["enum"] = [*options, None]
    return made
