from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sightline.catalog.facts import ChatTemplate, Facts
from sightline.model.json import Json
from sightline.model.parts import Image, Inline, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import FunctionTool, Message, Options, Reasoning, Request, SchemaFormat
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import NOTHING, exactly, sum_estimates
from sightline.tokens.estimator import CountedRequest, Estimator

GPT = Facts(tokenizer="o200k_base", message_tokens=3, reply_tokens=3, context_window=128_000, thinking_tokens=28)
UNKNOWN = Facts(chars_per_token=3.5)
FOX = "The quick brown fox jumps over the lazy dog."  # ten tokens


def user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def ask(*texts: str) -> Request:
    return Request(messages=tuple(user(text) for text in texts))


def test_a_plain_request_to_an_openai_model_is_counted_exactly() -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    assert estimator.text(FOX).tokens == estimator.part(Text(text=FOX)).tokens == 10
    assert estimator.message(user(FOX)).tokens == 14
    estimate = estimator.request(ask(FOX))
    assert (estimate.tokens, estimate.is_exact, estimate.how) == (17, True, "o200k_base")


def test_tools_and_the_form_of_the_answer_are_part_of_the_prompt() -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    tools = (FunctionTool(name="now"),)
    form = Options(format=SchemaFormat(schema={"type": "object", "properties": {"a": {"type": "string"}}}))
    plain = estimator.request(ask(FOX))
    assert estimator.tools(()) == NOTHING
    with_tools = estimator.request(Request(messages=(user(FOX),), tools=tools))
    assert with_tools.tokens == plain.tokens + estimator.tools(tools).tokens
    assert estimator.request(Request(messages=(user(FOX),), options=form)).tokens > plain.tokens


def test_reasoning_brings_instructions_where_the_facts_say_so() -> None:
    estimator = Estimator(GPT, dialect="anthropic")
    plain = estimator.request(ask(FOX)).tokens

    def tokens(reasoning: Reasoning) -> int:
        return estimator.request(Request(messages=(user(FOX),), options=Options(reasoning=reasoning))).tokens

    assert tokens(Reasoning(mode="on", budget=1024)) == plain + 28
    assert tokens(Reasoning(mode="off")) == plain
    assert tokens(Reasoning(effort="none")) == plain


@pytest.mark.parametrize(
    "request_",
    [
        Request(messages=(user(FOX),), options=Options(previous_response_id="resp_1")),
        Request(messages=(user(FOX),), extras={"conversation": "conv_1"}),
    ],
)
def test_a_history_that_the_provider_keeps_may_fill_the_window(request_: Request) -> None:
    estimate = Estimator(GPT, dialect="openai-responses").request(request_)
    assert (estimate.low, estimate.tokens) == (17, 17)
    assert estimate.high == 17 + 128_000
    assert Estimator(UNKNOWN, dialect="openai-responses").request(request_).high > 100_000


def test_what_frames_a_reply_is_a_guess_where_it_is_not_published() -> None:
    assert Estimator(UNKNOWN, dialect="openai-chat").request(Request()).high == 90
    seen = Estimator(Facts(tokenizer="gemma3", reply_tokens=0), dialect="gemini").request(Request())
    assert (seen.tokens, seen.high) == (0, 12)


def test_a_lesson_corrects_what_was_guessed_and_nothing_is_counted_again() -> None:
    estimator = Estimator(UNKNOWN, dialect="openai-chat", calibration=Ratio(1.5, 0, 0.5, 1000))
    request = ask(FOX * 20)
    raw = estimator.estimate_by_rules(request)
    assert estimator.request(request).tokens == pytest.approx(1.5 * raw.tokens, abs=2)
    estimator.calibrate(None)
    assert estimator.request(request) == raw


def test_an_exact_count_takes_no_lesson() -> None:
    estimator = Estimator(GPT, dialect="openai-chat", calibration=Ratio(1.5, 300, 1.0, 20))
    assert estimator.request(ask(FOX)).tokens == 17


def test_an_exact_vocabulary_is_corrected_within_its_own_doubt() -> None:
    estimator = Estimator(GPT, dialect="openai-chat", calibration=Ratio(1.5, 3000, 1.0, 20))
    request = Request(messages=(user(FOX),), tools=(FunctionTool(name="now"),))
    raw, corrected = estimator.estimate_by_rules(request), estimator.request(request)
    assert raw.low <= corrected.low <= corrected.tokens <= corrected.high <= raw.high
    assert corrected.tokens == raw.high


