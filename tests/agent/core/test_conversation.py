"""The conversation of a run: what each provider accepts, and what is changed so that it does."""

import json

import pytest

from sightline.agent.core.conversation import NO_RESULT, DialectCheck, RunConversation, pair_calls
from sightline.agent.core.tool import NOTHING, ToolOutcome, text_outcome
from sightline.dialects.dialect import Target
from sightline.dialects.registry import NAMES
from sightline.dialects.translate import write_request
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Image,
    Inline,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Message, Options, Request, ToolChoice
from tests.loop_stage import count, question

PICTURE = Image(Inline("image/png", "aGk="))


def kinds(history: RunConversation) -> list[str]:
    return [each.kind for each in history.take_amendments()]


def test_amendments_are_reported_only_once() -> None:
    history = RunConversation(question(), "openai-chat")
    history.amend("part", "x", "y")
    assert kinds(history) == ["part"]
    assert kinds(history) == []


def test_a_conversation_that_is_whole_is_not_touched() -> None:
    request = question()
    assert RunConversation(request, "openai-chat").request is request


@pytest.mark.parametrize(
    "request_",
    [
        Request("m", (Message("tool", (ToolResult("x"),)),), options=Options(previous_response_id="r_1")),
        Request(
            "m",
            (Message("user", (ToolResult("x"),)),),
            extras={"thread": {"type": "continue", "id": "t"}},
            dialect="anthropic",
        ),
    ],
)
def test_what_the_provider_remembers_is_not_missing(request_: Request) -> None:
    assert RunConversation(request_, "openai-responses").request is request_


def test_orphan_tool_result_is_removed_from_the_initial_request() -> None:
    request = Request("m", (*question().messages, Message("user", (ToolResult("x"),))), dialect="anthropic")
    history = RunConversation(request, "anthropic")
    assert history.request.messages == question().messages
    assert kinds(history) == ["orphan_result"]


# --- ids --------------------------------------------------------------------------------------------


def test_two_calls_of_one_reply_never_share_an_id() -> None:
    history = RunConversation(question(), "openai-chat")
    assert history.outgoing_ids([count(1, "a"), count(2, "a"), count(3, "a_2")]) == ["a", "a_3", "a_2"]
    assert kinds(history) == ["id"]


def test_a_call_without_an_id_gets_one() -> None:
    assert RunConversation(question(), "openai-chat").outgoing_ids([count(1, ""), count(2, "")]) == ["call_2", "call_3"]
    assert RunConversation(question("gemini"), "gemini").outgoing_ids([count(1, ""), count(2, "")]) == ["", ""]


def test_an_id_that_the_provider_would_refuse_is_replaced_whole() -> None:
    assert RunConversation(question("anthropic"), "anthropic").outgoing_ids([count(1, "a.b")]) == ["call_2"]


# --- turns ------------------------------------------------------------------------------------------


def test_an_empty_reply_leaves_no_message() -> None:
    history = RunConversation(question(), "openai-chat")
    history.add_turn(())
    assert history.request.messages == question().messages


def test_parts_refused_by_the_provider_are_dropped_and_reported() -> None:
    history = RunConversation(question("anthropic"), "anthropic")
    history.add_turn((Thinking("Hm."), Text(" "), Text("Yes.")))
    assert history.request.messages[-1].parts == (Text("Yes."),)
    assert kinds(history) == ["part", "part"]


def test_a_turn_that_goes_on_does_not_end_in_white_space_where_that_is_refused() -> None:
    history = RunConversation(question("anthropic"), "anthropic")
    history.add_turn((Text("Let me "),), is_open=True)
    assert history.request.messages[-1].parts == (Text("Let me"),)
    assert kinds(history) == ["part"]


def test_a_reply_that_comes_to_nothing_is_left_out() -> None:
    history = RunConversation(question("openai-chat"), "openai-chat")
    history.add_turn((Thinking(),))
    assert history.request.messages == question().messages
    assert kinds(history) == ["reply_left_out"]


def test_a_turn_of_nothing_but_refused_parts_leaves_no_message() -> None:
    history = RunConversation(question("anthropic"), "anthropic")
    history.add_turn((Text(" "),))
    assert history.request.messages == question().messages


def test_what_the_model_had_begun_to_say_and_what_follows_are_one_turn() -> None:
    begun = Message("assistant", (Text("Let me"),), bare=True)
    history = RunConversation(Request("m", (*question().messages, begun)), "gemini")
    history.add_calls((count(1, "a"),), (ToolResult("a", (Text("1"),), "count"),), "")
    assert [message.role for message in history.request.messages] == ["user", "assistant", "tool"]
    assert history.request.messages[1] == Message("assistant", (Text("Let me"), count(1, "a")), bare=True)


def test_a_conversation_without_messages_can_begin_with_a_turn() -> None:
    history = RunConversation(Request("m"), "raw")
    history.add_turn((Text("Hello."),))
    assert history.request.messages == (Message("assistant", (Text("Hello."),), bare=True),)


