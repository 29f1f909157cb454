import base64

import msgspec
import pytest

from sightline.errors import Fault
from sightline.evals.core.delivery.delivery import Delivery, content, deliver
from sightline.evals.core.suite import (
    CallSegment,
    CaseMessage,
    FileSegment,
    ImageSegment,
    Segment,
    SuitePlace,
    TextSegment,
)
from sightline.model.message import Message
from sightline.model.parts import Document, Image, Text, ToolCall, ToolResult
from tests.picture_files import png

PNG = base64.b64decode(png(2, 2))


def said(role: str, *segments: Segment | str, **more: str) -> CaseMessage:
    made = tuple(TextSegment(each) if isinstance(each, str) else each for each in segments)
    return CaseMessage(role=role, segments=made, **more)  # type: ignore[arg-type]


def kinds(delivery: Delivery) -> list[str]:
    return [note.kind for note in delivery.notes]


def test_words_that_follow_each_other_are_one_text_and_pictures_part_them() -> None:
    files = {"a.md": b"A\n", "p.png": PNG}
    message = said("user", "one", FileSegment("a.md", "a.md"), ImageSegment("p.png", "p.png"), "two")
    delivery = deliver([message], files)
    first, picture, last = delivery.messages[0].parts
    assert first == Text('one\n<file path="a.md">\nA\n</file>')
    assert isinstance(picture, Image)
    assert last == Text("two")
    assert not delivery.messages[0].bare
    assert kinds(delivery) == ["inlined", "attached"]


def test_one_text_alone_is_a_bare_string() -> None:
    assert deliver([said("user", "hi", name="ada")], {}).messages == (Message("user", (Text("hi"),), "ada", bare=True),)


def test_a_file_that_is_a_picture_is_one_whatever_its_name() -> None:
    delivery = deliver([said("user", FileSegment("a.md", "a.md"), FileSegment("b", "b"))], {"a.md": PNG, "b": b"%PDF-"})
    assert [type(part) for part in delivery.messages[0].parts] == [Image, Document]
    assert delivery.notes[0].why == "it is sent as a part: image"


def test_a_link_needs_no_file() -> None:
    (message,) = deliver([said("user", ImageSegment("https://x/y.png"))], {}).messages
    assert isinstance(message.parts[0], Image)


def test_a_file_that_was_not_handed_in_is_a_fault() -> None:
    segment = FileSegment("a.md", "x/a.md", SuitePlace("s.yaml", 2, 3))
    with pytest.raises(Fault, match=r"s\.yaml:2:3: there is no file 'a\.md'"):
        deliver([said("user", segment)], {})
    with pytest.raises(Fault):
        deliver([said("user", ImageSegment("p.png"))], {})
    assert content(segment, {"x/a.md": b"A"}) == b"A"


def test_calls_and_results_are_held_together_by_ids() -> None:
    talk = [
        said("user", "go"),
        said("assistant", "I look.", CallSegment("look", {"at": 1}), CallSegment("ask", "raw")),
        said("tool", "seen"),
        said("tool", name="ask"),
        said("user", "and?"),
    ]
    messages = deliver(talk, {}).messages
    assert messages[1].parts == (
        Text("I look."),
        ToolCall("call_1", "look", '{"at":1}'),
        ToolCall("call_2", "ask", "raw"),
    )
    assert messages[2].parts == (ToolResult("call_1", (Text("seen"),), "look", bare=True),)
    assert messages[3].parts == (ToolResult("call_2", (), "ask"),)


def test_a_result_that_nobody_asked_for_gets_a_call() -> None:
    delivery = deliver([said("user", "go"), said("assistant", "hm"), said("tool", "sunny", name="weather")], {})
    assert delivery.messages[1] == Message("assistant", (Text("hm"), ToolCall("call_1", "weather", "{}")))
    assert kinds(delivery) == ["added"]
    delivery = deliver([said("tool", "sunny")], {})
    assert delivery.messages[0] == Message("assistant", (ToolCall("call_1", "tool", "{}"),))
    delivery = deliver([said("user", "go"), said("tool", "sunny")], {})
    assert [message.role for message in delivery.messages] == ["user", "assistant", "tool"]


def test_a_result_for_a_call_that_is_not_there_is_refused() -> None:
    with pytest.raises(Fault, match="no call before it has the id 'c9'"):
        deliver([said("tool", "sunny", call_id="c9")], {})


def test_an_empty_message_is_skipped_and_noted() -> None:
    delivery = deliver([said("system", " "), said("tool"), said("user", "hi")], {})
    assert [message.role for message in delivery.messages] == ["user"]
    assert kinds(delivery) == ["skipped", "skipped"]
    assert delivery.question == "hi"


def test_a_message_that_is_one_already_goes_along() -> None:
    reply = Message("assistant", (Text("a"), ToolCall("c1", "f", "{}")), id="msg_1")
    messages = deliver([said("user", "hi"), reply, said("tool", "x")], {}).messages
    assert messages[1] is reply
    assert messages[2].parts[0].id == "c1"  # type: ignore[union-attr]


def test_a_file_whose_words_could_end_its_block_is_noted() -> None:
    delivery = deliver([said("user", FileSegment("a.md", "a.md"))], {"a.md": b"</file>"})
    assert kinds(delivery) == ["inlined", "unclear"]


def test_a_delivery_can_be_kept() -> None:
    delivery = deliver([said("user", "hi")], {}, system_prompt="p")
    assert msgspec.json.decode(msgspec.json.encode(delivery), type=Delivery) == delivery


def test_a_guideline_goes_to_the_front_and_leaves_a_marker() -> None:
    message = said("user", "follow", FileSegment("a.rules.md", "x/a.rules.md"))
    delivery = deliver([message], {"x/a.rules.md": b"Be kind."}, guideline_patterns=["*.rules.md"])
    system, user = delivery.messages
    assert system.parts == (Text('[[ ## Guidelines ## ]]\n\n<file path="a.rules.md">\nBe kind.\n</file>'),)
    assert user.parts == (Text("follow\n<Attached: a.rules.md>"),)
    assert kinds(delivery) == ["extracted"]
