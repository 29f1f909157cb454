"""A provider, how its kind is recognised, the routes that choose one, what other tools call providers, and which
hosts are a provider's: connections to those are opened below TLS, and no others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from sightline.catalog.facts import Charges

AGENTV_PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "openrouter": "openrouter",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "google": "gemini",
    "google-gemini": "gemini",
    "azure": "azure",
    "azure-openai": "azure",
}
"""The `provider` of a target of AgentV."""

PROMPTFOO_PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "ollama": "ollama",
    "openrouter": "openrouter",
    "mistral": "mistral",
    "groq": "groq",
    "deepseek": "deepseek",
    "xai": "xai",
    "togetherai": "together",
    "fireworks": "fireworks",
    "cerebras": "cerebras",
    "azure": "azure",
    "azureopenai": "azure",
}
"""The first word of an id of promptfoo."""

SIGNING_SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws-sigv4": ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
}
"""The variables with secrets that a built-in way of signing reads, besides those of `sign_env`."""

ADDS_VERSION: Final = frozenset({"anthropic", "gemini"})
"""Providers whose API version promptfoo adds to a host by itself."""

OPENTELEMETRY_NAMES: Final[Mapping[str, str]] = {
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers in OpenTelemetry's conventions, where they have another name there."""


LEADING_VARIABLE = re.compile(r"^\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""How a base URL begins whose address is in the environment."""

DialectName: TypeAlias = Annotated[str, msgspec.Meta(description="the name of a dialect", extra={"dialect": True})]
"""Which names there are is known above: plug-ins add dialects, so that the reader is given them."""

Retries: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]
OWN_REQUEST_RETRIES, OWN_STREAM_RETRIES = 4, 5
"""How often requests of Sightline's own are sent again where nothing else is set."""

Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class Quirks(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """In what a provider differs from its dialect, as named flags. They apply to translations and to our own requests:
    a client's own bytes in the provider's dialect are not changed by them."""

    # How a request is written (`Target.quirks`).
    thinking_field: str = ""
    """The message field in which it takes reasoning back, such as `reasoning_content`; empty where it takes none."""
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The chat field for the limit of the reply."""
    developer_role: bool = True
    """It knows that role; else developer messages become system messages."""
    stream_usage: bool = True
    """It takes `stream_options.include_usage`."""
    call_seals: bool = False
    """It takes the signatures of tool calls back (`extra_content`), which others refuse as an unknown field."""

    # What our own requests ask for (`catalog/compose.py`).
    parallel_tool_calls: bool = True
    """It takes that field."""
    store: bool | None = None
    """What our own Responses requests say there, false where it is None; our own chat requests say false if set."""
    cache_key: bool | None = None
    """It takes `prompt_cache_key`; where it is None, our own Responses requests have one and others have none."""

    # How its answers are read, and what it can be asked.
    responses_indices: bool = True
    """Its Responses events carry indices."""
    reports_length: bool = True
    """It says when a reply was cut by the limit."""
    counts_tokens: bool = False
    """It has the dialect's way to ask for the tokens of a request."""

    # What a held request is checked against.
    vendor_rules: bool = False
    """It refuses all that the vendor of its dialect refuses; other servers of a dialect often take more."""


class Provider(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One provider. `dialect` is the one of our own requests; `also` are others that it understands, each with
    its base URL (empty: the same).

    A base URL may begin with `${NAME}`, a variable. `key_env` names the variable of the key; `key_header` is its header
    where it is not the dialect's. `headers` are sent as they are; `env_headers` name variables that hold the values
    and are left out where those are not set. `embedded` is the model that runs inside Sightline. `home` are dialects
    whose clients use this provider by default, with a credential of their own if no key is set. With `websocket`
    clients that open a socket get one to the provider; without it the provider is asked over HTTP.
    `sign` names what signs each request in place of a key: a built-in way, or one of a plug-in; `sign_options` are for
    it, and `sign_env` names the variables that a plug-in's gets. `version` stands between the base URL and the path in
    place of the dialect's own; empty, the base URL is complete.
    `other_urls` are further base URLs at which clients of the vendor reach it by themselves; connections to them are
    opened below TLS.

    `request_max_retries` and `stream_max_retries` are set by the user alone: a built-in table that knows better than
    the usual numbers sets `own_retries`, which is for requests of Sightline's own and never for a client's.
    """

    title: str = ""
    dialect: DialectName = "openai-chat"
    base_url: str = ""
    also: dict[DialectName, str] = {}
    key_env: str = ""
    key_header: str = ""
    key_help: str = ""
    sign: str = ""
    sign_options: dict[str, str] = {}
    sign_env: tuple[str, ...] = ()
    version: Annotated[str, msgspec.Meta(pattern=r"^(/[A-Za-z0-9._-]+)*$")] | None = None
    headers: dict[str, str] = {}
    env_headers: dict[str, str] = {}
    query: dict[str, str] = {}
    request_max_retries: Retries | None = None
    stream_max_retries: Retries | None = None
    own_retries: Retries | None = None
    connect_timeout_ms: Milliseconds = 10_000
    first_byte_timeout_ms: Milliseconds = 600_000
    stream_idle_timeout_ms: Milliseconds = 300_000
    default_model: str = ""
    requires_openai_auth: bool = False
    embedded: bool = False
    home: tuple[DialectName, ...] = ()
    websocket: bool = True
    other_urls: tuple[str, ...] = ()
    quirks: Quirks = Quirks()
    charges: Charges = Charges()

    @property
    def has_credential(self) -> bool:
        """Whether the configuration says how it is shown who asks, so that a client's own credential is not sent."""
        return bool(self.key_env or self.sign)

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The variables whose values are secrets of this provider."""
        named = (self.key_env, *self.env_headers.values(), *self.sign_env, *SIGNING_SECRETS.get(self.sign, ()))
        return tuple(filter(None, named))

    def has_key(self, environment: Mapping[str, str]) -> bool:
        """Whether its key is set, or it takes none. The embedded model gets its key when it starts."""
        return self.embedded or not self.key_env or bool(environment.get(self.key_env, "").strip())

    def retries(self, *, is_stream: bool, is_own: bool) -> int:
        """How often a request is sent again. A client's is not unless the user says so, because clients retry
        themselves, and two budgets on one request multiply."""
        wanted = self.stream_max_retries if is_stream else self.request_max_retries
        if wanted is not None:
            return wanted
        if not is_own:
            return 0
        if self.own_retries is not None:
            return self.own_retries
        return OWN_STREAM_RETRIES if is_stream else OWN_REQUEST_RETRIES


class Route(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, rename={"as_": "as"}
):
    """`model` is a glob over the model that was asked for, `dialect` narrows it to requests that arrive in that one.

    `as` is the name to send instead; `system` says where system messages go; `strict` refuses a loss;
    `retries` is how often its requests are sent again; `cache` whether translated agents get cache marks. One with a
    `path`, a glob, is for raw requests to such paths and for no others.
    """

    model: str = "*"
    dialect: DialectName | None = None
    provider: str
    as_: str = ""
    system: Literal["in_place", "merge_leading", "merge_all"] = "in_place"
    strict: bool = False
    retries: Retries | None = None
    cache: Literal["auto", "off"] = "auto"
    path: str = ""


class Detection(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`provider` holds for each provider that is called by one of `names` or whose base URL contains one of
    `url_contains` and none of `not_url_contains`. Case does not matter, and what the user has set stays."""

    names: tuple[str, ...] = ()
    url_contains: tuple[str, ...] = ()
    not_url_contains: tuple[str, ...] = ()
    provider: Provider = Provider()

    def fits(self, name: str, provider: Provider) -> bool:
        """Whether this provider is of that kind."""
        called = {name.lower(), provider.title.lower()}
        if any(each.lower() in called for each in self.names):
            return True
        url = provider.base_url.lower()
        return _holds_any(url, self.url_contains) and not _holds_any(url, self.not_url_contains)


def _holds_any(url: str, marks: tuple[str, ...]) -> bool:
    return any(mark.lower() in url for mark in marks)


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
        self._others = [_host_and_port(other) for other in others]

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


def _host_and_port(other: str) -> tuple[str, int]:
    name, _, port = other.lower().partition(":")
    return name, int(port) if port else _HTTPS
