import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.evals.core.making.case import (
    AS_RECORDED,
    TO_BE_WRITTEN,
    CaseExchange,
    Conversation,
    MadeCase,
    RecordedTurn,
    behind_calls,
    join_exchanges,
    make_case,
    turns_of,
)
from sightline.evals.core.reading.yaml_edit import append_case
from sightline.evals.core.suite import CallSegment, Case, CaseMessage, TextSegment
from sightline.model.json import JsonObject
from sightline.model.parts import CacheBreakpoint, Image, Inline, Part, Text, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.request import FunctionTool, JsonFormat, Message, OpaqueTool, Options, Reasoning, Request
from tests.evals.core.reading import stage

SYSTEM = Message("system", (Text("Be brief."),))
HELLO = Message("user", (Text("Hello"),))
HI = Message("assistant", (Text("Hi."),))
BYE = Message("user", (Text("Bye"),))
CALL = Message("assistant", (ToolCall("c1", "look", "{}"),))
RESULT = Message("user", (ToolResult("c1", (Text("seen"),)),))


def replied(*parts: Part) -> Reply:
    return Reply(choices=(Choice(parts=parts),))


def test_one_exchange_gives_its_request_and_reply() -> None:
    found = join_exchanges([CaseExchange(Request("m", (HELLO,)), replied(Text("Hi.")))])
    assert found == Conversation((HELLO,), (HI,))


def test_a_reply_that_broke_off_or_is_empty_says_nothing() -> None:
    broken = Reply(choices=(Choice(parts=(Text("Hi"),)),), fault=Fault(Code.NETWORK, "gone"))
    for reply in (None, broken, replied()):
        assert CaseExchange(Request("m", (HELLO,)), reply).answer == ()


def test_the_last_request_has_the_whole_conversation() -> None:
    first = CaseExchange(Request("m", (HELLO,)), replied(Text("Hi.")))
    second = CaseExchange(Request("m", (HELLO, HI, BYE)), replied(Text("Bye.")))
    assert join_exchanges([first, second]) == Conversation((HELLO, HI, BYE), second.answer)


def test_messages_that_a_client_no_longer_sends_are_counted() -> None:
    first = CaseExchange(Request("m", (SYSTEM, HELLO, HI)))
    assert join_exchanges([first, CaseExchange(Request("m", (BYE,)))]).forgotten == 2


def test_a_conversation_that_the_provider_keeps_is_put_together() -> None:
    first = CaseExchange(Request("m", (HELLO,)), replied(Text("Hi.")))
    second = CaseExchange(Request("m", (BYE,), options=Options(previous_response_id="resp_1")), replied(Text("Bye.")))
    assert join_exchanges([first, second]).messages == (HELLO, HI, BYE)
    assert not join_exchanges([first, second]).is_continued
    assert join_exchanges([second]).is_continued


def test_a_turn_lasts_until_the_user_speaks_again() -> None:
    before, turns = turns_of([SYSTEM, HELLO, BYE, CALL, RESULT, HI, HELLO])
    assert before == (SYSTEM,)
    assert turns == (RecordedTurn((HELLO, BYE), (CALL, RESULT, HI)), RecordedTurn((HELLO,), ()))


def test_system_message_alone_gives_no_turn() -> None:
    assert turns_of([SYSTEM]) == ((SYSTEM,), ())


USER: JsonObject = {"role": "user", "content": "Hurry."}


def calls(*names: str, **more: str) -> JsonObject:
    return {
        "role": "assistant",
        **more,
        "tool_calls": [{"id": name, "name": "look", "arguments": {}} for name in names],
    }


def result(name: str, text: str = "seen") -> JsonObject:
    return {"role": "tool", "tool_call_id": name, "name": "look", "content": text}


def ordered(*messages: JsonObject) -> tuple[list[JsonObject], list[str]]:
    left: list[str] = []
    return behind_calls(messages, lambda what, _why: left.append(what)), left


def test_what_can_be_sent_stays_as_it_is() -> None:
    talk = [USER, calls("a", "b"), result("b"), result("a"), {"role": "assistant", "content": "Done."}, USER]
    assert ordered(*talk) == (talk, [])


