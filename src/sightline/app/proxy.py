"""Build the proxy for children of `run --tls`, and the calls by which a run asks for it."""

import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import msgspec

from sightline.app.configuration import Configuration
from sightline.app.engine import http_client
from sightline.app.machine import SystemClock
from sightline.catalog.provider import KnownHosts, Provider, addresses_of
from sightline.gateway.gateway import Gateway
from sightline.server.listener import ListeningServer
from sightline.server.proxy import ProxyServer, ProxySettings
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from sightline.web.bodies import Query, read_body
from sightline.web.routes import ApiCall, Calls


class ProxyWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run wants a proxy; `session` labels its traffic."""

    session: str


class ProxyShown(msgspec.Struct, frozen=True):
    """The proxy of a run. `url` has its password, `certificate` is what its children are to trust, as PEM; `hosts` are
    those whose connections are opened."""

    url: str
    certificate: str
    hosts: tuple[str, ...]


class RefusalShown(msgspec.Struct, frozen=True):
    """A client did not accept our certificate for this host; `why` is what its TLS said. With `is_tunnelled` its
    further connections there are tunnelled."""

    host: str
    why: str
    is_tunnelled: bool


class RefusalsShown(msgspec.Struct, frozen=True):
    """The hosts for which the clients of a run did not accept our certificate."""

    refused: tuple[RefusalShown, ...]


def hosts_to_open(loaded: Configuration) -> KnownHosts:
    """The hosts of the configured and of the built-in providers, and those that the user has named."""
    text = (files("sightline.catalog") / "data" / "providers.toml").read_text("utf-8")
    built_in = {
        name: msgspec.convert(table, Provider) for name, table in tomllib.loads(text).get("providers", {}).items()
    }
    # A provider of the user's may have another address than the vendor, whose clients go there all the same.
    named = (
        *addresses_of(loaded.catalog.providers, loaded.environment),
        *addresses_of(built_in, loaded.environment),
    )
    return KnownHosts(named, loaded.settings.server.tls_hosts)


def make_proxy(
    loaded: Configuration, folder: Path, token: str, served: Callable[[], tuple[Gateway, ListeningServer]]
) -> ProxyServer:
    """The proxy of this server. `served` is asked when the first run wants it."""
    configured = loaded.settings.server

    def make_settings() -> ProxySettings:
        from sightline.server.certificates import Authority

        gateway, listening = served()
        hosts = hosts_to_open(loaded)
        return ProxySettings(
            gateway=gateway,
            hosts=hosts,
            authority=Authority(folder / "ca", hosts.names, SystemClock.now),
            token=token,
            client=http_client(loaded),
            trust=Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment),
            proxies=Proxies.of(loaded.environment),
            connections=listening.connections,
            tunnels_refused=configured.tls_refused == "tunnel",
        )

    return ProxyServer(make_settings, configured.proxy_port)


def proxy_calls(proxy: ProxyServer, loaded: Configuration) -> Calls:
    """The two calls."""

    async def open_proxy(call: ApiCall) -> ProxyShown:
        wanted = await read_body(call.receive, ProxyWanted)
        url, certificate = await proxy.open(wanted.session)
        return ProxyShown(url, certificate, hosts_to_open(loaded).names)

    async def list_refusals(call: ApiCall) -> RefusalsShown:
        is_tunnelled = loaded.settings.server.tls_refused == "tunnel"
        found = proxy.refusals(Query(call.query).text("session"))
        return RefusalsShown(tuple(RefusalShown(each.host, each.why, is_tunnelled) for each in found))

    return {"proxy": {"GET": list_refusals, "POST": open_proxy}}
