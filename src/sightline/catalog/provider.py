"""A provider, how its kind is detected, the routes that choose one, what other tools call providers, and which hosts
belong to a provider: only connections to those are decrypted under `run --tls`."""

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
"""By the `provider` of an AgentV target."""

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
"""By the first word of a promptfoo id."""

SIGNING_SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws-sigv4": ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
}
"""The variables with secrets that a built-in signing method reads, in addition to those of `sign_env`."""

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
"""Providers whose name in OpenTelemetry's conventions differs."""


LEADING_VARIABLE = re.compile(r"^\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""The beginning of a base URL whose address is in the environment."""

DialectName: TypeAlias = Annotated[str, msgspec.Meta(description="the name of a dialect", extra={"dialect": True})]
"""The names themselves are known to higher layers: plug-ins add dialects, so the reader is given the names."""

Retries: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]
OWN_REQUEST_RETRIES, OWN_STREAM_RETRIES = 4, 5
"""How often Sightline's own requests are retried if nothing else is set."""

Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class Quirks(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """How a provider differs from its dialect, as named flags. They apply to translations and to our own requests; a
    client's own bytes in the provider's dialect are not changed by them."""

    # How a request is written (`Target.quirks`).
    thinking_field: str = ""
    """The message field in which it accepts earlier reasoning, such as `reasoning_content`; empty if it accepts
    none."""
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The field of a chat request for the limit of the reply."""
    developer_role: bool = True
    """It knows the developer role; otherwise developer messages become system messages."""
    stream_usage: bool = True
    """It accepts `stream_options.include_usage`."""
    call_seals: bool = False
    """It accepts the signatures of earlier tool calls (`extra_content`), which others refuse as an unknown field."""

    # What our own requests contain (`catalog/compose.py`).
    parallel_tool_calls: bool = True
    """It accepts that field."""
    store: bool | None = None
    """The value in our own Responses requests, false if None. If it is set, our own chat requests have false."""
    cache_key: bool | None = None
    """It accepts `prompt_cache_key`. If None, our own Responses requests have one and others do not."""

    # How its responses are read, and what it can be asked for.
    responses_indices: bool = True
    """Its Responses events carry indices."""
    reports_length: bool = True
    """It reports when a reply was truncated by the limit."""
    counts_tokens: bool = False
    """It has the dialect's endpoint for counting the tokens of a request."""

    # What a held request is checked against.
    vendor_rules: bool = False
    """It refuses everything that the vendor of its dialect refuses; other servers of a dialect often accept more."""


class Provider(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A provider. `dialect` is used for our own requests; `also` are the other dialects that it understands, each with
    its base URL (empty: the same).

    A base URL may begin with `${NAME}`, a variable. `key_env` names the variable of the key; `key_header` is its header
    if it differs from the dialect's. `headers` are sent as they are; `env_headers` name variables that hold the values,
    and are left out if those are not set. `embedded` is the model that runs inside Sightline. `home` are dialects whose
    clients use this provider by default, with a credential of their own if no key is set. With `websocket`, clients
    that open a socket get one to the provider; without it the provider is called over HTTP.

    `sign` names what signs each request instead of a key: a built-in method, or one of a plug-in; `sign_options` are
    its options, and `sign_env` names the variables that a plug-in's method gets. `version` replaces the dialect's own
    version between the base URL and the path; if it is empty, the base URL is complete.

    `other_urls` are further base URLs at which the vendor's clients reach it by themselves; connections to them are
    decrypted under `run --tls`.

    `request_max_retries` and `stream_max_retries` are set only by the user. A built-in table that needs other numbers
    than the usual ones sets `own_retries`, which applies to Sightline's own requests and never to a client's.
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
        """Whether the configuration has a way to authenticate, so that a client's own credential is not sent."""
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
        """How often a request is retried. A client's request is not unless the user says so, because clients retry
        themselves, and two retry budgets on one request multiply."""
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
    """A rule that sends requests to a provider. `model` is a glob for the requested model; `dialect` restricts the
    route to requests that arrive in that dialect. `as` is the model name to send instead; `system` is where system
    messages go; `strict` refuses a loss; `retries` is how often its requests are retried; `cache` is whether translated
    agents get cache marks. A route with a `path`, a glob, applies only to raw requests to such paths."""

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
    """`provider` applies to each provider that is called by one of `names`, or whose base URL contains one of
    `url_contains` and none of `not_url_contains`. Case is ignored, and what the user has set stays."""

    names: tuple[str, ...] = ()
    url_contains: tuple[str, ...] = ()
    not_url_contains: tuple[str, ...] = ()
    provider: Provider = Provider()

    def fits(self, name: str, provider: Provider) -> bool:
        """Whether the detection applies to this provider."""
        called = {name.lower(), provider.title.lower()}
        if any(each.lower() in called for each in self.names):
            return True
        url = provider.base_url.lower()
        return _holds_any(url, self.url_contains) and not _holds_any(url, self.not_url_contains)


def _holds_any(url: str, marks: tuple[str, ...]) -> bool:
    return any(mark.lower() in url for mark in marks)


_HTTPS: Final = 443
_LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHost(NamedTuple):
    """A host and its provider. `bases` are the paths of that provider's base URLs on the host, longest first."""

    name: str
    provider: str
    bases: tuple[str, ...] = ()


class KnownHosts:
    """The hosts of these providers, given as `(name, base URL)`, where the first provider to name a host gets it; and
    `others`, which the user has named: `host`, or `*.host` for all below it, each with or without a port."""

    def __init__(self, urls: Iterable[tuple[str, str]], others: Iterable[str] = ()) -> None:
        self._known: dict[tuple[str, int], KnownHost] = {}
        for provider, url in urls:
            self._add(provider, url)
        self._others = [_host_and_port(other) for other in others]

    def _add(self, provider: str, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port or _HTTPS
        except ValueError:  # a request to it will report what is wrong
            return
        if parts.scheme != "https" or not host or host in _LOOPBACK_HOSTS:
            return
        known = self._known.get((host, port), KnownHost(host, provider))
        base = parts.path.rstrip("/")
        if known.provider == provider and base and base not in known.bases:
            known = known._replace(bases=tuple(sorted((*known.bases, base), key=len, reverse=True)))
        self._known[host, port] = known

    def find(self, host: str, port: int) -> KnownHost | None:
        """The known host of this lower-case name and port; None if its connections are not decrypted."""
        if (host, port) in self._known:
            return self._known[host, port]
        for name, wanted in self._others:
            if wanted == port and (host == name or (name.startswith("*.") and host.endswith(name[1:]))):
                return KnownHost(host, host)
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all hosts, those named by the user as they are written."""
        return tuple(sorted({host for host, _ in self._known} | {name for name, _ in self._others}))


def addresses_of(providers: Mapping[str, Provider], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The base URLs of providers, with the variables that they begin with filled in, without those whose variable is
    not set."""
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
