"""Checks of values that have the right type and are still wrong.

They are for the mistakes that cost people most: a key where the name of its variable belongs, an invalid address, and
an unknown name. A value that may be a secret is never repeated.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from sightline.catalog.catalog import Catalog
from sightline.catalog.problem import (
    ConfigProblem,
    Mistake,
    Path,
    format_path,
    nearest,
    problem_at,
    quote_word,
)
from sightline.catalog.provider import LEADING_VARIABLE, Provider
from sightline.catalog.reading import PlaceOf
from sightline.model.header_names import CREDENTIALS, OF_A_BODY, OF_A_CONNECTION, QUERY_CREDENTIALS, TOKEN
from sightline.model.json import Json, JsonObject

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