# --- results ----------------------------------------------------------------------------------------


def test_a_result_says_what_its_dialect_wants() -> None:
    call = ToolCall("a", "shell", "ls", kind="custom")
    result = RunConversation(question(), "gemini").result_for(call, "a_2", text_outcome("no", is_error=True))
    assert result == ToolResult("a_2", (Text("no"),), "shell", is_error=True, kind="custom", bare=True)

    structured = RunConversation(question(), "anthropic").result_for(call, "a", ToolOutcome(structured={"x": 1}))
    assert (structured.structured, structured.name, structured.is_error) == ({"x": 1}, None, None)


def test_messages_added_to_an_edited_request_use_the_plain_form() -> None:
    history = RunConversation(question("openai-chat"), "openai-chat")
    history.add_calls((count(1, "a"),), (history.result_for(count(1, "a"), "a", text_outcome("one")),), "")
    body = write_request(history.request, "openai-chat", Target(), Report(), with_url=True)
    asked, result = json.loads(body)["messages"][1:]
    assert (asked["content"], result["content"]) == (None, "one"), "many servers take neither an empty list nor parts"


def test_image_not_allowed_in_a_tool_result_is_moved_after_the_results() -> None:
    history = RunConversation(question("openai-chat"), "openai-chat")
    history.add_calls((count(1, "a"),), (ToolResult("a", (PICTURE,)),), "See above.")
    *_, results, user = history.request.messages
    assert results.parts == (ToolResult("a", (Text(NOTHING),)),)
    assert user == Message("user", (PICTURE, Text("See above.")))
    assert kinds(history) == ["part"]


def test_image_of_unsupported_type_is_dropped() -> None:
    history = RunConversation(question("anthropic"), "anthropic")
    odd = Image(Inline("image/x-odd", "aGk="))
    history.add_calls((count(1, "a"),), (ToolResult("a", (Text("Here:"), odd)),), " ")
    assert history.request.messages[-1] == Message("tool", (ToolResult("a", (Text("Here:"),)),))
    assert kinds(history) == ["part"]


def test_a_result_in_a_form_of_its_own_needs_no_words() -> None:
    history = RunConversation(question(), "gemini")
    result = ToolResult("a", (), "count", structured={"x": 1})
    history.add_calls((count(1, "a"),), (result,), "")
    assert history.request.messages[-1].parts == (result,)


@pytest.mark.parametrize(
    ("choice", "after"),
    [
        (ToolChoice("required", ("count",)), ToolChoice("auto", ("count",))),
        (ToolChoice("named", ("count",)), ToolChoice("auto")),
        (ToolChoice("none"), ToolChoice("none")),
    ],
)
def test_a_model_must_call_once_only(choice: ToolChoice, after: ToolChoice) -> None:
    history = RunConversation(Request("m", question().messages, tool_choice=choice), "openai-chat")
    history.add_calls((count(1, "a"),), (ToolResult("a", (Text("1"),)),), "")
    assert history.request.tool_choice == after
    assert kinds(history) == ([] if choice == after else ["tool_choice"])


EARS = [DialectCheck(source, spoken) for spoken in NAMES for source in ("", spoken)]


@pytest.mark.parametrize("ear", EARS)
def test_every_dialect_takes_an_ordinary_id_and_an_ordinary_turn(ear: DialectCheck) -> None:
    assert ear.takes_ids(("call_1",))
    assert ear.takes_ids(("call_1", "call_2"), ("call_3",))
    assert ear.takes_part(Text("Hello."))


@pytest.mark.parametrize(
    ("spoken", "again"), [("openai-chat", True), ("openai-responses", True), ("anthropic", False), ("gemini", True)]
)
def test_whether_an_id_may_come_again_is_the_dialect_s_to_say(spoken: str, *, again: bool) -> None:
    assert DialectCheck("", spoken).takes_ids(("a",), ("a",)) is again
    if spoken != "gemini":
        assert not DialectCheck("", spoken).takes_ids(("a", "a"))


def test_without_ids_only_a_dialect_with_names_on_results_can_tell_calls_apart() -> None:
    assert DialectCheck("gemini", "gemini").takes_ids(("", ""))
    assert not DialectCheck("openai-chat", "openai-chat").takes_ids(("",))


def test_an_id_that_a_provider_of_this_dialect_does_not_take() -> None:
    assert not DialectCheck("anthropic", "anthropic").takes_ids(("a.b",))
    assert DialectCheck("", "anthropic").takes_ids(("a.b",)), "the writer spells it in another way"


def test_a_result_is_named_where_the_dialect_or_the_lack_of_an_id_wants_it() -> None:
    call, nameless = ToolCall("a", "f", "{}"), ToolCall("", "f", "{}")
    assert DialectCheck("", "gemini").name_for(call) == "f"
    assert DialectCheck("", "anthropic").name_for(call) is None
    assert DialectCheck("", "anthropic").name_for(nameless) == "f"


