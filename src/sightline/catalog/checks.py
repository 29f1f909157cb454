"""A strict reader from a tree to structs, and checks of values that have the right type and are still wrong.

The reader goes by the structs' own types, so a new field can be configured at once. It finds every mistake, not only
the first: a wrong value is left out, so that the rest is checked too; the caller has to look at the problems first. The
checks are for the mistakes that cost people most: a key where the name of its variable belongs, an invalid address, and
an unknown name. A value that may be a secret is never repeated.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import inspect

from sightline.catalog.catalog import Catalog
from sightline.catalog.problem import (
    ConfigLocation,
    ConfigProblem,
    Mistake,
    Path,
    format_path,
    nearest,
    problem_at,
    quote_word,
)
from sightline.catalog.provider import LEADING_VARIABLE, Provider
from sightline.model.header_names import CREDENTIALS, OF_A_BODY, OF_A_CONNECTION, QUERY_CREDENTIALS, TOKEN
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
    """The values that a type allows, in words."""
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
    """A misplaced value, in words."""
    # Text is not repeated: a misplaced value is sometimes an API key.
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


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|csk|xai|fw|hf|ghp|r8|nvapi)[-_](?=[a-z]*[A-Z0-9])|AIza|eyJ)[\w.-]{16,}"
)
_BARE_KEY = re.compile(r"(?=.*[0-9])(?=.*[a-z])[A-Za-z0-9]{24,}")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")
_FRAMING = OF_A_CONNECTION | OF_A_BODY
_NAME_OF_VARIABLE = "has to be the name of the variable, never the {0} itself"
_EXPORT = "Put the key into a variable, for instance {0}, and write {1} = {2}."


def check(catalog: Catalog, tree: JsonObject, place_of: PlaceOf) -> list[ConfigProblem]:
    """Every mistake, in the order of the tables. `tree` is what the catalogue was read from."""
    return [
        problem_at(place_of(path), path, f"{format_path(path)} {message}", hint)
        for path, message, hint in _mistakes(catalog, tree)
    ]


def _mistakes(catalog: Catalog, tree: JsonObject) -> Iterator[Mistake]:
    for name, provider in catalog.providers.items():
        path = ("providers", name)
        yield from _provider(path, name, provider)
        yield from _headers((*path, "headers"), provider.headers)
        yield from _names_of_variables(path, provider)
        yield from _query((*path, "query"), provider.query)
    yield from _routes(tree.get("routes"), catalog)
    yield from _references(catalog)
    yield from _aliases(catalog)


def _provider(path: Path, name: str, provider: Provider) -> Iterator[Mistake]:
    if not name or "/" in name or name != name.strip():
        yield path, "is no name for a provider", "Choose one without slashes and outer spaces: it stands before a /."
    if not provider.base_url and not provider.embedded:
        yield (
            path,
            "has no base_url",
            "Say where it is, for instance base_url = " + quote_word("http://127.0.0.1:9000/v1"),
        )
    yield from _url((*path, "base_url"), provider.base_url)
    for dialect, url in provider.also.items():
        yield from _url((*path, "also", dialect), url)
        if dialect == provider.dialect:
            yield (*path, "also", dialect), "is what the provider speaks anyway", "Set dialect or base_url instead."
    if provider.key_header and not TOKEN.fullmatch(provider.key_header):
        yield (*path, "key_header"), "is no name of a header", ""


def _url(path: Path, url: str) -> Iterator[Mistake]:
    if not url:
        return
    example = f"Write it like {quote_word('https://api.example.com/v1')} or {quote_word('${NAME}/v1')}."
    variable = LEADING_VARIABLE.match(url)
    rest = f"http://host{url[variable.end() :]}" if variable else url
    try:
        parts = urlsplit(rest)
        host, _port = parts.hostname, parts.port  # a port out of range is found only by asking for it
    except ValueError:
        yield path, "is no URL: its host or port cannot be", example
        return
    if parts.username is not None or parts.password is not None:
        yield path, "holds a user name or password", "Take it out: a key belongs into a variable, named by key_env."
    elif parts.scheme not in ("http", "https") or not host or not rest.isascii() or re.search(r"[\s\x00-\x20]", rest):
        yield path, "must be an http(s) URL, or begin with ${NAME}, a variable", example
    elif parts.query or parts.fragment or rest.endswith(("?", "#")):
        yield path, "has a query or a fragment", "Parameters belong into the table query."


def _headers(path: Path, headers: dict[str, str]) -> Iterator[Mistake]:
    for name, value in headers.items():
        here = (*path, name)
        if name.lower() in CREDENTIALS or _KEY.search(value):
            hint = "Name a variable: with key_env, or under env_headers for a header of your own."
            yield here, "holds a secret", hint
        elif not _HEADER_VALUE.fullmatch(value):
            yield here, "has characters that no header can have", "Use printable ASCII, with no space at either end."
        else:
            yield from _header_name(here, name)


def _header_name(path: Path, name: str) -> Iterator[Mistake]:
    if not TOKEN.fullmatch(name):
        yield path, "is no name of a header", "Use letters, digits and dashes."
    elif name.lower() in _FRAMING:
        yield path, "is a header that Sightline sets itself", "Leave it out."


def _names_of_variables(path: Path, provider: Provider) -> Iterator[Mistake]:
    if provider.key_env and not is_variable_name(provider.key_env):
        hint = _EXPORT.format("ACME_API_KEY", "key_env", quote_word("ACME_API_KEY"))
        yield (*path, "key_env"), _NAME_OF_VARIABLE.format("key"), hint
    for name, variable in provider.env_headers.items():
        here = (*path, "env_headers", name)
        if not is_variable_name(variable):
            yield (
                here,
                _NAME_OF_VARIABLE.format("value"),
                _EXPORT.format("ACME_TOKEN", quote_word(name), quote_word("ACME_TOKEN")),
            )
        yield from _header_name(here, name)


def is_variable_name(text: str) -> bool:
    """Whether this can be the name of a variable, and does not look like a key."""
    return bool(_VARIABLE.fullmatch(text)) and not (_KEY.match(text) or _BARE_KEY.fullmatch(text))


def _query(path: Path, query: dict[str, str]) -> Iterator[Mistake]:
    for name, value in query.items():
        if name.lower() in QUERY_CREDENTIALS or _KEY.search(value):
            yield (*path, name), "holds a secret", "Name its variable with key_env; addresses are recorded."


def _routes(routes: Json, catalog: Catalog) -> Iterator[Mistake]:
    # Not from the catalogue: a route that could not be read is missing there, and the others would be miscounted.
    for index, route in enumerate(routes if isinstance(routes, list) else ()):
        name = route.get("provider") if isinstance(route, dict) else None
        names = (name,) if isinstance(name, str) else ()
        yield from _each_known(("routes", index, "provider"), "provider", names, catalog.providers)


def _references(catalog: Catalog) -> Iterator[Mistake]:
    providers = catalog.providers
    for name, family in catalog.families.items():
        yield from _each_known(("families", name, "providers"), "provider", family.providers, providers)
    for name, model in catalog.models.items():
        yield from _each_known(("models", name, "providers"), "provider", model.providers, providers)
        families = (model.family,) if model.family else ()
        yield from _each_known(("models", name, "family"), "family", families, catalog.families)


def _each_known(path: Path, what: str, names: Iterable[str], known: Iterable[str]) -> Iterator[Mistake]:
    for name in names:
        if name not in known:
            yield path, f"names a {what} that does not exist: {quote_word(name)}", nearest(name, known)


def _aliases(catalog: Catalog) -> Iterator[Mistake]:
    owners: dict[str, str] = {name: name for name in catalog.models}
    for name, model in catalog.models.items():
        for alias in model.aliases:
            owner = owners.setdefault(alias, name)
            if owner != name:
                message = f"has {quote_word(alias)}, which means {quote_word(owner)} already"
                yield ("models", name, "aliases"), message, "Take it out of one of them."
                # The other side may be the user's, and is what they can change.
                yield ("models", owner), f"and {quote_word(name)} both have the name {quote_word(alias)}", ""
