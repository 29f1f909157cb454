"""The whole configuration: Sightline's own tables, the user's file and the environment, merged key by key.

`SIGHTLINE_SERVER_PORT` is `server.port`. The meaning of a variable follows from the schema: existing names are tried
first, longest first; a new name ends where the longest known key begins. Each value keeps track of where it was set.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec import inspect

from sightline.catalog.catalog import Catalog, check, providers_at_other_sites, without_prices
from sightline.catalog.problem import (
    ConfigLocation,
    ConfigProblem,
    Mistake,
    Path,
    fault_of,
    format_path,
    likely,
    nearest,
    problem_at,
    quote_word,
)
from sightline.catalog.provider import LEADING_VARIABLE, SIGNING_SECRETS, Provider
from sightline.catalog.reading import describe_type, describe_value, fields_of, names_dialect, plain, read, type_of
from sightline.catalog.toml import TomlDocument, TomlText, own_names, parse_toml
from sightline.model.json import Json, JsonObject

PREFIX = "SIGHTLINE_"

RESERVED = frozenset({"SIGHTLINE_CONFIG", "SIGHTLINE_DATA", "SIGHTLINE_LOCAL_KEY"})
"""Our variables that are not keys of the configuration."""

_OUTSIDE = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that is set by a variable."""

    variable: str
    path: tuple[str, ...]
    value: Json
    builtin: ClassVar[bool] = False

    def place(self, path: Path) -> ConfigLocation:
        """The variable, for any part of its value."""
        return ConfigLocation("environment", variable=self.variable)


_Target: TypeAlias = tuple[tuple[str, ...], inspect.Type]
"""The path of a value and its type."""


def settings_in(
    environment: Mapping[str, str],
    schema: Mapping[str, inspect.Type],
    tree: Mapping[str, Json],
    dialects: Collection[str],
) -> tuple[list[Setting], list[ConfigProblem]]:
    """What the variables set, and the problems. `schema` has the top-level tables, `tree` the names that exist in
    them."""
    settings: list[Setting] = []
    problems: list[ConfigProblem] = []
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in RESERVED:
            continue
        target = _Schema(dialects).match(schema, variable.removeprefix(PREFIX), tree)
        if target is None:
            problems.append(_unknown(variable, schema, tree))
            continue
        path, kind = target
        try:
            settings.append(Setting(variable, path, _value(kind, environment[variable])))
        except ValueError:
            message = f"{format_path(path)} must be {describe_type(kind)}, written as in the file"
            problems.append(problem_at(ConfigLocation("environment", variable=variable), path, message))
    return settings, problems


def variable_form(name: str) -> str:
    """The form of a name inside a variable's name."""
    return _OUTSIDE.sub("_", name).upper()


@dataclass(frozen=True, slots=True)
class _Schema:
    """Resolves variables: a name in a table of tables is an existing or a new one. `dialects` are the keys of a table
    with one entry per dialect."""

    dialects: Collection[str]

    def match(
        self, kinds: Mapping[str, inspect.Type], rest: str, known: Mapping[str, Json], path: tuple[str, ...] = ()
    ) -> _Target | None:
        """The value that the rest of a variable's name refers to in a table with these keys; None if there is none."""
        for name in sorted(kinds, key=len, reverse=True):
            form = variable_form(name)
            if rest == form or (rest.startswith(f"{form}_") and len(rest) > len(form) + 1):
                below = known.get(name)
                tail = rest[len(form) + 1 :]
                target = self._target(kinds[name], tail, below if isinstance(below, dict) else {}, (*path, name))
                if target is not None:
                    return target
        return None

    def _target(
        self, kind: inspect.Type, rest: str, known: Mapping[str, Json], path: tuple[str, ...]
    ) -> _Target | None:
        if not rest:
            return path, kind
        match plain(kind):
            case inspect.StructType() as struct:
                return self.match({name: field.type for name, field in fields_of(struct).items()}, rest, known, path)
            case inspect.DictType(key_type=key_type, value_type=item) if names_dialect(key_type):
                return self.match(dict.fromkeys(self.dialects, item), rest, known, path)
            case inspect.DictType(value_type=item):
                return self.match(dict.fromkeys(known, item), rest, known, path) or self._new(item, rest, path)
            case _:
                return None

    def _new(self, item: inspect.Type, rest: str, path: tuple[str, ...]) -> _Target | None:
        if not isinstance(item, inspect.StructType):
            return (*path, rest.lower()), item
        for cut in re.finditer("_", rest):
            target = self._target(item, rest[cut.end() :], {}, (*path, rest[: cut.start()].lower()))
            if cut.start() and cut.end() < len(rest) and target is not None:
                return target
        return None


