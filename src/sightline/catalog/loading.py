"""The whole configuration from its texts: Sightline's own tables, the user's file, and the environment over both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

import msgspec
from msgspec import inspect

from sightline.catalog.catalog import Catalog
from sightline.catalog.checks import check
from sightline.catalog.environment import settings_in
from sightline.catalog.pricing import providers_at_other_sites, without_prices
from sightline.catalog.problem import (
    ConfigLocation,
    ConfigProblem,
    Mistake,
    Path,
    fault_of,
    format_path,
    nearest,
    problem_at,
    quote_word,
)
from sightline.catalog.provider import LEADING_VARIABLE, DialectName, Provider
from sightline.catalog.reading import describe_value, fields_of, read, type_of
from sightline.catalog.toml import TomlDocument, TomlText, parse_toml
from sightline.model.json import Json, JsonObject

TABLES: Mapping[str, str] = {"model_providers": "providers"}

KEYS: Mapping[str, Mapping[str, str]] = {
    "providers": {
        "name": "title",
        "env_key": "key_env",
        "env_key_instructions": "key_help",
        "wire_api": "dialect",
        "query_params": "query",
        "http_headers": "headers",
        "env_http_headers": "env_headers",
    },
    "families": {"family": "title"},
}

WIRE_APIS: Mapping[str, str] = {"responses": "openai-responses", "chat": "openai-chat"}


def own_names(document: TomlDocument) -> tuple[TomlDocument, list[ConfigProblem]]:
    """The document with every synonym replaced by our own name. A synonym beside its own name is a mistake."""
    renaming = _Renaming(document)
    return replace(document, tree=renaming.tree(), moved=renaming.moved), renaming.problems


class _Renaming:
    def __init__(self, document: TomlDocument) -> None:
        self.moved: dict[Path, Path] = {}
        self.problems: list[ConfigProblem] = []
        self._document = document

    def tree(self) -> JsonObject:
        tree = dict(self._document.tree)
        for synonym, own in TABLES.items():
            moved = tree.pop(synonym, None)
            if isinstance(moved, dict):
                tree[own] = self._merge_synonym(synonym, moved, own, tree.get(own, {}))
        for table, keys in KEYS.items():
            entries = tree.get(table)
            if isinstance(entries, dict):
                tree[table] = {name: self._rename_keys((table, name), entry, keys) for name, entry in entries.items()}
        return tree

    def _merge_synonym(self, synonym: str, moved: JsonObject, own: str, present: Json) -> Json:
        if not isinstance(present, dict):
            return present
        self.moved.update({(own, name): (synonym, name) for name in moved if name not in present})
        if not present:
            self.moved[own,] = (synonym,)
        for name in moved.keys() & present.keys():
            self._both(
                (synonym, name), f"{format_path((synonym, name))} and {format_path((own, name))} are the same table"
            )
        return {**present, **{name: table for name, table in moved.items() if name not in present}}

    def _rename_keys(self, path: Path, entry: Json, keys: Mapping[str, str]) -> Json:
        if not isinstance(entry, dict):
            return entry
        renamed: JsonObject = {}
        origin = self.moved.get(path, path)
        for name, value in entry.items():
            own = keys.get(name, name)
            if own != name and own in entry:
                self._both((*origin, name), f"{format_path(path)} has both {quote_word(name)} and {quote_word(own)}")
                continue
            if own != name:
                self.moved[*path, own] = (*origin, name)
            renamed[own] = self._dialect((*origin, name), value) if name == "wire_api" and own != name else value
        return renamed

    def _dialect(self, path: Path, value: Json) -> Json:
        if not isinstance(value, str):
            return value
        if value.lower() not in WIRE_APIS:
            message = (
                f"{format_path(path)} must be one of {', '.join(map(quote_word, WIRE_APIS))}, not {quote_word(value)}"
            )
            self.problems.append(problem_at(self._document.place(path), path, message, nearest(value, WIRE_APIS)))
            return "openai-chat"
        return WIRE_APIS[value.lower()]

    def _both(self, path: Path, message: str) -> None:
        hint = "They mean the same; keep one of them."
        self.problems.append(problem_at(self._document.place(path), path, message, hint))


class ValueOrigin(Protocol):
    """Who set a value: a document, or a variable of the environment."""

    @property
    def builtin(self) -> bool:
        """Whether it is one of Sightline's own tables."""
        ...

    def place(self, path: Path) -> ConfigLocation:
        """Where exactly the value at this path stands."""
        ...


class Overlay:
    """The trees so far. Tables are merged, anything else is replaced by what is laid over it."""

    def __init__(self) -> None:
        self.tree: JsonObject = {}
        self._origins: dict[Path, ValueOrigin] = {}

    def lay(self, tree: JsonObject, origin: ValueOrigin) -> None:
        """Put a tree over what is there."""
        self._lay(self.tree, tree, origin, (), lambda _: False)

    def lay_below_the_users(self, table: JsonObject, *path: str) -> None:
        """Put a table over what is built in at `path`, and below what the user has set there."""
        for step in reversed(path):
            table = {step: table}
        self._lay(self.tree, table, self.origin(path), (), self.is_users)

    def is_users(self, path: Path) -> bool:
        """Whether the user has set this very value."""
        return path in self._origins and not self._origins[path].builtin

    def origin(self, path: Path) -> ValueOrigin:
        """Who set the value at this path, or the nearest table around it."""
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
                # A copy, so that what is laid over it later does not reach into the document it came from.
                under[name] = table = dict(below or {})
                self._lay(table, value, origin, here, is_kept)
            elif not is_kept(here):
                under[name] = value
                self._origins[here] = origin


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[T]):
    """A configuration and what is wrong with it; what is wrong has been left out of the two values."""

    catalog: Catalog
    settings: T
    problems: tuple[ConfigProblem, ...] = ()

    def sound(self) -> "LoadedConfig[T]":
        """Itself, if nothing is wrong."""
        if self.problems:
            raise fault_of(self.problems)
        return self


