"""A model's reply, folded from the events of its stream, and its token usage, counted the same way for all
providers."""

from operator import attrgetter
from typing import Literal, TypeAlias, TypeGuard

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, ToolCall

MOST_TOKENS = 10**12
"""A higher token count cannot be right."""
MOST_DOLLARS = 1e6
"""A higher cost of one request cannot be right."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The token counts of a request. `input_tokens` is the whole prompt, including cached and cache-written tokens.
    `reasoning_tokens` are part of `output_tokens`; `cache_write_1h_tokens` are the part of `cache_write_tokens` that
    the cache keeps for an hour, which costs more. `extras` are the provider's finer counts, `at` their place.

    The remaining fields affect the price: `audio_input_tokens` are part of `input_tokens`, `audio_output_tokens` and
    `image_output_tokens` of `output_tokens`. `server_tools` are the calls that the provider made itself, by tool.
    `tier` and `region` are those that answered, unless they are the usual ones. `cost` is what the provider reports to
    have charged, in dollars. With `is_estimated`, the provider did not count input or output, or the answer was
    interrupted before it did, and the counts are estimates.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    at: str = ""
    extras: dict[str, Json] = {}
    audio_input_tokens: int | None = None
    audio_output_tokens: int | None = None
    image_output_tokens: int | None = None
    server_tools: dict[str, int] = {}
    tier: str = ""
    region: str = ""
    cost: float | None = None
    is_estimated: bool = False


def possible(usage: Usage | None) -> Usage | None:
    """The usage without impossible counts. A prompt of 0 tokens is impossible too: some servers report 0 if they have
    not counted, and a cost or an estimate based on it would be silently wrong."""
    if usage is None:
        return None
    asked, written = usage.input_tokens or -1, usage.output_tokens or 0
    if 0 < asked <= MOST_TOKENS and 0 <= written <= MOST_TOKENS and not any(_DETAIL_COUNTS(usage)):
        return usage  # the usual case
    wrong = [name for name in _COUNTS if (count := getattr(usage, name)) and not 0 <= count <= MOST_TOKENS]
    if usage.input_tokens == 0:
        wrong.append("input_tokens")
    if usage.cost is not None and not 0 <= usage.cost < MOST_DOLLARS:
        wrong.append("cost")
    return msgspec.structs.replace(usage, extras={}, **dict.fromkeys(wrong)) if wrong else usage


def is_complete(usage: Usage | None) -> TypeGuard[Usage]:
    """Whether the provider has counted everything that the cost depends on, or reports the cost itself. Expects the
    result of `possible`."""
    return usage is not None and (
        usage.cost is not None or (usage.input_tokens is not None and usage.output_tokens is not None)
    )


_USUAL = frozenset({"", "default", "standard", "auto", "on_demand", "global", "not_available", "unspecified"})


def unusual(name: Json) -> str:
    """The name of a tier or region in lower case; empty for the usual one, and for a value that is not a name."""
    word = name.lower().removeprefix("service_tier_") if isinstance(name, str) else ""
    return "" if word in _USUAL else word


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cache_write_1h_tokens",
    "audio_input_tokens",
    "audio_output_tokens",
    "image_output_tokens",
)
_DETAIL_COUNTS = attrgetter(*_COUNTS[2:], "cost")
"""The counts besides those of the whole input and output, and the cost."""


Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "cancelled"]


class TokenLogprob(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token, its log probability, and the alternatives at its position."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


class Unmodelled(msgspec.Struct, frozen=True):
    """A field of a reply that we do not model, and its place."""

    at: str
    value: Json


class Choice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One answer of a reply. `detail` is the provider's own word for the finish if ours is coarser; `stop_sequence` is
    the text that stopped it; `finish_at` and `stop_at` are the places of the two."""

    parts: tuple[Part, ...] = ()
    finish: Finish | None = None
    detail: str | None = None
    stop_sequence: str | None = None
    finish_at: str = ""
    stop_at: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()
    logprobs_at: str = ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of this answer, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A complete reply: usually one choice, sometimes several, or a fault with what had arrived by then.

    `places` is where `id`, `model` and `created` were. `marker` is the name under which the provider keeps the
    conversation up to here.
    """

    choices: tuple[Choice, ...] = (Choice(),)
    id: str | None = None
    model: str | None = None
    created: int | None = None
    places: dict[str, str] = {}
    usage: Usage | None = None
    fault: Fault | None = None
    dialect: str = ""
    unmodelled: tuple[Unmodelled, ...] = ()
    marker: str | None = None

    @property
    def choice(self) -> Choice:
        """The first choice, which in most dialects is the only one."""
        return self.choices[0]


def reply_json(reply: Reply) -> JsonObject:
    """The reply in the public JSON form that commands and records show, without unknown values."""
    choice = reply.choice
    shown: JsonObject = {
        "role": "assistant",
        "parts": [_part_json(part) for part in choice.parts],
        "finish": choice.finish,
        "reason": None if reply.fault is None else reply.fault.reason,
        "usage": None if reply.usage is None else _usage_json(reply.usage),
        "model": reply.model,
        "id": reply.id,
        "fault": None if reply.fault is None else {"code": reply.fault.code.value, "message": reply.fault.message},
    }
    if len(reply.choices) > 1:
        shown["others"] = [
            {"parts": [_part_json(part) for part in other.parts], "finish": other.finish} for other in reply.choices[1:]
        ]
    return {key: value for key, value in shown.items() if value is not None}


def _part_json(part: Part) -> JsonObject:
    shown: JsonObject = msgspec.to_builtins(part)
    if isinstance(part, ToolCall):
        shown["arguments"] = part.arguments
    if shown.get("id") == "":
        del shown["id"]  # some wire formats have no ids of calls
    return {key: value for key, value in shown.items() if key not in {"at", "extras", "signed_by"}}


def _usage_json(usage: Usage) -> JsonObject:
    shown: JsonObject = msgspec.to_builtins(usage)
    # How long the cache keeps its tokens matters only to the price; the public form has the sum.
    return {key: value for key, value in shown.items() if key not in {"at", "extras", "cache_write_1h_tokens"}}
