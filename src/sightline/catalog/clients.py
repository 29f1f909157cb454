"""Programs and libraries that are known to call a model: where each reads its base URL and its credential from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BASE_URLS: Final = (
    ("OPENAI_BASE_URL", "openai", "/v1"),
    ("OPENAI_API_BASE", "openai", "/v1"),
    ("ANTHROPIC_BASE_URL", "anthropic", ""),
    ("ANTHROPIC_API_BASE", "anthropic", ""),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", ""),
    ("GEMINI_API_BASE", "gemini", "/v1beta"),
)
"""What SDKs and programs read: the variable, whose API it is, and what that API's own base URL ends in."""

FURTHER_BASE_URLS: Final = (
    ("OPENROUTER_API_BASE", "openrouter", "OPENROUTER_API_KEY"),
    ("GROQ_API_BASE", "groq", "GROQ_API_KEY"),
    ("MISTRAL_API_BASE", "mistral", "MISTRAL_API_KEY"),
    ("DEEPSEEK_API_BASE", "deepseek", "DEEPSEEK_API_KEY"),
    ("XAI_API_BASE", "xai", "XAI_API_KEY"),
    ("FIREWORKS_API_BASE", "fireworks", "FIREWORKS_API_KEY"),
    ("CEREBRAS_API_BASE", "cerebras", "CEREBRAS_API_KEY"),
)
"""Of vendors with the same API as others the base URL has to name the vendor; it is set where the key is."""

CREDENTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY", "CODEX_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
}
"""Variables that hold a credential of each."""

DEMANDED: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
}
"""Variables without which clients do not even start."""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client for a list of them. `program` is what `sightline run --` starts, empty for a library; `variables` are
    those that it reads by itself, so that a person can set them too."""

    title: str
    program: str = ""
    variables: tuple[str, ...] = ()
    note: str = ""

    def environment(self, address: str) -> dict[str, str]:
        """What a person sets to point it at Sightline at this address."""
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
