import pytest

from sightline.catalog.facts import Facts, ImageCost
from sightline.dialects.registry import dialect as dialect_of
from sightline.model.json import Json
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
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    JsonFormat,
    Message,
    OpaqueTool,
    PlainFormat,
    SchemaFormat,
)
from sightline.tokens.estimate import NOTHING, Estimate
from sightline.tokens.estimator import MessageAndToolCounter
from sightline.tokens.text_count import LONGEST, TextCounter, declaration, declarations
from tests.picture_files import png

GPT = Facts(
    tokenizer="o200k_base",
    message_tokens=3,
    name_tokens=1,
    assistant_tokens=2,
    image=ImageCost(kind="tiles", base=85, tile=170),
)
FOX = "The quick brown fox jumps over the lazy dog."  # ten tokens


def counter(dialect: str = "openai-chat", facts: Facts = GPT) -> MessageAndToolCounter:
    return MessageAndToolCounter(facts, dialect_of(dialect).tokens, TextCounter(facts))


def said(role: str, *parts: Part, name: str | None = None) -> Message:
    return Message(role=role, parts=parts, name=name)


PLAIN = Facts(tokenizer="o200k_base", message_tokens=3)


@pytest.mark.parametrize(
    ("dialect", "facts", "message", "tokens"),
    [
        # The texts and the published frame: three tokens and the role.
        ("openai-chat", GPT, said("user", Text(text=FOX)), 10 + 3 + 1),
        ("openai-chat", GPT, said("user", Text(text=FOX), Text(text=FOX)), 10 + 10 + 3 + 1),
        ("openai-chat", GPT, said("system", Text(text=FOX)), 14),
        ("anthropic", GPT, said("system", Text(text=FOX)), 10),
        # What a model adds to its own messages, and for a name.
        ("openai-chat", GPT, said("assistant", Text(text=FOX)), 14 + 2),
        ("openai-chat", GPT, said("assistant", Refusal(text=FOX)), 14 + 2),
        ("openai-chat", PLAIN, said("assistant", Text(text=FOX)), 14),
        ("openai-chat", GPT, said("user", Text(text=FOX), name="alice"), 14 + 1 + 1),
        ("openai-chat", PLAIN, said("user", Text(text=FOX), name="alice"), 14 + 1),
    ],
)
def test_a_message_is_its_texts_and_its_frame(dialect: str, facts: Facts, message: Message, tokens: int) -> None:
    assert counter(dialect, facts).message(message).tokens == tokens


def test_unpublished_message_overhead_widens_the_estimate() -> None:
    assert counter().message(said("user", Text(text=FOX))).is_exact
    unknown = counter(facts=Facts(tokenizer="llama3")).message(said("user", Text(text=FOX)))
    assert unknown == Estimate(14, 10, 18, "llama3")
    seen = counter("gemini", Facts(tokenizer="gemma3", message_tokens=0)).message(said("user", Text(text=FOX)))
    assert (seen.low, seen.tokens) == (10, 11)


def test_image_is_counted_by_its_size_if_known() -> None:
    picture = Image(source=Inline("image/png", png(1024, 1024)))
    assert counter().part(picture) == Estimate(765, 765, 765, "image formula")
    assert counter().part(Image(source=Link("https://example.com/a.png"))).high == 765
    assert not counter("gemini").part(picture).is_exact


def test_documents_and_audio_include_their_title_context_and_transcript() -> None:
    bare = counter().part(Document(source=PlainText(FOX)))
    told = counter().part(Document(source=PlainText(FOX), title=FOX, context=FOX))
    assert told.tokens == bare.tokens + 20
    assert counter().part(Audio(id="audio_1", transcript=FOX)).tokens == 10
    assert counter().part(Audio(id="audio_1")) == NOTHING
    assert counter().part(Audio(source=Link("https://example.com/a.mp3"), transcript=FOX)).tokens > 10


