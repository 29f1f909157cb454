"""Requests and replies that nobody wrote: canonical values from which every dialect's documents are made."""

import json
from random import Random

from hypothesis import strategies as st

from sightline.catalog.provider import Quirks
from sightline.dialects.dialect import Target
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Finished,
    LogprobsReceived,
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
from sightline.model.json import Json
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    Document,
    Image,
    Inline,
    Link,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    JsonFormat,
    Message,
    Options,
    PlainFormat,
    Reasoning,
    Request,
    SchemaFormat,
    ToolChoice,
)

TARGET = Target(quirks=Quirks(thinking_field="reasoning_content"))
PNG = "iVBORw0KGgo="
SCHEMA: dict[str, Json] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

CLOSED: dict[str, Json] = {**SCHEMA, "additionalProperties": False}
"""A schema that may be strict in every dialect."""

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20).filter(str.strip)
tokens = st.integers(0, 5000)

TOOLS = (
    FunctionTool("add", "adds", CLOSED, strict=True),
    FunctionTool("get_weather", None, {"type": "object", "properties": {}}, strict=False),
    CustomTool("apply_patch", "patches", Grammar("lark", "start: /x+/")),
    CustomTool("note"),
)


@st.composite
def user_parts(draw: st.DrawFn) -> tuple[Part, ...]:
    """What a person says, with things attached."""
    parts: list[Part] = [Text(draw(words))]
    attached: list[Part] = [
        Image(Inline("image/png", PNG)),
        Image(Link("https://example.com/a.png"), "high"),
        Document(Inline("application/pdf", "JVBERi0xLjQ="), "a.pdf"),
        Document(PlainText("plain words"), "title"),
        Text(draw(words)),
        CacheBreakpoint(),
    ]
    parts += draw(st.lists(st.sampled_from(attached), max_size=2, unique_by=repr))
    return tuple(parts)


@st.composite
def assistant_turn(draw: st.DrawFn, number: int) -> list[Message]:
    """What the model says: perhaps thoughts, perhaps words, perhaps calls and then their results."""
    parts: list[Part] = []
    if draw(st.booleans()):
        signer = draw(st.sampled_from(("anthropic", "openai-responses", "gemini", None)))
        seal = None if signer is None else "c2VhbGVk"
        parts.append(Thinking(draw(words), signature=seal, signed_by=signer))
    calls = draw(st.lists(st.sampled_from(TOOLS), max_size=3))
    if draw(st.booleans()) or not calls:
        parts.append(Text(draw(words)))
    results: list[Message] = []
    for index, tool in enumerate(calls):
        call_id = f"call_{number}_{index}"
        if isinstance(tool, CustomTool):
            parts.append(ToolCall(call_id, tool.name, draw(words), "custom"))
        else:
            parts.append(ToolCall(call_id, tool.name, json.dumps({"a": draw(tokens)})))
        kind = "custom" if isinstance(tool, CustomTool) else "function"
        content: tuple[Part, ...] = (Text(draw(words)),)
        if draw(st.integers(0, 4)) == 0:
            content = (*content, Image(Inline("image/png", PNG)))
        is_error = True if draw(st.integers(0, 4)) == 0 else None
        results.append(Message("tool", (ToolResult(call_id, content, is_error=is_error, kind=kind),)))
    return [Message("assistant", tuple(parts)), *results]


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Any of the settings."""

    def maybe(strategy: st.SearchStrategy) -> object:
        return draw(st.none() | strategy)

    return Options(
        max_tokens=draw(st.integers(2000, 9000)),
        temperature=maybe(st.sampled_from((0, 0.5, 1))),
        top_p=maybe(st.sampled_from((0.5, 1))),
        top_k=maybe(st.integers(1, 40)),
        stop=maybe(st.lists(st.sampled_from(("END", "STOP")), min_size=1, max_size=2, unique=True).map(tuple)),
        seed=maybe(tokens),
        presence_penalty=maybe(st.sampled_from((-0.5, 0.5))),
        frequency_penalty=maybe(st.sampled_from((-0.5, 0.5))),
        logit_bias=maybe(st.just({"50256": -100})),
        n=maybe(st.just(2)),
        format=maybe(st.sampled_from((PlainFormat(), JsonFormat(), SchemaFormat(CLOSED, "answer", strict=True)))),
        reasoning=maybe(
            st.sampled_from((Reasoning(effort="low"), Reasoning(mode="on", budget=1500), Reasoning(mode="off")))
        ),
        verbosity=maybe(st.just("low")),
        cache_key=maybe(st.just("conversation-1")),
        store=maybe(st.booleans()),
        metadata=maybe(st.just({"team": "blue"})),
        user=maybe(st.just("u-1")),
        service_tier=maybe(st.just("auto")),
        stream=maybe(st.booleans()),
        include_usage=maybe(st.booleans()),
    )  # each strategy gives its field's type


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A conversation that every API would take, as far as it can say it."""
    messages = [
        Message(draw(st.sampled_from(("system", "developer"))), (Text(draw(words)),))
        for _ in range(draw(st.integers(0, 2)))
    ]
    for number in range(draw(st.integers(0, 2))):
        messages.append(Message("user", draw(user_parts())))
        messages += draw(assistant_turn(number))
        if draw(st.integers(0, 3)) == 0:
            messages.append(Message("system", (Text(draw(words)),)))
    messages.append(Message("user", draw(user_parts())))
    choices = (None, ToolChoice("auto"), ToolChoice("none"), ToolChoice("required"), ToolChoice("named", ("add",)))
    return Request(
        model="model-1",
        messages=tuple(messages),
        tools=TOOLS,
        tool_choice=draw(st.sampled_from((*choices, ToolChoice("auto", ("add", "note"))))),
        parallel_tool_calls=draw(st.sampled_from((None, True, False))),
        options=draw(options()),
    )


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """An answer with anything that a model may give."""
    parts: list[Part] = []
    if draw(st.booleans()):
        signer = draw(st.sampled_from(("anthropic", "openai-responses", "gemini", "openai-chat", None)))
        seal = None if signer is None else "c2VhbGVk"
        parts.append(Thinking(draw(words), signature=seal, signed_by=signer))
    finish = "stop"
    if draw(st.integers(0, 4)) == 0:
        parts.append(Refusal(draw(words)))
        finish = "refusal"
    elif draw(st.booleans()):
        cited = Citation(url="https://example.com/a", title="A", start=0, end=1)
        parts.append(Text(draw(words), (cited,) if draw(st.booleans()) else ()))
    if finish == "stop":
        for index in range(draw(st.integers(0, 3))):
            if draw(st.integers(0, 3)) == 0:
                parts.append(ToolCall(f"c{index}", "apply_patch", draw(words), "custom"))
            else:
                parts.append(ToolCall(f"c{index}", "add", json.dumps({"a": draw(tokens)})))
            finish = "tool_calls"
    if finish == "stop" and parts and isinstance(parts[-1], Text):
        finish = draw(st.sampled_from(("stop", "length", "content_filter", "pause")))
    if not parts or isinstance(parts[-1], Thinking):
        parts.append(Text(draw(words)))
    usage = Usage(
        input_tokens=draw(st.integers(100, 200)),
        output_tokens=draw(st.integers(50, 90)),
        cached_tokens=draw(st.none() | st.integers(0, 40)),
        cache_write_tokens=draw(st.none() | st.integers(0, 40)),
        reasoning_tokens=draw(st.none() | st.integers(0, 40)),
    )
    logprobs = (TokenLogprob("a", -0.5, (97,), (TokenLogprob("a", -0.5, (97,)),)),)
    spoken = any(isinstance(part, Text) for part in parts)
    choice = Choice(parts=tuple(parts), finish=finish, logprobs=logprobs if spoken and draw(st.booleans()) else ())
    return Reply(
        choices=(choice,), id=draw(st.none() | st.just("reply-1")), model="model-1", created=1700000001, usage=usage
    )


