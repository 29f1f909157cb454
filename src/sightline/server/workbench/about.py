"""What this server is, for whoever opens its page: models, providers, and how clients are pointed here."""

from collections.abc import Callable

from sightline.catalog.catalog import Catalog
from sightline.catalog.clients import KNOWN_CLIENTS, KnownClient
from sightline.catalog.provider import Provider
from sightline.server.gateway.listing import listed
from sightline.server.workbench.shapes import About, ClientShown, ModelShown, ProviderShown


def about(version: str, address: str, catalog: Catalog, has_key: Callable[[Provider], bool]) -> About:
    """All of it, as it is now."""
    models = listed(catalog, has_key)
    return About(
        version=version,
        address=address,
        places=("traffic",),
        models=tuple(ModelShown(each.id, each.provider, each.facts.context_window) for each in models),
        providers=tuple(_provider(name, each, has_key) for name, each in catalog.providers.items()),
        clients=tuple(_client(each, address) for each in KNOWN_CLIENTS),
    )


def _client(client: KnownClient, address: str) -> ClientShown:
    command = f"sightline run -- {client.program}" if client.program else ""
    return ClientShown(client.title, command, client.environment(address), client.note)


def _provider(name: str, provider: Provider, has_key: Callable[[Provider], bool]) -> ProviderShown:
    if provider.embedded or has_key(provider):
        is_passed_on = not provider.embedded and not provider.key_env
        return ProviderShown(name, ready=True, why="The client's own credential is passed on." if is_passed_on else "")
    return ProviderShown(name, ready=False, why=f"{provider.key_env} is not set. {provider.key_help}".strip())