def test_results_move_behind_their_calls() -> None:
    found, left = ordered(calls("a", "b"), USER, result("b"), {"role": "assistant", "content": "Hm."}, result("a"))
    assert found == [calls("a", "b"), result("b"), result("a"), USER, {"role": "assistant", "content": "Hm."}]
    assert left == ["the place of a result"]


def test_a_call_without_a_result_is_left_out() -> None:
    assert ordered(USER, calls("a"), USER) == ([USER, USER], ["a call of look"])
    said = calls("a", content="I look.")
    assert ordered(said, USER) == ([{"role": "assistant", "content": "I look."}, USER], ["a call of look"])
    assert ordered(calls("a", "b"), result("b")) == ([calls("b"), result("b")], ["a call of look"])


def test_a_second_result_of_a_call_is_left_out() -> None:
    found, left = ordered(calls("a"), result("a"), result("a", "again"), USER)
    assert (found, left) == ([calls("a"), result("a"), USER], ["a second result of a call"])


def test_a_result_of_no_call_stays_where_it_is() -> None:
    orphan: JsonObject = {"role": "tool", "name": "look", "content": "seen"}
    assert ordered(orphan, result("x"), USER) == ([orphan, result("x"), USER], [])


PICTURE = Image(Inline("image/png", b64encode(b"\x89PNG\r\n\x1a\n").decode()))
TALK = (
    Message("system", (Text("It is 2026-11-15.\nYour key is sk-secret."),)),
    Message("user", (Text("What is in a.txt?"), PICTURE)),
    Message("assistant", (ToolCall("toolu_1", "read", '{"path": "/tmp/job81/a.txt"}'),)),
    Message("user", (ToolResult("toolu_1", (Text("one\n  two\n"),)),)),
    Message("assistant", (Text("Two lines."),)),
    Message("user", (Text("And when?"),)),
)


def mask(text: str) -> str:
    return text.replace("sk-secret", "***")


def made(messages: tuple[Message, ...], reply: Reply | None, **options: object) -> MadeCase:
    return make_case([CaseExchange(Request("m", messages), reply)], "My case", mask, **options)


def read(made: MadeCase) -> Case:
    """The case as the reader of suites understands it, which must have nothing to say against it."""
    return read_text(made.text, made)


def read_text(text: str, made: MadeCase) -> Case:
    files = {file.path: file.data for file in made.files}
    found = stage.read(text, files, "suite.yaml", {"HOME": "/somewhere/else"})
    assert found.problems == ()
    assert found.suite is not None
    return found.suite.cases[-1]


def words(message: CaseMessage) -> str:
    return "".join(segment.text for segment in message.segments if isinstance(segment, TextSegment))


def test_words_that_the_answer_must_have_are_a_grader_beside_the_calls() -> None:
    said = made(TALK, replied(Text("On 2026-11-15.")), contains="sk-secret 2026")
    assert said.case["assertions"] == [{"type": "contains", "value": "*** 2026"}]
    read(said)
    called = made(TALK[:2], replied(ToolCall("c", "read", "{}")), contains="a.txt")
    assert [each["type"] for each in called.case["assertions"]] == ["tool-trajectory", "contains"]
    live = made(TALK, replied(Text("On 2026-11-15.")), contains="2026", from_turn=1)
    assert "assertions" not in live.case, "which of its answers it would be is not known"


def test_an_exchange_becomes_a_case_that_asks_the_same() -> None:
    case = made(TALK, replied(Text("On 2026-11-15.")))
    assert (
        case.text
        == """\
tests:
  - id: my-case
    vars:
      date: "2026-11-15"
      temp_dir: "/tmp/job81"
    input:
      - role: system
        content: |-
          It is {{ date }}.
          Your key is ***.
      - role: user
        content:
          - type: text
            value: "What is in a.txt?"
          - type: image
            value: my-case/image-1.png
      - role: assistant
        tool_calls:
          - id: call_1
            name: read
            arguments:
              path: "{{ temp_dir }}/a.txt"
      - role: tool
        tool_call_id: call_1
        name: read
        content: |
          one
            two
      - role: assistant
        content: Two lines.
      - role: user
        content: "And when?"
    expected_output: "On {{ date }}."
    metadata:
      recorded:
        model: m
"""
    )
    found = read(case)
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert words(found.messages[0]) == "It is 2026-11-15.\nYour key is ***."
    call = found.messages[2].segments[0]
    assert isinstance(call, CallSegment)
    assert call.arguments == {"path": "/tmp/job81/a.txt"}
    assert words(found.expected[0]) == "On 2026-11-15."


