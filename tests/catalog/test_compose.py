import dataclasses

import pytest

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, complete, compose, conversation_of
from sightline.catalog.facts import Facts, Family
from sightline.catalog.fitting import LADDER, make_native_tool
from sightline.catalog.provider import Provider, Quirks
from sightline.dialects.registry import dialect as find
from sightline.errors import Code, Fault
from sightline.model.parts import CacheBreakpoint, Image, Link, Refusal, Text, Thinking, ToolResult
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
    Tool,
    ToolChoice,
)

HELLO = Message("user", (Text("hello"),))
DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
ADD = FunctionTool("add")
SCHEMA = {"type": "object"}
UNKNOWN, NO_FAMILY, NO_QUIRKS = Facts(), Family(), Quirks()
THINKER = Facts(reasoning=True, efforts=("minimal", "low", "medium", "high"))


def composed(
    dialect: str = "openai-chat",
    *,
    facts: Facts = UNKNOWN,
    family: Family = NO_FAMILY,
    quirks: Quirks = NO_QUIRKS,
    messages: tuple[Message, ...] = (HELLO,),
    **asked: object,
) -> Request:
    prompt = Prompt(messages, **asked)  # type: ignore[arg-type]
    choice = ModelChoice("acme", Provider(dialect=dialect, quirks=quirks), "model-1", facts, family)
    return compose(prompt, choice, find(dialect).support)


def refused(*args: str, **kwargs: object) -> Fault:
    with pytest.raises(Fault) as caught:
        composed(*args, **kwargs)  # type: ignore[arg-type]
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint
    return caught.value


# --- the input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (Message("user"),),
        (Message("user", (Text(" \n"), CacheBreakpoint())), Message("assistant", (Refusal(""), Thinking("hm")))),
        (Message("system", (Text("Be brief."),)), Message("developer", (Text("Be kind."),))),
    ],
    ids=["nothing", "no parts", "no words", "only instructions"],
)
def test_an_empty_input_is_refused(messages: tuple[Message, ...]) -> None:
    assert refused(messages=messages).message == "the input is empty"


@pytest.mark.parametrize("part", [Text("a"), Image(Link("https://e.org/a.png")), ToolResult("c")], ids=str)
def test_one_thing_to_answer_is_enough(part: Text) -> None:
    message = Message("user", (part,))
    assert composed(messages=(message,)).messages == (message,)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "gemini"])
def test_a_plain_prompt_becomes_a_plain_request(dialect: str) -> None:
    request = composed(dialect, quirks=Quirks(stream_usage=False))
    assert request == Request(model="model-1", messages=(HELLO,), options=Options(stream=True))


# --- instructions ---------------------------------------------------------------------------------

PATCHER = Family(
    base_instructions="Be brief.", tool_instructions="Write patches so.", needs_special_apply_patch_instructions=True
)


def instructions(**kwargs: object) -> list[str]:
    request = composed(**kwargs)  # type: ignore[arg-type]
    assert request.messages[-1] == HELLO
    return [part.text for message in request.messages[:-1] for part in message.parts if isinstance(part, Text)]


def test_without_instructions_there_is_no_system_message() -> None:
    assert instructions() == []
    assert instructions(instructions="", family=PATCHER) == []


def test_the_family_gives_its_own_with_those_for_the_tool_it_lacks() -> None:
    assert instructions(family=PATCHER) == ["Be brief.\nWrite patches so."]


def test_instructions_override_replaces_the_family_instructions() -> None:
    assert instructions(family=PATCHER, instructions="Be loud.") == ["Be loud."]


def test_the_users_instructions_stand_beside_the_family_s_or_what_replaces_them() -> None:
    assert instructions(family=PATCHER, user_instructions="Use metres.") == [
        "Be brief.\nWrite patches so.\n\nUse metres."
    ]
    assert instructions(family=PATCHER, instructions="Be loud.", user_instructions="Use metres.") == [
        "Be loud.\n\nUse metres."
    ]
    assert instructions(family=PATCHER, instructions="", user_instructions="Use metres.") == ["Use metres."]
    assert instructions(user_instructions=" ") == []


