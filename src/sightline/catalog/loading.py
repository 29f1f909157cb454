"""The whole configuration from its texts: Sightline's own tables, the user's file, and the environment over both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import inspect

from sightline.catalog.catalog import Catalog
from sightline.catalog.checks import check
from sightline.catalog.environment import settings_in
from sightline.catalog.overlay import Overlay
from sightline.catalog.pricing import moved_providers, without_prices
from sightline.catalog.problem import Mistake, Problem, fault_of, nearest, problem_at, quoted, shown
from sightline.catalog.provider import LEADING_VARIABLE, Provider
from sightline.catalog.reading import fields_of, found, read, type_of
from sightline.catalog.synonyms import own_names
from sightline.catalog.toml import TomlText, parse_toml
from sightline.model.json import JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """A configuration and what is wrong with it; what is wrong has been left out of the two values."""

    catalog: Catalog
    settings: T
    problems: tuple[Problem, ...] = ()

    def sound(self) -> "Loaded[T]":
        """Itself, if nothing is wrong."""
        if self.problems:
            raise fault_of(self.problems)
        return self


def load(
    documents: Sequence[TomlText],
    environment: Mapping[str, str],
    settings_type: type[T],
    mistakes_in: Callable[[T], Iterable[Mistake]] = lambda _settings: (),
) -> Loaded[T]:
    """The documents laid over each other in their order, and the environment over them. `mistakes_in` tells what is
    wrong with settings whose values have the right types."""
    overlay, problems, addresses = _laid(documents)
    schema = {**_kinds(Catalog), **_kinds(settings_type)}
    settings, unknown = settings_in(environment, schema, overlay.tree)
    for setting in settings:
        overlay.lay(setting.tree, setting)
    tree = overlay.tree
    for name in tree.keys() - schema.keys():
        hint = nearest(name, schema, "Known tables")
        problems.append(problem_at(overlay.place((name,)), (name,), f"there is no table {quoted(name)}", hint))
    catalog, mistakes = read(_part(tree, Catalog), Catalog, overlay.place)
    chosen, more = read(_part(tree, settings_type), settings_type, overlay.place)
    # A struct whose keys are known and optional can always be made; both are.
    catalog, chosen = _detected(cast(Catalog, catalog), overlay), cast(T, chosen)
    moved = moved_providers(addresses, catalog.providers)
    catalog = without_prices(catalog, moved, lambda model: overlay.is_users(("models", model, "prices")))
    named = set(variables_of(catalog))
    problems += [problem for problem in unknown if problem.path not in named]
    problems += [*mistakes, *more, *check(catalog, tree, overlay.place)]
    problems += [problem_at(overlay.place(path), path, message, hint) for path, message, hint in mistakes_in(chosen)]
    order = {source.file: index for index, source in enumerate(documents)}
    problems.sort(key=lambda problem: (order.get(problem.file, len(order)), problem.line))
    return Loaded(catalog, chosen, tuple(problems))


def variables_of(catalog: Catalog) -> Iterator[str]:
    """Every variable of the environment that a provider names."""
    for provider in catalog.providers.values():
        yield provider.key_env
        yield from provider.env_headers.values()
        for url in (provider.base_url, *provider.also.values()):
            yield from LEADING_VARIABLE.findall(url)


def _laid(documents: Sequence[TomlText]) -> tuple[Overlay, list[Problem], dict[str, str]]:
    """The documents over each other, what is wrong with them, and where Sightline's own tables say providers are."""
    overlay = Overlay()
    problems: list[Problem] = []
    addresses: dict[str, str] = {}
    for source in documents:
        document = parse_toml(source)
        if isinstance(document, Problem):
            problems.append(document)
            continue
        document, mistakes = own_names(document)
        problems += mistakes
        tree = dict(document.tree)
        for name, value in document.tree.items():
            if isinstance(overlay.tree.get(name), dict) and not isinstance(value, dict):
                del tree[name]  # or it would take all of our own tables with it
                message = f"{shown((name,))} must be a table, not {found(value)}"
                problems.append(problem_at(document.place((name,)), (name,), message))
        overlay.lay(tree, document)
        if source.builtin:
            addresses |= _addresses(tree)
    return overlay, problems, addresses


def _addresses(tree: JsonObject) -> dict[str, str]:
    """The base URL of each provider in this tree that has one."""
    tables = tree.get("providers")
    found = {
        name: table.get("base_url")
        for name, table in (tables.items() if isinstance(tables, dict) else ())
        if isinstance(table, dict)
    }
    return {name: url for name, url in found.items() if isinstance(url, str)}


def _kinds(struct: type) -> dict[str, inspect.Type]:
    return {name: field.type for name, field in fields_of(cast(inspect.StructType, type_of(struct))).items()}


def _part(tree: JsonObject, struct: type) -> JsonObject:
    return {name: value for name, value in tree.items() if name in _kinds(struct)}


def _detected(catalog: Catalog, overlay: Overlay) -> Catalog:
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