def load(
    documents: Sequence[TomlText],
    environment: Mapping[str, str],
    settings_type: type[T],
    mistakes_in: Callable[[T], Iterable[Mistake]] = lambda _settings: (),
) -> LoadedConfig[T]:
    """The documents laid over each other in their order, and the environment over them. `mistakes_in` tells what is
    wrong with settings whose values have the right types."""
    overlay, problems, built_in = _merge_documents(documents)
    schema = {**_kinds(Catalog), **_kinds(settings_type)}
    settings, unknown = settings_in(environment, schema, overlay.tree)
    for setting in settings:
        overlay.lay(setting.tree, setting)
    tree = overlay.tree
    for name in tree.keys() - schema.keys():
        hint = nearest(name, schema, "Known tables")
        problems.append(problem_at(overlay.place((name,)), (name,), f"there is no table {quote_word(name)}", hint))
    catalog, mistakes = read(_part(tree, Catalog), Catalog, overlay.place)
    chosen, more = read(_part(tree, settings_type), settings_type, overlay.place)
    # A struct whose keys are known and optional can always be made; both are.
    catalog, chosen = _apply_detections(cast(Catalog, catalog), overlay), cast(T, chosen)
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
    """Every variable of the environment that a provider names."""
    for provider in catalog.providers.values():
        yield from variables_in(provider)


def variables_in(provider: Provider) -> Iterator[str]:
    """Every variable of the environment that this provider names; the one of its key comes first, empty where it
    takes none."""
    yield provider.key_env
    yield from provider.env_headers.values()
    for url in (provider.base_url, *provider.also.values()):
        yield from LEADING_VARIABLE.findall(url)


def _merge_documents(documents: Sequence[TomlText]) -> tuple[Overlay, list[ConfigProblem], dict[str, JsonObject]]:
    """The documents over each other, what is wrong with them, and the tables of providers that are built in."""
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
                del tree[name]  # or it would take all of our own tables with it
                message = f"{format_path((name,))} must be a table, not {describe_value(value)}"
                problems.append(problem_at(document.place((name,)), (name,), message))
        overlay.lay(tree, document)
        providers = tree.get("providers")
        if source.builtin and isinstance(providers, dict):
            built_in |= {name: table for name, table in providers.items() if isinstance(table, dict)}
    return overlay, problems, built_in


def _texts(tables: Mapping[str, JsonObject], key: str) -> dict[str, str]:
    """What each of these tables says under a key, where that is a text."""
    return {name: value for name, table in tables.items() if isinstance(value := table.get(key), str)}


def _problems_of_user(problems: list[ConfigProblem], documents: Sequence[TomlText]) -> list[ConfigProblem]:
    """What the user can mend. Sightline's own tables are sound by themselves: what is wrong there, too, only follows
    from what is wrong with the user's."""
    own = {source.file for source in documents if source.builtin}
    return [problem for problem in problems if problem.file not in own] or problems


def _with_other_dialects(catalog: Catalog, overlay: Overlay, built_in: Mapping[str, str]) -> Catalog:
    """The catalogue, where the user may choose another of the dialects that a built-in provider understands: the two
    change places, each with its address."""
    providers = dict(catalog.providers)
    for name, provider in catalog.providers.items():
        path, spoken, before = ("providers", name), provider.dialect, built_in.get(name)
        if spoken not in provider.also or overlay.is_users((*path, "also", spoken)) or before is None:
            continue
        is_moved = bool(provider.also[spoken]) and not overlay.is_users((*path, "base_url"))
        also = {each: url for each, url in provider.also.items() if each != spoken}
        also.setdefault(cast(DialectName, before), provider.base_url if is_moved else "")
        url = provider.also[spoken] if is_moved else provider.base_url
        providers[name] = msgspec.structs.replace(provider, also=also, base_url=url)
    return msgspec.structs.replace(catalog, providers=providers)


def _kinds(struct: type) -> dict[str, inspect.Type]:
    return {name: field.type for name, field in fields_of(cast(inspect.StructType, type_of(struct))).items()}


def _part(tree: JsonObject, struct: type) -> JsonObject:
    return {name: value for name, value in tree.items() if name in _kinds(struct)}


def _apply_detections(catalog: Catalog, overlay: Overlay) -> Catalog:
    """The catalogue with what its detections say about the providers that they fit."""
    providers = dict(catalog.providers)
    tables = cast(dict[str, dict[str, JsonObject]], overlay.tree)
    for name, provider in catalog.providers.items():
        for kind, detection in catalog.detections.items():
            overlaid = tables["detections"][kind].get("provider")
            if isinstance(overlaid, dict) and detection.fits(name, provider):
                overlay.lay_below_the_users(overlaid, "providers", name)
                # Its mistakes were found when it and the detection were read.
                changed, _ = read(tables["providers"][name], Provider, overlay.place, ("providers", name))
                providers[name] = cast(Provider, changed)
    return msgspec.structs.replace(catalog, providers=providers)
