"""What is known of a model that somebody names, however they spell the name."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Facts, Family, Model
from sightline.catalog.pricing import prices_at

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
