"""The list of models that this gateway serves, in the form of each dialect."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from sightline.catalog.catalog import Catalog, facts_of
from sightline.catalog.provider import Provider, Route
from sightline.dialects.dialect import ListedModel
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

_GLOB = frozenset("*?[")


def list_models(catalog: Catalog, has_key: Callable[[Provider], bool], provider: str = "") -> list[ListedModel]:
    """Every model that can be used: by a route, by a provider whose key is set, or the embedded model.

    With a `provider`, only its models. Raises a fault if it is not configured.
    """
    if provider and provider not in catalog.providers:
        hint = f"Known are {', '.join(catalog.providers)}."
        raise Fault(Code.USAGE, f"there is no provider {provider!r}", hint=hint, status=404)
    found = {each.id: each for each in _of_providers(catalog, has_key, provider)}
    # A route takes precedence over everything else, so its entry for a name wins.
    for route in reversed(catalog.routes):
        if not route.path and (not provider or route.provider == provider):
            found.update((each.id, each) for each in _of_route(catalog, route))
    return sorted(found.values(), key=lambda each: (each.provider, each.id))


def find_model(models: list[ListedModel], name: str) -> ListedModel:
    wanted = name.removeprefix("models/")
    for each in models:
        if each.id == wanted:
            return each
    hint = "GET /v1/models lists those that can be asked for."
    raise Fault(Code.MODEL_UNKNOWN, f"there is no model {wanted!r} here", hint=hint, status=404)


def _of_providers(catalog: Catalog, has_key: Callable[[Provider], bool], only: str) -> Iterator[ListedModel]:
    usable = [
        name
        for name, provider in catalog.providers.items()
        if only == name or (not only and (provider.embedded or (provider.has_credential and has_key(provider))))
    ]
    for name, model in catalog.models.items():
        owner, _, rest = name.partition("/")
        if rest and owner in catalog.providers and set(model.providers) <= {owner}:
            # Facts about a model at one provider. If another entry says that it is served there, that entry lists it.
            served = catalog.models.get(rest)
            if owner in usable and (served is None or owner not in served.providers):
                # After /p/, the provider is already named.
                yield ListedModel(rest if only else name, owner, facts_of(catalog, owner, rest))
            continue
        for serving in model.providers:
            if serving in usable:
                yield ListedModel(name, serving, facts_of(catalog, serving, name))
                break
    for name in usable:
        if default := catalog.providers[name].default_model:
            yield ListedModel(default, name, facts_of(catalog, name, default))


def _of_route(catalog: Catalog, route: Route) -> Iterator[ListedModel]:
    named = [route.model] if not _GLOB & set(route.model) else [
        name for name in catalog.models if fnmatchcase(name, route.model)
    ]  # fmt: skip
    for name in named:
        yield ListedModel(name, route.provider, facts_of(catalog, route.provider, route.as_ or name))


def for_codex() -> JsonObject:
    """The list that Codex requests. It is empty: an entry would replace everything that Codex knows about a model,
    including its instructions and tools, which the catalogue does not have."""
    return {"models": []}