def test_it_is_the_same_each_time() -> None:
    assert made(TALK, replied(Text("x"))) == made(TALK, replied(Text("x")))


def test_one_question_is_written_as_words() -> None:
    case = made((Message("user", (Text("2+2?"),)),), replied(Text("4")))
    assert case.case == {
        "id": "my-case",
        "input": "2+2?",
        "expected_output": "4",
        "metadata": {"recorded": {"model": "m"}},
    }
    read(case)
    pictured = made((Message("user", (PICTURE,)),), replied(Text("4")))
    assert isinstance(pictured.case["input"], list)


def test_from_a_turn_on_the_conversation_is_held_live() -> None:
    case = made(TALK, replied(Text("Then.")), from_turn=2)
    found = read(case)
    assert len(found.messages) == 5
    assert found.criteria == AS_RECORDED
    assert [words(turn.messages[0]) for turn in found.turns] == ["And when?"]
    assert words(found.turns[0].expected[0]) == "Then."
    whole = read(made(TALK, replied(Text("Then.")), from_turn=1))
    assert [message.role for message in whole.messages] == ["system"]
    assert [len(turn.expected) for turn in whole.turns] == [3, 1]
    assert [grader.type for grader in whole.turns[0].graders] == ["tool-trajectory"]


def test_a_conversation_without_a_beginning_has_turns_only() -> None:
    case = made((Message("user", (Text("Hi"),)),), None, from_turn=1)
    assert case.case == {
        "id": "my-case",
        "mode": "conversation",
        "criteria": TO_BE_WRITTEN,
        "turns": [{"input": "Hi"}],
        "metadata": {"recorded": {"model": "m"}},
    }
    read(case)


@pytest.mark.parametrize(
    ("messages", "turn", "hint"),
    [(TALK, 0, "from 1 to 2"), (TALK, 3, "from 1 to 2"), (TALK[:1], 1, "no message of the user")],
)
def test_a_turn_that_is_not_there_is_refused(messages: tuple[Message, ...], turn: int, hint: str) -> None:
    with pytest.raises(Fault) as caught:
        made(messages, None, from_turn=turn)
    assert caught.value.code is Code.USAGE
    assert hint in caught.value.hint


def test_no_exchange_is_no_case() -> None:
    with pytest.raises(Fault, match="no exchange"):
        make_case([], "x", mask)


def test_a_reply_that_calls_tools_is_expected_to_call_them() -> None:
    case = made(TALK, replied(Text("I look."), ToolCall("toolu_2", "read", '{"path": "b"}')))
    found = read(case)
    assert [grader.type for grader in found.graders] == ["tool-trajectory"]
    assert case.case["assertions"] == [{"type": "tool-trajectory", "mode": "in_order", "expected": [{"tool": "read"}]}]


def test_an_answer_in_pieces_stays_in_pieces() -> None:
    case = made(TALK, replied(Text("a"), Text("b")))
    assert "assertions" not in case.case
    assert [segment.text for segment in read(case).expected[0].segments] == ["a", "b"]


def test_without_an_answer_a_person_has_to_say_what_is_wanted() -> None:
    assert read(made(TALK, None)).criteria == TO_BE_WRITTEN


@pytest.mark.parametrize("blank", [" ", "\n", "\u2028"])
def test_an_answer_of_white_space_is_no_expectation(blank: str) -> None:
    case = made((Message("user", (Text("Hi"),)),), replied(Text(blank)))
    assert read(case).criteria == TO_BE_WRITTEN
    assert [each.what for each in case.left] == ["a message of white space"]
    talk = (Message("user", (Text("Hi"),)), Message("assistant", (Text(blank),)), TALK[-1])
    assert read(made(talk, replied(Text("Now.")), from_turn=1)).turns[0].expected == ()


def test_lone_surrogates_are_replaced() -> None:
    case = made((Message("user", (Text("Hi \ud83d"),)),), replied(Text("\ude00!")))
    found = read(case)
    assert (words(found.messages[0]), words(found.expected[0])) == ("Hi \ufffd", "\ufffd!")


