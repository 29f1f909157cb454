import json
from typing import Any

from sightline.editing.conversation_changes import SectionChange, carry_over, changes_between
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Edit, Insert, Remove, SetText
from sightline.model.message import Message
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult

PICTURE = Image(Inline("image/png", "aGk="))
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
TALK: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found it"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "go"},
)
SAME = (
    Message("system", (Text("Be kind."),)),
    Message("user", (Text("go"),)),
    Message("assistant", (ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "look", '{"a": 1}'))),
    Message("tool", (ToolResult("c2", (Text("other"),)), ToolResult("c1", (PICTURE, Text("found it"))))),
    Message("assistant", (Text("Do"), PICTURE, Text("ne."))),
    Message("user", (Text("go"),)),
)


def drafted() -> Draft:
    return Draft.of(json.dumps({"model": "m", "messages": TALK}).encode(), "openai-chat")


def changes(*edits: Edit) -> tuple[SectionChange, ...]:
    draft = now = drafted()
    for edit in edits:
        now = now.with_edit(edit)
    return changes_between(draft, now)


def at(number: int) -> str:
    return drafted().sections[number].id


def test_what_is_the_same_or_added_is_no_change() -> None:
    assert changes() == ()
    assert changes(Insert(pointer="/messages/-", value={"role": "user", "content": "more"})) == ()


def test_a_change_says_who_said_what_and_which_of_equal_words() -> None:
    first, second = changes(SetText(section=at(1), text="start"), SetText(section=at(5), text="stop"))
    assert first == SectionChange(who="user", old="go", new="start", nth=0, count=1)
    assert second == SectionChange(who="user", old="go", new="stop", nth=1, count=1, is_question=True)
    (call,) = changes(SetText(section=at(2), text='{"a": 2}'))
    assert (call.who, call.new) == ("call", '{"a": 2}')
    (result,) = changes(SetText(section=at(3), text="nothing"))
    assert (result.who, result.old) == ("tool", "found it")


def test_what_was_deleted_or_removed_has_no_words_left() -> None:
    for edit in (Delete(section=at(4)), Remove(pointer="/messages/4")):
        (change,) = changes(edit)
        assert (change.old, change.new, change.gone) == ("Done.", "", (0,))


def test_a_document_without_a_question_has_none() -> None:
    draft = Draft.of(b'{"model":"m","messages":[{"role":"system","content":"Be kind."}]}', "openai-chat")
    now = draft.with_edit(SetText(section=draft.sections[0].id, text="Be terse."))
    assert [change.is_question for change in changes_between(draft, now)] == [False]


def test_changes_are_carried_over_to_where_their_words_are() -> None:
    found = changes(
        SetText(section=at(0), text="Be terse."),
        SetText(section=at(2), text='{"a": 2}'),
        SetText(section=at(3), text="found nothing"),
        SetText(section=at(4), text="Gone."),
        SetText(section=at(5), text="stop"),
    )
    after = carry_over(SAME, found)
    assert after[0].parts == (Text("Be terse."),)
    assert after[1] == SAME[1]
    assert [part.arguments for part in after[2].parts] == ['{"a": 2}', '{"a": 1}']
    assert after[3].parts == (SAME[3].parts[0], ToolResult("c1", (PICTURE, Text("found nothing"))))
    assert [part.text for part in after[4].parts if isinstance(part, Text)] == ["Go", "ne."]
    assert after[4].parts[1] == PICTURE
    assert after[5].parts == (Text("stop"),)


def test_words_that_are_not_there_and_words_that_were_deleted_change_nothing() -> None:
    assert carry_over(SAME, changes(Delete(section=at(4)))) == SAME
    assert carry_over(SAME[:5], changes(SetText(section=at(5), text="stop"))) == SAME[:5]
