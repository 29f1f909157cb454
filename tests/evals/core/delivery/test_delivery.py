import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.dialect import SystemPolicy
from sightline.errors import Fault
from sightline.evals.core.delivery import Delivery, content, deliver, last_exchanges, turn_messages, with_system
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    CaseTurn,
    FileSegment,
    ImageSegment,
    Segment,
    SuitePlace,
    TextSegment,
)
from sightline.model.parts import Document, Image, Inline, Link, Text, ToolCall, ToolResult
from sightline.model.request import Message
from tests.picture_files import png

PICTURE = Image(Link("https://x/y.png"))


def said(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(role, (Text(text),), bare=True) for role, text in pairs)  # type: ignore[arg-type]


TALK = said(("system", "one"), ("system", "two"), ("user", "hi"), ("system", "later"), ("user", "go"))


def told(
    messages: tuple[Message, ...], policy: SystemPolicy, prompt: str = "", guidelines: str = ""
) -> tuple[list[tuple[str, list[str]]], list[str]]:
    arranged, notes = with_system(messages, policy, prompt, guidelines)
    words = [
        (each.role, [part.text if isinstance(part, Text) else "picture" for part in each.parts]) for each in arranged
    ]
    return words, [note.kind for note in notes]


def test_in_place_nothing_moves() -> None:
    assert with_system(TALK, "in_place", "", "") == (TALK, ())


def test_in_place_what_is_put_in_front_joins_a_leading_system_message() -> None:
    words, notes = told(TALK, "in_place", "prompt", "rules")
    assert words[:2] == [("system", ["prompt\n\nrules\n\none"]), ("system", ["two"])]
    assert words[3] == ("system", ["later"])
    assert notes == ["merged"]


def test_in_place_system_prompt_is_its_own_first_message() -> None:
    words, notes = told(said(("user", "hi")), "in_place", "", "rules")
    assert words == [("system", ["rules"]), ("user", ["hi"])]
    assert notes == []
    assert told((), "in_place", "prompt") == ([("system", ["prompt"])], [])


def test_leading_system_messages_become_one() -> None:
    words, notes = told(TALK, "merge_leading", "prompt")
    assert words[0] == ("system", ["prompt\n\none\n\ntwo"])
    assert words[2] == ("system", ["later"])
    assert notes == ["merged", "merged"]


def test_all_system_messages_are_merged_and_the_move_is_noted() -> None:
    words, notes = told(TALK, "merge_all", "prompt", "rules")
    assert words == [("system", ["prompt\n\nrules\n\none\n\ntwo\n\nlater"]), ("user", ["hi"]), ("user", ["go"])]
    assert notes == ["moved", "merged", "merged"]


def test_a_conversation_without_system_messages_stays_as_it_is() -> None:
    assert told(said(("user", "hi")), "merge_all") == ([("user", ["hi"])], [])
    assert told((), "merge_all") == ([], [])


def test_pictures_in_a_system_message_keep_their_place() -> None:
    messages = (Message("system", (Text("one"), PICTURE, Text("two"))), *said(("system", "three")))
    assert told(messages, "merge_all", "prompt")[0] == [("system", ["prompt\n\none", "picture", "two\n\nthree"])]


def user_turn(text: str) -> CaseMessage:
    return CaseMessage(role="user", segments=(TextSegment(text),))


def talk(roles: str) -> list[Message]:
    names = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "t": "tool"}
    return [Message(names[role], (Text(str(index)),)) for index, role in enumerate(roles)]  # type: ignore[arg-type]


def kept(roles: str, size: int | None) -> str:
    messages = talk(roles)
    return "".join(roles[messages.index(message)] for message in last_exchanges(messages, size))


def test_turn_follows_the_models_actual_replies() -> None:
    case = Case(
        id="a",
        messages=(user_turn("before"),),
        turns=tuple(CaseTurn(messages=(user_turn(f"turn {n}"),)) for n in range(3)),
    )
    replies = [[Message("assistant", (Text(f"reply {n}"),))] for n in range(2)]
    told = [
        (message.segments if isinstance(message, CaseMessage) else message.parts)[0].text  # type: ignore[union-attr]
        for message in turn_messages(case, 2, replies)
    ]
    assert told == ["before", "turn 0", "reply 0", "turn 1", "reply 1", "turn 2"]
    assert len(turn_messages(case, 0, [])) == 2


@pytest.mark.parametrize(
    ("roles", "size", "left"),
    [
        ("suauau", None, "suauau"),
        ("suaudau", 2, "saudau"),  # system messages are kept
        ("su", 5, "su"),
        ("suau", 1, "sau"),  # the reply before what is said now
        ("suauau", 1, "sau"),
        ("suatatu", 2, "satu"),  # no result without its call
        ("suattu", 1, "su"),
        ("suatt", 1, "satt"),
        ("stt", 1, "stt"),
        ("s", 1, "s"),
    ],
)
def test_a_window_keeps_system_messages_and_the_last_exchanges(roles: str, size: int | None, left: str) -> None:
    assert kept(roles, size) == left


@given(st.text("sduat", max_size=12), st.integers(1, 4))
def test_a_window_is_what_it_says(roles: str, size: int) -> None:
    spoken = kept(roles, size).translate({ord("s"): None, ord("d"): None})
    if "u" in roles or "a" in roles:
        assert spoken[0] in "ua"
        assert len(spoken) <= 2 * size or set(spoken[1:]) == {"t"}
    assert roles.endswith(kept(roles, size)[-1:])


PNG = base64.b64decode(png(2, 2))


