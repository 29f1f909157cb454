"""A strict reader from a tree to our structs, which finds every mistake and not only the first.

It goes by the structs' own types, so a field that is added there can be configured at once. A value with a mistake is
left out, so that the rest can be looked at too; whoever uses the result has to ask for the problems first.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import inspect

from sightline.catalog.problem import ConfigLocation, ConfigProblem, Path, format_path, nearest, problem_at, quote_word
from sightline.model.json import Json, JsonObject

PlaceOf: TypeAlias = Callable[[Path], ConfigLocation]
T = TypeVar("T")

_WRONG = object()


def read(tree: Json, kind: type[T], place_of: PlaceOf, path: Path = ()) -> tuple[T | None, list[ConfigProblem]]:
    """The tree as a value of this type, or None where nothing can be made of it, and what is wrong."""
    reader = _Reader(place_of)
    value = reader.value(tree, type_of(cast(Hashable, kind)), path)
    return (None if value is _WRONG else cast(T, value)), reader.problems


@cache
def type_of(kind: Hashable) -> inspect.Type:
    """What msgspec knows of a type."""
    return inspect.type_info(kind)


def fields_of(kind: inspect.StructType) -> dict[str, inspect.Field]:
    """A struct's fields by the names that they have in the file."""
    return {field.encode_name: field for field in kind.fields}


def plain(kind: inspect.Type) -> inspect.Type:
    """A type without its notes, and without None, which TOML cannot say."""
    if isinstance(kind, inspect.Metadata):
        return plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        return plain(next(each for each in kind.types if not isinstance(each, inspect.NoneType)))
    return kind


def describe_type(kind: inspect.Type) -> str:
    """What may stand there, in words."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {})["description"])
    match plain(kind):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number{_range(number)}"
        case inspect.FloatType() as number:
            return f"a number{_range(number)}"
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(quote_word(str(value)) for value in values)}"
        case inspect.VarTupleType(item_type=item):
            return f"a list, each {describe_type(item)}"
        case inspect.DictType(value_type=item):
            return "a table" if isinstance(item, inspect.StructType) else f"a table, each value {describe_type(item)}"
        case inspect.StructType():
            return "a table"
        case _:
            return "text"


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    if number.le is not None:
        return f" from {number.ge} to {number.le}"
    if number.ge is not None:
        return f", {number.ge} or more"
    return "" if number.gt is None else f" above {number.gt}"


def describe_value(value: object) -> str:
    """What stands where something else belongs."""
    # Text is not repeated: what stands in the wrong place is sometimes a key.
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)[:40]
        case str():
            return "text" if value else "empty text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or a time"


class _Reader:
    def __init__(self, place_of: PlaceOf) -> None:
        self.problems: list[ConfigProblem] = []
        self._place_of = place_of

    def value(self, value: Json, kind: inspect.Type, path: Path) -> object:
        match plain(kind):
            case inspect.StructType() as struct if isinstance(value, dict):
                return self._struct(value, struct, path)
            case inspect.DictType(key_type=key_type, value_type=item) if isinstance(value, dict):
                return self._table(value, key_type, item, path)
            case inspect.VarTupleType(item_type=item) if isinstance(value, list):
                members = [self.value(each, item, (*path, index)) for index, each in enumerate(value)]
                return tuple(member for member in members if member is not _WRONG)
            case inspect.LiteralType(values=values) if isinstance(value, str):
                return value if value in values else self._no_choice(value, kind, values, path)
            case inspect.StrType(pattern=pattern) if isinstance(value, str):
                return value if pattern is None or re.search(pattern, value) else self._wrong(value, kind, path)
            case inspect.BoolType() if isinstance(value, bool):
                return value
            case inspect.IntType() as number if isinstance(value, int) and not isinstance(value, bool):
                return value if _is_within(value, number) else self._wrong(value, kind, path)
            case inspect.FloatType() as number if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value) if _is_within(value, number) else self._wrong(value, kind, path)
            case _:
                return self._wrong(value, kind, path)

    def _struct(self, value: JsonObject, kind: inspect.StructType, path: Path) -> object:
        fields = fields_of(kind)
        read: dict[str, object] = {}
        for name, member in value.items():
            if name not in fields:
                self._unknown_key(name, fields, path)
                continue
            result = self.value(member, fields[name].type, (*path, name))
            if result is not _WRONG:
                read[fields[name].name] = result
        for name, field in fields.items():
            if field.required and name not in value:
                self._tell(
                    path, f"{format_path(path)} lacks the key {quote_word(name)}", f"It is {describe_type(field.type)}."
                )
        if any(field.required and field.name not in read for field in fields.values()):
            return _WRONG
        build: Callable[..., Any] = kind.cls
        return build(**read)

    def _table(self, value: JsonObject, key_type: inspect.Type, item: inspect.Type, path: Path) -> object:
        read: dict[str, object] = {}
        for name, member in value.items():
            if isinstance(key_type, inspect.LiteralType) and name not in key_type.values:
                self._unknown_key(name, dict.fromkeys(map(str, key_type.values)), path)
                continue
            result = self.value(member, item, (*path, name))
            if result is not _WRONG:
                read[name] = result
        return read

    def _unknown_key(self, name: str, known: Mapping[str, object], path: Path) -> None:
        self._tell(
            (*path, name), f"{format_path(path)} has no key {quote_word(name)}", nearest(name, known, "Known keys")
        )

    def _no_choice(self, value: str, kind: inspect.Type, values: Iterable[object], path: Path) -> object:
        names = [str(each) for each in values]
        self._tell(
            path, f"{format_path(path)} must be {describe_type(kind)}, not {quote_word(value)}", nearest(value, names)
        )
        return _WRONG

    def _wrong(self, value: object, kind: inspect.Type, path: Path) -> object:
        self._tell(path, f"{format_path(path)} must be {describe_type(kind)}, not {describe_value(value)}")
        return _WRONG

    def _tell(self, path: Path, message: str, hint: str = "") -> None:
        self.problems.append(problem_at(self._place_of(path), path, message, hint))


def _is_within(value: float, number: inspect.IntType | inspect.FloatType) -> bool:
    # The outer bounds are TOML's own for whole numbers; infinity and not-a-number fail them.
    return (
        -(2**63) <= value < 2**63
        and (number.ge is None or value >= number.ge)
        and (number.gt is None or value > number.gt)
        and (number.le is None or value <= number.le)
    )