def test_an_inline_file_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = counter()
    report = Document(source=Inline("application/pdf", "JVBERi0xLjQ="))
    first = counting.part(report)
    monkeypatch.setattr("sightline.tokens.estimator.count_media", None)
    assert counting.part(report) == first


def test_thinking_may_be_kept_or_left_out() -> None:
    estimate = counter().part(Thinking(text=FOX))
    assert (estimate.low, estimate.tokens) == (0, 10)
    assert counter().part(Thinking(summary=(FOX, FOX))).tokens == 20


def test_signed_thinking_may_be_as_long_as_its_signature() -> None:
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


GPT_FACTS = Facts(tokenizer="o200k_base", tools_tokens=9, chat_tools_tokens=90)
CLAUDE = Facts(nearest_tokenizer="o200k_base", token_ratio=1.1, tools_tokens=500, schema_tokens=160)
GEMMA = Facts(tokenizer="gemma3", tools_tokens=0)

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}},
    "required": ["city"],
}
WEATHER = FunctionTool(name="get_weather", description="Get the current weather", schema=SCHEMA)


def holds(estimate: Estimate, reported: int) -> bool:
    return estimate.low <= reported <= estimate.high


def test_openai_models_see_declarations_and_so_do_those_whose_vocabulary_is_only_likely() -> None:
    estimate = counter("openai-responses", GPT_FACTS).tools((WEATHER,))
    assert not estimate.is_exact
    assert 40 < estimate.tokens < 60
    likely = Facts(nearest_tokenizer="o200k_base", tools_tokens=9)
    assert counter("openai-responses", likely).tools((WEATHER,)).tokens == estimate.tokens
    chat = counter("openai-chat", GPT_FACTS)
    assert chat.tools((WEATHER,)).tokens - estimate.tokens == 81, "Chat Completions say more about tools"
    assert chat.tools(()) == NOTHING


def test_others_see_json_and_hidden_instructions() -> None:
    estimate = counter("anthropic", CLAUDE).tools((WEATHER,))
    assert holds(estimate, 346 + 60)
    assert holds(estimate, 600 + 60)
    assert 540 < estimate.tokens < 600


def test_where_nothing_is_known_of_hidden_instructions_they_may_be_long() -> None:
    unknown = counter("openai-chat", Facts(tokenizer="llama3")).tools((WEATHER,))
    known = counter("openai-chat", Facts(tokenizer="llama3", tools_tokens=0)).tools((WEATHER,))
    assert unknown.high - known.high == 700
    assert unknown.low == known.low


def test_freeform_and_server_tools_count_too() -> None:
    plain = CustomTool(name="note")
    grammar = CustomTool(name="note", description="Write it down.", grammar=Grammar("lark", "start: WORD+"))
    tools = counter("openai-responses", GPT_FACTS)
    assert tools.tools((plain,)).tokens < tools.tools((grammar,)).tokens
    search = tools.tools((OpaqueTool(dialect="openai-responses", value={"type": "web_search"}),))
    assert search.high > 4000 > search.tokens


def test_mixed_tools_add_up() -> None:
    tools = counter("gemini", GEMMA)
    both = tools.tools((WEATHER, CustomTool(name="note")))
    assert both.tokens == tools.tools((WEATHER,)).tokens + tools.tools((CustomTool(name="note"),)).tokens


def test_a_schema_for_the_answer_is_shown_to_most_models() -> None:
    form = SchemaFormat(schema=SCHEMA)
    assert counter("openai-chat", GPT_FACTS).output(form).tokens > 20
    assert counter("anthropic", CLAUDE).output(form).tokens > 160
    gemini = counter("gemini", GEMMA).output(form)
    assert (gemini.low, gemini.tokens) == (0, 0)
    assert gemini.high > 20


def test_other_forms_say_little() -> None:
    tools = counter("openai-chat", GPT_FACTS)
    assert tools.output(None) == NOTHING
    assert tools.output(PlainFormat()) == NOTHING
    assert tools.output(JsonFormat()).high == 10


WEATHER_SCHEMA = FunctionTool(
    name="get_weather",
    description="Say how the weather is.\nOnly for places on land.",
    schema={
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "A town"},
            "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["place"],
    },
)


