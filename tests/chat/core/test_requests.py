from sightline.catalog.facts import Facts
from sightline.chat.core import sizing
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.chat.core.sizing import Sizer, concatenate, messages_of, question
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import FunctionTool, Message, Request
from sightline.settings import ChatSettings
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import Estimate, exactly
from sightline.tokens.estimator import Estimator

PICTURE = Image(Link("https://example.org/a.png"))
CALL, RESULT = ToolCall("c1", "look_up", "{}"), ToolResult("c1", (Text("found"),))


def said(*messages: Message) -> MessagePair:
    return MessagePair(id="a", user_text="why?", answer=ChatAnswer(messages=messages))


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def tool(*parts: Part) -> Message:
    return Message("tool", parts)


def spoken(pair: MessagePair, dialect: str = "openai-chat", **more: bool) -> list[tuple[str, tuple[Part, ...]]]:
    return [(message.role, message.parts) for message in messages_of(pair, dialect, **more)]


ASKED = ("user", (Text("why?"),))


def test_a_pair_is_a_question_and_an_answer() -> None:
    pair = MessagePair(id="a", user_text="why?", answer=text_answer("so"))
    assert spoken(pair) == [ASKED, ("assistant", (Text("so"),))]
    assert all(message.bare for message in messages_of(pair, "openai-chat"))


def test_blank_sides_are_not_sent() -> None:
    assert spoken(MessagePair(id="a", user_text=" \n", answer=text_answer("so"))) == [("assistant", (Text("so"),))]
    assert spoken(MessagePair(id="a", user_text="why?", answer=text_answer(" "))) == [ASKED]
    assert spoken(MessagePair(id="a")) == []
    assert question(" ") is None


def test_attachments_precede_the_question_text() -> None:
    assert question("look", (PICTURE,)) == Message("user", (PICTURE, Text("look")))
    assert question("", (PICTURE,)) == Message("user", (PICTURE,))


def test_marks_and_troubles_are_never_sent() -> None:
    pair = MessagePair(
        id="a", topic="t", user_text="why?", star=3, flag="grey", state="error", trouble=Trouble("auth", "no key")
    )
    assert spoken(pair) == [ASKED]


def test_tool_rounds_are_sent_in_full() -> None:
    pair = said(assistant(Text("I look."), CALL), tool(RESULT), assistant(Text("so")))
    assert spoken(pair)[1:] == [
        ("assistant", (Text("I look."), CALL)),
        ("tool", (RESULT,)),
        ("assistant", (Text("so"),)),
    ]


def test_a_call_without_a_result_and_a_result_without_a_call_are_left_out() -> None:
    assert spoken(said(assistant(Text("I look."), CALL))) == [ASKED, ("assistant", (Text("I look."),))]
    assert spoken(said(assistant(Text("so")), tool(RESULT))) == [ASKED, ("assistant", (Text("so"),))]
    assert spoken(said(tool(RESULT), assistant(CALL))) == [ASKED]
    late = said(assistant(CALL), tool(ToolResult("other")), assistant(Text("so")))
    assert spoken(late) == [ASKED, ("assistant", (Text("so"),))]


def test_calls_that_were_made_at_once_are_answered_together() -> None:
    second, answer = ToolCall("c2", "look_up", "{}"), ToolResult("c2")
    pair = said(assistant(CALL), assistant(second), tool(RESULT), tool(answer))
    assert spoken(pair)[1:] == [("assistant", (CALL, second)), ("tool", (RESULT, answer))]


def test_of_two_calls_with_one_id_the_first_is_meant_and_without_an_id_none() -> None:
    twin = ToolCall("c1", "other", "{}")
    assert spoken(said(assistant(CALL, twin), tool(RESULT)))[1:] == [("assistant", (CALL,)), ("tool", (RESULT,))]
    assert spoken(said(assistant(ToolCall("", "look_up", "{}")), tool(ToolResult("")))) == [ASKED]


def test_calls_that_no_question_led_to_are_left_out() -> None:
    pair = MessagePair(id="a", answer=ChatAnswer(messages=(assistant(CALL), tool(RESULT), assistant(Text("so")))))
    assert spoken(pair) == [("assistant", (Text("so"),))]