def test_parts_that_the_dialect_refuses() -> None:
    own = DialectCheck("anthropic", "anthropic")
    assert not own.takes_part(Text(" "))
    assert not own.takes_part(Thinking("Hm."))
    assert own.takes_part(Thinking("Hm.", signature="c2VhbA==", signed_by="anthropic"))


def test_parts_that_a_result_may_not_hold() -> None:
    picture = Image(Inline("image/png", "aGk="))
    assert not DialectCheck("openai-chat", "openai-chat").takes_in_result(picture)
    assert DialectCheck("", "openai-chat").takes_in_result(picture), "the writer moves it"
    assert DialectCheck("anthropic", "anthropic").takes_in_result(picture)


def test_what_cannot_be_written_or_read_is_not_taken() -> None:
    broken = Message("user", (Opaque("openai-responses", {"type": "message", "role": 7}),))
    ear = DialectCheck("openai-responses", "openai-responses")
    assert ear.round_trip((broken,)) is None
    assert not ear.takes(broken)


def test_sound_that_a_dialect_has_no_place_for_is_left_to_its_writer() -> None:
    assert DialectCheck("anthropic", "anthropic").takes_in_result(Audio(Inline("audio/wav", "aGk=")))


ASKED = Message("user", (Text("Do it."),))


def called(*ids: str, name: str = "f") -> Message:
    return Message("assistant", tuple(ToolCall(each, name, "{}") for each in ids))


def answered(*ids: str, name: str | None = None) -> Message:
    return Message("tool", tuple(ToolResult(each, (Text("ok"),), name) for each in ids))


def missing(call_id: str, name: str | None = None) -> ToolResult:
    return ToolResult(call_id, (Text(NO_RESULT),), name, is_error=True)


def test_a_whole_conversation_stays_the_very_same() -> None:
    messages = (ASKED, called("a", "b"), answered("b", "a"), ASKED, called("a"), answered("a"))
    assert pair_calls(messages, named=False) == (messages, ())


def test_missing_tool_result_is_inserted_after_the_assistant_message() -> None:
    messages, amendments = pair_calls((ASKED, called("a"), ASKED), named=False)
    assert messages == (ASKED, called("a"), Message("tool", (missing("a"),)), ASKED)
    assert [(each.kind, each.why) for each in amendments] == [("missing_result", "every call needs one")]


def test_an_answer_that_is_missing_joins_those_that_are_there() -> None:
    messages, _ = pair_calls((called("a", "b"), answered("a")), named=False)
    assert messages[1].parts == (*answered("a").parts, missing("b"))


def test_calls_in_items_of_their_own_are_one_turn() -> None:
    messages, _ = pair_calls((called("a"), called("b"), answered("b"), ASKED), named=False)
    assert messages == (called("a"), called("b"), Message("tool", (*answered("b").parts, missing("a"))), ASKED)


def test_results_in_the_user_s_name_belong_to_the_turn_too() -> None:
    result = Message("user", answered("b").parts)
    messages, _ = pair_calls((called("a", "b"), result), named=False)
    assert messages == (called("a", "b"), result, Message("tool", (missing("a"),)))


def test_tool_result_without_a_call_is_removed_and_reported() -> None:
    stray = ToolResult("x", (Text("ok"),), at="/messages/1")
    mixed: tuple[Part, ...] = (stray, Text("And now?"))
    messages, amendments = pair_calls((ASKED, Message("user", mixed)), named=False)
    assert messages == (ASKED, Message("user", (Text("And now?"),)))
    assert [(each.kind, each.pointer) for each in amendments] == [("orphan_result", "/messages/1")]


def test_a_message_of_which_nothing_is_left_goes_with_it() -> None:
    marked = Message("tool", (ToolResult("x"), CacheBreakpoint()))
    assert pair_calls((ASKED, marked), named=False)[0] == (ASKED,)


def test_a_second_answer_to_one_call_answers_nothing() -> None:
    messages, _ = pair_calls((called("a"), answered("a"), answered("a")), named=False)
    assert messages == (called("a"), answered("a"))


def test_a_provider_that_knows_more_may_know_the_call() -> None:
    messages = (answered("x"), ASKED)
    assert pair_calls(messages, named=False, stateful=True) == (messages, ())


def test_without_ids_the_name_tells_what_is_answered() -> None:
    messages = (called("", name="f"), answered("", name="f"))
    assert pair_calls(messages, named=True) == (messages, ())
    assert pair_calls((called("", name="f"),), named=False)[0][1].parts == (missing("", "f"),)


def test_where_results_have_names_the_missing_ones_have_too() -> None:
    assert pair_calls((called("a"),), named=True)[0][1].parts == (missing("a", "f"),)
