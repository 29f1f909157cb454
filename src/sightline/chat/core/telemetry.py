"""Telemetry of every attempt to send, under its public names."""

from typing import Literal, TypeAlias

import msgspec

from sightline.model.message import Message
from sightline.model.parts import Text

Stage: TypeAlias = Literal[
    "user_prompt_too_large",
    "preflight",
    "waiting",
    "attempt",
    "overflow_initial",
    "overflow_retry",
    "overflow_exhausted",
    "filter_changed",
    "error",
    "cancelled",
    "success",
]


class TelemetryBudget(msgspec.Struct, frozen=True, rename="camel"):
    """`max_context` is the largest request (ML), `max_usable_raw` what history and prompt can use of it."""

    max_context: int
    max_usable_raw: int


class Selected(msgspec.Struct, frozen=True):
    """One pair, and the tokens planned for it."""

    id: str
    model: str
    tokens: int


class MessageSummary(msgspec.Struct, frozen=True):
    """One message in short: its role and its text."""

    role: str
    content: str


class Band(msgspec.Struct, frozen=True):
    """An estimate: the likely number, and its bounds."""

    low: int
    tokens: int
    high: int


class SendTelemetry(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel", tag_field="kind", tag="telemetry"
):
    """One moment of one send. Token numbers are upper bounds of estimates; `bands` has the whole estimates.

    What begins with `predicted` stays the same during a send; what begins with `attempt` only falls. `selection` is
    what this attempt sends of the history, `trimming_removed` what it leaves out of the predicted pairs, of which
    `preflight_trimmed_count` were left out before the first attempt.
    """

    model: str
    stage: Stage
    budget: TelemetryBudget
    selection: tuple[Selected, ...]
    predicted_message_count: int
    predicted_history_tokens: int
    predicted_total_tokens: int
    attempt_history_tokens: int
    attempt_total_tokens: int
    aut: int = msgspec.field(name="AUT")
    trimmed_count: int
    attempts_used: int
    chars_per_token: float
    remaining_reserve: int
    messages: tuple[MessageSummary, ...]
    sent_count: int
    visible_count: int
    user_request_allowance: int
    assistant_response_allowance: int
    max_trim_attempts: int
    system_tokens: int
    tool_tokens: int
    preflight_trimmed_count: int
    trimming_removed: tuple[Selected, ...]
    trimming_removed_tokens: int
    bands: dict[str, Band]
    last_error_message: str | None = None
    overflow_matched: bool | None = None
    final_delivered_tokens: int | None = None
    reported_input_tokens: int | None = None
    wait_seconds: float | None = None


def summarize(messages: tuple[Message, ...]) -> tuple[MessageSummary, ...]:
    """The messages in short; parts that are not text are named in brackets."""
    return tuple(MessageSummary(message.role, "".join(map(_words, message.parts))) for message in messages)


def _words(part: msgspec.Struct) -> str:
    return part.text if isinstance(part, Text) else f"[{type(part).__name__}]"
