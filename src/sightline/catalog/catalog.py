"""The catalogue: every known provider, family, model and route, and what is known of a model in any spelling.

Prices apply to the providers that a table names. The same weights, or a similar name, cost something else at another
provider: nothing on your own server, another rate behind a gateway. There the price is unknown until a table gives it
for that provider.

`check` finds the most costly mistakes in values of the right type: a key in place of the name of its variable, an
invalid address, and an unknown name. A value that may be a secret is never repeated.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from sightline.catalog.facts import Charges, Facts, Family, Model, Prices
from sightline.catalog.problem import ConfigProblem, Mistake, Path, format_path, nearest, problem_at, quote_word
from sightline.catalog.provider import LEADING_VARIABLE, Detection, Provider, Route
from sightline.catalog.reading import PlaceOf
from sightline.model.header_names import CREDENTIALS, OF_A_BODY, OF_A_CONNECTION, QUERY_CREDENTIALS, TOKEN
from sightline.model.json import Json, JsonObject


class Catalog(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """The built-in tables merged with the user's configuration. The order is that of the files."""

    providers: dict[str, Provider] = {}
    families: dict[str, Family] = {}
    models: dict[str, Model] = {}
    routes: tuple[Route, ...] = ()
    detections: dict[str, Detection] = {}

    # Every request needs these, so they are computed once per catalogue.

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """The models by lower-case name and alias. A name takes precedence over an alias, and an earlier entry over
        later ones."""
        names = {name.lower(): name for name in reversed(self.models)}
        return {alias.lower(): name for name, model in self.models.items() for alias in model.aliases} | names

    @cached_property
    def globs(self) -> Sequence[tuple[re.Pattern[str], Family]]:
        """The families by the lower-case globs for their models' names, longest glob first."""
        globs = [(glob.lower(), family) for family in self.families.values() for glob in family.match]
        globs.sort(key=lambda each: len(each[0]), reverse=True)
        return [(re.compile(translate(glob)), family) for glob, family in globs]


def prices_at(entry: Model | Family, provider_name: str, *, is_for_provider: bool = False) -> Prices | None:
    """The entry's prices if they are this provider's, otherwise None. `is_for_provider` means that the entry is
    `provider/name`.

    An entry that names no provider at all is the user's own table, and applies wherever that name is requested.
    """
    prices = entry.prices
    if prices is None or is_for_provider:
        return prices
    payees = prices.providers or entry.providers
    return prices if not payees or provider_name in payees else None


class PriceDate(NamedTuple):
    """When a model's prices were looked up, as a month such as 2026-11, and where."""

    provider: str
    model: str
    month: str
    source: str


def price_dates(catalog: Catalog) -> list[PriceDate]:
    """The date of every price that has a month; prices without one are the user's own. What a provider charges for all
    of its models is listed with an empty model."""
    found = [
        PriceDate(name, "", provider.charges.as_of, provider.charges.source)
        for name, provider in catalog.providers.items()
    ]
    for name, model in catalog.models.items():
        if (prices := model.prices) is not None:
            for payee in prices.providers or model.providers or (name.partition("/")[0],):
                if payee in catalog.providers:
                    source = prices.source or catalog.providers[payee].charges.source
                    found.append(PriceDate(payee, name.removeprefix(f"{payee}/"), prices.as_of, source))
    return [each for each in found if each.month]


def providers_at_other_sites(builtin: Mapping[str, str], providers: Mapping[str, Provider]) -> frozenset[str]:
    """The built-in providers whose base URL the user has pointed at another site: a gateway, or a server of their own.

    `builtin` has each provider's address in Sightline's own tables. An address that begins with a variable is the
    user's to set, and another host of the same site (`eu.api.example.com`) still belongs to the vendor.
    """
    return frozenset(
        name
        for name, url in builtin.items()
        if name in providers and not LEADING_VARIABLE.match(url) and _site(providers[name].base_url) != _site(url)
    )


def without_prices(catalog: Catalog, moved: Collection[str], is_users: Callable[[str], bool]) -> Catalog:
    """The catalogue without the built-in prices of these providers. `is_users` is whether the user has set the prices
    of a model; those stay."""
    if not moved:
        return catalog
    models = {
        name: model
        if model.prices is None or is_users(name)
        else _without_moved_payees(name, model, model.prices, moved)
        for name, model in catalog.models.items()
    }
    return msgspec.structs.replace(catalog, models=models)


def _without_moved_payees(name: str, model: Model, prices: Prices, moved: Collection[str]) -> Model:
    payees = prices.providers or model.providers
    left = tuple(each for each in payees if each not in moved)
    if len(left) == len(payees) and name.partition("/")[0] not in moved:
        return model
    return msgspec.structs.replace(model, prices=msgspec.structs.replace(prices, providers=left) if left else None)