def test_user_text_between_results_is_not_expected_of_the_model() -> None:
    between = Message("user", (ToolResult("toolu_1", (Text("one"),)), Text("Hurry.")))
    case = made((*TALK[:3], between), replied(Text("Two.")), from_turn=1)
    assert [message.role for message in read(case).turns[0].expected] == ["assistant", "tool", "assistant"]
    assert "what was said between results of tools" in [each.what for each in case.left]


def test_request_options_are_kept_and_tools_are_saved_beside_the_suite() -> None:
    request = Request(
        "gpt-4o-2024-08-06",
        TALK[1:2],
        tools=(
            FunctionTool("read", description="reads with sk-secret", at="/tools/0", extras={"beta": 1}),
            OpaqueTool("openai", {"type": "web"}, at="/tools/1", cache=CacheBreakpoint()),
        ),
        options=Options(temperature=0, max_tokens=9, reasoning=Reasoning(effort="low"), format=JsonFormat()),
        dialect="openai-chat",
    )
    case = make_case([CaseExchange(request)], "My case", mask)
    metadata: JsonObject = read(case).metadata
    assert metadata == {
        "recorded": {
            "model": "gpt-4o-2024-08-06",
            "dialect": "openai-chat",
            "temperature": 0,
            "max_tokens": 9,
            "effort": "low",
            "tools": ["read", "a server tool"],
        }
    }
    assert case.case["tools"] == "my-case/tools.json"
    assert [getattr(tool, "name", "") for tool in read(case).tools] == ["read", ""]  # the model can call them again
    assert b'"reads with ***"' in case.files[-1].data
    assert "the form of the answer" in [each.what for each in case.left]
    assert "beta of the tool read" in [each.what for each in case.left]
    assert "metadata" not in make_case([CaseExchange(Request("", TALK[1:2]))], "x", mask).case


def test_messages_missing_from_the_last_request_are_reported() -> None:
    first = CaseExchange(Request("m", TALK))
    last = CaseExchange(Request("m", TALK[5:]), replied(Text("Then.")))
    assert "4 earlier messages" in [each.what for each in make_case([first, last], "x", mask).left]
    nearly = CaseExchange(Request("m", TALK[2:]), replied(Text("Then.")))
    assert "1 earlier message" in [each.what for each in make_case([first, nearly], "x", mask).left]


def test_conversation_start_held_by_the_provider_is_reported() -> None:
    request = Request("m", TALK[5:], options=Options(previous_response_id="resp_1"))
    assert "the beginning of the conversation" in [
        each.what for each in make_case([CaseExchange(request)], "x", mask).left
    ]


def test_the_case_can_be_put_into_a_suite_that_is_there() -> None:
    case = made(TALK, replied(Text("Then.")))
    data = append_case(
        b"# mine\ntests:\n  - id: old\n    input: hi\n    expected_output: ho\n", "suite.yaml", case.case
    )
    assert read_text(data.decode(), case).id == "my-case"


ODD = st.sampled_from(
    ["{{ x }}", "${{ HOME }}", "{{braces}}", "$", "2026-11-15", "\r\n", "\x85", "\u2028", " \n", "\n---\n"]
)
LETTER = st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\n \t:#-'\"{}|>%@`&*!?[],$"))
SAID = st.one_of(st.text(LETTER), st.lists(ODD | LETTER, max_size=9).map("".join))


@given(SAID.filter(str.strip), SAID.filter(str.strip), SAID.filter(str.strip))
def test_case_keeps_any_text_exactly(asked: str, argument: str, answered: str) -> None:
    arguments = ToolCall("c1", "read", json.dumps({"path": asked, argument: [answered]}))
    case = made(
        (
            Message("user", (Text(asked),)),
            Message("assistant", (Text(answered), arguments)),
            Message("tool", (ToolResult("c1", (Text(argument),)),)),
        ),
        replied(Text(answered)),
    )
    found = read(case)
    assert [words(message) for message in found.messages] == [asked, answered, argument]
    call = found.messages[1].segments[-1]
    assert isinstance(call, CallSegment)
    assert call.arguments == {"path": asked, argument: [answered]} | (
        {"path": [answered]} if argument == "path" else {}
    )
    assert words(found.expected[0]) == answered
