"""The catalogue: every known provider, family, model and route, and what is known of a model by any spelling.

Prices are those of the providers that a table names. The same weights, or a similar name, cost something else at
another provider: nothing on an own server, another rate behind a gateway. There the price is not known until a table
gives it for that provider.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import cached_property

import msgspec

from sightline.catalog.facts import Facts, Family, Model, Prices
from sightline.catalog.provider import LEADING_VARIABLE, Detection, Provider, Route


class Catalog(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """What the built-in tables and the user's configuration say together. Order is the order of the files."""

    providers: dict[str, Provider] = {}
    families: dict[str, Family] = {}
    models: dict[str, Model] = {}
    routes: tuple[Route, ...] = ()
    detections: dict[str, Detection] = {}

    # Each request asks for these, so they are made once for a catalogue.

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """The models by name and alias in small letters. A name goes before an alias, and the first before others."""
        names = {name.lower(): name for name in reversed(self.models)}
        return {alias.lower(): name for name, model in self.models.items() for alias in model.aliases} | names

    @cached_property
    def globs(self) -> Sequence[tuple[re.Pattern[str], Family]]:
        """The families by what their models are called, in small letters, the longest glob first."""
        globs = [(glob.lower(), family) for family in self.families.values() for glob in family.match]
        globs.sort(key=lambda each: len(each[0]), reverse=True)
        return [(re.compile(translate(glob)), family) for glob, family in globs]


def prices_at(entry: Model | Family, provider_name: str, *, is_for_provider: bool = False) -> Prices | None:
    """The entry's prices, where they are this provider's. `is_for_provider` says that the entry is `provider/name`.

    An entry that names no provider at all is the user's own table, and holds wherever that name is asked for.
    """
    prices = entry.prices
    if prices is None or is_for_provider:
        return prices
    payees = prices.providers or entry.providers
    return prices if not payees or provider_name in payees else None


def providers_at_other_sites(builtin: Mapping[str, str], providers: Mapping[str, Provider]) -> frozenset[str]:
    """The built-in providers whose base URL the user has pointed at another site: a gateway, or a server of their own.

    `builtin` is the address that each has in Sightline's own tables. One that begins with a variable is the user's to
    set, and another host of the same site (`eu.api.example.com`) is still the vendor.
    """
    return frozenset(
        name
        for name, url in builtin.items()
        if name in providers and not LEADING_VARIABLE.match(url) and _site(providers[name].base_url) != _site(url)
    )


def without_prices(catalog: Catalog, moved: Collection[str], is_users: Callable[[str], bool]) -> Catalog:
    """The catalogue without the built-in prices of these providers. `is_users` tells of a model's name whether the
    user has set its prices; those stay."""
    if not moved:
        return catalog
    models = {
        name: model if model.prices is None or is_users(name) else _for_others(name, model, model.prices, moved)
        for name, model in catalog.models.items()
    }
    return msgspec.structs.replace(catalog, models=models)


def _for_others(name: str, model: Model, prices: Prices, moved: Collection[str]) -> Model:
    payees = prices.providers or model.providers
    left = tuple(each for each in payees if each not in moved)
    if len(left) == len(payees) and name.partition("/")[0] not in moved:
        return model
    return msgspec.structs.replace(model, prices=msgspec.structs.replace(prices, providers=left) if left else None)


def _site(url: str) -> str:
    """The last two names of the host, which stay the same for a vendor's regions; an address of numbers as it is."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    if host.startswith("["):
        return host
    host = host.partition(":")[0]
    labels = host.split(".")
    return host if labels[-1].isdigit() else ".".join(labels[-2:])


_VARIANT = re.compile(r":[^:/]+$")
_LATEST = re.compile(r"-latest$", re.IGNORECASE)
_DATE = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|20\d{6})$")

_UNKNOWN = Family()


def facts_of(catalog: Catalog, provider_name: str, model_name: str) -> Facts:
    """The facts of a model at this provider: those of its family, and over them its entries, the most exact last.

    Everything but the prices holds for the same model elsewhere too.
    """
    own = list(_entries(catalog, (f"{provider_name}/{name}" for name in spellings(model_name))))
    layers: list[Family | Model] = [family_of(catalog, provider_name, model_name)]
    layers += reversed(list(_entries(catalog, _addresses(provider_name, model_name))))
    known: dict[str, object] = {}
    for layer in layers:
        values = ((name, getattr(layer, name)) for name in Facts.__struct_fields__ if name != "prices")
        known.update({name: value for name, value in values if value not in (None, "")})
        is_own = any(layer is each for each in own)
        known["prices"] = prices_at(layer, provider_name, is_for_provider=is_own) or known.get("prices")
    return msgspec.structs.replace(Facts(), **known)


def family_of(catalog: Catalog, provider_name: str, model_name: str) -> Family:
    """The family that the model's entry names, else the one with the longest glob that fits, else an empty one."""
    for model in _entries(catalog, _addresses(provider_name, model_name)):
        if model.family in catalog.families:
            return catalog.families[model.family]
    names = [name.lower() for name in spellings(model_name)]
    for glob, family in catalog.globs:
        if any(map(glob.match, names)):
            return family
    return _UNKNOWN


def entry_of(catalog: Catalog, model_name: str) -> Model | None:
    """The most exact entry for a model's name, vendor's path and all."""
    return next(_entries(catalog, _variants(model_name)), None)


def spellings(model_name: str) -> list[str]:
    """The name, then what is left of it without a variant, `-latest` or a date; then the same without the vendor's
    path."""
    return list(dict.fromkeys((*_variants(model_name), *_variants(model_name.rpartition("/")[2]))))


def _variants(name: str) -> Iterator[str]:
    plain = _VARIANT.sub("", name)
    yield from filter(None, (name, plain, _LATEST.sub("", plain), _DATE.sub("", plain)))


def _addresses(provider_name: str, model_name: str) -> Iterator[str]:
    names = spellings(model_name)
    yield from (f"{provider_name}/{name}" for name in names)
    yield from names


def _entries(catalog: Catalog, names: Iterable[str]) -> Iterator[Model]:
    """The entries under these names, each once."""
    seen: set[str] = set()
    for name in names:
        found = name if name in catalog.models else catalog.spelled.get(name.lower(), "")
        if found and found not in seen:
            seen.add(found)
            yield catalog.models[found]
