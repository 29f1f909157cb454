"""Configuration from environment variables: `SIGHTLINE_` and the names of the path, joined by `_`.

`SIGHTLINE_SERVER_PORT` is `server.port`. What a name means follows from the schema: names that exist are tried first,
the longest first; a name that is new ends where the longest known key begins.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec import inspect

from sightline.catalog.problem import ConfigLocation, ConfigProblem, Path, format_path, likely, problem_at
from sightline.catalog.reading import describe_type, fields_of, plain
from sightline.model.json import Json, JsonObject

PREFIX = "SIGHTLINE_"

RESERVED = frozenset({"SIGHTLINE_CONFIG", "SIGHTLINE_DATA", "SIGHTLINE_LOCAL_KEY"})
"""Variables of ours that are no keys of the configuration."""

_OUTSIDE = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that a variable sets."""

    variable: str
    path: tuple[str, ...]
    value: Json

    @property
    def builtin(self) -> bool:
        """It is the user's."""
        return False

    @property
    def tree(self) -> JsonObject:
        """The value in the tables around it."""
        value = self.value
        for step in reversed(self.path):
            value = {step: value}
        assert isinstance(value, dict)  # a path has one step at least
        return value

    def place(self, path: Path) -> ConfigLocation:
        """The variable, whichever part of its value is meant."""
        return ConfigLocation("environment", variable=self.variable)


@dataclass(frozen=True, slots=True)
class _Target:
    path: tuple[str, ...]
    kind: inspect.Type


def settings_in(
    environment: Mapping[str, str], schema: Mapping[str, inspect.Type], tree: Mapping[str, Json]
) -> tuple[list[Setting], list[ConfigProblem]]:
    """What the variables set. `schema` has the top-level tables, `tree` the names that exist in them."""
    settings: list[Setting] = []
    problems: list[ConfigProblem] = []
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        target = _match_table(schema, variable.removeprefix(PREFIX), tree, ())
        if target is None:
            problems.append(_unknown(variable, schema, tree))
            continue
        try:
            settings.append(Setting(variable, target.path, _value(target.kind, environment[variable])))
        except ValueError:
            message = f"{format_path(target.path)} must be {describe_type(target.kind)}, written as in the file"
            problems.append(problem_at(ConfigLocation("environment", variable=variable), target.path, message))
    return settings, problems


def variable_form(name: str) -> str:
    """How a name is spelled inside a variable's name."""
    return _OUTSIDE.sub("_", name).upper()


def _match_table(
    kinds: Mapping[str, inspect.Type], rest: str, known: Mapping[str, Json], path: tuple[str, ...]
) -> _Target | None:
    for name in sorted(kinds, key=len, reverse=True):
        form = variable_form(name)
        if rest == form or (rest.startswith(f"{form}_") and len(rest) > len(form) + 1):
            below = known.get(name)
            tail = rest[len(form) + 1 :]
            target = _target(kinds[name], tail, below if isinstance(below, dict) else {}, (*path, name))
            if target is not None:
                return target
    return None


def _target(kind: inspect.Type, rest: str, known: Mapping[str, Json], path: tuple[str, ...]) -> _Target | None:
    if not rest:
        return _Target(path, kind)
    match plain(kind):
        case inspect.StructType() as struct:
            return _match_table({name: field.type for name, field in fields_of(struct).items()}, rest, known, path)
        case inspect.DictType(key_type=inspect.LiteralType(values=names), value_type=item):
            return _match_table(dict.fromkeys(map(str, names), item), rest, known, path)
        case inspect.DictType(value_type=item):
            return _match_table(dict.fromkeys(known, item), rest, known, path) or _new(item, rest, path)
        case _:
            return None


def _new(item: inspect.Type, rest: str, path: tuple[str, ...]) -> _Target | None:
    if not isinstance(item, inspect.StructType):
        return _Target((*path, rest.lower()), item)
    for cut in re.finditer("_", rest):
        target = _target(item, rest[cut.end() :], {}, (*path, rest[: cut.start()].lower()))
        if cut.start() and cut.end() < len(rest) and target is not None:
            return target
    return None


def _value(kind: inspect.Type, text: str) -> Json:
    if isinstance(plain(kind), inspect.StrType | inspect.LiteralType):
        return text
    try:
        document = tomllib.loads(f"value = {text}")
    except RecursionError:
        raise ValueError(text) from None
    if len(document) != 1:
        raise ValueError(text)
    return document["value"]  # type: ignore[no-any-return]


def _unknown(variable: str, schema: Mapping[str, inspect.Type], tree: Mapping[str, Json]) -> ConfigProblem:
    known = [f"{PREFIX}{name}" for name in _every_name(schema, tree)]
    # Thousands of names begin alike, so that it takes much likeness to mean anything.
    hint = likely(variable, known, 0.9) or "docs/reference/configuration.md says how the names are made."
    return problem_at(
        ConfigLocation("environment", variable=variable), (), "no key of the configuration has this name", hint
    )


def _every_name(kinds: Mapping[str, inspect.Type], known: Mapping[str, Json]) -> Iterator[str]:
    for name, kind in kinds.items():
        form = variable_form(name)
        below = known.get(name)
        names: Mapping[str, Json] = below if isinstance(below, dict) else {}
        match plain(kind):
            case inspect.StructType() as struct:
                inner = {each: field.type for each, field in fields_of(struct).items()}
            case inspect.DictType(value_type=item):
                inner = dict.fromkeys(names, item)
            case _:
                inner = {}
                yield form
        for rest in _every_name(inner, names):
            yield f"{form}_{rest}"
