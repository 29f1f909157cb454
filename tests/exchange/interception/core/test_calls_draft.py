import json
from typing import Any

import pytest

from sightline.editing.draft import EditHistory
from sightline.editing.operations import (
    Batch,
    Delete,
    Duplicate,
    Edit,
    Redo,
    Reset,
    Restore,
    Set,
    SetBody,
    SetText,
    Undo,
)
from sightline.errors import Fault
from sightline.exchange.interception.core.drafts import CallsDraft
from sightline.model.parts import Text, ToolCall
from sightline.model.reply import Choice, Reply

LS = ToolCall("c1", "Bash", '{"command": "ls"}', item="i1", signature="seal")
RM = ToolCall("c2", "Bash", '{"command": "rm"}')
REPLY = Reply(choices=(Choice(parts=(Text("I look."), LS, RM), finish="tool_calls", detail="tool_use"),), id="r")


def edited(*operations: Edit, reply: Reply = REPLY) -> CallsDraft:
    draft = CallsDraft.of(reply)
    for operation in operations:
        draft = draft.with_edit(operation)
    return draft


def shown(draft: CallsDraft) -> Any:
    return json.loads(draft.data)


def test_each_call_is_a_section_whose_text_are_its_arguments() -> None:
    draft = edited()
    first, second = draft.sections
    assert (first.id, first.kind, first.pointer, first.text) == ("s1", "tool_call", "/0", '{"command": "ls"}')
    assert (second.parts[0].call_id, second.parts[0].name, second.label) == ("c2", "Bash", "Calls Bash")
    assert shown(draft)[1] == {"id": "c2", "name": "Bash", "arguments": '{"command": "rm"}'}
    assert (draft.is_dirty, draft.original, draft.request) == (False, draft.data, None)


def test_arguments_are_changed_and_nothing_else_of_the_reply_is() -> None:
    draft = edited(SetText(section="s2", text='{"command": "ls -l"}'))
    assert draft.is_dirty
    assert draft.sha256 != edited().sha256
    (choice,) = draft.reply(REPLY).choices
    changed = ToolCall("c2", "Bash", '{"command": "ls -l"}')
    assert choice == Choice(parts=(Text("I look."), LS, changed), finish="tool_calls")


def test_deleting_and_restoring_is_clean() -> None:
    draft = edited(Delete(section="s1"))
    assert [each["id"] for each in shown(draft)] == ["c2"]
    assert [(each.deleted, each.pointer) for each in draft.sections] == [(True, ""), (False, "/0")]
    assert draft.reply(REPLY).choice.tool_calls == (RM,)
    again = draft.with_edit(Restore(section="s1"))
    assert (again.is_dirty, again.data) == (False, edited().data)
    with pytest.raises(Fault, match="deleted") as caught:
        draft.with_edit(SetText(section="s1", text="{}"))
    assert caught.value.hint == "Restore it first."


def test_without_any_call_the_reply_stops() -> None:
    draft = edited(Delete(section="s1"), Delete(section="s2"))
    assert (shown(draft), draft.reply(REPLY).choice) == ([], Choice(parts=(Text("I look."),), finish="stop"))
    cut = Reply(choices=(Choice(parts=(LS,), finish="length"),))
    assert edited(Delete(section="s1"), reply=cut).reply(cut).choice.finish == "length"


