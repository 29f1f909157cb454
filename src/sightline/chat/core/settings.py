"""The settings of a chat's context, under their public names."""

from typing import Annotated, Literal, TypeAlias

import msgspec

Allowance: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class ChatSettings(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, rename="camel"
):
    """`chars_per_token` is CPT, `user_request_allowance` URA, `assistant_response_allowance` the reserve for the reply,
    `max_trim_attempts` NTA.

    `estimation` says how tokens are counted: as the `model` does (CPT then serves models with an unpublished
    vocabulary), or by `characters` alone. `preflight_trimming` leaves pairs out before the first attempt if the prompt
    is larger than its allowance. `style_directives` are sent to every model, after the topic's system prompt.
    `reply_focus` says whether an answer switches the page from INPUT to VIEW mode: if it is `tall`, `always`, or
    `never`. Tall is more than `partial_height_threshold` times the height of the history.
    """

    chars_per_token: Annotated[float, msgspec.Meta(ge=0.5, le=20)] = 3.5
    user_request_allowance: Allowance = 100
    assistant_response_allowance: Allowance = 800
    max_trim_attempts: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    preflight_trimming: bool = True
    estimation: Literal["model", "characters"] = "model"
    style_directives: tuple[str, ...] = ()
    reply_focus: Literal["tall", "always", "never"] = "tall"
    partial_height_threshold: Annotated[float, msgspec.Meta(ge=0.1, le=10)] = 1.0
