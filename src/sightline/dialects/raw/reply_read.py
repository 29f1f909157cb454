"""Reading a whole raw reply, an assistant message that says how it ended, as the events that it amounts to."""

from sightline.dialects.fields import as_list, as_object, opt_int, opt_str, rest, whole_number, wrong
from sightline.dialects.openai_chat.choices import read_logprobs
from sightline.dialects.openai_chat.usage import read_usage
from sightline.dialects.raw.carrier import carrier_kind
from sightline.dialects.raw.content_read import read_calls, read_content
from sightline.dialects.raw.errors import read_error
from sightline.dialects.raw.finishes import FIELDS, read_finish
from sightline.dialects.raw.names import FIRST_CALL, MARKER, MOST_CHOICES, ROLE_NUMBERS
from sightline.dialects.tool_names import BUILT_IN
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
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
from sightline.model.parts import Part, Refusal, Text, Thinking, ToolCall
from sightline.model.value import Value
from sightline.wire.pointer import join

IDENTITY = frozenset({"id", "model", "created", MARKER})
_CHOICE = FIELDS | {"role", "content", "toolCalls", "logprobs"}
_BODY = _CHOICE | IDENTITY | {"usage", "others", "error"}


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a reply, of one that failed on its way, or of an error body."""
    body = as_object(document, "")
    error = body.get("error")
    if error is not None and "role" not in body:
        return [Failed(read_error(0, body, {})), Ended()]
    events: list[StreamEvent] = [read_started(body, "")]
    events += _read_choice(body, 0, "", _BODY)
    others = as_list(body.get("others") or [], "/others")
    if len(others) >= MOST_CHOICES:
        raise wrong(others, "/others", f"less than {MOST_CHOICES} choices")
    for index, value in enumerate(others):
        at = f"/others/{index}"
        events += _read_choice(as_object(value, at), index + 1, at, _CHOICE)
    if body.get("usage") is not None:
        events.append(UsageReceived(read_usage(body["usage"], "/usage")))
    if error is not None:
        events.append(Failed(read_error(0, body, {})))
    return [*_until_failed(events), Ended()]


def read_started(body: JsonObject, at: str) -> Started:
    """Who answers."""
    places = {key: f"{at}/{key}" for key in ("id", "model", "created") if body.get(key)}
    if body.get(MARKER):
        places["marker"] = f"{at}/{MARKER}"
    named, model, created = opt_str(body, "id", at), opt_str(body, "model", at), opt_int(body, "created", at)
    return Started(named, model, created, places, opt_str(body, MARKER, at) or None)


def _until_failed(events: list[StreamEvent]) -> list[StreamEvent]:
    """A failure is the end of the whole reply, so it stands last and alone; the last one has a message of its own."""
    failures = [event for event in events if isinstance(event, Failed)]
    if not failures:
        return events
    return [*(event for event in events if not isinstance(event, (Finished, Failed))), failures[-1]]


def _read_choice(holder: JsonObject, choice: int, at: str, known: frozenset[str]) -> list[StreamEvent]:
    role = holder.get("role")
    if whole_number(role) != ROLE_NUMBERS["assistant"]:
        raise wrong(role, f"{at}/role", f"the number {ROLE_NUMBERS['assistant']} of an assistant message")
    events: list[StreamEvent] = []
    for number, part in enumerate(read_content(holder.get("content"), "assistant", f"{at}/content")):
        events += part_events(part, number, choice)
    calls = read_calls(holder, at)
    for number, call in enumerate(calls):
        events += part_events(call, FIRST_CALL + number, choice)
    events += read_logprobs(holder.get("logprobs"), choice, f"{at}/logprobs")
    events += [FieldReceived(join(at, key), value) for key, value in rest(holder, known).items()]
    has_calls = any(isinstance(call, ToolCall) for call in calls)
    return [*events, read_finish(holder, choice, at, has_calls=has_calls)]


def part_events(part: Part, number: int, choice: int) -> list[StreamEvent]:
    """A part as events: what can grow in a stream as if it had grown in one step, anything else whole."""
    match part:
        case Text(text, citations):
            events: list[StreamEvent] = [TextReceived(number, text, choice, at=part.at)]
            events += [CitationReceived(number, citation, choice) for citation in citations]
        case Refusal(text):
            events = [RefusalReceived(number, text, choice, at=part.at)]
        case Thinking(redacted=False):
            events = _thinking(part, number, choice)
        case ToolCall(call_id, name, arguments):
            events = [
                ToolCallBegun(number, call_id, name, choice, carrier_kind(part.kind), item=part.item, at=part.at),
                ArgumentsReceived(number, arguments, choice),
            ]
        case _:
            return [PartReceived(number, part, choice)]
    if not isinstance(part, Refusal) and part.signed_by is not None:
        item = part.id if isinstance(part, Thinking) else None
        events.append(SignatureReceived(number, part.signature, part.signed_by, choice, item))
    if isinstance(part, ToolCall):
        events.append(ToolCallCompleted(number, choice, part.extras if part.kind in BUILT_IN else {}))
    return events + unread(part)


def _thinking(part: Thinking, number: int, choice: int) -> list[StreamEvent]:
    events: list[StreamEvent] = [
        ThinkingReceived(number, piece, choice, index, summary=True, at=part.at)
        for index, piece in enumerate(part.summary)
    ]
    if not part.summary or part.text != "\n\n".join(part.summary):
        events.append(ThinkingReceived(number, part.text, choice, at=part.at))
    return events


def unread(part: Value) -> list[StreamEvent]:
    """The fields of a part that are not modelled."""
    return [FieldReceived(join(part.at, key), value) for key, value in part.extras.items()]