def test_functions_are_declared_as_types() -> None:
    assert declarations((WEATHER_SCHEMA, FunctionTool(name="now"))) == (
        "namespace functions {\n\n"
        "// Say how the weather is.\n// Only for places on land.\n"
        "type get_weather = (_: {\n"
        "// A town\n"
        "place: string,\n"
        'unit?: "celsius" | "fahrenheit", // default: "celsius"\n'
        "days?: number[],\n"
        "}) => any;\n\n"
        "type now = () => any;\n\n"
        "} // namespace functions"
    )


@pytest.mark.parametrize(
    ("schema", "declared"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "object"}, "object"),
        ({"type": "array"}, "any[]"),
        ({"type": "number"}, "number"),
        ({}, "any"),
        ({"type": "of-2031"}, "any"),
        ({"const": "é"}, '"é"'),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string | number"),
        ({"oneOf": [{"type": "null"}, True]}, "null | any"),
        ({"allOf": [{"type": "object", "properties": {"a": True}}]}, "{\na?: any,\n}"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"}, "{\na?: string,\n}"),
        ({"type": "object", "properties": [1]}, "object"),
        # References are followed, as far as they lead.
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "string"),
        ({"$ref": "#/$defs/missing/deeper", "$defs": {"a": 1}}, "any"),
        ({"$ref": "#/$defs/a/b", "$defs": {"a": 1}}, "any"),
        # A type that is named twice is written once.
        ({"type": ["string", "string", "null"]}, "string | null"),
        ({"type": [["string"], {}]}, "any"),
    ],
)
def test_each_kind_of_schema_has_a_type(schema: dict[str, Json], declared: str) -> None:
    assert declaration(schema) == declared


def test_a_type_that_is_named_often_does_not_explode() -> None:
    nested: Json = {"type": "string"}
    for _ in range(14):
        nested = {"type": ["object"] * 4, "properties": {"a": nested}}
    assert isinstance(nested, dict)
    assert len(declaration(nested)) < 1000


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    items: dict[str, Json] = {"type": "array", "items": {"$ref": "#"}}
    declared = declaration(items)
    assert declared == "any" + declared.count("[]") * "[]"
    assert declared.count("[]") > 3


def test_a_schema_that_holds_itself_many_times_does_not_explode() -> None:
    node: dict[str, Json] = {"type": "object", "properties": {letter: {"$ref": "#"} for letter in "abcdefgh"}}
    assert len(declaration(node)) < 20_000


def test_long_texts_in_a_schema_that_holds_itself_are_written_so_often_and_no_more() -> None:
    about = "lorem ipsum dolor " * 3_000
    for more in ({"description": about}, {"default": about}):
        member: Json = {"$ref": "#", **more}
        node: dict[str, Json] = {"type": "object", "properties": dict.fromkeys("abcd", member)}
        assert len(declaration(node)) < LONGEST + 2 * len(about)
    for leaf in ({"enum": [about]}, {"const": about}):
        root: dict[str, Json] = {"anyOf": [{"$ref": "#/$defs/a"}] * 150, "$defs": {"a": leaf}}
        assert len(declaration(root)) < LONGEST + 2 * len(about)


def test_all_functions_of_a_request_have_one_such_measure() -> None:
    about = "lorem ipsum dolor " * 30_000
    schema: dict[str, Json] = {"properties": {"a": {"description": about}, "b": {"type": "string"}}}
    written = declarations(tuple(FunctionTool(name=f"f{number}", schema=schema) for number in range(9)))
    assert len(written) < LONGEST + 2 * len(about)
    assert "type f8 = () => any;" in written


def test_a_schema_with_very_many_members_is_written_at_once() -> None:
    names = [f"n{number}" for number in range(30_000)]
    wide: dict[str, Json] = {"type": "object", "properties": dict.fromkeys(names, True), "required": [*names, 7, []]}
    assert declaration(wide).count(": any,") == 30_000