@pytest.mark.parametrize(
    "tool",
    [FunctionTool("apply_patch"), CustomTool("apply_patch"), OpaqueTool("openai-responses", {"type": "apply_patch"})],
    ids=["function", "custom", "opaque"],
)
def test_a_patch_tool_needs_no_words_about_it(tool: FunctionTool) -> None:
    assert instructions(family=PATCHER, tools=(tool,)) == ["Be brief."]


def test_another_tool_does_not_replace_them() -> None:
    tools = (ADD, OpaqueTool("gemini", {"googleSearch": {}}), OpaqueTool("gemini", "odd"))
    assert instructions(family=PATCHER, tools=tools) == ["Be brief.\nWrite patches so."]


def test_a_family_may_have_one_of_the_two() -> None:
    assert instructions(family=Family(base_instructions="Be brief.", tool_instructions="No.")) == ["Be brief."]
    only = Family(tool_instructions="Patch.", needs_special_apply_patch_instructions=True)
    assert instructions(family=only) == ["Patch."]


# --- reasoning and verbosity ----------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_effort_is_sent_to_a_reasoning_model(dialect: str) -> None:
    assert composed(dialect, facts=THINKER, effort="high").options.reasoning == Reasoning(effort="high")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unset_reasoning_and_verbosity_are_not_sent(dialect: str) -> None:
    options = composed(dialect, facts=THINKER).options
    assert (options.reasoning, options.verbosity) == (None, None)
    assert composed(dialect, facts=THINKER, effort="", summary="", verbosity="").options == options


def test_a_family_has_its_usual_effort() -> None:
    family = Family(default_effort="low")
    assert composed(facts=THINKER, family=family).options.reasoning == Reasoning(effort="low")
    assert composed(facts=THINKER, family=family, effort="high").options.reasoning == Reasoning(effort="high")
    assert composed(family=family).options.reasoning is None
    assert composed("anthropic", facts=THINKER, family=Family(default_effort="minimal")).options.reasoning is None


def test_an_effort_is_refused_where_the_model_does_not_reason() -> None:
    assert "it does not reason" in refused(facts=Facts(reasoning=False), effort="high").message
    assert "it does not reason" in refused(facts=Facts(reasoning=False), summary="auto").message


def test_a_model_that_does_not_reason_takes_no_reasoning() -> None:
    facts = Facts(reasoning=False)
    assert composed("openai-responses", facts=facts, effort="none", summary="none").options.reasoning is None


def test_an_unknown_effort_names_the_known_ones() -> None:
    fault = refused(facts=THINKER, effort="hgih")
    assert fault.message == "model-1 does not take the effort 'hgih'"
    assert fault.hint == "It takes minimal, low, medium, high."
    assert refused(effort="hgih").hint == f"It takes {', '.join(LADDER)}."
    assert refused("anthropic", facts=THINKER, effort="minimal").hint == "It takes low, medium, high."
    assert refused(facts=Facts(reasoning=True, efforts=()), effort="low").hint == "Leave the effort out."


def test_unknown_model_gets_the_requested_effort() -> None:
    assert composed(effort="low").options.reasoning == Reasoning(effort="low")


def test_responses_api_request_includes_summary_and_encrypted_reasoning() -> None:
    family = Family(supports_reasoning_summaries=True)
    options = composed("openai-responses", facts=THINKER, family=family, effort="low").options
    assert options.reasoning == Reasoning(effort="low", summary="auto")
    assert options.include == ("reasoning.encrypted_content",)
    without = composed("openai-responses", facts=THINKER).options
    assert (without.reasoning, without.include) == (None, ("reasoning.encrypted_content",))
    assert composed("openai-responses", effort="low").options.include == ("reasoning.encrypted_content",)
    assert composed("openai-responses").options.include == ()
    assert composed("openai-chat", facts=THINKER).options.include is None
    assert composed("gemini", facts=THINKER, family=family).options.reasoning is None