def events_of(reply: Reply) -> list[StreamEvent]:
    """The reply as it might have arrived: words in pieces, calls interleaved."""
    events: list[StreamEvent] = [Started(reply.id, reply.model, reply.created)]
    for index, choice in enumerate(reply.choices):
        calls: list[list[StreamEvent]] = []
        for number, part in enumerate(choice.parts):
            if isinstance(part, ToolCall):
                calls.append(_call(part, number, index))
            else:
                events += _part(part, number, index)
                if isinstance(part, Text) and choice.logprobs:
                    events.append(LogprobsReceived(choice.logprobs, index))
        events += [events_of_call.pop(0) for events_of_call in calls]
        while any(calls):
            events += [events_of_call.pop(0) for events_of_call in calls if events_of_call]
        assert choice.finish is not None
        events.append(Finished(choice.finish, index, choice.detail, choice.stop_sequence))
    if reply.usage is not None:
        events.append(UsageReceived(reply.usage))
    return [*events, Ended()]


def _pieces(text: str) -> list[str]:
    return [text[:3], text[3:]] if len(text) > 3 else [text]


def _call(call: ToolCall, number: int, choice: int) -> list[StreamEvent]:
    return [
        ToolCallBegun(number, call.id, call.name, choice, call.kind),
        *(ArgumentsReceived(number, piece, choice) for piece in _pieces(call.arguments)),
        ToolCallCompleted(number, choice),
    ]


def _part(part: Part, number: int, choice: int) -> list[StreamEvent]:
    match part:
        case Text(text, citations):
            return [
                *(TextReceived(number, piece, choice) for piece in _pieces(text)),
                *(CitationReceived(number, citation, choice) for citation in citations),
            ]
        case Refusal(text):
            return [RefusalReceived(number, piece, choice) for piece in _pieces(text)]
        case Thinking():
            events: list[StreamEvent] = [ThinkingReceived(number, piece, choice) for piece in _pieces(part.text)]
            if part.signed_by is not None:
                events.append(SignatureReceived(number, part.signature, part.signed_by, choice, part.id))
            return events
        case _:
            raise AssertionError(f"no events for {part}")


def spaced(document: Json, random: Random) -> bytes:
    """The document in one of the many ways in which clients spell JSON."""
    return json.dumps(
        document,
        indent=random.choice((None, 2)),
        separators=random.choice(((",", ":"), (", ", ": "), (" ,", " :  "))),
        ensure_ascii=random.choice((True, False)),
    ).encode()
