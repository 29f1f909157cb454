from sightline.catalog.facts import Facts
from sightline.dialects.registry import dialect as dialect_of
from sightline.model.json import Json
from sightline.model.options import JsonFormat, PlainFormat, SchemaFormat
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool
from sightline.tokens.estimate import NOTHING, Estimate
from sightline.tokens.estimator import ToolCounter
from sightline.tokens.message_count import MessageCounter
from sightline.tokens.text_count import TextCounter

GPT = Facts(tokenizer="o200k_base", tools_tokens=9, chat_tools_tokens=90)
CLAUDE = Facts(nearest_tokenizer="o200k_base", token_ratio=1.1, tools_tokens=500, schema_tokens=160)
GEMMA = Facts(tokenizer="gemma3", tools_tokens=0)

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"}},
    "required": ["city"],
}
WEATHER = FunctionTool(name="get_weather", description="Get the current weather", schema=SCHEMA)


def counter(facts: Facts, dialect: str) -> ToolCounter:
    texts = TextCounter(facts)
    return ToolCounter(
        facts, dialect_of(dialect).tokens, texts, MessageCounter(facts, dialect_of(dialect).tokens, texts)
    )


def holds(estimate: Estimate, reported: int) -> bool:
    return estimate.low <= reported <= estimate.high


def test_no_tools_cost_nothing() -> None:
    assert counter(GPT, "openai-chat").tools(()) == NOTHING


def test_openai_models_see_declarations() -> None:
    estimate = counter(GPT, "openai-responses").tools((WEATHER,))
    assert not estimate.is_exact
    assert 40 < estimate.tokens < 60


def test_so_do_those_whose_vocabulary_is_only_likely() -> None:
    likely = Facts(nearest_tokenizer="o200k_base", tools_tokens=9)
    exact = counter(GPT, "openai-responses").tools((WEATHER,))
    assert counter(likely, "openai-responses").tools((WEATHER,)).tokens == exact.tokens


def test_chat_completions_say_more_about_tools_than_responses() -> None:
    chat, responses = counter(GPT, "openai-chat"), counter(GPT, "openai-responses")
    assert chat.tools((WEATHER,)).tokens - responses.tools((WEATHER,)).tokens == 81


def test_others_see_json_and_hidden_instructions() -> None:
    estimate = counter(CLAUDE, "anthropic").tools((WEATHER,))
    assert holds(estimate, 346 + 60)
    assert holds(estimate, 600 + 60)
    assert 540 < estimate.tokens < 600


def test_where_nothing_is_known_of_hidden_instructions_they_may_be_long() -> None:
    unknown = counter(Facts(tokenizer="llama3"), "openai-chat").tools((WEATHER,))
    known = counter(Facts(tokenizer="llama3", tools_tokens=0), "openai-chat").tools((WEATHER,))
    assert unknown.high - known.high == 700
    assert unknown.low == known.low


def test_freeform_and_server_tools_count_too() -> None:
    plain = CustomTool(name="note")
    grammar = CustomTool(name="note", description="Write it down.", grammar=Grammar("lark", "start: WORD+"))
    tools = counter(GPT, "openai-responses")
    assert tools.tools((plain,)).tokens < tools.tools((grammar,)).tokens
    search = tools.tools((OpaqueTool(dialect="openai-responses", value={"type": "web_search"}),))
    assert search.high > 4000 > search.tokens


def test_mixed_tools_add_up() -> None:
    tools = counter(GEMMA, "gemini")
    both = tools.tools((WEATHER, CustomTool(name="note")))
    assert both.tokens == tools.tools((WEATHER,)).tokens + tools.tools((CustomTool(name="note"),)).tokens


def test_a_schema_for_the_answer_is_shown_to_most_models() -> None:
    form = SchemaFormat(schema=SCHEMA)
    assert counter(GPT, "openai-chat").output(form).tokens > 20
    assert counter(CLAUDE, "anthropic").output(form).tokens > 160
    gemini = counter(GEMMA, "gemini").output(form)
    assert (gemini.low, gemini.tokens) == (0, 0)
    assert gemini.high > 20


def test_other_forms_say_little() -> None:
    tools = counter(GPT, "openai-chat")
    assert tools.output(None) == NOTHING
    assert tools.output(PlainFormat()) == NOTHING
    assert tools.output(JsonFormat()).high == 10