def test_a_summary_that_needs_thinking_is_refused_beside_what_that_excludes() -> None:
    """Anthropic's API answers 400 to these."""
    forced, tools = ToolChoice("required"), (FunctionTool("f"),)
    assert "top_k cannot be set" in refused("anthropic", summary="auto", top_k=3).message
    assert "temperature cannot be set" in refused("anthropic", summary="auto", temperature=0.5).message
    assert "a forced tool call" in refused("anthropic", summary="auto", tools=tools, tool_choice=forced).message
    assert composed("anthropic", summary="auto", temperature=1, top_p=0.95).options.temperature == 1
    assert composed("anthropic", summary="none", top_k=3, tools=tools, tool_choice=forced).options.top_k == 3
    assert composed("gemini", summary="auto", top_k=3).options.top_k == 3


def test_reasoning_summary_is_requested_in_the_form_of_the_dialect() -> None:
    assert composed("openai-responses", summary="concise").options.reasoning == Reasoning(summary="concise")
    assert composed("gemini", summary="auto").options.reasoning == Reasoning(summary="auto")
    assert composed("anthropic", summary="auto").options.reasoning == Reasoning(mode="adaptive", summary="auto")
    assert composed("openai-responses", summary="none", effort="low").options.reasoning == Reasoning(effort="low")
    assert refused("gemini", summary="concise").hint == "It takes none, auto."
    assert refused("openai-chat", summary="auto").hint == "It takes none."


def test_there_is_no_summary_of_no_reasoning() -> None:
    family = Family(supports_reasoning_summaries=True)
    facts = Facts(reasoning=True)
    options = composed("openai-responses", facts=facts, family=family, effort="none").options
    assert options.reasoning == Reasoning(effort="none")
    assert "no summary can be given" in refused("openai-responses", facts=facts, effort="none", summary="auto").message


def test_verbosity_is_for_models_that_take_it() -> None:
    talker, family = Facts(verbosity=True), Family(default_verbosity="medium")
    assert composed(facts=talker, verbosity="low").options.verbosity == "low"
    assert composed(facts=talker, family=family).options.verbosity == "medium"
    assert composed(facts=talker, family=family, verbosity="high").options.verbosity == "high"
    assert composed("anthropic", facts=talker, family=family).options.verbosity is None
    assert composed(family=family).options.verbosity is None
    assert refused(facts=talker, verbosity="loud").hint == "It takes low, medium, high."
    assert "the model takes none" in refused(verbosity="low").message
    assert "the model takes none" in refused("gemini", facts=talker, verbosity="low").message


# --- output and sampling --------------------------------------------------------------------------


def test_an_output_schema_has_a_name_where_the_dialect_wants_one() -> None:
    assert composed(output_schema=SCHEMA).options.format == SchemaFormat(SCHEMA, "response", strict=True)
    loose = composed("openai-responses", output_schema=SCHEMA, output_name="answer", output_strict=False)
    assert loose.options.format == SchemaFormat(SCHEMA, "answer", strict=False)
    assert composed("gemini", output_schema=SCHEMA).options.format == SchemaFormat(SCHEMA)
    assert composed("anthropic", output_schema=SCHEMA).options.format == SchemaFormat(SCHEMA)
    fault = refused(output_schema=SCHEMA, facts=Facts(structured_output=False))
    assert "it cannot keep to an output schema" in fault.message


def test_sampling_options_are_sent_as_requested() -> None:
    options = composed("gemini", max_tokens=5, temperature=0.5, top_p=0.9, top_k=4, stop=("END",), seed=7).options
    assert options == Options(max_tokens=5, temperature=0.5, top_p=0.9, top_k=4, stop=("END",), seed=7, stream=True)


@pytest.mark.parametrize(
    ("dialect", "option", "value"),
    [
        ("openai-chat", "top_k", 4),
        ("openai-responses", "stop", ("END",)),
        ("openai-responses", "seed", 7),
        ("anthropic", "presence_penalty", 0.5),
    ],
)
def test_an_option_that_the_dialect_does_not_have_is_refused(dialect: str, option: str, value: object) -> None:
    fault = refused(dialect, **{option: value})
    assert fault.message == f"model-1: {option} cannot be set: {dialect} has no such option"


