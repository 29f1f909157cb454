"""Which hosts are a provider's: the connections to them are opened below TLS, and no others."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from sightline.catalog.provider import LEADING_VARIABLE, Provider

_HTTPS: Final = 443
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHost(NamedTuple):
    """A host and whose it is. `bases` are the paths of that provider's base URLs there, the longest first."""

    name: str
    provider: str
    bases: tuple[str, ...] = ()


class KnownHosts:
    """The hosts of these providers, `(name, base URL)` each, where the first to name a host has it; and `others`, which
    a user has named: `host`, `*.host` for all below it, each with or without a port."""

    def __init__(self, urls: Iterable[tuple[str, str]], others: Iterable[str] = ()) -> None:
        self._known: dict[tuple[str, int], KnownHost] = {}
        for provider, url in urls:
            self._add(provider, url)
        self._others = [_split(other) for other in others]

    def _add(self, provider: str, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port or _HTTPS
        except ValueError:  # what is wrong with it, a request to it says
            return
        if parts.scheme != "https" or not host or host in _HERE:
            return
        known = self._known.get((host, port), KnownHost(host, provider))
        base = parts.path.rstrip("/")
        if known.provider == provider and base and base not in known.bases:
            known = known._replace(bases=tuple(sorted((*known.bases, base), key=len, reverse=True)))
        self._known[host, port] = known

    def find(self, host: str, port: int) -> KnownHost | None:
        """The known host of this name, in lower case, and port; None if its connections are not opened."""
        if (host, port) in self._known:
            return self._known[host, port]
        for name, wanted in self._others:
            if wanted == port and (host == name or (name.startswith("*.") and host.endswith(name[1:]))):
                return KnownHost(host, host)
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, those of a user as they are written."""
        return tuple(sorted({host for host, _ in self._known} | {name for name, _ in self._others}))


def addresses_of(providers: Mapping[str, Provider], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The base URLs of providers, with the variables that they begin with filled in; without those that are not set."""
    for name, provider in providers.items():
        for url in (provider.base_url, *provider.also.values(), *provider.other_urls):
            if variable := LEADING_VARIABLE.match(url):
                start = environment.get(variable[1], "").strip()
                url = f"{start.rstrip('/')}{url[variable.end() :]}" if start else ""
            if url:
                yield name, url


def _split(other: str) -> tuple[str, int]:
    name, _, port = other.lower().partition(":")
    return name, int(port) if port else _HTTPS
