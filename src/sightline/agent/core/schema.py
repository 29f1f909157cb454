"""JSON Schema, through the library that knows it: is this a schema, and what does a value have that it forbids.

Nothing is fetched: a reference to somewhere else is a problem of the schema. A schema that names no draft is read as
2020-12.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from jsonschema.exceptions import SchemaError, ValidationError, relevance
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

from sightline.model.json import Json, JsonObject
from sightline.wire import pointer
from sightline.wire.jsontext import decode, encode

_BRANCHES = ("anyOf", "oneOf")
_DATA = ("const", "default", "enum", "examples")
_LONGEST_VALUE = 80


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A place of a value that is not as the schema wants it: which rule it breaks, and what the rule says.

    `wanted` are the types that the place may have, where it is the type that is wrong.
    """

    pointer: str
    message: str
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """What is wrong with a value: `mismatches` for the reader, `types` each wrong type in any branch.

    `count` is the number of places where the schema as a whole is broken; none means that the value is right.
    """

    mismatches: tuple[Mismatch, ...] = ()
    types: tuple[Mismatch, ...] = ()
    count: int = 0


def schema_problems(schema: JsonObject) -> list[str]:
    """Why this is no schema for the arguments of a tool."""
    if not isinstance(schema.get("$schema", ""), str):
        return ["/$schema: expected a string"]
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return [f"{_place(error.absolute_path) or 'the schema'}: {_short(error.message)}"]
    except RecursionError:
        return ["it is nested too deep"]
    found = [] if schema.get("type", "object") == "object" else ["the arguments of a tool are an object"]
    return [*found, *_reference_problems(schema)]


def validate(schema: JsonObject, value: Json) -> SchemaVerdict:
    """What the schema has to say of a value."""
    try:
        errors = sorted(_validator(encode(schema)).iter_errors(value), key=relevance, reverse=True)
    except (Unresolvable, RecursionError):
        return SchemaVerdict(
            (Mismatch("", "the schema of this tool refers to something that cannot be followed"),), (), 1
        )
    mismatches = dict.fromkeys(mismatch for error in errors for mismatch in _mismatches_of(error))
    types = dict.fromkeys(_mismatch(leaf) for error in errors for leaf in _leaves(error) if leaf.validator == "type")
    return SchemaVerdict(tuple(mismatches), tuple(types), len(errors))


@lru_cache(maxsize=256)
def _validator(text: bytes) -> Validator:
    schema = cast(JsonObject, decode(text))
    return validator_for(schema, default=Draft202012Validator)(schema, registry=EMPTY_REGISTRY)


def _mismatches_of(error: ValidationError) -> Iterator[Mismatch]:
    """The mismatches of an error. Of several branches that all fail, those of the branch that comes nearest."""
    if error.validator not in _BRANCHES or not error.context:
        yield _mismatch(error)
        return
    by_branch: dict[object, list[ValidationError]] = {}
    for inner in error.context:
        by_branch.setdefault(inner.schema_path[0], []).append(inner)
    depth = len(error.absolute_path)
    deeper = [each for each in by_branch.values() if all(len(e.absolute_path) > depth for e in each)]
    if len(deeper) == 1:
        for inner in deeper[0]:
            yield from _mismatches_of(inner)
        return
    reasons = dict.fromkeys(_reason(inner) for inner in error.context)
    yield Mismatch(
        _place(error.absolute_path), f"{_short(_to_json(_instance(error)))} fits none: {'; or '.join(reasons)}"
    )


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    if not error.context:
        yield error
    for inner in error.context or ():
        yield from _leaves(inner)


def _mismatch(error: ValidationError) -> Mismatch:
    return Mismatch(_place(error.absolute_path), _reason(error), _types(error))


def _instance(error: ValidationError) -> Json:
    return cast(Json, error.instance)


def _types(error: ValidationError) -> tuple[str, ...]:
    if error.validator != "type":
        return ()
    wanted = cast("str | list[str]", error.validator_value)
    return (wanted,) if isinstance(wanted, str) else tuple(wanted)


def _reason(error: ValidationError) -> str:
    if wanted := _types(error):
        return f"expected {' or '.join(wanted)}, got {_kind(_instance(error))} {_short(_to_json(_instance(error)))}"
    if error.validator == "enum":
        return (
            f"expected one of {_to_json(cast(Json, error.validator_value))}, got {_short(_to_json(_instance(error)))}"
        )
    return _short(error.message, 3 * _LONGEST_VALUE)


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def _to_json(value: Json) -> str:
    return encode(value).decode()


def _short(text: str, most: int = _LONGEST_VALUE) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _place(path: Iterable[str | int]) -> str:
    return pointer.join("", *path)


def _reference_problems(schema: JsonObject) -> list[str]:
    """References that lead nowhere, or round and round."""
    resolver = EMPTY_REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    found: dict[str, None] = {}
    for reference in _references(schema):
        seen: set[str] = set()
        target: Json = {"$ref": reference}
        while isinstance(target, dict) and isinstance(follow := target.get("$ref"), str):
            if follow in seen:
                found[f"the reference {reference!r} leads round and round"] = None
                break
            seen.add(follow)
            try:
                target = cast(Json, resolver.lookup(follow).contents)
            except Unresolvable:
                found[f"the reference {reference!r} leads nowhere"] = None
                break
    return list(found)


def _references(value: Json) -> Iterator[str]:
    """The references of a schema; within a part that has an address of its own they mean something else."""
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        for key, inner in value.items():
            if key not in _DATA and not (isinstance(inner, dict) and "$id" in inner):
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