def test_what_the_model_cannot_do_is_refused() -> None:
    assert "it cannot call tools" in refused(tools=(ADD,), facts=Facts(tools=False)).message
    assert "it cannot write 10 tokens" in refused(max_tokens=10, facts=Facts(max_output=9)).message


# --- kinds of tools -------------------------------------------------------------------------------

SEARCH, LOCAL_SHELL = make_native_tool("web_search"), make_native_tool("local_shell")


def test_a_tool_of_the_model_s_api_is_offered_in_the_words_of_the_dialect() -> None:
    facts = Facts(tool_kinds=("web_search", "local_shell"))
    assert composed("openai-responses", tools=(ADD, SEARCH, LOCAL_SHELL), facts=facts).tools == (
        ADD,
        SEARCH,
        LOCAL_SHELL,
    )
    anthropic = OpaqueTool("anthropic", {"type": "web_search_20250305", "name": "web_search"})
    assert composed("anthropic", tools=(SEARCH,), facts=facts).tools == (anthropic,)
    assert composed("gemini", tools=(SEARCH,)).tools == (OpaqueTool("gemini", {"googleSearch": {}}),)


@pytest.mark.parametrize(
    ("dialect", "tool", "kinds"),
    [
        ("openai-responses", LOCAL_SHELL, ("custom", "web_search")),
        ("openai-responses", SEARCH, ()),
        ("openai-chat", SEARCH, None),
        ("anthropic", LOCAL_SHELL, None),
        ("openai-responses", CustomTool("sql"), ("web_search",)),
        ("openai-chat", CustomTool("sql"), ()),
    ],
)
def test_a_tool_of_a_kind_that_the_model_does_not_take_is_refused(dialect: str, tool: Tool, kinds: object) -> None:
    assert "cannot be offered" in refused(dialect, tools=(tool,), facts=Facts(tool_kinds=kinds)).message  # type: ignore[arg-type]


def test_custom_tool_is_offered_natively_or_as_a_function() -> None:
    tool = CustomTool("sql")
    assert composed("openai-responses", tools=(tool,), facts=Facts(tool_kinds=("custom",))).tools == (tool,)
    assert composed("openai-chat", tools=(tool,)).tools == (tool,)
    assert composed("anthropic", tools=(tool,), facts=Facts(tool_kinds=())).tools == (tool,)


# --- what depends on the provider -----------------------------------------------------------------


def test_store_is_sent_only_to_the_responses_api_unless_a_quirk_sets_it() -> None:
    assert composed("openai-responses").options.store is False
    assert composed("openai-responses", quirks=Quirks(store=True)).options.store is True
    assert composed("openai-chat").options.store is None
    assert composed("openai-chat", quirks=Quirks(store=False)).options.store is False
    assert composed("openai-chat", quirks=Quirks(store=True)).options.store is False
    assert composed("anthropic", quirks=Quirks(store=True)).options.store is None


def test_the_conversation_is_the_cache_key_where_there_is_one() -> None:
    assert composed("openai-responses", conversation="c-1").options.cache_key == "c-1"
    assert composed("openai-responses").options.cache_key is None
    assert composed("openai-responses", conversation="c-1", quirks=Quirks(cache_key=False)).options.cache_key is None
    assert composed("openai-chat", conversation="c-1").options.cache_key is None
    assert composed("openai-chat", conversation="c-1", quirks=Quirks(cache_key=True)).options.cache_key == "c-1"
    assert composed("gemini", conversation="c-1", quirks=Quirks(cache_key=True)).options.cache_key is None


def test_a_request_that_was_written_whole_says_what_our_own_say_and_keeps_what_it_says() -> None:
    asked = Request("model-1", (HELLO,))

    def completed(request: Request, quirks: Quirks = NO_QUIRKS) -> Options:
        provider = Provider(dialect="openai-responses", quirks=quirks)
        choice = ModelChoice("acme", provider, "model-1", Facts(reasoning=True), NO_FAMILY)
        return complete(request, choice, find(choice.dialect).support, "c").options

    include = ("reasoning.encrypted_content",)
    assert completed(asked) == Options(store=False, include=include, cache_key="c")
    assert completed(asked, Quirks(store=True, cache_key=False)) == Options(store=True, include=include)
    said = Options(store=True, include=(), cache_key="own")
    assert completed(Request("model-1", (HELLO,), options=said)) == said


