"""Words of the Messages API that several modules share: its name, its roles, its stop reasons."""

from collections.abc import Mapping

from sightline.dialects.streaming import finish_for_content
from sightline.model.reply import Finish
from sightline.model.request import Role

NAME = "anthropic"

STOP_DETAILS = "stop_details"
"""The field in which a reply explains its stop reason."""

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}

STOP_REASONS: Mapping[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
}
"""A failure has no stop reason: it is an error, in a body or in a stream."""


def finish_of(word: str, stop_sequence: str | None) -> tuple[Finish, str | None]:
    """The finish for a stop reason, and the word itself if it cannot be derived from the finish."""
    finish = FINISHES.get(word, "stop")
    is_plain = STOP_REASONS[finish] == word or (word == "stop_sequence" and stop_sequence is not None)
    return finish, None if is_plain else word


def stop_reason_of(finish: Finish, detail: str | None, stop_sequence: str | None, *, has_calls: bool) -> str | None:
    """The stop reason for a finish; `tool_use` if and only if there is a call to answer. None for a failure."""
    finish = finish_for_content(finish, has_calls=has_calls)
    if detail is not None and FINISHES.get(detail) == finish:
        return detail
    if finish == "stop" and stop_sequence is not None:
        return "stop_sequence"
    return STOP_REASONS.get(finish)