def test_without_tool_rounds_only_text_is_sent() -> None:
    pair = said(assistant(Text("I look."), CALL), tool(RESULT), assistant(Text("so")))
    assert spoken(pair, with_rounds=False) == [ASKED, ("assistant", (Text("I look."), Text("so")))]


def test_context_beside_tool_results_is_sent_only_together_with_them() -> None:
    beside = Message("user", (Text("By the way."),))
    pair = said(assistant(CALL), tool(RESULT), beside, assistant(Text("so")))
    assert [role for role, _ in spoken(pair)] == ["user", "assistant", "tool", "user", "assistant"]
    assert [role for role, _ in spoken(pair, with_rounds=False)] == ["user", "assistant"]


def test_thinking_with_tool_calls_is_sent_only_to_its_signing_provider() -> None:
    thought = Thinking("hm", signature="s", signed_by="anthropic")
    rounds = said(assistant(thought, CALL), tool(RESULT))
    assert spoken(rounds, "anthropic")[1] == ("assistant", (thought, CALL))
    assert spoken(rounds, "gemini")[1] == ("assistant", (CALL,))
    assert spoken(said(assistant(thought, Text("so"))), "anthropic")[1] == ("assistant", (Text("so"),))
    assert spoken(said(assistant(Thinking("hm"), CALL), tool(RESULT)), "anthropic")[1] == ("assistant", (CALL,))


def test_provider_specific_parts_are_not_sent_to_other_providers() -> None:
    search = Opaque("anthropic", {"type": "server_tool_use"})
    pair = said(assistant(search, Text("so"), CacheBreakpoint()))
    assert spoken(pair, "anthropic")[1] == ("assistant", (search, Text("so")))
    assert spoken(pair, "gemini")[1] == ("assistant", (Text("so"),))


def test_generated_media_is_sent_only_to_dialects_that_accept_it() -> None:
    pair = said(assistant(Text("here"), PICTURE, Audio(id="x")))
    assert spoken(pair, "gemini")[1] == ("assistant", (Text("here"), PICTURE, Audio(id="x")))
    assert spoken(pair)[1] == ("assistant", (Text("here"),))


def test_refusal_is_sent_unchanged() -> None:
    assert spoken(said(assistant(Refusal("no")))) == [ASKED, ("assistant", (Refusal("no"),))]


def test_repeated_call_ids_are_made_unique() -> None:
    one = messages_of(said(assistant(CALL), tool(RESULT), assistant(CALL), tool(RESULT)), "openai-chat")
    found = [part.id for message in concatenate((one, one)) for part in message.parts if isinstance(part, ToolCall)]
    answers = [part.id for message in concatenate((one, one)) for part in message.parts if isinstance(part, ToolResult)]
    assert found == answers == ["c1", "c1_2", "c1_3", "c1_4"]


def test_words_around_calls_are_as_they_were() -> None:
    one = messages_of(said(assistant(Text("I look."), CALL), tool(RESULT)), "openai-chat")
    assert concatenate((one,)) == one


EXACT = Facts(tokenizer="o200k_base", message_tokens=3, reply_tokens=3)
LETTERS = ChatSettings(estimation="characters", chars_per_token=3.5)
PAIR = MessagePair(id="a", user_text="Why is the sky blue?", answer=text_answer("Because of scattering."))


def sizer_of(facts: Facts = EXACT, settings: ChatSettings = ChatSettings(), **more) -> Sizer:  # noqa: B008
    return Sizer(facts, dialect="openai-chat", settings=settings, **more)


def test_a_pair_is_as_large_as_its_messages() -> None:
    sizer, estimator = sizer_of(), Estimator(EXACT, dialect="openai-chat")
    whole = estimator.estimate_by_rules(Request(messages=sizer.messages(PAIR))).tokens
    assert sizer.pair(PAIR).tokens + sizer.prelude("").tokens == whole
    assert sizer.cost(PAIR) == sizer.pair(PAIR).high