def test_a_keystroke_counts_one_message_of_two_thousand(counted: list[str]) -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    history = tuple(user(f"message {number} of a long conversation") for number in range(2000))
    before = estimator.request(Request(messages=history))
    assert len(counted) == 2000

    counted.clear()
    typed = (*history[:-1], user("message 1999 of a long conversation!"))
    after = estimator.request(Request(messages=typed))
    assert counted == ["message 1999 of a long conversation!"]
    assert after.tokens == before.tokens + 1


def test_so_it_does_when_the_whole_conversation_was_read_anew(counted: list[str]) -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    texts = [f"message {number}" for number in range(2000)]
    first = estimator.request(ask(*texts))
    counted.clear()
    assert estimator.request(ask(*texts)) == first
    assert counted == []


@pytest.mark.parametrize(
    "texts", [[FOX, "b"], [FOX], [], [FOX, "b", "c", FOX * 3], ["b", FOX, "c"], [FOX, "longer than b", "c"]]
)
def test_a_request_is_estimated_the_same_after_another(texts: list[str]) -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    estimator.request(ask(FOX, "b", "c"))
    fresh = Estimator(GPT, dialect="openai-chat")
    assert estimator.request(ask(*texts)) == fresh.request(ask(*texts))


def test_a_message_of_another_role_or_name_is_counted_anew() -> None:
    said = Message(role="user", parts=(Text(text=FOX),))
    others = (replace(said, role="assistant"), replace(said, name="Reynard"))
    facts = replace(GPT, assistant_tokens=7, name_tokens=1)
    estimator, fresh = Estimator(facts, dialect="openai-chat"), Estimator(facts, dialect="openai-chat")
    first = estimator.request(Request(messages=(said, said)))
    assert estimator.request(Request(messages=others)) == fresh.request(Request(messages=others)) != first


@pytest.mark.parametrize(
    "parts_with",
    [
        lambda value: (Opaque("anthropic", value),),
        lambda value: (ToolResult("c", structured=value),),
        lambda value: (Text("x"), ToolResult("c", (Opaque("anthropic", value),))),
    ],
)
def test_values_that_only_python_finds_equal_are_counted_anew(parts_with: Callable[[Json], tuple[Part, ...]]) -> None:
    warm = Estimator(GPT, dialect="anthropic")
    for value in ([1, 1, 1], [1.0, 1.0, 1.0], [True, True, True], [1, 1, 1]):
        holder: Json = {"values": value}
        tool = FunctionTool("f", schema={"enum": value})
        request = Request(messages=(Message("user", parts_with(holder)),), tools=(tool,))
        assert warm.request(request) == Estimator(GPT, dialect="anthropic").request(request)


def test_tools_are_counted_once(counted: list[str]) -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    tools = (FunctionTool(name="now", description="Say what time it is."),)
    assert estimator.tools(tools) is estimator.tools(tools)
    assert len(counted) == 1


def test_what_the_provider_counted_leads_and_only_what_is_new_is_estimated() -> None:
    estimator = Estimator(Facts(chars_per_token=4.0), dialect="openai-chat", calibration=Ratio(1.5, 900.0, 1.0, 1000))
    messages = (
        Message("user", (Text("some words " * 50),)),
        Message("assistant", (Text("short"),)),
        Message("user", (Text("more words"),)),
    )
    request = Request(messages=messages)
    assert estimator.estimate_continuation(request, 3, 777) == exactly(777, "counted by the provider")
    continued = estimator.estimate_continuation(request, 1, 777)
    new = sum_estimates(map(estimator.message, messages[1:]))
    assert continued.low >= 777
    assert continued.tokens == pytest.approx(777 + new.tokens * 1.5, abs=2)
    by_vocabulary = Estimator(Facts(tokenizer="o200k_base"), dialect="openai-chat", calibration=Ratio(1.5, 9.0, 1.0, 9))
    assert (
        by_vocabulary.estimate_continuation(request, 1, 777).tokens
        == 777 + sum_estimates(map(by_vocabulary.message, messages[1:])).tokens
    )


