"""Reading a whole Chat Completions reply as the events that it amounts to."""

from sightline.dialects.fields import as_list, as_object, as_str, opt_object, opt_str, rest, wrong
from sightline.dialects.openai_chat.choices import (
    FAILURES,
    finish_detail,
    read_citations,
    read_content,
    read_finish,
    read_index,
    read_logprobs,
    read_role,
    read_thinking,
)
from sightline.dialects.openai_chat.errors import finish_fault, is_bare_error, read_error
from sightline.dialects.openai_chat.names import AUDIO_PART, FIRST_CALL, REFUSAL_PART, THINKING
from sightline.dialects.openai_chat.request_read import FUNCTION, read_arguments, read_call
from sightline.dialects.openai_chat.usage import read_usage
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Inline, Opaque, Text, ToolCall
from sightline.model.reply import Choice, Reply, Unmodelled
from sightline.wire.pointer import join

BODY = frozenset({"id", "created", "model", "choices", "usage", "error"})
_PLAIN = frozenset({"index", "message", "logprobs", "finish_reason"})
_SPOKEN = frozenset({"role", "content"})
CHOICE = frozenset({"index", "message", "logprobs", "finish_reason", "text", "error"})
MESSAGE = THINKING | {"role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio"}
_SOUNDS = {"UklGR": "audio/wav", "SUQz": "audio/mpeg", "ZkxhQ": "audio/flac", "T2dnU": "audio/ogg"}
"""Kinds of sound by how their files begin, in base64: RIFF, ID3, fLaC, OggS."""


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a `chat.completion`, or of an error body."""
    body = as_object(document, "")
    if body.get("error") is not None or is_bare_error(body):
        return [Failed(read_error(0, body, {})), Ended()]
    choices = as_list(body.get("choices"), "/choices")
    if not choices:
        raise wrong(body.get("choices"), "/choices", "at least one choice")
    events: list[StreamEvent] = [read_started(body, "")]
    events += fields(body, BODY, "")
    if body.get("usage") is not None:
        events.append(UsageReceived(read_usage(body["usage"], "/usage")))
    for index, value in enumerate(choices):
        events += _read_choice(as_object(value, f"/choices/{index}"), index, f"/choices/{index}")
        if isinstance(events[-1], Failed):
            break
    return [*events, Ended()]


def read_plain(document: Json, dialect: str) -> Reply | None:
    """A reply that is one text, as most are, without the detour of events; None where it is anything else."""
    if type(document) is not dict or document.get("error") is not None:
        return None
    choices = document.get("choices")
    if type(choices) is not list or len(choices) != 1:
        return None
    choice = choices[0]
    if type(choice) is not dict or not choice.keys() <= _PLAIN or choice.get("logprobs") or choice.get("index") != 0:
        return None
    message, word = choice.get("message"), choice.get("finish_reason")
    if type(message) is not dict or type(word) is not str or word in FAILURES or not message.keys() <= MESSAGE:
        return None
    text = message.get("content")
    if type(text) is not str or not text or message.get("role") != "assistant":
        return None
    if len(message) > 2 and any(value not in (None, []) for key, value in message.items() if key not in _SPOKEN):
        return None
    started, usage = read_started(document, ""), document.get("usage")
    finish = read_finish(word, has_calls=False, has_refusal=False)
    said = Text(text, at="/choices/0/message/content")
    answer = Choice(parts=(said,), finish=finish, detail=finish_detail(word), finish_at="/choices/0/finish_reason")
    return Reply(
        choices=(answer,),
        id=started.id,
        model=started.model,
        created=started.created,
        places=started.places,
        usage=None if usage is None else read_usage(usage, "/usage"),
        dialect=dialect,
        unmodelled=tuple(Unmodelled(join("", key), value) for key, value in rest(document, BODY).items()),
    )


def read_started(body: JsonObject, at: str) -> Started:
    """Who answers; servers that do not know send an empty string or 0, and some send a fraction of a second."""
    created = body.get("created")
    seconds = int(created) if isinstance(created, (int, float)) else 0
    reply_id, model = opt_str(body, "id", at), opt_str(body, "model", at)
    told = {"id": reply_id, "model": model, "created": seconds}
    places = {key: f"{at}/{key}" for key, value in told.items() if value}
    return Started(reply_id or None, model or None, seconds or None, places)


def fields(holder: JsonObject, known: frozenset[str], at: str) -> list[StreamEvent]:
    """What is not modelled, each as an event."""
    return [FieldReceived(join(at, key), value) for key, value in rest(holder, known).items()]


def _read_choice(holder: JsonObject, position: int, at: str) -> list[StreamEvent]:
    choice = read_index(holder, position, at)
    message = opt_object(holder, "message", at)
    if message is None:
        message = {"content": as_str(holder.get("text"), f"{at}/message")}
    events = _read_message(message, choice, f"{at}/message")
    events += fields(holder, CHOICE, at)
    events += read_logprobs(holder.get("logprobs"), choice, f"{at}/logprobs")
    word, error = opt_str(holder, "finish_reason", at) or "stop", holder.get("error")
    if word in FAILURES or error is not None:
        return [*events, Failed(finish_fault(word, error))]
    has_calls = any(isinstance(event, ToolCallBegun) for event in events)
    has_refusal = any(isinstance(event, RefusalReceived) for event in events)
    finish = read_finish(word, has_calls=has_calls, has_refusal=has_refusal)
    events.append(Finished(finish, choice, finish_detail(word), at=f"{at}/finish_reason"))
    return events


def _read_message(message: JsonObject, choice: int, at: str) -> list[StreamEvent]:
    events = read_role(message, at) + read_thinking(message, choice, at)
    events += read_content(message.get("content"), choice, f"{at}/content")
    refusal = opt_str(message, "refusal", at)
    if refusal is not None:
        events.append(RefusalReceived(REFUSAL_PART, refusal, choice, at=f"{at}/refusal"))
    events += read_citations(message.get("annotations"), choice, f"{at}/annotations")
    audio = opt_object(message, "audio", at)
    if audio is not None:
        events.append(PartReceived(AUDIO_PART, read_audio(audio, f"{at}/audio"), choice))
    for index, call in enumerate(_read_calls(message, at)):
        if isinstance(call, Opaque):
            events.append(PartReceived(FIRST_CALL + index, call, choice))
        else:
            events += _whole_call(call, FIRST_CALL + index, choice)
    return events + fields(message, MESSAGE, at)


def _read_calls(message: JsonObject, at: str) -> list[ToolCall | Opaque]:
    """`tool_calls` and the legacy `function_call`; one that has no id has an empty one."""
    values = as_list(message.get("tool_calls") or [], f"{at}/tool_calls")
    calls = [read_call(value, f"{at}/tool_calls/{index}", "") for index, value in enumerate(values)]
    legacy = opt_object(message, "function_call", at)
    if legacy is not None:
        place = f"{at}/function_call"
        name, arguments = opt_str(legacy, "name", place) or "", read_arguments(legacy, "arguments", place)
        calls.append(ToolCall("", name, arguments, at=place, extras=rest(legacy, FUNCTION)))
    return calls


def _whole_call(call: ToolCall, part: int, choice: int) -> list[StreamEvent]:
    events: list[StreamEvent] = [
        ToolCallBegun(part, call.id, call.name, choice, call.kind, at=call.at),
        ArgumentsReceived(part, call.arguments, choice),
        ToolCallCompleted(part, choice),
    ]
    if call.signature is not None and call.signed_by is not None:
        events.insert(1, SignatureReceived(part, call.signature, call.signed_by, choice))
    return events + [FieldReceived(join(call.at, key), value) for key, value in call.extras.items()]


def read_audio(audio: JsonObject, at: str) -> Audio:
    """Spoken output. The reply does not name its kind, so it is what its bytes say, or just bytes."""
    data = opt_str(audio, "data", at)
    kinds = (kind for beginning, kind in _SOUNDS.items() if data is not None and data.startswith(beginning))
    return Audio(
        None if data is None else Inline(next(kinds, "application/octet-stream"), data),
        opt_str(audio, "id", at),
        opt_str(audio, "transcript", at),
        at=at,
        extras=rest(audio, frozenset({"id", "data", "transcript"})),
    )
