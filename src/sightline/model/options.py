"""Everything in a request that is neither a message nor a tool: how to sample, how much, in which form."""

from typing import TypeAlias

import msgspec

from sightline.model.json import Json, Value

ADDED = ""
"""The place of an option that was not asked for: a translation has added it."""


class PlainFormat(Value, frozen=True, tag="text"):
    """The answer is free text, said explicitly."""


class JsonFormat(Value, frozen=True, tag="json"):
    """The answer is some JSON."""


class SchemaFormat(Value, frozen=True, tag="json_schema"):
    """The answer is JSON of this schema."""

    schema: dict[str, Json]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


OutputFormat: TypeAlias = PlainFormat | JsonFormat | SchemaFormat


class Reasoning(Value, frozen=True, tag=False):
    """How much the model should think, and what it shows of it.

    `mode` is on, off or adaptive where the wire says so; `effort` a word, `budget` a number of tokens; `summary` is
    auto, concise, detailed or none. `places` is where each stood.
    """

    mode: str | None = None
    effort: str | None = None
    budget: int | None = None
    summary: str | None = None
    places: dict[str, str] = {}  # noqa: RUF012 - msgspec gives every instance its own


class Options(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """Each option under one name, None where the request does not set it; `places` is where each one stood."""

    max_tokens: int | None = None
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    logit_bias: dict[str, Json] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    format: OutputFormat | None = None
    reasoning: Reasoning | None = None
    verbosity: str | None = None
    cache_key: str | None = None
    cache_retention: str | None = None
    store: bool | None = None
    include: tuple[str, ...] | None = None
    previous_response_id: str | None = None
    metadata: dict[str, Json] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    safety_settings: list[Json] | None = None
    stream: bool | None = None
    include_usage: bool | None = None
    places: dict[str, str] = {}
