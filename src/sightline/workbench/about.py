"""What the page needs to know about this server: models, providers, and how to connect clients."""

from collections.abc import Callable, Iterator, Sequence

from sightline.catalog.catalog import Catalog
from sightline.catalog.clients import KNOWN_CLIENTS, KnownClient
from sightline.catalog.lookup import facts_of
from sightline.catalog.provider import Provider
from sightline.gateway.models import list_models
from sightline.workbench.shapes import About, ClientShown, ModelShown, Place, ProviderShown


def about(
    version: str,
    address: str,
    catalog: Catalog,
    has_key: Callable[[Provider], bool],
    *,
    places: tuple[Place, ...] = ("traffic",),
    toolsets: Sequence[str] = (),
) -> About:
    """The current state."""
    models = [
        ModelShown(each.id.removeprefix(f"{each.provider}/"), each.provider, each.facts.context_window)
        for each in list_models(catalog, has_key)
    ]
    known = {(each.id, each.provider) for each in models}
    return About(
        version=version,
        address=address,
        places=places,
        models=(*models, *(each for each in _keyless(catalog) if (each.id, each.provider) not in known)),
        providers=tuple(_provider(name, each, has_key) for name, each in catalog.providers.items()),
        clients=tuple(_client(each, address) for each in KNOWN_CLIENTS),
        toolsets=tuple(toolsets),
    )


def _keyless(catalog: Catalog) -> Iterator[ModelShown]:
    """Models that are configured at providers without a key. Whether such a provider runs is not known, so clients are
    not offered them; the user who configured them can choose them."""
    for owner, provider in catalog.providers.items():
        if not provider.key_env and not provider.embedded:
            own = (name.removeprefix(f"{owner}/") for name in catalog.models if name.startswith(f"{owner}/"))
            for model in dict.fromkeys(filter(None, (provider.default_model, *own))):
                yield ModelShown(model, owner, facts_of(catalog, owner, model).context_window)


def _client(client: KnownClient, address: str) -> ClientShown:
    command = f"sightline run -- {client.program}" if client.program else ""
    return ClientShown(client.title, command, client.environment(address), client.note)


def _provider(name: str, provider: Provider, has_key: Callable[[Provider], bool]) -> ProviderShown:
    if provider.embedded or has_key(provider):
        is_passed_on = not provider.embedded and not provider.key_env
        return ProviderShown(name, ready=True, why="The client's own credential is passed on." if is_passed_on else "")
    return ProviderShown(name, ready=False, why=f"{provider.key_env} is not set. {provider.key_help}".strip())
