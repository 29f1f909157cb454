"""The one reader of data from outside: turns a tree of JSON-like values into typed structs, and reports every mistake.

It is driven by the types of the structs, so a field that is added there can be used at once. How types are read:

- `str`, `int`, `float`, `bool`, `Literal`, tuples, dictionaries, structs and dataclasses as in msgspec; `Json` is any
  value. The bounds and patterns of `Meta` apply, and its `description` is what messages name as expected.
- A union is read by the shape of the value (`str | tuple[str, ...]`), a union of structs by the tag.
- Null is the same as a missing key, unless the reader keeps it. A missing key gets its default; without a default it
  is a mistake.
- `key(aliases=…, hint=…)`, `REST` and `SELF` annotate one field.
- A struct may define hints: `EXAMPLE` for a value of the wrong type, `KEY_HINTS` for keys that it does not have.

A value with a mistake is left out, so that the rest can still be read: check the problems before you use the result.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Meta, inspect

from sightline.catalog.problem import ConfigLocation, ConfigProblem, Path, format_path, nearest, problem_at, quote_word
from sightline.errors import Code, Fault
from sightline.model.json import Json

PlaceOf: TypeAlias = Callable[[Path], ConfigLocation]
T = TypeVar("T")

REST = Meta(extra={"rest": True})
"""Annotates the one field (a dictionary) that collects all keys that the struct does not know."""

SELF = Meta(extra={"self": True})
"""Annotates the one field that gets the value that the struct was read from, with its place."""

_WRONG = object()


def key(
    *,
    aliases: tuple[str, ...] = (),
    first_wins: bool = False,
    hint: str = "",
    instead: Mapping[str, str] | None = None,
    **limits: Any,
) -> Meta:
    """The annotation of a key: other names for it, and what to write if it is missing or wrong.

    Using two names of one key at once is a mistake unless `first_wins`. `instead` maps words that other tools use to
    the right choice. `limits` are those of `msgspec.Meta`.
    """
    notes = {"aliases": aliases, "first_wins": first_wins, "hint": hint, "instead": instead or {}}
    return Meta(extra=notes, **limits)


def read(
    tree: Json, kind: type[T], place_of: PlaceOf, path: Path = (), *, dialects: Collection[str] = ()
) -> tuple[T | None, list[ConfigProblem]]:
    """A part of the configuration as a value of this type, None if it cannot be read, and the problems. `dialects` are
    the names that a `DialectName` may be."""
    reader = _ConfigurationReader(place_of, dialects)
    return reader.read(tree, kind, path), reader.problems


@cache
def type_of(kind: Hashable) -> inspect.Type:
    """Msgspec's description of a type."""
    return inspect.type_info(kind)


def fields_of(kind: inspect.StructType) -> dict[str, inspect.Field]:
    """The fields of a struct by their names in the file."""
    return {field.encode_name: field for field in kind.fields}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the reader needs to know of a struct: fields by their names in the file, all names of each, and special
    fields."""

    fields: Mapping[str, inspect.Field]
    names: Mapping[str, str]
    roles: Mapping[str, str]


@cache
def _shape_of(struct: Hashable) -> _Shape:
    # Suites have thousands of cases, all read with the same few structs.
    fields = fields_of(cast(inspect.StructType, type_of(struct)))
    names = {
        alias: name
        for name, field in fields.items()
        if not _role(field)
        for alias in (name, *_extra(field.type, "aliases", ()))
    }
    return _Shape(fields, names, {role: field.name for field in fields.values() if (role := _role(field))})


def names_of(struct: type) -> Mapping[str, str]:
    """Every name that a key of this struct may have, with the field's own name in the file."""
    return _shape_of(struct).names


def plain(kind: inspect.Type) -> inspect.Type:
    """A type without its annotations and without null. For a union, its first member."""
    members = _members_of(kind)
    return members[0] if members else kind