def test_the_whole_list_and_any_place_in_it_can_be_written() -> None:
    draft = edited(Set(pointer="/1/arguments", value="{}"))
    assert draft.sections[1].text == "{}"
    body = json.dumps([{"id": "c2", "name": "Read", "arguments": "{}"}])
    draft = draft.with_edit(SetBody(body=body))
    assert [each.deleted for each in draft.sections] == [True, False]
    assert draft.reply(REPLY).choice.tool_calls == (ToolCall("c2", "Read", "{}"),)
    assert not draft.with_edit(Reset()).is_dirty
    assert (draft.first.data, draft.first.is_dirty) == (draft.original, False)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (SetBody(body="[3]"), "not the calls"),
        (SetBody(body='[{"id":"c1","name":"a","arguments":{}}]'), "arguments"),
        (SetBody(body='[{"id":"c9","name":"a","arguments":""}]'), "not one of the reply"),
        (SetBody(body='[{"id":"c1","name":"a","arguments":""},{"id":"c1","name":"a","arguments":""}]'), "twice"),
        (
            SetBody(body='[{"id":"c2","name":"a","arguments":""},{"id":"c1","name":"a","arguments":""}]'),
            "order of the reply",
        ),
        (SetBody(body='["\ud800"]'), "half of a surrogate pair"),
        (SetBody(body='[{"\\ud800":1}]'), "not the calls"),
        (SetText(section="s9", text=""), "no section 's9'"),
        (Delete(section="s9"), "no section 's9'"),
        (Duplicate(section="s1"), "cannot be done"),
    ],
)
def test_what_makes_no_calls_of_this_reply_is_refused(operation: Edit, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        edited(operation)
    assert (caught.value.status, bool(caught.value.hint)) == (422, True)


def test_body_that_is_no_json_is_refused() -> None:
    with pytest.raises(Fault):
        edited(SetBody(body="["))


def test_several_edits_are_one() -> None:
    draft = edited(Batch(operations=(SetText(section="s1", text="{}"), Delete(section="s2"))))
    assert shown(draft) == [{"id": "c1", "name": "Bash", "arguments": "{}"}]


def test_calls_without_ids_and_in_other_choices_are_distinguished() -> None:
    bare, twin = ToolCall("", "a", "{}"), ToolCall("c", "b", "{}")
    reply = Reply(choices=(Choice(parts=(bare, twin)), Choice(parts=(twin,), finish="tool_calls")))
    draft = edited(SetText(section="s3", text='{"x":1}'), Delete(section="s1"), reply=reply)
    assert [each["id"] for each in shown(draft)] == ["c", "call_3"]
    first, second = draft.reply(reply).choices
    assert first.tool_calls == (twin,)
    assert second.tool_calls == (ToolCall("c", "b", '{"x":1}'),)


def test_generated_call_id_does_not_collide_with_existing_ids() -> None:
    calls = (ToolCall("call_2", "a", "{}"), ToolCall("", "b", "{}"), ToolCall("call_2", "c", "{}"))
    reply = Reply(choices=(Choice(parts=calls, finish="tool_calls"),))
    draft = edited(SetText(section="s2", text='{"x":1}'), reply=reply)
    assert [each.id for each in draft.sections] == ["s1", "s2", "s3"]
    assert [call.name for call in draft.reply(reply).choice.tool_calls] == ["a", "b", "c"]


def test_broken_arguments_are_an_error_unless_the_model_wrote_them() -> None:
    broken = edited(SetText(section="s2", text="[1]"))
    validity = broken.validity
    (problem,) = validity.problems
    assert (validity.ok, problem.pointer, problem.section, problem.severity) == (False, "/1/arguments", "s2", "error")
    back, drop = problem.fixes
    assert not broken.with_edit(Batch(operations=back.operations)).is_dirty
    assert broken.with_edit(Batch(operations=drop.operations)).validity.ok
    own = edited(reply=Reply(choices=(Choice(parts=(ToolCall("c", "a", "{oops"),)),)))
    assert (own.validity.ok, own.validity.problems[0].severity) == (True, "warning")
    assert edited().validity.problems == ()


def test_every_step_can_be_undone_and_done_again() -> None:
    editing = EditHistory(CallsDraft.of(REPLY))
    first = editing.draft
    for undo, word in ((Undo(), "undo"), (Redo(), "redo")):
        with pytest.raises(Fault, match=f"nothing to {word}") as caught:
            editing.apply(undo)
        assert caught.value.status == 409
    editing.apply(SetText(section="s1", text="{}"))
    changed = editing.apply(Delete(section="s2"))
    assert editing.apply(Restore(section="s1")) is changed
    assert editing.can_undo
    editing.apply(Undo())
    assert editing.apply(Undo()) is first
    assert (editing.can_undo, editing.can_redo) == (False, True)
    editing.apply(Redo())
    assert editing.apply(Redo()) is changed
    editing.apply(Undo())
    editing.apply(Reset())
    assert not editing.can_redo


def test_a_custom_call_takes_any_words() -> None:
    patch = ToolCall("c1", "apply_patch", "*** Begin Patch", kind="custom")
    reply = Reply(choices=(Choice(parts=(patch, RM), finish="tool_calls"),))
    body = '[{"id":"c1","name":"apply_patch","arguments":"*** Another"},{"id":"c2","name":"Bash","arguments":"{}"}]'
    assert edited(reply=reply).validity.problems == ()
    for operation in (SetText(section="s1", text="*** Another"), SetBody(body=body)):
        draft = edited(operation, reply=reply)
        assert draft.validity.problems == ()
        assert draft.reply(reply).choice.tool_calls[0] == ToolCall("c1", "apply_patch", "*** Another", kind="custom")
    (problem,) = edited(SetText(section="s2", text="*** Another"), reply=reply).validity.problems
    assert (problem.section, problem.severity) == ("s2", "error")
