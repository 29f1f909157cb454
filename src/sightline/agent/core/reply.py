"""What a reply means for the loop: go on with its calls, let the model go on, or end, and what of it is kept."""

from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec

from sightline.agent.core.rounds import Why
from sightline.errors import Code
from sightline.model.parts import Part, Text, Thinking, ToolCall
from sightline.model.reply import Reply


@dataclass(frozen=True, slots=True)
class ReplyOutcome:
    """`use` its calls, `pause`: the model has not ended its turn, or `end` the run, because of `why`.

    `parts` go into the conversation. With `is_cut` the reply is not whole, so that none of its calls is acted on.
    """

    then: Literal["use", "pause", "end"]
    parts: tuple[Part, ...]
    why: Why = "answered"
    is_cut: bool = False


def read(reply: Reply, source: str) -> ReplyOutcome:
    """The meaning of a reply to a request of the dialect `source`. Of several choices the first is meant."""
    choice = reply.choice
    if reply.fault is not None:
        return ReplyOutcome("end", (), "cancelled" if reply.fault.code is Code.CANCELLED else "failed", is_cut=True)
    parts = tuple(_as_history(part, same=reply.dialect == source) for part in choice.parts)
    match choice.finish:
        case "stop" | "tool_calls" | "pause":
            if choice.tool_calls:
                return ReplyOutcome("use", parts)
            return ReplyOutcome("pause" if choice.finish == "pause" and parts else "end", parts)
        case "length" | "content_filter" | "refusal":
            return ReplyOutcome("end", _without_calls(parts), choice.finish, is_cut=True)
        case "cancelled":
            return ReplyOutcome("end", (), "cancelled", is_cut=True)
        case "error" | None:
            return ReplyOutcome("end", (), "failed", is_cut=True)
        case unreachable:
            assert_never(unreachable)


def _as_history(part: Part, *, same: bool) -> Part:
    """A part of a reply as a part of a request. In the dialect that it came from, its place tells writers what it was;
    elsewhere that would point into a document that nobody has, and its unknown fields mean nothing."""
    if same:
        return part
    if isinstance(part, Text) and part.citations:
        part = msgspec.structs.replace(
            part, citations=tuple(msgspec.structs.replace(each, at="", extras={}) for each in part.citations)
        )
    return msgspec.structs.replace(part, at="", extras={})


def _without_calls(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """What can stay of a reply that was cut: reasoning that led to nothing is refused by its provider."""
    kept = [part for part in parts if not isinstance(part, ToolCall)]
    while kept and isinstance(kept[-1], Thinking):
        kept.pop()
    return tuple(kept)