def describe_type(kind: inspect.Type, mapping: str = "a table") -> str:
    """A description of a type in words; `mapping` is what the file format calls an object."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {}).get("description") or describe_type(kind.type, mapping))
    if isinstance(kind, inspect.UnionType):
        words = [describe_type(each, mapping) for each in kind.types if not isinstance(each, inspect.NoneType)]
        return " or ".join(dict.fromkeys(words))
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() as number:
            return f"a whole number{_range(number)}"
        case inspect.FloatType() as number:
            return f"a number{_range(number)}"
        case inspect.LiteralType(values=values):
            return f"{'one of ' if len(values) > 1 else ''}{', '.join(quote_word(str(value)) for value in values)}"
        case inspect.VarTupleType(item_type=inspect.AnyType() | inspect.DataclassType()):
            return "a list"
        case inspect.VarTupleType(item_type=item):
            return f"a list, each {describe_type(item, mapping)}"
        case (
            inspect.DictType(value_type=inspect.StructType() | inspect.AnyType() | inspect.DataclassType())
            | inspect.StructType()
        ):
            return mapping
        case inspect.DictType(value_type=item):
            return f"{mapping}, each value {describe_type(item, mapping)}"
        case _:
            return "text"


def describe_value(value: object, mapping: str = "a table") -> str:
    """A description of a value of the wrong type. Text is not repeated: it may be a key in the wrong place."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)[:40]
        case str():
            return "text" if value.strip() else "empty text"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return mapping
        case _:
            return "a date or a time"


