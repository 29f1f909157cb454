"""Fast readers with typed decoders for the texts of Chat Completions: of requests that contain only texts, and of
replies that contain texts and function calls, as most do.

A body is read only if all its fields are known here; any other body is left to the full readers.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from sightline.dialects.dialect import PlainTexts
from sightline.dialects.streaming import join_texts, read_frames
from sightline.model.parts import Text
from sightline.model.reply import Choice, Finish, Reply, Usage, unusual


class _Part(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class _StreamOptions(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    include_usage: bool | None = None


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[_Message]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


_Words = Annotated[str, msgspec.Meta(min_length=1)]


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Words
    arguments: _Words


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: _Words
    function: _Function
    type: Literal["function"]
    index: int | None = None


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str | None
    refusal: None = None
    annotations: list[None] = []
    tool_calls: list[_Call] = []


class _Choice(msgspec.Struct, forbid_unknown_fields=True):
    index: Literal[0]
    message: _Answer
    finish_reason: Literal["stop", "length", "tool_calls"]
    logprobs: None = None


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    choices: tuple[_Choice]
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    usage: dict[str, int | dict[str, int | None] | None] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None


# Anything that has a price of its own (audio, a router's own charge) is left to the full reader.
class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: Literal[0] | None = None


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None
    audio_tokens: Literal[0] | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    cost: None = None


class _Spoken(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str
    refusal: None = None
    annotations: tuple[()] | None = None
    tool_calls: tuple[()] | None = None
    function_call: None = None
    audio: None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _EndedChoice(msgspec.Struct, forbid_unknown_fields=True):
    index: Literal[0]
    message: _Spoken
    finish_reason: Literal["stop", "length", "content_filter"]
    logprobs: None = None


class _Ended(msgspec.Struct):
    choices: tuple[_EndedChoice]
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    service_tier: str | None = None
    error: None = None


_ENDED = msgspec.json.Decoder(_Ended)


def read_ending(data: bytes) -> Reply | None:
    """How a whole reply of one text ended, its model and its counts, as the full reader reports them, but without its
    parts; None for any other reply."""
    try:
        ended = _ENDED.decode(data)
    except (ValueError, RecursionError):
        return None
    choice = ended.choices[0]
    if not choice.message.content:
        return None
    usage = None if ended.usage is None else _counts(ended.usage, ended.service_tier)
    return Reply(choices=(_ENDS[choice.finish_reason],), id=ended.id, model=ended.model or None, usage=usage)


def _counts(counted: _Usage, tier: str | None) -> Usage:
    prompt, completion = counted.prompt_tokens_details, counted.completion_tokens_details
    cached = None if prompt is None else prompt.cached_tokens
    thought = None if completion is None else completion.reasoning_tokens
    written, total = counted.completion_tokens, counted.total_tokens
    if thought and total == (counted.prompt_tokens or 0) + (written or 0) + thought:
        written = (written or 0) + thought  # some servers count the reasoning separately from the output
    return Usage(
        input_tokens=counted.prompt_tokens,
        output_tokens=written,
        cached_tokens=counted.cached_tokens if cached is None else cached,
        cache_write_tokens=None if prompt is None else prompt.cache_write_tokens,
        reasoning_tokens=thought,
        tier=unusual(tier) if tier else "",
    )


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: None = None


class _ChunkChoice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: Literal[0]
    delta: _Delta
    finish_reason: Literal["stop", "length", "content_filter"] | None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: Annotated[list[_ChunkChoice], msgspec.Meta(max_length=1)]
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    service_tier: str | None = None
    error: None = None
    # A frame without choices that has a message, or is an "error", is one; see `is_bare_error`.
    message: None = None
    object: Literal["chat.completion.chunk"] | None = None


_CHUNKS, _FIRST_CHUNK = msgspec.json.Decoder(list[_Chunk]), msgspec.json.Decoder(_Chunk)
_BEGIN, _BETWEEN, _DONE = b"data: ", b"\n\ndata: ", b"\n\ndata: [DONE]\n\n"


def begins_stream(data: bytes) -> bool:
    """Whether these bytes are the beginning of a stream of one text, with a complete first frame."""
    end = data.find(b"\n\n")
    if end < 0 or not data.startswith(_BEGIN):
        return False
    try:
        first = _FIRST_CHUNK.decode(data[len(_BEGIN) : end])
    except (ValueError, RecursionError):
        return False
    return bool((first.id or first.model) and first.choices)


def read_stream(data: bytes) -> Reply | None:
    """A complete stream of one text, with its text, as the full reader reports it; None for any other stream. All its
    frames are decoded as one list, at the speed of C."""
    if not (data.startswith(_BEGIN) and data.endswith(_DONE)):
        return None
    data = join_texts(data)
    try:
        chunks = _CHUNKS.decode(b"[" + data[len(_BEGIN) : -len(_DONE)].replace(_BETWEEN, b",") + b"]")
    except (ValueError, RecursionError):
        return None
    spoken = [each.choices[0] for each in chunks if each.choices]
    words = [each.finish_reason for each in spoken if each.finish_reason is not None]
    text = "".join([each.delta.content or "" for each in spoken])
    first = chunks[0]
    if len(words) != 1 or spoken[-1].finish_reason is None or not text or not first.id:
        return None
    counted = [each for each in chunks if each.usage is not None]
    if len(counted) > 1 or len(chunks) != data.count(_BETWEEN):
        return None
    choice = Choice(parts=(Text(text),), finish=words[0])
    usage = _counts(counted[0].usage, counted[0].service_tier) if counted and counted[0].usage is not None else None
    return Reply(choices=(choice,), id=first.id, model=first.model or None, usage=usage)


_WORDS: tuple[Finish, ...] = ("stop", "length", "content_filter")
_ENDS = {word: Choice(finish=word) for word in _WORDS}


class _FunctionDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str | None = None
    arguments: str = ""


class _CallDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int
    function: _FunctionDelta
    id: str | None = None
    type: Literal["function"] | None = None


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True):
    content: str | None = None
    role: Literal["assistant"] | None = None
    refusal: None = None
    tool_calls: list[_CallDelta] | None = None


class _TextChoice(msgspec.Struct, forbid_unknown_fields=True):
    index: Literal[0]
    delta: _TextDelta
    finish_reason: Literal["stop", "length", "tool_calls"] | None = None
    logprobs: None = None


class _TextChunk(msgspec.Struct, forbid_unknown_fields=True):
    choices: Annotated[list[_TextChoice], msgspec.Meta(max_length=1)]
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    usage: dict[str, int | dict[str, int | None] | None] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    obfuscation: str | None = None


_REQUEST, _REPLY = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_Reply)
_TEXT_CHUNKS = msgspec.json.Decoder(list[_TextChunk])


def _read_request(data: bytes) -> list[tuple[str, list[str]]] | None:
    try:
        messages = _REQUEST.decode(data).messages
    except ValueError:
        return None
    return [
        (each.role, [each.content] if type(each.content) is str else [part.text for part in each.content])  # type: ignore[union-attr]
        for each in messages
    ]


def _read_reply(data: bytes) -> str | None:
    try:
        if data[:1] != b"{":
            return _read_stream(data)
        answer = _REPLY.decode(data).choices[0].message
    except ValueError:
        return None
    if not answer.tool_calls:
        return answer.content
    calls = [word for each in answer.tool_calls for word in (each.function.name, each.function.arguments)]
    return "\n".join([answer.content, *calls] if answer.content else calls)


def _read_stream(data: bytes) -> str | None:
    """The text of a stream that finished and is complete."""
    frames = read_frames(data)
    if frames is None or not frames[2]:
        return None
    chunks = _TEXT_CHUNKS.decode(frames[0])
    grown = [chunk.choices[0] for chunk in chunks if chunk.choices]
    finishes = [each.finish_reason for each in grown]
    # Anything after a finish is read by rules of its own.
    if len(chunks) != frames[1] or not finishes or finishes.pop() is None or any(finishes):
        return None
    text = "".join([each.delta.content or "" for each in grown])
    if not any(each.delta.tool_calls for each in grown):
        return text
    calls = _join_calls([each.delta for each in grown])
    return None if calls is None else "\n".join([text, *calls] if text else calls)


def _join_calls(deltas: Sequence[_TextDelta]) -> list[str] | None:
    """Names and arguments of the calls in these deltas, in order; None if a piece is not in the usual place."""
    calls: list[tuple[str, list[str]]] = []
    for delta in deltas:
        if calls and delta.content:
            return None
        for each in delta.tool_calls or ():
            if each.index == len(calls) and each.id and each.type and each.function.name:
                calls.append((each.function.name, []))
            elif each.index != len(calls) - 1 or each.id or each.function.name:
                return None
            calls[-1][1].append(each.function.arguments)
    words = [word for name, pieces in calls for word in (name, "".join(pieces))]
    return words if all(words) else None


PLAIN_TEXTS = PlainTexts(request=_read_request, reply=_read_reply)
