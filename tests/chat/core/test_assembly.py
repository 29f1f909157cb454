from sightline.chat.core.assembly import concatenate, has_rounds, messages_of, question, takes_rounds
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, text_answer
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Image,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

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


def test_what_is_attached_stands_before_the_words() -> None:
    assert question("look", (PICTURE,)) == Message("user", (PICTURE, Text("look")))
    assert question("", (PICTURE,)) == Message("user", (PICTURE,))


def test_marks_and_troubles_are_never_sent() -> None:
    pair = MessagePair(
        id="a", topic="t", user_text="why?", star=3, flag="grey", state="error", trouble=Trouble("auth", "no key")
    )
    assert spoken(pair) == [ASKED]


def test_rounds_with_tools_go_along_whole() -> None:
    pair = said(assistant(Text("I look."), CALL), tool(RESULT), assistant(Text("so")))
    assert spoken(pair)[1:] == [
        ("assistant", (Text("I look."), CALL)),
        ("tool", (RESULT,)),
        ("assistant", (Text("so"),)),
    ]
    assert has_rounds(pair)
    assert not has_rounds(MessagePair(id="a"))


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


def test_without_rounds_only_words_go_along() -> None:
    pair = said(assistant(Text("I look."), CALL), tool(RESULT), assistant(Text("so")))
    assert spoken(pair, with_rounds=False) == [ASKED, ("assistant", (Text("I look."), Text("so")))]


def test_what_the_model_was_told_beside_results_goes_with_them_or_not_at_all() -> None:
    beside = Message("user", (Text("By the way."),))
    pair = said(assistant(CALL), tool(RESULT), beside, assistant(Text("so")))
    assert [role for role, _ in spoken(pair)] == ["user", "assistant", "tool", "user", "assistant"]
    assert [role for role, _ in spoken(pair, with_rounds=False)] == ["user", "assistant"]


def test_who_takes_rounds_without_tools() -> None:
    assert takes_rounds("openai-chat", has_tools=False)
    assert not takes_rounds("anthropic", has_tools=False)
    assert takes_rounds("anthropic", has_tools=True)


def test_thinking_goes_along_beside_calls_to_the_one_who_sealed_it() -> None:
    thought = Thinking("hm", signature="s", signed_by="anthropic")
    rounds = said(assistant(thought, CALL), tool(RESULT))
    assert spoken(rounds, "anthropic")[1] == ("assistant", (thought, CALL))
    assert spoken(rounds, "gemini")[1] == ("assistant", (CALL,))
    assert spoken(said(assistant(thought, Text("so"))), "anthropic")[1] == ("assistant", (Text("so"),))
    assert spoken(said(assistant(Thinking("hm"), CALL), tool(RESULT)), "anthropic")[1] == ("assistant", (CALL,))


def test_what_only_one_provider_understands_goes_to_no_other() -> None:
    search = Opaque("anthropic", {"type": "server_tool_use"})
    pair = said(assistant(search, Text("so"), CacheBreakpoint()))
    assert spoken(pair, "anthropic")[1] == ("assistant", (search, Text("so")))
    assert spoken(pair, "gemini")[1] == ("assistant", (Text("so"),))


def test_what_a_model_drew_or_spoke_is_shown_to_those_who_can_see_it_again() -> None:
    pair = said(assistant(Text("here"), PICTURE, Audio(id="x")))
    assert spoken(pair, "gemini")[1] == ("assistant", (Text("here"), PICTURE, Audio(id="x")))
    assert spoken(pair)[1] == ("assistant", (Text("here"),))


def test_a_refusal_is_sent_as_it_was_said() -> None:
    assert spoken(said(assistant(Refusal("no")))) == [ASKED, ("assistant", (Refusal("no"),))]


def test_ids_that_come_again_are_told_apart() -> None:
    one = messages_of(said(assistant(CALL), tool(RESULT), assistant(CALL), tool(RESULT)), "openai-chat")
    found = [part.id for message in concatenate((one, one)) for part in message.parts if isinstance(part, ToolCall)]
    answers = [part.id for message in concatenate((one, one)) for part in message.parts if isinstance(part, ToolResult)]
    assert found == answers == ["c1", "c1_2", "c1_3", "c1_4"]


def test_words_around_calls_are_as_they_were() -> None:
    one = messages_of(said(assistant(Text("I look."), CALL), tool(RESULT)), "openai-chat")
    assert concatenate((one,)) == one
