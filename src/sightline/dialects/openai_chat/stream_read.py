"""Reading a Chat Completions stream: one machine over its chunks."""

from typing import Final

import msgspec

from sightline.dialects.fields import as_list, as_object, opt_object, opt_str, rest
from sightline.dialects.openai_chat.assembly import Assembly, Fragment
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
from sightline.dialects.openai_chat.names import (
    AUDIO_PART,
    GEMINI,
    REFUSAL_PART,
    TEXT_PART,
    THINKING,
    THINKING_PART,
    THINKING_TEXT,
)
from sightline.dialects.openai_chat.reply_read import BODY, CHOICE, MESSAGE, read_audio, read_started
from sightline.dialects.openai_chat.request_read import CUSTOM, FUNCTION, read_arguments, read_signature
from sightline.dialects.openai_chat.usage import read_usage
from sightline.dialects.streaming import StreamReader
from sightline.dialects.text_deltas import TextDeltas
from sightline.errors import Fault
from sightline.model.events import (
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
from sightline.model.json import Json, JsonObject
from sightline.wire.pointer import join

_CHOICE = CHOICE | {"delta"}
_GROWING: Final = {"index": None, "function": None}.keys()
_CALL = frozenset({"index", "id", "type", "function", "custom", "extra_content"})
_TOOLS = ("function", "tool")
_HEARD = THINKING | {"role"}
_SPOKEN = ("id", "data", "transcript")


class _Choice:
    """What is known of one choice so far. The first words and thoughts tell their place, the others need none."""

    def __init__(self, index: int, at: str) -> None:
        self.index = index
        self.at = at
        self.assembly = Assembly(index)
        self.has_spoken = False
        self.has_thought = False
        self.audio: JsonObject = {}
        self.audio_at = ""
        self.seal: SignatureReceived | None = None
        self.has_refusal = False
        self.has_finished = False
        self.is_closed = False

    def finish(self, word: str, at: str) -> list[StreamEvent]:
        """The end of the choice; after a legacy `function_call` the same choice may still go on with words."""
        self.is_closed = word != "function_call"
        if self.has_finished:
            return []
        self.has_finished = True
        events = [*self.sound(), *self.assembly.finish()]
        finish = read_finish(word, has_calls=self.assembly.has_calls, has_refusal=self.has_refusal)
        return [*events, Finished(finish, self.index, finish_detail(word), at=at)]

    def sound(self) -> list[StreamEvent]:
        """The sound that was heard, as one part."""
        if not self.audio:
            return []
        return [PartReceived(AUDIO_PART, read_audio(self.audio, self.audio_at), self.index)]

    def hear(self, audio: JsonObject, at: str) -> None:
        """Sound arrives in pieces of base64 and of its transcript."""
        self.audio_at = self.audio_at or at
        for key in _SPOKEN:
            opt_str(audio, key, at)
        for key, value in audio.items():
            before = self.audio.get(key)
            is_piece = isinstance(before, str) and isinstance(value, str) and key != "id"
            self.audio[key] = f"{before}{value}" if is_piece else value

    def think(self, delta: JsonObject, at: str) -> list[StreamEvent]:
        """Reasoning; a seal and its id may come apart, and each event tells both."""
        events = read_thinking(delta, self.index, at, has_words=self.has_thought)
        self.has_thought = self.has_thought or any(type(event) is ThinkingReceived for event in events)
        if events and isinstance(seal := events[-1], SignatureReceived):
            if self.seal is not None:
                both = {"signature": seal.signature or self.seal.signature, "id": seal.id or self.seal.id}
                seal = msgspec.structs.replace(seal, **both)
            self.seal = events[-1] = seal
        return events


class ChatMachine:
    """Turns chunks into events."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._started = Started()
        self._has_identity = False
        self._body_keys = set(BODY)
        self._choice_keys = set(_CHOICE)
        self._delta_keys = set(MESSAGE)
        self._call_keys = set(_CALL)

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
                events += _fields(document, self._body_keys, f"/{index}")
            if choices:
                entries = choices if type(choices) is list else as_list(choices, f"/{index}/choices")
                for position, value in enumerate(entries):
                    self._choice(value, index, position, events)
            if document.get("error") is not None:  # it says more than a finish word beside it, which only says that
                events = [event for event in events if not isinstance(event, Failed)]
                return events + self._fail(read_error(0, document, {}))
            usage = document.get("usage")
            if usage is not None:
                events.append(UsageReceived(read_usage(usage, f"/{index}/usage")))
        except Fault as fault:  # what was read before it stays told, because later chunks lean on it
            events.append(FrameBroken(fault.pointer or f"/{index}", fault.message))
        return events

    def read_done_marker(self) -> list[StreamEvent]:
        """`[DONE]`: the provider says that it is whole, so a choice without a finish has stopped."""
        events: list[StreamEvent] = []
        for choice in self._choices.values():
            if not choice.has_finished:
                events += choice.finish("stop", f"{choice.at}/finish_reason")
        return events

    def sounds(self) -> list[StreamEvent]:
        """The sound that still waits for the end of its choice."""
        return [event for choice in self._choices.values() if not choice.has_finished for event in choice.sound()]

    def _fail(self, fault: Fault) -> list[StreamEvent]:
        """The end of an answer that broke off, behind all that was heard of it."""
        return [*self.sounds(), Failed(fault)]

    def is_over(self) -> bool:
        """Usage may follow the last finish, so only `[DONE]` or the end of the bytes is the end."""
        return False

    def _identity(self, document: JsonObject, at: str) -> list[StreamEvent]:
        """Some servers send a first chunk without an id; the first that has one settles it."""
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
            choice = self._choice_for(value, position, f"/{index}/choices/{position}")
        delta = value.get("delta")
        if (
            type(delta) is dict
            and (len(delta) == 1 or (len(delta) == 2 and delta.get("role") == "assistant"))
            and value.get("finish_reason") is None
            and not value.get("logprobs")
            and value.keys() <= self._choice_keys
            and not choice.is_closed
        ):
            event = _single(delta, choice)
            if event is not None:
                events.append(event)
                return
        self._whole_choice(value, choice, f"/{index}/choices/{position}", events)

    def _choice_for(self, value: JsonObject, position: int, at: str) -> _Choice:
        number = read_index(value, position, at)
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(number, at)
        return choice

    def _whole_choice(self, value: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        if not value.keys() <= self._choice_keys:
            events += _fields(value, self._choice_keys, at)
        key = "delta" if value.get("delta") is not None else "message"
        delta = opt_object(value, key, at)
        if delta is None:
            text = opt_str(value, "text", at)
            delta = {} if text is None else {"content": text}
        if delta.get("role") in _TOOLS:  # a server tells what its own tool said, which are not the model's words
            events.append(FieldReceived(f"{at}/{key}", delta))
            return
        if choice.is_closed:
            events += _late(delta, choice, f"{at}/{key}")
            return
        if not delta.keys() <= self._delta_keys:
            events += _fields(delta, self._delta_keys, f"{at}/{key}")
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
        words = read_content(delta.get("content"), choice.index, f"{at}/content")
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
        fragment = Fragment(
            index if type(index) is int else None,
            opt_str(holder, "id", at) or "",
            opt_str(inner, "name", f"{at}/{key}") or "",
            read_arguments(inner, words, f"{at}/{key}"),
            "custom" if is_custom else "function",
            at,
        )
        events = choice.assembly.add(fragment)
        signature, unread = read_signature(holder)
        if signature is not None:
            # Right behind the beginning, as in a whole reply: some writers must say the seal before the call.
            begun = next((place for place, event in enumerate(events, 1) if type(event) is ToolCallBegun), len(events))
            events.insert(begun, SignatureReceived(choice.assembly.last_part, signature, GEMINI, choice.index))
        known = CUSTOM if is_custom else FUNCTION
        return [
            *events,
            *(FieldReceived(join(at, name), content) for name, content in unread.items()),
            *_fields(holder, self._call_keys, at),
            *(FieldReceived(join(at, key, name), content) for name, content in rest(inner, known).items()),
        ]


class ChatStreamReader(StreamReader):
    """Also gives the sound that was kept back when the bytes end too early."""

    def __init__(self) -> None:
        self._chat = ChatMachine()
        super().__init__(self._chat, TextDeltas())

    def close(self) -> list[StreamEvent]:
        """The bytes have ended."""
        ending = super().close()
        return [*self._chat.sounds(), *ending] if ending else []


def _is_bare_error(document: JsonObject) -> bool:
    """Whether a frame is an error that nothing wraps, and no chunk that has a message besides."""
    if document.get("error") is not None or not is_bare_error(document):
        return False
    kind = document.get("object")
    return kind == "error" or (kind is None and not document.get("id"))


def _single(delta: JsonObject, choice: _Choice) -> StreamEvent | None:
    """The event of a delta with one field that is a piece of words, reasoning or arguments: nearly all of them are."""
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


def _late(delta: JsonObject, choice: _Choice, at: str) -> list[StreamEvent]:
    """After the finish only reasoning is still heard; what else comes is told as something that we do not model."""
    unheard = {key: value for key, value in rest(delta, _HEARD).items() if value}
    return choice.think(delta, at) + [FieldReceived(join(at, key), value) for key, value in unheard.items()]


def _fields(holder: JsonObject, known: set[str], at: str) -> list[StreamEvent]:
    """What is not modelled, told once per name and stream."""
    unread = rest(holder, frozenset(known))
    known.update(unread)
    return [FieldReceived(join(at, key), value) for key, value in unread.items()]