class TypedReader(ABC):
    """Reads values by their types. A subclass decides where problems go, what they call things, and how values are
    unwrapped if they come wrapped in something that knows their place."""

    mapping = "a table"
    """What the file format calls an object."""

    own_prefix = ""
    """Keys with this prefix are the author's own and are skipped. Empty means that there are none."""

    dialects: Collection[str] = ()
    """The names that a `DialectName` may be."""

    keeps_null = False
    """Whether null is a value of its own for types that include it, and a mistake for the others."""

    @abstractmethod
    def report(self, path: Path, message: str, hint: str, *, is_key: bool = False) -> None:
        """Take a problem of the value at this path, or of the key itself (`is_key`)."""

    def subject(self, path: Path, kind: inspect.Type) -> str:
        """What messages call the value at this path."""
        return format_path(path)

    def content(self, value: Any) -> Any:
        """The value itself: a scalar, or a list or dictionary whose members may be wrapped too."""
        return value

    def whole(self, value: Any) -> Json:
        """The value with everything in it, as JSON."""
        return cast(Json, value)

    def read(self, value: object, kind: type[T], path: Path = ()) -> T | None:
        """The value as one of this type, None if it cannot be read."""
        result = self._value(value, type_of(cast(Hashable, kind)), path)
        return None if result is _WRONG else cast(T, result)

    def _value(self, given: Any, kind: inspect.Type, path: Path) -> object:
        if given is None and self.keeps_null and _takes_null(kind):
            return None
        kind = self._with_dialects(given, kind)
        members = _members_of(kind)
        match members[0]:
            case inspect.AnyType():
                return self.whole(given)
            case inspect.CustomType() | inspect.DataclassType():
                return given  # unchanged, with its place
            case _:
                value = self.content(given)
        fitting = [member for member in members if _has_shape(value, member)]
        if not fitting:
            return self._wrong(value, kind, path)
        if len(fitting) > 1 and isinstance(value, dict):
            return self._read_tagged(given, value, kind, cast(list[inspect.StructType], fitting), path)
        match fitting[0]:
            case inspect.StructType() as struct:
                return self._struct(given, value, struct, path)
            case inspect.DictType(key_type=key_type, value_type=item):
                return self._table(value, key_type, item, path)
            case inspect.LiteralType(values=values) if value not in values:
                return self._no_choice(value, kind, values, path)
            case member if not _is_within(value, member):
                return self._wrong(value, kind, path)
            case inspect.VarTupleType(item_type=item):
                return self._list(value, item, path)
            case inspect.FloatType():
                return float(value)
            case _:
                return value

    def _with_dialects(self, given: Any, kind: inspect.Type) -> inspect.Type:
        """The type with the names of the known dialects, if a dialect is expected and the value is not one: plug-ins
        add dialects, so the type itself does not list them. Listing them loads them all."""
        if not names_dialect(kind) or (isinstance(word := self.content(given), str) and word in self.dialects):
            return kind
        return inspect.LiteralType(tuple(sorted(self.dialects)))

    def _list(self, value: list[Any], item: inspect.Type, path: Path) -> object:
        if isinstance(item, inspect.StrType) and all(type(each) is str for each in value):
            return tuple(value)  # the page may send 200,000 ids: 7 ms instead of 480
        read = [self._value(each, item, (*path, index)) for index, each in enumerate(value)]
        return tuple(member for member in read if member is not _WRONG)

    def _read_tagged(
        self, given: Any, value: Mapping[str, Any], union: inspect.Type, kinds: list[inspect.StructType], path: Path
    ) -> object:
        """Read a member of a union of structs: the one with the value's tag."""
        field = str(kinds[0].tag_field)
        by_tag = {str(kind.tag): kind for kind in kinds}
        tags: inspect.Type = inspect.Metadata(
            inspect.LiteralType(tuple(by_tag)), extra={"instead": _extra(union, "instead", {})}
        )
        if field not in value or self.content(value[field]) is None:
            message = f"{self.subject(path, union)} lacks the key {quote_word(field)}"
            self.report(path, message, f"It is {describe_type(tags)}.")
            return _WRONG
        tag = self._value(value[field], tags, (*path, field))
        return _WRONG if tag is _WRONG else self._struct(given, value, by_tag[str(tag)], path)

    def _struct(self, given: Any, value: Mapping[str, Any], kind: inspect.StructType, path: Path) -> object:
        shape = _shape_of(kind.cls)
        fields, names, roles = shape.fields, shape.names, shape.roles
        read: dict[str, object] = {}
        written: dict[str, str] = {}
        unknown: dict[str, Json] = {}
        for name, member in value.items():
            if name not in names:
                if name == kind.tag_field or (self.own_prefix and name.startswith(self.own_prefix)):
                    continue
                if "rest" in roles:
                    unknown[name] = self.whole(member)
                else:
                    self.unknown_key(name, names, path, kind)
                continue
            field = fields[names[name]]
            if not self.keeps_null and self.content(member) is None and not isinstance(field.type, inspect.AnyType):
                continue
            if field.name in written and _extra(field.type, "first_wins", False):
                continue
            if field.name in written:
                old, new = sorted((name, written[field.name]), key=lambda each: each == names[name])
                self.report(
                    (*path, old), f"{old} is another name of {new}, and both are written", f"Keep {new}.", is_key=True
                )
                continue
            written[field.name] = name
            result = self._value(member, field.type, (*path, name))
            if result is not _WRONG:
                read[field.name] = result
        read |= {roles[role]: value for role, value in (("rest", unknown), ("self", given)) if role in roles}
        for name, field in fields.items():
            if field.required and field.name not in written and field.name not in roles.values():
                hint = _extra(field.type, "hint", "") or f"It is {describe_type(field.type, self.mapping)}."
                self.report(path, f"{self.subject(path, kind)} lacks the key {quote_word(name)}", hint)
        if any(field.required and field.name not in read for field in fields.values()):
            return _WRONG
        build: Callable[..., Any] = kind.cls
        return build(**read)

    def _table(self, value: Mapping[str, Any], key_type: inspect.Type, item: inspect.Type, path: Path) -> object:
        read: dict[str, object] = {}
        for name, member in value.items():
            if names_dialect(key_type) and name not in self.dialects:
                self.unknown_key(name, self.dialects, path, key_type)
                continue
            result = self._value(member, item, (*path, name))
            if result is not _WRONG:
                read[name] = result
        return read

    def unknown_key(self, name: str, known: Iterable[str], path: Path, kind: inspect.Type) -> None:
        """Report a key that the struct or the table at this path does not have."""
        hints: Mapping[str, str] = getattr(getattr(kind, "cls", None), "KEY_HINTS", {})
        hint = hints.get(name) or nearest(name, known, "Known keys")
        self.report((*path, name), f"{self.subject(path, kind)} has no key {quote_word(name)}", hint, is_key=True)

    def _no_choice(self, value: str, kind: inspect.Type, values: Iterable[object], path: Path) -> object:
        names = [str(each) for each in values]
        message = (
            f"{self.subject(path, kind)} must be {describe_type(kind, self.mapping)}, not {quote_word(str(value))}"
        )
        other = _extra(kind, "instead", {}).get(str(value).lower())
        self.report(path, message, f"Did you mean {quote_word(other)}?" if other else nearest(str(value), names))
        return _WRONG

    def _wrong(self, value: object, kind: inspect.Type, path: Path) -> object:
        examples = (getattr(getattr(member, "cls", None), "EXAMPLE", "") for member in _members_of(kind))
        words, hint = describe_type(kind, self.mapping), _extra(kind, "hint", "") or next(filter(None, examples), "")
        if not hint and isinstance(value, int | float) and isinstance(plain(kind), inspect.StrType):
            hint = "Put it in quotes."
        self.report(
            path, f"{self.subject(path, kind)} must be {words}, not {describe_value(value, self.mapping)}", hint
        )
        return _WRONG


