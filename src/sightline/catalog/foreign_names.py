"""Our providers under the names that other programs give them."""

from collections.abc import Mapping
from typing import Final

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