def case_message(role: str, *segments: Segment | str, **more: str) -> CaseMessage:
    made = tuple(TextSegment(each) if isinstance(each, str) else each for each in segments)
    return CaseMessage(role=role, segments=made, **more)  # type: ignore[arg-type]


def kinds(delivery: Delivery) -> list[str]:
    return [note.kind for note in delivery.notes]


def test_words_that_follow_each_other_are_one_text_and_pictures_part_them() -> None:
    files = {"a.md": b"A\n", "p.png": PNG}
    message = case_message("user", "one", FileSegment("a.md", "a.md"), ImageSegment("p.png", "p.png"), "two")
    delivery = deliver([message], files)
    first, picture, last = delivery.messages[0].parts
    assert first == Text('one\n<file path="a.md">\nA\n</file>')
    assert isinstance(picture, Image)
    assert last == Text("two")
    assert not delivery.messages[0].bare
    assert kinds(delivery) == ["inlined", "attached"]


def test_one_text_alone_is_a_bare_string() -> None:
    assert deliver([case_message("user", "hi", name="ada")], {}).messages == (
        Message("user", (Text("hi"),), "ada", bare=True),
    )


def test_a_file_that_is_a_picture_is_one_whatever_its_name() -> None:
    delivery = deliver(
        [case_message("user", FileSegment("a.md", "a.md"), FileSegment("b", "b"))], {"a.md": PNG, "b": b"%PDF-"}
    )
    assert [type(part) for part in delivery.messages[0].parts] == [Image, Document]
    assert delivery.notes[0].why == "it is sent as a part: image"


def test_a_picture_that_is_a_link_or_data_needs_no_file() -> None:
    links = [ImageSegment("https://x/y.png"), ImageSegment("data:image/png;base64,AA==")]
    (message,) = deliver([case_message("user", *links)], {}).messages
    assert message.parts == (PICTURE, Image(Inline("image/png", "AA==")))


def test_a_file_that_was_not_handed_in_is_a_fault() -> None:
    segment = FileSegment("a.md", "x/a.md", SuitePlace("s.yaml", 2, 3))
    with pytest.raises(Fault, match=r"s\.yaml:2:3: there is no file 'a\.md'"):
        deliver([case_message("user", segment)], {})
    with pytest.raises(Fault):
        deliver([case_message("user", ImageSegment("p.png"))], {})
    assert content(segment, {"x/a.md": b"A"}) == b"A"


def test_calls_and_results_are_held_together_by_ids() -> None:
    talk = [
        case_message("user", "go"),
        case_message("assistant", "I look.", CallSegment("look", {"at": 1}), CallSegment("ask", "raw")),
        case_message("tool", "seen"),
        case_message("tool", name="ask"),
        case_message("user", "and?"),
    ]
    messages = deliver(talk, {}).messages
    assert messages[1].parts == (
        Text("I look."),
        ToolCall("call_1", "look", '{"at":1}'),
        ToolCall("call_2", "ask", "raw"),
    )
    assert messages[2].parts == (ToolResult("call_1", (Text("seen"),), "look", bare=True),)
    assert messages[3].parts == (ToolResult("call_2", (), "ask"),)


def test_result_without_a_call_gets_one() -> None:
    delivery = deliver(
        [case_message("user", "go"), case_message("assistant", "hm"), case_message("tool", "sunny", name="weather")], {}
    )
    assert delivery.messages[1] == Message("assistant", (Text("hm"), ToolCall("call_1", "weather", "{}")))
    assert kinds(delivery) == ["added"]
    delivery = deliver([case_message("tool", "sunny")], {})
    assert delivery.messages[0] == Message("assistant", (ToolCall("call_1", "tool", "{}"),))
    delivery = deliver([case_message("user", "go"), case_message("tool", "sunny")], {})
    assert [message.role for message in delivery.messages] == ["user", "assistant", "tool"]


def test_a_result_for_a_call_that_is_not_there_is_refused() -> None:
    with pytest.raises(Fault, match="no call before it has the id 'c9'"):
        deliver([case_message("tool", "sunny", call_id="c9")], {})


def test_empty_message_is_skipped_and_noted() -> None:
    delivery = deliver([case_message("system", " "), case_message("tool"), case_message("user", "hi")], {})
    assert [message.role for message in delivery.messages] == ["user"]
    assert kinds(delivery) == ["skipped", "skipped"]
    assert delivery.question == "hi"


def test_existing_message_is_passed_through_unchanged() -> None:
    reply = Message("assistant", (Text("a"), ToolCall("c1", "f", "{}")), id="msg_1")
    messages = deliver([case_message("user", "hi"), reply, case_message("tool", "x")], {}).messages
    assert messages[1] is reply
    assert messages[2].parts[0].id == "c1"  # type: ignore[union-attr]


def test_file_containing_its_closing_tag_is_noted() -> None:
    delivery = deliver([case_message("user", FileSegment("a.md", "a.md"))], {"a.md": b"</file>"})
    assert kinds(delivery) == ["inlined", "unclear"]


def test_a_guideline_goes_to_the_front_and_leaves_a_marker() -> None:
    message = case_message("user", "follow", FileSegment("a.rules.md", "x/a.rules.md"))
    delivery = deliver([message], {"x/a.rules.md": b"Be kind."}, guideline_patterns=["*.rules.md"])
    system, user = delivery.messages
    assert system.parts == (Text('[[ ## Guidelines ## ]]\n\n<file path="a.rules.md">\nBe kind.\n</file>'),)
    assert user.parts == (Text("follow\n<Attached: a.rules.md>"),)
    assert kinds(delivery) == ["extracted"]
