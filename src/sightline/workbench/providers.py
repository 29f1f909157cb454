"""Which providers answer now: local ones are asked; for others, whether their key is set."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.dialects.endpoint import address
from sightline.errors import Fault
from sightline.transport.http.target import target
from sightline.wire.call import HttpRequest, RequestTemplate
from sightline.workbench.shapes import ProviderShown

Probe: TypeAlias = Callable[[HttpRequest], Awaitable[str]]
"""Returns why a server does not answer; empty if it does."""


@dataclass(frozen=True, slots=True)
class Providers:
    """`embedded` returns why the embedded model does not answer now; empty if it does."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    environment: Mapping[str, str]
    probe: Probe
    embedded: Callable[[], Awaitable[str]]

    async def list_providers(self) -> tuple[ProviderShown, ...]:
        """The current state of each provider. One that is `ready` without a reason has answered."""
        return tuple(await asyncio.gather(*(self._one(*each) for each in self.catalog.providers.items())))

    async def _one(self, name: str, provider: Provider) -> ProviderShown:
        if provider.embedded:
            why = await self.embedded()
            return ProviderShown(name, ready=not why, why=why)
        if not self.has_key(provider):
            why = f"{provider.key_env} is not set. {provider.key_help}".strip()
            return ProviderShown(name, ready=False, why=why)
        try:
            request = RequestTemplate("GET", address(provider, provider.dialect, "/models"), (), b"").fill(
                self.environment
            )
            is_here = target(request.url).origin.is_loopback
        except Fault as fault:
            return ProviderShown(name, ready=False, why=f"{fault.message}.")
        if is_here:
            why = await self.probe(request)
            return ProviderShown(name, ready=not why, why=why)
        why = f"{provider.key_env} is set." if provider.key_env else "The client's own credential is passed on."
        return ProviderShown(name, ready=True, why=why)
