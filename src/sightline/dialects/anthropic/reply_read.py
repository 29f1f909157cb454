"""A whole Messages reply to the events that a stream of it would have been."""

from sightline.dialects.anthropic.blocks_read import read_content
from sightline.dialects.anthropic.errors import error_fields, frame_fault, is_error, unmodelled_fields
from sightline.dialects.anthropic.names import STOP_DETAILS, finish_of
from sightline.dialects.anthropic.usage import Counter
from sightline.dialects.fields import as_list, as_object, opt_object, opt_str, str_of
from sightline.dialects.streaming import finish_for_content
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Part, Text, Thinking, ToolCall
from sightline.model.reply import Finish

KNOWN = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of this body."""
    body = as_object(document, "")
    if is_error(body):
        return [*error_fields(body, ""), Failed(frame_fault(body)), Ended()]
    parts, _ = read_content(as_list(body.get("content"), "/content"), "/content")
    parts = tuple(part for part in parts if not isinstance(part, CacheBreakpoint))
    events: list[StreamEvent] = [read_identity(body, "")]
    for number, part in enumerate(parts):
        events += events_of(number, part)
    events += unmodelled_fields(body, "", KNOWN | {STOP_DETAILS})
    usage = opt_object(body, "usage", "")
    if usage is not None:
        events.append(UsageReceived(Counter().read(usage, "/usage")))
    stop_sequence = opt_str(body, "stop_sequence", "")
    finish, detail = finish_of(str_of(body, "stop_reason", ""), stop_sequence)
    finish = finish_for_content(finish, has_calls=any(isinstance(part, ToolCall) for part in parts))
    events += details_of(body, "", len(parts), finish)
    return [*events, Finished(finish, 0, detail, stop_sequence, "/stop_reason", "/stop_sequence"), Ended()]


def read_identity(message: JsonObject, at: str) -> Started:
    """Who answers, and where it is said."""
    places = {name: f"{at}/{name}" for name in ("id", "model") if message.get(name) is not None}
    return Started(opt_str(message, "id", at), opt_str(message, "model", at), places=places)


def events_of(number: int, part: Part) -> list[StreamEvent]:
    """One block of the reply, as it would have been streamed."""
    events: list[StreamEvent] = []
    match part:
        case Text(text, citations):
            events.append(TextReceived(number, text, at=part.at))
            events += (CitationReceived(number, citation) for citation in citations)
        case Thinking(text) if not part.redacted:
            events.append(ThinkingReceived(number, text, at=part.at))
            events += seal_of(number, part)
        case ToolCall(call_id, name, arguments):
            events.append(ToolCallBegun(number, call_id, name, at=part.at))
            events += [ArgumentsReceived(number, arguments), ToolCallCompleted(number)]
        case _:
            return [PartReceived(number, part)]
    return [*events, *unmodelled_fields(part.extras, part.at, frozenset())]


def seal_of(number: int, part: Thinking) -> list[StreamEvent]:
    """The seal over a thinking block; an empty signature is none."""
    if part.signed_by is None or part.signature == "":
        return []
    return [SignatureReceived(number, part.signature, part.signed_by, id=part.id)]


def details_of(holder: JsonObject, at: str, number: int, finish: Finish) -> list[StreamEvent]:
    """The `stop_details` of a holder: the explanation of a refusal is a part of its own, behind all blocks."""
    details = holder.get(STOP_DETAILS)
    text = details.get("explanation") if isinstance(details, dict) and finish == "refusal" else None
    if not isinstance(details, dict) or not isinstance(text, str) or not text:
        return unmodelled_fields({STOP_DETAILS: details}, at, frozenset())
    place = f"{at}/{STOP_DETAILS}"
    refusal = RefusalReceived(number, text, at=f"{place}/explanation")
    return [refusal, *unmodelled_fields(details, place, frozenset({"explanation"}))]
