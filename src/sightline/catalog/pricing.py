"""Whose prices a table holds: those of the providers that it names, and of no other server that has the same model.

The same weights, or a name that looks the same, cost something else at another provider: nothing on an own server,
another rate behind a gateway. There the price is not known until a table says it for that provider.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Family, Model, Prices
from sightline.catalog.provider import LEADING_VARIABLE, Provider


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
