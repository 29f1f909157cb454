import pytest

from sightline.catalog.facts import Facts, ImageCost
from sightline.dialects.registry import dialect as dialect_of
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.tokens.estimate import NOTHING, Estimate
from sightline.tokens.message_count import MessageCounter
from sightline.tokens.text_count import TextCounter
from tests.picture_files import png

GPT = Facts(
    tokenizer="o200k_base",
    message_tokens=3,
    name_tokens=1,
    assistant_tokens=2,
    image=ImageCost(kind="tiles", base=85, tile=170),
)
FOX = "The quick brown fox jumps over the lazy dog."  # ten tokens


def counter(dialect: str = "openai-chat", facts: Facts = GPT) -> MessageCounter:
    return MessageCounter(facts, dialect_of(dialect).tokens, TextCounter(facts))


def said(role: str, *parts: Part, name: str | None = None) -> Message:
    return Message(role=role, parts=parts, name=name)


def test_a_message_is_its_texts_and_the_published_frame() -> None:
    assert counter().message(said("user", Text(text=FOX))).tokens == 10 + 3 + 1
    assert counter().message(said("user", Text(text=FOX), Text(text=FOX))).tokens == 24
    assert counter().message(said("user", Text(text=FOX))).is_exact


def test_the_assistants_own_messages_carry_what_its_model_adds() -> None:
    assert counter().message(said("assistant", Text(text=FOX))).tokens == 16
    assert counter().message(said("assistant", Refusal(text=FOX))).tokens == 16
    plain = Facts(tokenizer="o200k_base", message_tokens=3)
    assert counter(facts=plain).message(said("assistant", Text(text=FOX))).tokens == 14


def test_a_name_costs_its_tokens_and_the_published_one() -> None:
    assert counter().message(said("user", Text(text=FOX), name="alice")).tokens == 14 + 1 + 1
    unnamed = Facts(tokenizer="o200k_base", message_tokens=3)
    assert counter(facts=unnamed).message(said("user", Text(text=FOX), name="alice")).tokens == 14 + 1


def test_frames_that_nobody_publishes_have_a_band() -> None:
    unknown = counter(facts=Facts(tokenizer="llama3")).message(said("user", Text(text=FOX)))
    assert unknown == Estimate(14, 10, 18, "llama3")
    seen = counter("gemini", Facts(tokenizer="gemma3", message_tokens=0)).message(said("user", Text(text=FOX)))
    assert (seen.low, seen.tokens) == (10, 11)


def test_a_system_prompt_stands_outside_the_messages_of_one_dialect() -> None:
    assert counter("anthropic").message(said("system", Text(text=FOX))).tokens == 10
    assert counter("openai-chat").message(said("system", Text(text=FOX))).tokens == 14


def test_a_picture_counts_by_its_size_where_the_size_is_told() -> None:
    picture = Image(source=Inline("image/png", png(1024, 1024)))
    assert counter().part(picture) == Estimate(765, 765, 765, "image formula")
    assert counter().part(Image(source=Link("https://example.com/a.png"))).high == 765
    assert not counter("gemini").part(picture).is_exact


def test_documents_and_sound_count_with_what_is_said_about_them() -> None:
    bare = counter().part(Document(source=PlainText(FOX)))
    told = counter().part(Document(source=PlainText(FOX), title=FOX, context=FOX))
    assert told.tokens == bare.tokens + 20
    assert counter().part(Audio(id="audio_1", transcript=FOX)).tokens == 10
    assert counter().part(Audio(id="audio_1")) == NOTHING
    assert counter().part(Audio(source=Link("https://example.com/a.mp3"), transcript=FOX)).tokens > 10


def test_thinking_may_be_kept_or_left_out() -> None:
    estimate = counter().part(Thinking(text=FOX))
    assert (estimate.low, estimate.tokens) == (0, 10)
    assert counter().part(Thinking(summary=(FOX, FOX))).tokens == 20


def test_sealed_thinking_may_be_as_long_as_its_seal() -> None:
    sealed = counter().part(Thinking(signature="x" * 400))
    assert (sealed.low, sealed.tokens, sealed.high) == (0, 50, 110)
    assert counter().part(Text(text=FOX, signature="x" * 400)) == Estimate(10, 10, 110, "o200k_base")
    assert counter().part(ToolCall(id="1", name="f", arguments="{}", signature="x" * 400)).high > 100


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_a_call_and_its_result_count_with_a_band(dialect: str) -> None:
    call = counter(dialect).part(ToolCall(id="call_1", name="search", arguments='{"query": "foxes"}'))
    assert call.low < call.tokens < call.high
    assert call.tokens > 6
    result = counter(dialect).part(ToolResult(id="call_1", parts=(Text(text=FOX),)))
    assert result.low < result.tokens < result.high
    assert result.low >= 10
    structured = counter(dialect).part(ToolResult(id="call_1", structured={"found": [1, 2, 3]}))
    assert structured.tokens > 5


def test_the_frame_of_a_call_or_a_result_is_not_certain() -> None:
    call = ToolCall(id="1", name="f", arguments="{}")
    calling, plain = counter().message(said("assistant", call)), counter().part(call)
    assert calling.low == plain.low
    answered = counter().message(said("tool", ToolResult(id="1", parts=(Text(text=FOX),))))
    assert not answered.is_exact


def test_a_mark_for_the_cache_is_free_and_what_is_unknown_counts_as_its_json() -> None:
    assert counter().part(CacheBreakpoint()) == NOTHING
    estimate = counter().part(Opaque(dialect="openai-chat", value={"kind": "of-2031", "words": FOX}))
    assert estimate.low < 20 < estimate.tokens + 5 < estimate.high