def _value(kind: inspect.Type, text: str) -> Json:
    if isinstance(plain(kind), inspect.StrType | inspect.LiteralType):
        return text
    others = kind.types if isinstance(kind, inspect.UnionType) else ()
    if any(isinstance(each, inspect.LiteralType) and text in each.values for each in others):
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
    # Thousands of names begin alike, so only a close match means anything.
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


ValueOrigin: TypeAlias = TomlDocument | Setting
"""What set a value: a document, or an environment variable."""


class Overlay:
    """The trees merged so far. Tables are merged; any other value is replaced by the one laid over it."""

    def __init__(self) -> None:
        self.tree: JsonObject = {}
        self._origins: dict[Path, ValueOrigin] = {}

    def lay(self, tree: Json, origin: ValueOrigin, path: tuple[str, ...] = ()) -> None:
        """Lay a tree over what is at `path`."""
        self._lay(self.tree, _nest(tree, path), origin, (), lambda _: False)

    def lay_below_the_users(self, table: JsonObject, *path: str) -> None:
        """Lay a table over what is built in at `path`, but under what the user has set there."""
        self._lay(self.tree, _nest(table, path), self.origin(path), (), self.is_users)

    def is_users(self, path: Path) -> bool:
        """Whether the user has set this exact value."""
        return path in self._origins and not self._origins[path].builtin

    def origin(self, path: Path) -> ValueOrigin:
        """What set the value at this path, or the nearest table around it."""
        while path not in self._origins:
            path = path[:-1]
        return self._origins[path]

    def place(self, path: Path) -> ConfigLocation:
        """Where the value at this path was set."""
        return self.origin(path).place(path)

    def _lay(
        self, under: JsonObject, over: JsonObject, origin: ValueOrigin, path: Path, is_kept: Callable[[Path], bool]
    ) -> None:
        if not self.is_users(path):
            self._origins[path] = origin
        for name, value in over.items():
            here = (*path, name)
            below = under.get(name)
            if isinstance(value, dict) and (below is None or isinstance(below, dict)):
                # A copy, so that later layers do not change the document that it came from.
                under[name] = table = dict(below or {})
                self._lay(table, value, origin, here, is_kept)
            elif not is_kept(here):
                under[name] = value
                self._origins[here] = origin


def _nest(value: Json, path: tuple[str, ...]) -> JsonObject:
    """The value nested in the tables of this path."""
    for step in reversed(path):
        value = {step: value}
    assert isinstance(value, dict)  # a value without a path is a table
    return value


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[T]):
    """A configuration and its problems; values with a problem are left out."""

    catalog: Catalog
    settings: T
    problems: tuple[ConfigProblem, ...] = ()

    def require_sound(self) -> "LoadedConfig[T]":
        """Return the configuration itself. Raises a Fault if it has any problem."""
        if self.problems:
            raise fault_of(self.problems)
        return self


def load(
    documents: Sequence[TomlText],
    environment: Mapping[str, str],
    settings_type: type[T],
    mistakes_in: Callable[[T], Iterable[Mistake]] = lambda _settings: (),
    *,
    dialects: Collection[str],
) -> LoadedConfig[T]:
    """The documents merged in their order, with the environment on top. `mistakes_in` reports what is wrong with
    settings whose values have the right types; `dialects` are those that a provider can have."""
    overlay, problems, built_in = _merge_documents(documents)
    schema = {**_field_types(Catalog), **_field_types(settings_type)}
    settings, unknown = settings_in(environment, schema, overlay.tree, dialects)
    for setting in settings:
        overlay.lay(setting.value, setting, setting.path)
    tree = overlay.tree
    for name in tree.keys() - schema.keys():
        hint = nearest(name, schema, "Known tables")
        problems.append(problem_at(overlay.place((name,)), (name,), f"there is no table {quote_word(name)}", hint))
    catalog, mistakes = read(_part(tree, Catalog), Catalog, overlay.place, dialects=dialects)
    chosen, more = read(_part(tree, settings_type), settings_type, overlay.place)
    # A struct whose keys are known and optional can always be built; both are such structs.
    catalog, chosen = _apply_detections(cast(Catalog, catalog), overlay, dialects), cast(T, chosen)
    moved = providers_at_other_sites(_texts(built_in, "base_url"), catalog.providers)
    catalog = _with_other_dialects(catalog, overlay, _texts(built_in, "dialect"))
    catalog = without_prices(catalog, moved, lambda model: overlay.is_users(("models", model, "prices")))
    named = set(variables_of(catalog))
    problems += [problem for problem in unknown if problem.path not in named]
    problems += [*mistakes, *more, *check(catalog, tree, overlay.place)]
    problems += [problem_at(overlay.place(path), path, message, hint) for path, message, hint in mistakes_in(chosen)]
    order = {source.file: index for index, source in enumerate(documents)}
    problems.sort(key=lambda problem: (order.get(problem.file, len(order)), problem.line))
    return LoadedConfig(catalog, chosen, tuple(_problems_of_user(problems, documents)))