def test_by_characters_each_side_is_divided_and_rounded_up() -> None:
    assert sizer_of(settings=LETTERS).pair(PAIR) == exactly(6 + 7, "characters per token")
    assert sizer_of(settings=LETTERS).prelude("") == exactly(0)
    assert sizer_of(settings=LETTERS).prelude("Be short.").tokens == 3


def test_by_characters_calls_and_results_count_and_pictures_as_ever() -> None:
    messages = (
        Message("assistant", (ToolCall("c", "look_up", "{}"),)),
        Message("tool", (ToolResult("c", (Text("found"),)),)),
    )
    pair = MessagePair(id="a", user_text="x", answer=ChatAnswer(messages=messages))
    assert sizer_of(settings=LETTERS).pair(pair).tokens == 1 + 3 + 2
    seen = MessagePair(id="a", attachments=(Image(Inline("image/png", "iVBORw0KGgo=")),))
    assert sizer_of(settings=LETTERS).cost(seen) > 0


def test_the_setting_serves_models_of_which_nothing_better_is_known() -> None:
    dense, loose = ChatSettings(chars_per_token=2), ChatSettings(chars_per_token=6)
    assert sizer_of(Facts(), dense).cost(PAIR) > sizer_of(Facts(), loose).cost(PAIR)
    for facts in (EXACT, Facts(nearest_tokenizer="o200k_base"), Facts(chars_per_token=4)):
        assert sizer_of(facts, dense).cost(PAIR) == sizer_of(facts, loose).cost(PAIR)


def test_a_pair_is_counted_once_until_it_changes(monkeypatch) -> None:
    sizer = sizer_of()
    first = sizer.pair(PAIR)
    monkeypatch.setattr(Sizer, "messages", lambda *_: 1 // 0)
    assert sizer.pair(PAIR) is first
    monkeypatch.undo()
    longer = MessagePair(id="a", user_text="Why is the sky blue, and the sea too, on most days?")
    assert sizer.pair(longer) != first


def test_what_is_remembered_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(sizing, "_REMEMBERED", 2)
    sizer = sizer_of()
    for name in "abc":
        sizer.pair(MessagePair(id=name, user_text="x"))
    assert list(sizer._pairs) == ["c"]


def test_tools_are_counted() -> None:
    assert sizer_of().tool_tokens().tokens == 0
    assert sizer_of(tools=(FunctionTool("look_up", "looks", {"type": "object"}),)).tool_tokens().tokens > 0


def test_without_lessons_the_cautious_number_is_the_upper_edge() -> None:
    assert sizer_of().cautious(Estimate(100, 80, 130)) == 130
    assert sizer_of().always_added == 0


def test_what_the_provider_counted_moves_the_cautious_number() -> None:
    lesson = Ratio(factor=1.2, added=10.5, width=0.5, seen=9)
    sizer = sizer_of(calibration=lesson)
    assert sizer.cautious(exactly(100)) == 100
    assert 120 <= sizer.cautious(Estimate(100, 80, 130)) <= 140
    assert sizer.always_added == 13


def test_planned_in_pieces_is_never_less_than_planned_as_a_whole() -> None:
    lesson = Ratio(factor=0.9, added=7, width=0.4, seen=3)
    sizer = sizer_of(Facts(), calibration=lesson)
    pairs = [MessagePair(id=str(n), user_text="some words " * n, answer=text_answer("more " * n)) for n in range(1, 9)]
    whole = lesson.correct(
        Estimator(Facts(chars_per_token=3.5), dialect="openai-chat").estimate_by_rules(
            Request(messages=tuple(message for pair in pairs for message in sizer.messages(pair)))
        )
    )
    pieces = sum(map(sizer.cost, pairs)) + sizer.cautious(sizer.prelude("")) + sizer.always_added
    assert pieces >= whole.high


def test_what_is_learned_later_changes_the_cautious_number_and_no_count() -> None:
    sizer = sizer_of(Facts())
    estimate = sizer.pair(PAIR)
    wiser = sizer.with_calibration(Ratio(2.0, 0.0, 1.0, 9))
    assert wiser.pair(PAIR) is estimate
    assert wiser.cost(PAIR) > sizer.cost(PAIR) == estimate.high
