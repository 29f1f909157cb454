"""Routing: which provider a request goes to, by the catalogue, the request and the keys that are set. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import scrypt
from urllib.parse import unquote

import msgspec

from sightline.catalog.catalog import Catalog, facts_of, family_of
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.provider import DialectName, Provider, Route
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.model.header_names import CREDENTIAL_HEADERS, is_secret_parameter
from sightline.wire.secrets import parameters, without_scheme

HasKey = Callable[[Provider], bool]

_MOST_ROUTES = 4096
PLACEHOLDER = "sightline-needs-no-key"
"""The key that `sightline run` gives to a client that requires one if none is set. It is not a credential."""


class Router:
    """Routes requests by the catalogue and the keys that are set. All requests with the same destination share one
    choice object."""

    def __init__(self, catalog: Catalog, environment: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._environment = environment
        self._routes: dict[tuple[str, str, str, bool, str], ModelChoice] = {}

    def route_for(self, request: ClientRequest) -> ModelChoice:
        """The provider and the model that a request goes to."""
        key = request.dialect, request.provider, request.model, has_credential(request), request.upstream
        choice = self._routes.get(key)
        if choice is None:
            choice = route_for(self._catalog, request, lambda provider: provider.has_key(self._environment))
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            self._routes[key] = choice
        return choice


def route_for(catalog: Catalog, request: ClientRequest, has_key: HasKey) -> ModelChoice:
    """The provider and the model of a request. The first of these that applies: the address that the client has
    connected to, the provider named in the path, a route, a provider that serves the model, the home of its dialect,
    the embedded model.

    If the client's own credential is used, the provider of the choice has no key variable. Raises MODEL_UNKNOWN.
    """
    arriving = request.dialect
    if request.upstream:
        return as_meant(catalog, request, arriving)
    if request.provider:
        return with_own(provider_in_path(catalog, request, arriving), request, has_key, is_implied=False)
    try:
        choice = choose(
            catalog,
            request.model,
            has_key=lambda provider: has_key(provider) or has_credential(request),
            arriving=arriving,
        )
    except Fault as fault:
        if fault.code is not Code.MODEL_UNKNOWN:
            raise
        return _home_or_embedded(catalog, request, arriving, has_key, fault)
    if choice.route is not None or choice.provider.embedded:
        return with_own(choice, request, has_key, is_implied=False)
    if has_key(choice.provider) or has_credential(request):
        return with_own(choice, request, has_key, is_implied=True)
    return _home_or_embedded(catalog, request, arriving, has_key, None)


def credential(request: ClientRequest, first: str = "") -> str:
    """The client's credential without its scheme; empty if it sends none. `first` is the header to look at first."""
    named = request.headers_by_name()
    for name in (first, *CREDENTIAL_HEADERS):
        if (value := without_scheme(named.get(name, ""))) and value != PLACEHOLDER:
            return value
    keys = (unquote(piece.partition("=")[2]) for name, piece in parameters(request.query) if is_secret_parameter(name))
    return next((key for key in keys if key != PLACEHOLDER), "")


def has_credential(request: ClientRequest) -> bool:
    return _has_credential(request.headers, request.query)


@lru_cache(maxsize=512)
def _has_credential(headers: TextHeaders, query: str) -> bool:
    return bool(credential(ClientRequest("", b"", headers, "", query)))


def owner_of(request: ClientRequest) -> str:
    """A fingerprint of the client's credential, which identifies the owner of stored replies. Clients without a
    credential share one."""
    return _fingerprint(credential(request))


@lru_cache(maxsize=512)
def _fingerprint(secret: str) -> str:
    # It is recorded, so it must not help to guess a short secret: one guess takes 10 ms. Each client needs only one.
    return scrypt(secret.encode("utf-8", "surrogatepass"), salt=b"sightline-owner", n=4096, r=8, p=1, dklen=12).hex()


def as_meant(catalog: Catalog, request: ClientRequest, arriving: DialectName) -> ModelChoice:
    """The client's own choice: its address, its dialect, its credential. Of the provider's settings, only the timeouts
    and how its responses are read apply."""
    known = catalog.providers.get(request.provider, Provider())
    provider = msgspec.structs.replace(
        known,
        dialect=arriving,
        also={},
        base_url=request.upstream,
        key_env="",
        headers={},
        env_headers={},
        query={},
        embedded=False,
    )
    return choice_of(catalog, request.provider, provider, request.model, arriving)


def provider_in_path(catalog: Catalog, request: ClientRequest, arriving: DialectName) -> ModelChoice:
    """The provider named in a request's path. Raises a fault if it is not configured."""
    if request.provider not in catalog.providers:
        known = ", ".join(catalog.providers)
        raise Fault(
            Code.MODEL_UNKNOWN,
            f"there is no provider {request.provider!r}; known are {known}",
            hint="Correct the base URL: the part after /p/ is the name of a provider.",
            status=404,
        )
    return choice_of(catalog, request.provider, catalog.providers[request.provider], request.model, arriving)


def _home_or_embedded(
    catalog: Catalog, request: ClientRequest, arriving: DialectName, has_key: HasKey, unknown: Fault | None
) -> ModelChoice:
    home = home_of(catalog, request, arriving, has_key)
    if home is not None and (has_key(home.provider) or has_credential(request)):
        return home
    for name, provider in catalog.providers.items():
        if provider.embedded:
            return choice_of(catalog, name, provider, provider.default_model, arriving)
    if home is not None:
        return home
    raise unknown or Fault(
        Code.MODEL_UNKNOWN,
        f"no provider with a key serves the model {request.model!r}",
        hint="Set a provider's key, or write a route for this model.",
    )


def home_of(catalog: Catalog, request: ClientRequest, arriving: DialectName, has_key: HasKey) -> ModelChoice | None:
    """The home provider for clients of this dialect: the first with a key or a client's credential, otherwise the first
    one; None if there is none."""
    # Providers that a user configures come after the built-in ones, and take precedence.
    homes = [
        choice_of(catalog, name, provider, request.model, arriving)
        for name, provider in reversed(catalog.providers.items())
        if arriving in provider.home
    ]
    for home in homes:
        if has_key(home.provider) or has_credential(request):
            return with_own(home, request, has_key, is_implied=True)
    return homes[0] if homes else None


def with_own(choice: ModelChoice, request: ClientRequest, has_key: HasKey, *, is_implied: bool) -> ModelChoice:
    """The choice, with the client's own credential if it was meant for this provider and no key is set.

    The configured key of a route is never silently replaced.
    """
    provider = choice.provider
    if has_key(provider) or not has_credential(request) or provider.embedded:
        return choice
    if is_implied or (request.caller or request.dialect) in provider.home:
        return replace(choice, provider=msgspec.structs.replace(provider, key_env=""))
    return choice


def choice_of(
    catalog: Catalog, name: str, provider: Provider, model: str, arriving: DialectName, route: Route | None = None
) -> ModelChoice:
    """The choice of this provider and model, with the catalogue's facts about the model at this provider."""
    facts, family = facts_of(catalog, name, model), family_of(catalog, name, model)
    return ModelChoice(name, provider, model, facts, family, route, arriving)