def variables_of(catalog: Catalog) -> Iterator[str]:
    """Every environment variable that a provider names."""
    for provider in catalog.providers.values():
        yield from variables_in(provider)


def variables_in(provider: Provider) -> Iterator[str]:
    """Every environment variable that this provider names. The one of its key comes first, and is empty if it takes
    none."""
    yield provider.key_env
    yield from provider.env_headers.values()
    yield from provider.sign_env
    yield from SIGNING_SECRETS.get(provider.sign, ())
    for url in (provider.base_url, *provider.also.values()):
        yield from LEADING_VARIABLE.findall(url)


def _merge_documents(documents: Sequence[TomlText]) -> tuple[Overlay, list[ConfigProblem], dict[str, JsonObject]]:
    """The merged documents, their problems, and the tables of built-in providers."""
    overlay = Overlay()
    problems: list[ConfigProblem] = []
    built_in: dict[str, JsonObject] = {}
    for source in documents:
        document = parse_toml(source)
        if isinstance(document, ConfigProblem):
            problems.append(document)
            continue
        document, mistakes = own_names(document)
        problems += mistakes
        tree = dict(document.tree)
        for name, value in document.tree.items():
            if isinstance(overlay.tree.get(name), dict) and not isinstance(value, dict):
                del tree[name]  # otherwise it would replace all of our own tables
                message = f"{format_path((name,))} must be a table, not {describe_value(value)}"
                problems.append(problem_at(document.place((name,)), (name,), message))
        overlay.lay(tree, document)
        providers = tree.get("providers")
        if source.builtin and isinstance(providers, dict):
            built_in |= {name: table for name, table in providers.items() if isinstance(table, dict)}
    return overlay, problems, built_in


def _texts(tables: Mapping[str, JsonObject], key: str) -> dict[str, str]:
    """The value of a key in each of these tables, if it is text."""
    return {name: value for name, table in tables.items() if isinstance(value := table.get(key), str)}


def _problems_of_user(problems: list[ConfigProblem], documents: Sequence[TomlText]) -> list[ConfigProblem]:
    """The problems that the user can fix. Sightline's own tables are correct by themselves: a problem there only
    follows from one of the user's."""
    own = {source.file for source in documents if source.builtin}
    return [problem for problem in problems if problem.file not in own] or problems


def _with_other_dialects(catalog: Catalog, overlay: Overlay, built_in: Mapping[str, str]) -> Catalog:
    """The catalogue after the user's choice of another dialect that a built-in provider understands: the two dialects
    swap places, each with its address."""
    providers = dict(catalog.providers)
    for name, provider in catalog.providers.items():
        path, spoken, before = ("providers", name), provider.dialect, built_in.get(name)
        if spoken not in provider.also or overlay.is_users((*path, "also", spoken)) or before is None:
            continue
        is_moved = bool(provider.also[spoken]) and not overlay.is_users((*path, "base_url"))
        also = {each: url for each, url in provider.also.items() if each != spoken}
        also.setdefault(before, provider.base_url if is_moved else "")
        url = provider.also[spoken] if is_moved else provider.base_url
        providers[name] = msgspec.structs.replace(provider, also=also, base_url=url)
    return msgspec.structs.replace(catalog, providers=providers)


def _field_types(struct: type) -> dict[str, inspect.Type]:
    return {name: field.type for name, field in fields_of(cast(inspect.StructType, type_of(struct))).items()}


def _part(tree: JsonObject, struct: type) -> JsonObject:
    return {name: value for name, value in tree.items() if name in _field_types(struct)}


def _apply_detections(catalog: Catalog, overlay: Overlay, dialects: Collection[str]) -> Catalog:
    """The catalogue with each detection applied to the providers that it fits."""
    providers = dict(catalog.providers)
    tables = cast(dict[str, dict[str, JsonObject]], overlay.tree)
    for name, provider in catalog.providers.items():
        for kind, detection in catalog.detections.items():
            overlaid = tables["detections"][kind].get("provider")
            if isinstance(overlaid, dict) and detection.fits(name, provider):
                overlay.lay_below_the_users(overlaid, "providers", name)
                # Mistakes were reported when the provider and the detection were read.
                table, path = tables["providers"][name], ("providers", name)
                changed, _ = read(table, Provider, overlay.place, path, dialects=dialects)
                providers[name] = cast(Provider, changed)
    return msgspec.structs.replace(catalog, providers=providers)
