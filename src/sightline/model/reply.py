"""What a model answered, folded from the events of its stream."""

from typing import Literal, TypeAlias

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, ToolCall
from sightline.model.usage import Usage

Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "error", "cancelled"]


class TokenLogprob(msgspec.Struct, frozen=True, omit_defaults=True):
    """One token, how likely it was, and what else could have stood there."""

    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


class Unmodelled(msgspec.Struct, frozen=True):
    """A field of a reply that we do not model, and its place."""

    at: str
    value: Json


class Choice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One of the answers. `detail` is the provider's own word for the finish where ours is coarser; `stop_sequence`
    the text that stopped it; `finish_at` and `stop_at` are their places."""

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
    """A whole reply: usually one choice, sometimes several, or a fault with what had arrived by then.

    `places` is where `id`, `model` and `created` stood. `marker` is the name under which the provider keeps the
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
        """The first answer, which is the only one that most dialects know."""
        return self.choices[0]


def reply_json(reply: Reply) -> JsonObject:
    """The reply as the public JSON form that commands and records show; what is unknown is absent."""
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
        del shown["id"]  # some wires name no calls
    return {key: value for key, value in shown.items() if key not in {"at", "extras", "signed_by"}}


def _usage_json(usage: Usage) -> JsonObject:
    shown: JsonObject = msgspec.to_builtins(usage)
    # How long the cache keeps what was written matters to its price alone; the public form has the sum.
    return {key: value for key, value in shown.items() if key not in {"at", "extras", "cache_write_1h_tokens"}}
