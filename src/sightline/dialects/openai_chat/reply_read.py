"""Reads Chat Completions replies, whole or as a stream, as events."""

from typing import Final

import msgspec

from sightline.dialects.fields import as_list, as_object, as_str, opt_object, opt_str, rest, wrong
from sightline.dialects.openai_chat.choices import (
    FAILURES,
    PART_KEYS,
    CallAssembly,
    Fragment,
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
from sightline.dialects.openai_chat.names import (
    AUDIO_PART,
    FIRST_CALL,
    REFUSAL_PART,
    TEXT_PART,
    THINKING,
    THINKING_PART,
    THINKING_TEXT,
)
from sightline.dialects.openai_chat.request_read import CUSTOM, FUNCTION, read_arguments, read_call, read_signature
from sightline.dialects.openai_chat.usage import read_usage, with_tier
from sightline.dialects.streaming import Machine, fields_of, unread_fields
from sightline.errors import Fault
from sightline.model.events import (
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    UsageReceived,
)
from sightline.model.fold import part_events
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Inline, Opaque, Text, ToolCall
from sightline.model.reply import Choice, Reply, Unmodelled
from sightline.wire.pointer import join

BODY = frozenset({"id", "created", "model", "choices", "usage", "error"})
_PLAIN = frozenset({"index", "message", "logprobs", "finish_reason"})
_TEXT_FIELDS = frozenset({"role", "content"})
_LISTS = frozenset({"tool_calls", "annotations"})
"""The fields of a message that may be an empty list, which says nothing."""
CHOICE = frozenset({"index", "message", "logprobs", "finish_reason", "text", "error"})
MESSAGE = THINKING | {"role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio"}
_AUDIO_FORMATS = {"UklGR": "audio/wav", "SUQz": "audio/mpeg", "ZkxhQ": "audio/flac", "T2dnU": "audio/ogg"}
"""Audio formats by how their files begin, in base64: RIFF, ID3, fLaC, OggS."""


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a `chat.completion`, or of an error body."""
    body = as_object(document, "")
    if body.get("error") is not None or is_bare_error(body):
        return [Failed(read_error(0, body, {})), Ended()]
    choices = as_list(body.get("choices"), "/choices")
    if not choices:
        raise wrong(body.get("choices"), "/choices", "at least one choice")
    events: list[StreamEvent] = [read_started(body, "")]
    events += fields_of(body, BODY, "")
    if body.get("usage") is not None:
        events.append(UsageReceived(with_tier(read_usage(body["usage"], "/usage"), body)))
    for index, value in enumerate(choices):
        events += _read_choice(as_object(value, f"/choices/{index}"), index, f"/choices/{index}")
        if isinstance(events[-1], Failed):
            break
    return [*events, Ended()]


def read_plain(document: Json, dialect: str) -> Reply | None:
    """A reply that is a single text, as most are, without the detour of events; None for any other."""
    if type(document) is not dict or document.get("error") is not None:
        return None
    choices = document.get("choices")
    if type(choices) is not list or len(choices) != 1:
        return None
    choice = choices[0]
    if type(choice) is not dict or not choice.keys() <= _PLAIN or choice.get("logprobs") is not None:
        return None
    index, message, word = choice.get("index"), choice.get("message"), choice.get("finish_reason")
    if type(index) is not int or index or type(word) is not str or not word or word in FAILURES:
        return None
    if type(message) is not dict or not message.keys() <= MESSAGE or message.get("role") != "assistant":
        return None
    text = message.get("content")
    if type(text) is not str or not text:
        return None
    others = ((key, value) for key, value in message.items() if key not in _TEXT_FIELDS and value is not None)
    if len(message) > 2 and any(value != [] or key not in _LISTS for key, value in others):
        return None
    started, usage = read_started(document, ""), document.get("usage")
    finish = read_finish(word, has_calls=False, has_refusal=False)
    part = Text(text, at="/choices/0/message/content")
    answer = Choice(parts=(part,), finish=finish, detail=finish_detail(word), finish_at="/choices/0/finish_reason")
    return Reply(
        choices=(answer,),
        id=started.id,
        model=started.model,
        created=started.created,
        places=started.places,
        usage=None if usage is None else with_tier(read_usage(usage, "/usage"), document),
        dialect=dialect,
        unmodelled=tuple(Unmodelled(join("", key), value) for key, value in rest(document, BODY).items()),
    )


def read_started(body: JsonObject, at: str) -> Started:
    """The id, model and time of a reply; servers without them send an empty string or 0, some send fractions of a
    second."""
    created = body.get("created")
    seconds = int(created) if isinstance(created, (int, float)) else 0
    reply_id, model = opt_str(body, "id", at), opt_str(body, "model", at)
    known = {"id": reply_id, "model": model, "created": seconds}
    places = {key: f"{at}/{key}" for key, value in known.items() if value}
    return Started(reply_id or None, model or None, seconds or None, places)


def _read_choice(holder: JsonObject, position: int, at: str) -> list[StreamEvent]:
    choice = read_index(holder, position, at)
    message = opt_object(holder, "message", at)
    if message is None:
        message = {"content": as_str(holder.get("text"), f"{at}/message")}
    events = _read_message(message, choice, f"{at}/message")
    events += fields_of(holder, CHOICE, at)
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
    events += read_content(message.get("content"), choice, f"{at}/content", set(PART_KEYS))
    refusal = opt_str(message, "refusal", at)
    if refusal is not None:
        events.append(RefusalReceived(REFUSAL_PART, refusal, choice, at=f"{at}/refusal"))
    events += read_citations(message.get("annotations"), choice, f"{at}/annotations")
    audio = opt_object(message, "audio", at)
    if audio is not None:
        events.append(PartReceived(AUDIO_PART, read_audio(audio, f"{at}/audio"), choice))
    for index, call in enumerate(_read_calls(message, at)):
        events += part_events(call, FIRST_CALL + index, choice)
        events += fields_of(call.extras, frozenset(), call.at)
    return events + fields_of(message, MESSAGE, at)


def _read_calls(message: JsonObject, at: str) -> list[ToolCall | Opaque]:
    """Read `tool_calls` and the legacy `function_call`; a call without an id gets an empty one."""
    values = as_list(message.get("tool_calls") or [], f"{at}/tool_calls")
    calls = [read_call(value, f"{at}/tool_calls/{index}", "") for index, value in enumerate(values)]
    legacy = opt_object(message, "function_call", at)
    if legacy is not None:
        place = f"{at}/function_call"
        name, arguments = opt_str(legacy, "name", place) or "", read_arguments(legacy, "arguments", place)
        calls.append(ToolCall("", name, arguments, at=place, extras=rest(legacy, FUNCTION)))
    return calls


def read_audio(audio: JsonObject, at: str) -> Audio:
    """Spoken output. The reply does not name its format, so it is recognised by its first bytes, or is just bytes."""
    data = opt_str(audio, "data", at)
    kinds = (kind for beginning, kind in _AUDIO_FORMATS.items() if data is not None and data.startswith(beginning))
    return Audio(
        None if data is None else Inline(next(kinds, "application/octet-stream"), data),
        opt_str(audio, "id", at),
        opt_str(audio, "transcript", at),
        at=at,
        extras=rest(audio, frozenset({"id", "data", "transcript"})),
    )


_CHOICE = CHOICE | {"delta"}
_USAGE = frozenset({"usage"})
_GROWING: Final = {"index": None, "function": None}.keys()
_CALL = frozenset({"index", "id", "type", "function", "custom", "extra_content"})
_TOOLS = ("function", "tool")
_READ_LATE = THINKING | {"role"}
_AUDIO_TEXT = ("id", "data", "transcript")


class _Choice:
    """The state of one choice of a stream. Only the first text and the first thought carry their place."""

    def __init__(self, index: int, at: str) -> None:
        self.index = index
        self.at = at
        self.assembly = CallAssembly(index)
        self.has_spoken = False
        self.has_thought = False
        self.audio: JsonObject = {}
        self.audio_at = ""
        self.signing: SignatureReceived | None = None
        self.has_refusal = False
        self.has_finished = False
        self.is_closed = False

    def finish(self, word: str, at: str) -> list[StreamEvent]:
        """The events at the end of the choice; after a legacy `function_call` it may continue with text."""
        self.is_closed = word != "function_call"
        if self.has_finished:
            return []
        self.has_finished = True
        events = [*self.sound(), *self.assembly.finish()]
        finish = read_finish(word, has_calls=self.assembly.has_calls, has_refusal=self.has_refusal)
        return [*events, Finished(finish, self.index, finish_detail(word), at=at)]

    def sound(self) -> list[StreamEvent]:
        """The audio that has arrived, as one part."""
        if not self.audio:
            return []
        return [PartReceived(AUDIO_PART, read_audio(self.audio, self.audio_at), self.index)]

    def hear(self, audio: JsonObject, at: str) -> None:
        """Add a piece of audio: base64 and transcript arrive in pieces."""
        self.audio_at = self.audio_at or at
        for key in _AUDIO_TEXT:
            opt_str(audio, key, at)
        for key, value in audio.items():
            before = self.audio.get(key)
            is_piece = isinstance(before, str) and isinstance(value, str) and key != "id"
            self.audio[key] = f"{before}{value}" if is_piece else value

    def think(self, delta: JsonObject, at: str) -> list[StreamEvent]:
        """Read reasoning; a signature and its id may arrive separately, and each event carries both."""
        events = read_thinking(delta, self.index, at, has_words=self.has_thought)
        self.has_thought = self.has_thought or any(type(event) is ThinkingReceived for event in events)
        if events and isinstance(signing := events[-1], SignatureReceived):
            if self.signing is not None:
                both = {"signature": signing.signature or self.signing.signature, "id": signing.id or self.signing.id}
                signing = msgspec.structs.replace(signing, **both)
            self.signing = events[-1] = signing
        return events


class ChatMachine(Machine):
    """Reads chunks and returns events."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._started = Started()
        self._has_identity = False
        self._body_keys = set(BODY)
        self._choice_keys = set(_CHOICE)
        self._delta_keys = set(MESSAGE)
        self._call_keys = set(_CALL)
        self._part_keys = set(PART_KEYS)

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one chunk."""
        events: list[StreamEvent] = []
        try:
            choices = document.get("choices")
            if not choices and _is_bare_error(document):
                return self._fail(read_error(0, document, {}))
            if not self._has_identity:
                events += self._identity(document, f"/{index}")
            if not document.keys() <= self._body_keys:
                events += unread_fields(document, self._body_keys, f"/{index}")
            if choices:
                entries = choices if type(choices) is list else as_list(choices, f"/{index}/choices")
                for position, value in enumerate(entries):
                    self._choice(value, index, position, events)
            if document.get("error") is not None:  # the error says more than a finish word beside it
                events = [event for event in events if not isinstance(event, Failed)]
                return events + self._fail(read_error(0, document, {}))
            usage = document.get("usage")
            if usage is not None:
                events.append(UsageReceived(with_tier(read_usage(usage, f"/{index}/usage"), document)))
        except Fault as fault:  # what was read before it is kept, because later chunks depend on it
            events.append(FrameBroken(fault.pointer or f"/{index}", fault.message))
        return events

    def read_done_marker(self) -> list[StreamEvent]:
        """At `[DONE]` the provider declares the reply complete, so a choice without a finish has stopped."""
        events: list[StreamEvent] = []
        for choice in self._choices.values():
            if not choice.has_finished:
                events += choice.finish("stop", f"{choice.at}/finish_reason")
        return events

    def flush(self) -> list[StreamEvent]:
        """The audio that still waits for the end of its choice."""
        return [event for choice in self._choices.values() if not choice.has_finished for event in choice.sound()]

    def _fail(self, fault: Fault) -> list[StreamEvent]:
        """The end of an interrupted answer, after everything that arrived of it."""
        return [*self.flush(), Failed(fault)]

    def _identity(self, document: JsonObject, at: str) -> list[StreamEvent]:
        """Some servers send a first chunk without an id; the first chunk that has one is decisive."""
        started, before = read_started(document, at), self._started
        self._has_identity = bool(started.id)
        if (started.id, started.model, started.created) == (before.id, before.model, before.created):
            return []
        self._started = started
        return [started]

    def _choice(self, value: Json, index: int, position: int, events: list[StreamEvent]) -> None:
        """Add the events of one entry of `choices`."""
        if type(value) is not dict:
            value = as_object(value, f"/{index}/choices/{position}")
        number = value.get("index")
        choice = self._choices.get(number) if type(number) is int else None
        if choice is None:
            at = f"/{index}/choices/{position}"
            number = read_index(value, position, at)
            choice = self._choices.setdefault(number, _Choice(number, at))
        delta = value.get("delta")
        if (
            type(delta) is dict
            and (len(delta) == 1 or (len(delta) == 2 and delta.get("role") == "assistant"))
            and value.get("finish_reason") is None
            and not value.get("logprobs")
            and value.keys() <= self._choice_keys
            and not choice.is_closed
        ):
            event = _read_single_field(delta, choice)
            if event is not None:
                events.append(event)
                return
        self._whole_choice(value, choice, f"/{index}/choices/{position}", events)

    def _whole_choice(self, value: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        if not value.keys() <= self._choice_keys:
            if type(value.get("usage")) is dict:  # so Moonshot sends it, with the finish
                events.append(UsageReceived(read_usage(value["usage"], f"{at}/usage")))
                value = rest(value, _USAGE)
            events += unread_fields(value, self._choice_keys, at)
        key = "delta" if value.get("delta") is not None else "message"
        delta = opt_object(value, key, at)
        if delta is None:
            text = opt_str(value, "text", at)
            delta = {} if text is None else {"content": text}
        if delta.get("role") in _TOOLS:  # a server reports the output of its own tool, which is not the model's text
            events.append(FieldReceived(f"{at}/{key}", delta))
            return
        if choice.is_closed:
            # After the finish only reasoning is still read; anything else is reported as not modelled.
            unheard: JsonObject = {name: value for name, value in delta.items() if value}
            events += choice.think(delta, f"{at}/{key}") + fields_of(unheard, _READ_LATE, f"{at}/{key}")
            return
        if not delta.keys() <= self._delta_keys:
            events += unread_fields(delta, self._delta_keys, f"{at}/{key}")
        self._delta(delta, choice, f"{at}/{key}", events)
        events += read_logprobs(value.get("logprobs"), choice.index, f"{at}/logprobs")
        word, error = opt_str(value, "finish_reason", at), value.get("error")
        if word in FAILURES or error is not None:
            events += self._fail(finish_fault(word or "error", error))
        elif word:
            events += choice.finish(word, f"{at}/finish_reason")

    def _delta(self, delta: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        events += read_role(delta, at)
        events += choice.think(delta, at)
        words = read_content(delta.get("content"), choice.index, f"{at}/content", self._part_keys)
        choice.has_spoken = choice.has_spoken or any(type(event) is TextReceived for event in words)
        events += words
        refusal = opt_str(delta, "refusal", at)
        if refusal is not None:
            choice.has_refusal = True
            events.append(RefusalReceived(REFUSAL_PART, refusal, choice.index, at=f"{at}/refusal"))
        events += read_citations(delta.get("annotations"), choice.index, f"{at}/annotations")
        audio = opt_object(delta, "audio", at)
        if audio is not None:
            choice.hear(audio, f"{at}/audio")
        for position, value in enumerate(as_list(delta.get("tool_calls") or [], f"{at}/tool_calls")):
            events += self._call(value, choice, f"{at}/tool_calls/{position}")
        legacy = opt_object(delta, "function_call", at)
        if legacy is not None:
            place = f"{at}/function_call"
            name, arguments = opt_str(legacy, "name", place) or "", read_arguments(legacy, "arguments", place)
            events += choice.assembly.add(Fragment(None, "", name, arguments, "function", place))

    def _call(self, value: Json, choice: _Choice, at: str) -> list[StreamEvent]:
        holder = as_object(value, at)
        is_custom = holder.get("type") == "custom" or "custom" in holder
        key, words = ("custom", "input") if is_custom else ("function", "arguments")
        inner = opt_object(holder, key, at) or {}
        index = holder.get("index")
        signature, unread = read_signature(holder)
        fragment = Fragment(
            index if type(index) is int else None,
            opt_str(holder, "id", at) or "",
            opt_str(inner, "name", f"{at}/{key}") or "",
            read_arguments(inner, words, f"{at}/{key}"),
            "custom" if is_custom else "function",
            at,
            signature,
        )
        events = choice.assembly.add(fragment)
        known = CUSTOM if is_custom else FUNCTION
        return [
            *events,
            *fields_of(unread, frozenset(), at),
            *unread_fields(holder, self._call_keys, at),
            *fields_of(inner, known, f"{at}/{key}"),
        ]


def _is_bare_error(document: JsonObject) -> bool:
    """Whether a frame is an error without a wrapper, and not a chunk that also has a message."""
    if document.get("error") is not None or not is_bare_error(document):
        return False
    kind = document.get("object")
    return kind == "error" or (kind is None and not document.get("id"))


def _read_single_field(delta: JsonObject, choice: _Choice) -> StreamEvent | None:
    """The event of a delta with one piece of text, reasoning or arguments, as nearly all are; None for any other."""
    key, value = next((key, value) for key, value in delta.items() if key != "role" or len(delta) == 1)
    if type(value) is str:
        if not value:
            return None
        if key == "content" and choice.has_spoken:
            return TextReceived(TEXT_PART, value, choice.index)
        if key in THINKING_TEXT and choice.has_thought:
            return ThinkingReceived(THINKING_PART, value, choice.index)
    elif key == "tool_calls" and type(value) is list and len(value) == 1:
        call = value[0]
        if type(call) is dict and call.keys() == _GROWING:
            inner = call["function"]
            if type(inner) is dict and len(inner) == 1 and type(words := inner.get("arguments")) is str and words:
                return choice.assembly.grow(call["index"], words)
    return None
