import json

import pytest

from sightline.agent.core.conversation import RunConversation
from sightline.agent.core.output import NOTHING, ToolOutcome, text_outcome
from sightline.dialects.dialect import Target
from sightline.dialects.translate import write_request
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import Image, Inline, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import ToolChoice
from tests.loop_stage import count, question

PICTURE = Image(Inline("image/png", "aGk="))


def kinds(history: RunConversation) -> list[str]:
    return [each.kind for each in history.take_amendments()]


def test_amendments_are_told_once() -> None:
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


def test_a_stray_result_is_taken_out_where_nobody_remembers_its_call() -> None:
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


def test_parts_that_the_provider_refuses_are_left_out_and_told() -> None:
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


def test_what_is_added_to_a_request_that_somebody_edited_is_written_as_plainly_as_to_another() -> None:
    history = RunConversation(question("openai-chat"), "openai-chat")
    history.add_calls((count(1, "a"),), (history.result_for(count(1, "a"), "a", text_outcome("one")),), "")
    body = write_request(history.request, "openai-chat", Target(), Report(), with_url=True)
    asked, result = json.loads(body)["messages"][1:]
    assert (asked["content"], result["content"]) == (None, "one"), "many servers take neither an empty list nor parts"


def test_a_picture_that_a_result_may_not_hold_stands_behind_the_results() -> None:
    history = RunConversation(question("openai-chat"), "openai-chat")
    history.add_calls((count(1, "a"),), (ToolResult("a", (PICTURE,)),), "See above.")
    *_, results, user = history.request.messages
    assert results.parts == (ToolResult("a", (Text(NOTHING),)),)
    assert user == Message("user", (PICTURE, Text("See above.")))
    assert kinds(history) == ["part"]


def test_a_picture_that_nobody_takes_is_left_out() -> None:
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
