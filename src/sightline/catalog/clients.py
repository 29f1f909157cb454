"""Programs and libraries that are known to call a model: where each reads its base URL and its credential from, and
what else each is given so that it works as it does without Sightline."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

BASE_URLS: Final = (
    ("OPENAI_BASE_URL", "openai", "/v1"),
    ("OPENAI_API_BASE", "openai", "/v1"),
    ("ANTHROPIC_BASE_URL", "anthropic", ""),
    ("ANTHROPIC_API_BASE", "anthropic", ""),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", ""),
    ("GEMINI_API_BASE", "gemini", "/v1beta"),
)
"""What SDKs and programs read: the variable, whose API it is, and the ending of that API's own base URL."""

FURTHER_BASE_URLS: Final = (
    ("OPENROUTER_API_BASE", "openrouter", "OPENROUTER_API_KEY"),
    ("GROQ_API_BASE", "groq", "GROQ_API_KEY"),
    ("MISTRAL_API_BASE", "mistral", "MISTRAL_API_KEY"),
    ("DEEPSEEK_API_BASE", "deepseek", "DEEPSEEK_API_KEY"),
    ("XAI_API_BASE", "xai", "XAI_API_KEY"),
    ("FIREWORKS_API_BASE", "fireworks", "FIREWORKS_API_KEY"),
    ("CEREBRAS_API_BASE", "cerebras", "CEREBRAS_API_KEY"),
)
"""For vendors that share an API with others, the base URL must name the vendor. It is set if the key is."""

CREDENTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY", "CODEX_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
}
"""Variables that hold a credential of each vendor."""

DEMANDED: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
}
"""Variables without which clients do not even start."""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client in the list of known clients. `program` is what `sightline run --` starts, empty for a library;
    `variables` are those that it reads by itself, so that the user can also set them."""

    title: str
    program: str = ""
    variables: tuple[str, ...] = ()
    note: str = ""

    def environment(self, address: str) -> dict[str, str]:
        """The variables that point the client at Sightline at this address."""
        return {name: f"{address}{ending}" for name, _, ending in BASE_URLS if name in self.variables}


KNOWN_CLIENTS: Final = (
    KnownClient("Claude Code", "claude", ("ANTHROPIC_BASE_URL",)),
    KnownClient("Codex", "codex", note="It reads its base URL from its own configuration; `run` sets it with -c."),
    KnownClient(
        "Gemini CLI",
        "gemini",
        ("GOOGLE_GEMINI_BASE_URL",),
        "By hand, choose to sign in with an API key: its other ways speak an API that is not served here.",
    ),
    KnownClient("opencode", "opencode", note="It reads its base URLs from its own configuration; `run` sets them."),
    KnownClient("OpenAI SDK", variables=("OPENAI_BASE_URL",)),
    KnownClient("Anthropic SDK", variables=("ANTHROPIC_BASE_URL",)),
    KnownClient("Gemini SDK", variables=("GOOGLE_GEMINI_BASE_URL",)),
)


class ClientSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a client is given for one way of connecting it; `*` is every client.

    `variables` are set unless the user has set them; `certificates` are variables that name the file of certificates to
    trust; `config` are keys of the provider that Codex is given. It does not apply to versions before `since`. With
    `needs_own_provider` it is left out if requests may go to a provider other than the client's own. `keeps` is its
    purpose, `source` where that is documented.
    """

    client: str
    way: Literal["base_url", "tls"]
    since: str = ""
    variables: dict[str, str] = {}
    certificates: tuple[str, ...] = ()
    config: dict[str, bool | str] = {}
    needs_own_provider: bool = False
    keeps: str
    source: str


class ClientSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of `clients.toml`: what clients are given."""

    settings: tuple[ClientSetting, ...]

    def for_client(
        self, client: str, way: Literal["base_url", "tls"], *, version: str = "", has_routes: bool = False
    ) -> tuple[ClientSetting, ...]:
        """What this client is given. An empty `version` counts as a new one; `has_routes` is whether its requests may
        go to another provider."""
        return tuple(
            each
            for each in self.settings
            if each.client in ("*", client)
            and each.way == way
            and not (each.needs_own_provider and has_routes)
            and (not version or _numbers(version) >= _numbers(each.since))
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))