def test_a_conversation_is_named_by_how_it_begins() -> None:
    prompt = Prompt((HELLO,))
    assert conversation_of("m", prompt) == conversation_of("m", dataclasses.replace(prompt, tools=(ADD,)))
    others = [
        conversation_of("other", prompt),
        conversation_of("m", dataclasses.replace(prompt, instructions="Be brief.")),
        conversation_of("m", dataclasses.replace(prompt, user_instructions="Be brief.")),
        conversation_of("m", Prompt((HELLO, HELLO))),
    ]
    assert len({conversation_of("m", prompt), *others}) == len(others) + 1
    assert all(len(each) <= 64 for each in others)  # what OpenAI takes as prompt_cache_key


def test_streaming_chat_request_includes_usage() -> None:
    assert composed().options.include_usage is True
    assert composed(stream=False).options == Options(stream=False)
    assert composed(quirks=Quirks(stream_usage=False)).options.include_usage is None
    assert composed("anthropic").options.include_usage is None


def test_responses_api_request_states_tool_choice_and_parallel_calls() -> None:
    request = composed("openai-responses", tools=(ADD,))
    assert (request.tool_choice, request.parallel_tool_calls) == (ToolChoice("auto"), False)
    request = composed("openai-responses", tools=(ADD,), tool_choice=ToolChoice("required"), parallel_tool_calls=True)
    assert (request.tool_choice, request.parallel_tool_calls) == (ToolChoice("required"), True)
    request = composed("openai-responses", tools=(ADD,), quirks=Quirks(parallel_tool_calls=False))
    assert (request.tool_choice, request.parallel_tool_calls) == (ToolChoice("auto"), None)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "gemini"])
def test_other_dialects_get_only_explicit_tool_options(dialect: str) -> None:
    request = composed(dialect, tools=(ADD,))
    assert (request.tool_choice, request.parallel_tool_calls) == (None, None)
    assert composed(dialect, tools=(ADD,), tool_choice=ToolChoice("none")).tool_choice == ToolChoice("none")


def test_responses_api_gets_parallel_calls_flag_with_and_without_tools() -> None:
    request = composed("openai-responses", tool_choice=ToolChoice("none"), parallel_tool_calls=True)
    assert (request.tool_choice, request.parallel_tool_calls) == (None, False)
    held = composed("openai-responses", tools=(ADD,), tool_choice=ToolChoice("none"), parallel_tool_calls=False)
    assert (held.tool_choice, held.parallel_tool_calls) == (ToolChoice("none"), False)
    assert composed("openai-responses", quirks=Quirks(parallel_tool_calls=False)).parallel_tool_calls is None


def test_other_dialects_get_no_tool_options_without_tools() -> None:
    request = composed(tool_choice=ToolChoice("none"), parallel_tool_calls=False)
    assert (request.tool_choice, request.parallel_tool_calls) == (None, None)
    assert "there are none" in refused(tool_choice=ToolChoice("required")).message
    assert "there are none" in refused(tool_choice=ToolChoice("auto", ("add",))).message


def test_a_tool_that_is_not_offered_cannot_be_chosen() -> None:
    assert composed(tools=(ADD,), tool_choice=ToolChoice("named", ("add",))).tool_choice is not None
    fault = refused(tools=(ADD,), tool_choice=ToolChoice("named", ("sub",)))
    assert fault.message == "model-1: the tool 'sub' cannot be chosen: it is not offered"
    assert fault.hint == "Offered: add."


def test_disabling_parallel_calls_is_refused_where_unsupported() -> None:
    assert composed(tools=(ADD,), parallel_tool_calls=False).parallel_tool_calls is False
    assert composed("gemini", tools=(ADD,), parallel_tool_calls=True).parallel_tool_calls is None
    assert "one at a time" in refused("gemini", tools=(ADD,), parallel_tool_calls=False).message
    held = refused(tools=(ADD,), parallel_tool_calls=False, quirks=Quirks(parallel_tool_calls=False))
    assert "one at a time" in held.message