def _site(url: str) -> str:
    """The last two labels of the host, which are the same for all of a vendor's regions; an IP address as it is."""
    host = _host(url)
    labels = host.split(".")
    return host if host.startswith("[") or labels[-1].isdigit() else ".".join(labels[-2:])


def _host(url: str) -> str:
    """The lower-case host of an address, without its port."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    return host if host.startswith("[") else host.partition(":")[0]


_VARIANT = re.compile(r":[^:/]+$")
_LATEST = re.compile(r"-latest$", re.IGNORECASE)
_DATE = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|20\d{6})$")

_UNKNOWN = Family()


def facts_of(catalog: Catalog, provider_name: str, model_name: str) -> Facts:
    """The facts of a model at this provider: those of its family, overridden by its entries, most specific last.

    Everything except the prices also applies to the same model elsewhere.
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
    prices, provider = known["prices"], catalog.providers.get(provider_name)
    if isinstance(prices, Prices) and provider is not None:
        known["prices"] = prices_at_address(_with_charges(prices, provider.charges), provider.base_url)
    return msgspec.structs.replace(Facts(), **known)


def _with_charges(prices: Prices, charges: Charges) -> Prices:
    """The prices with what the provider charges for all of its models."""
    return msgspec.structs.replace(
        prices,
        tiers=charges.tiers | prices.tiers,
        regions=charges.regions | prices.regions,
        tools=charges.tools | prices.tools,
        source=prices.source or (charges.source if prices.as_of else ""),
        hosts=charges.hosts | prices.hosts,
    )


def prices_at_address(prices: Prices, url: str) -> Prices:
    """The prices of requests that are sent to this address, which may belong to a region."""
    if not prices.hosts or not url:
        return prices
    host = _host(url)
    region = next((region for glob, region in prices.hosts.items() if fnmatchcase(host, glob)), "")
    return prices if region == prices.region else msgspec.structs.replace(prices, region=region)


def family_of(catalog: Catalog, provider_name: str, model_name: str) -> Family:
    """The family that the model's entry names, otherwise the one with the longest matching glob, otherwise an empty
    one."""
    for model in _entries(catalog, _addresses(provider_name, model_name)):
        if model.family in catalog.families:
            return catalog.families[model.family]
    names = [name.lower() for name in spellings(model_name)]
    for glob, family in catalog.globs:
        if any(map(glob.match, names)):
            return family
    return _UNKNOWN


def entry_of(catalog: Catalog, model_name: str) -> Model | None:
    """The most specific entry for a model's name, which may include the vendor's path; None if there is none."""
    return next(_entries(catalog, _variants(model_name)), None)


def spellings(model_name: str) -> list[str]:
    """The name, then the name without a variant, `-latest` or a date; then the same without the vendor's path."""
    return list(dict.fromkeys((*_variants(model_name), *_variants(model_name.rpartition("/")[2]))))


def _variants(name: str) -> Iterator[str]:
    plain = _VARIANT.sub("", name)
    yield from filter(None, (name, plain, _LATEST.sub("", plain), _DATE.sub("", plain)))


def _addresses(provider_name: str, model_name: str) -> Iterator[str]:
    names = spellings(model_name)
    yield from (f"{provider_name}/{name}" for name in names)
    yield from names


def _entries(catalog: Catalog, names: Iterable[str]) -> Iterator[Model]:
    """The entries under these names, without duplicates."""
    seen: set[str] = set()
    for name in names:
        found = name if name in catalog.models else catalog.spelled.get(name.lower(), "")
        if found and found not in seen:
            seen.add(found)
            yield catalog.models[found]


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
    owners: dict[str, str] = {name: name for name in catalog.models}
    for name, model in catalog.models.items():
        for alias in model.aliases:
            owner = owners.setdefault(alias, name)
            if owner != name:
                message = f"has {quote_word(alias)}, which means {quote_word(owner)} already"
                yield ("models", name, "aliases"), message, "Take it out of one of them."
                # The other side may be the user's, which is the one they can change.
                yield ("models", owner), f"and {quote_word(name)} both have the name {quote_word(alias)}", ""


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
    if provider.sign and provider.key_env:
        yield (*path, "sign"), "stands beside key_env", "Leave one of them out: a request is signed, or carries a key."
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
        host, _port = parts.hostname, parts.port  # a port out of range is detected only on access
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
    for index, variable in enumerate(provider.sign_env):
        if not is_variable_name(variable):
            hint = _EXPORT.format("ACME_SECRET", "sign_env", quote_word("ACME_SECRET"))
            yield (*path, "sign_env", index), _NAME_OF_VARIABLE.format("secret"), hint
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
    # Not from the catalogue: a route that could not be read is missing there, which would shift the others' numbers.
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