def read_value(value: Json, kind: Any, *, subject: str, hint: str, status: int) -> Any:
    """A value of one of our own API's bodies as this type, which may be a union. Null is a value of its own here.

    Raises a Fault with everything that does not fit. `subject` is what messages call the whole value, `hint` what to
    send.
    """
    reader = _JsonReader(subject)
    read = reader.read(value, kind)
    if not reader.problems:
        return read
    message = "; ".join(message for message, _ in reader.problems)
    hint = " ".join(filter(None, (reader.problems[0][1], hint)))
    raise Fault(Code.INVALID_REQUEST, message, hint=hint, status=status)


class _JsonReader(TypedReader):
    mapping = "an object"
    keeps_null = True  # for a topic, null means "inherited" and a missing key "unchanged"

    def __init__(self, subject: str) -> None:
        self.problems: list[tuple[str, str]] = []
        self._subject = subject

    def report(self, path: Path, message: str, hint: str, *, is_key: bool = False) -> None:
        self.problems.append((message, hint))

    def subject(self, path: Path, kind: inspect.Type) -> str:
        return format_path(path) or self._subject


class _ConfigurationReader(TypedReader):
    def __init__(self, place_of: PlaceOf, dialects: Collection[str]) -> None:
        self.problems: list[ConfigProblem] = []
        self.dialects = dialects
        self._place_of = place_of

    def report(self, path: Path, message: str, hint: str, *, is_key: bool = False) -> None:
        self.problems.append(problem_at(self._place_of(path), path, message, hint))


def _members_of(kind: inspect.Type) -> list[inspect.Type]:
    """The types that a value may have, without null."""
    match kind:
        case inspect.Metadata(type=inner):
            return _members_of(inner)
        case inspect.UnionType(types=types):
            return [member for each in types for member in _members_of(each)]
        case inspect.NoneType():
            return []
        case _:
            return [kind]


def _takes_null(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and any(isinstance(each, inspect.NoneType) for each in kind.types)


def _has_shape(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.VarTupleType():
            return isinstance(value, list | tuple)
        case inspect.LiteralType() | inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case _:  # a number; nothing else is read from files
            return (
                isinstance(value, int | float) and not isinstance(value, bool) and isinstance(kind, inspect.FloatType)
            )


def names_dialect(kind: inspect.Type) -> bool:
    """Whether a text of this type must be the name of a dialect."""
    return bool(_extra(kind, "dialect", False))


def _role(field: inspect.Field) -> str:
    """`rest` or `self` for a field that is not a key, otherwise empty."""
    return next((role for role in ("rest", "self") if _extra(field.type, role, False)), "")


def _extra(kind: inspect.Type, name: str, default: Any) -> Any:
    """What `key` or `REST` records on a field's type."""
    if isinstance(kind, inspect.UnionType):
        return next((found for each in kind.types if (found := _extra(each, name, default)) != default), default)
    return (kind.extra or {}).get(name, default) if isinstance(kind, inspect.Metadata) else default


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    if number.le is not None:
        return f" from {_figure(number.ge)} to {_figure(number.le)}"
    if number.ge is not None:
        return f", {_figure(number.ge)} or more"
    return "" if number.gt is None else f" above {_figure(number.gt)}"


def _figure(bound: float | None) -> str:
    """A bound in digits: a large one is not written as a power of ten."""
    return str(int(bound)) if bound is not None and bound == int(bound) else str(bound)


def _is_within(value: Any, kind: inspect.Type) -> bool:
    """Whether a value that has the shape of a type is within its limits."""
    match kind:
        case inspect.VarTupleType(min_length=least, max_length=most):
            return len(value) >= (least or 0) and (most is None or len(value) <= most)
        case inspect.StrType(pattern=pattern, min_length=least):
            return len(value) >= (least or 0) and (pattern is None or re.search(pattern, value) is not None)
        case inspect.IntType() | inspect.FloatType():
            # The outer bounds are TOML's own for whole numbers; infinity and NaN fail them.
            return (
                -(2**63) <= value < 2**63
                and (kind.ge is None or value >= kind.ge)
                and (kind.gt is None or value > kind.gt)
                and (kind.le is None or value <= kind.le)
            )
        case _:
            return True