def test_what_is_new_is_corrected_by_what_conversations_grew_by() -> None:
    messages = (
        Message("user", (Text("some words"), Image(Inline("image/png", "")))),
        Message("assistant", (Thinking("let me see"), ToolCall("c", "look", '{"at": "there"}'))),
        Message("tool", (ToolResult("c", structured={"seen": "words"}), ToolResult("d", (Text("words and words"),)))),
    )
    request = Request(messages=messages)
    for facts in (UNKNOWN, GPT):
        estimator = Estimator(facts, dialect="openai-chat")
        new, kind = estimator.growth(messages[1:])
        assert kind == "words"
        estimator.calibrate(None, {"words": Ratio(1.5, 40.0, 1.0, 1000)})
        assert estimator.estimate_continuation(request, 1, 777).tokens == pytest.approx(817 + new.tokens * 1.5, abs=2)
        estimator.calibrate(None, {"figures": Ratio(1.5, 40.0, 1.0, 1000)})
        assert estimator.estimate_continuation(request, 1, 777).tokens == 777 + new.tokens
        assert estimator.growth(messages[:1])[1] == "words"


def test_the_kind_of_a_text_matters_where_the_vocabulary_is_not_known() -> None:
    numbers = (Message("user", (Text("1794826034 2026-11-16 200"),)),)
    assert Estimator(UNKNOWN, dialect="openai-chat").growth(numbers)[1] == "figures"
    assert Estimator(GPT, dialect="openai-chat").growth(numbers)[1] == "words"


def test_a_request_that_goes_on_from_a_counted_one_starts_there() -> None:
    estimator = Estimator(UNKNOWN, dialect="openai-chat")
    request = ask(FOX, FOX)
    raw = estimator.estimate_by_rules(request)
    assert estimator.whole(request, raw) == (raw, False)
    estimator.continue_from(CountedRequest(request.messages[:1], (), 400))
    whole, is_counted = estimator.whole(request, raw)
    assert is_counted
    assert whole == estimator.estimate_continuation(request, 1, 400)
    other = ask("something else", FOX)
    assert estimator.whole(other, raw) == (raw, False)
    tools = Request(messages=request.messages, tools=(FunctionTool("f", schema={}),))
    assert estimator.whole(tools, raw) == (raw, False)
    estimator.continue_from(None)
    assert estimator.whole(request, raw) == (raw, False)


CHATML = ChatTemplate(message="<{role}>{text}</>", reply="<assistant>", system="Be kind.")
OPEN = Facts(tokenizer="o200k_base", template=CHATML)


def test_a_model_with_a_template_is_counted_as_it_reads() -> None:
    estimator = Estimator(OPEN, dialect="openai-chat")
    count = estimator.text
    said = Message(role="developer", parts=(Text(text="Be"), Text(text="brief.")))
    assert estimator.message(said) == count("<system>Be\nbrief.</>")
    form = Options(format=SchemaFormat(schema={"type": "object"}))
    request = Request(messages=(said, user(FOX)), tools=(FunctionTool(name="now"),), options=form)
    assert estimator.request(request) == count("<assistant>") + estimator.message(said) + estimator.message(user(FOX))
    assert estimator.estimate_around_messages(ask(FOX)) == count("<system>Be kind.</><assistant>")
    assert not estimator.message(Message("user", (Text(text=FOX), Image(Inline("image/png", ""))))).is_exact


def test_a_model_with_a_template_goes_on_with_its_last_message() -> None:
    estimator = Estimator(
        Facts(tokenizer="o200k_base", template=ChatTemplate(message="<{role}>{text}</>")), dialect="raw"
    )
    begun = Message(role="assistant", parts=(Text(text="One,"),))
    around = estimator.estimate_around_messages(Request(messages=(user(FOX), begun)))
    assert around.tokens == -estimator.text("</>").tokens
    assert estimator.estimate_around_messages(Request()).tokens == 0


def test_a_vocabulary_that_counts_disprove_is_only_the_nearest() -> None:
    estimator = Estimator(GPT, dialect="openai-chat")
    assert estimator.growth([user("12,345 67,890")]) == (estimator.message(user("12,345 67,890")), "words")
    estimator.calibrate(None, {"words": Ratio(1.2, 0.0, 1.0, 4, disproves=True)})
    doubted, kind = estimator.growth([user("12,345 67,890")])
    assert (doubted.tokens, doubted.is_exact, kind) == (
        estimator.message(user("12,345 67,890")).tokens,
        False,
        "figures",
    )
    assert estimator.estimate_continuation(ask(FOX, "12,345"), 1, 17).low > 17
    lesson = Ratio(1.2, 0.0, 1.0, 4, disproves=True)
    estimator.calibrate(Ratio(1.2, 0.0, 1.0, 4), {"words": lesson})
    assert not estimator.estimate_continuation(ask(FOX, "12,345"), 1, 17).is_exact
    estimator.calibrate(None, {"words": lesson})  # the counter stays, with what it has counted
    estimator.calibrate(None, {})
    assert estimator.growth([user("12,345 67,890")])[1] == "words"
