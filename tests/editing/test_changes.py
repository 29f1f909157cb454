"""Operations on a draft, and its history."""

import hashlib
import json

import msgspec
import pytest

from sightline.editing import draft as drafts
from sightline.editing.changes import check_readable, check_sound
from sightline.editing.draft import Draft, EditHistory
from sightline.editing.operations import (
    Batch,
    Delete,
    Duplicate,
    Edit,
    Insert,
    Move,
    Redo,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetRole,
    SetText,
    Undo,
    operation,
)
from sightline.errors import Fault
from sightline.model.json import Json
from tests.editing.bodies import anthropic, chat, draft, gemini, raw, responses, round_of_tools, said, text

A, B, C = said("user", "a"), said("assistant", "b"), said("user", "c")


def messages(edited: Draft) -> Json:
    return edited.document["messages"]  # type: ignore[index,call-overload]


def test_values_are_set_by_their_place_on_screen() -> None:
    before = chat(A, B, C).with_edit(Delete(section="s2"))
    after = before.with_edit(Set(pointer="/messages/1/content", value="z"))
    assert messages(after) == [A, said("user", "z")]
    assert messages(after.with_edit(Restore(section="s2"))) == [A, B, said("user", "z")]
    assert before.with_edit(Set(pointer="/messages/1", value=C)) is before
    with pytest.raises(Fault):
        before.with_edit(Set(pointer="/messages/2", value=C))


def test_the_whole_body_can_be_set_as_a_value() -> None:
    before = chat(A)
    assert before.with_edit(Set(pointer="", value=before.document)) is before
    assert messages(before.with_edit(Set(pointer="", value={"messages": [B]}))) == [B]
    broken = Draft.of(b"{oh", "openai-chat")
    assert messages(broken.with_edit(Set(pointer="", value={"messages": [B]}))) == [B]


def test_entries_are_inserted_where_they_are_seen() -> None:
    before = chat(A, B, C).with_edit(Delete(section="s2"))
    assert messages(before.with_edit(Insert(pointer="/messages/1", value=B))) == [A, B, C]
    assert messages(before.with_edit(Insert(pointer="/messages/2", value=B))) == [A, C, B]
    assert messages(before.with_edit(Insert(pointer="/messages/-", value=B))) == [A, C, B]
    assert before.with_edit(Insert(pointer="/a~1b", value=1)).document["a/b"] == 1  # type: ignore[index,call-overload]
    for pointer in ("", "/messages/3", "/messages/x", "/model", "/model/x", "messages/0", "/nowhere/0"):
        with pytest.raises(Fault):
            before.with_edit(Insert(pointer=pointer, value=B))


def test_a_key_that_was_deleted_can_be_inserted_anew() -> None:
    before = chat(A, seed=1).with_edit(Delete(section="s2", part="s2.p2"))
    after = before.with_edit(Insert(pointer="/seed", value=2))
    assert after.document == {"model": "m", "messages": [A], "seed": 2}
    assert not after.whole.deletions


def test_removing_is_for_good() -> None:
    before = chat(A, B, C)
    after = before.with_edit(Remove(pointer="/messages/1"))
    assert messages(after) == [A, C]
    assert [section.id for section in after.sections] == ["s1", "s3", "s4"]
    for pointer in ("", "/messages/7"):
        with pytest.raises(Fault):
            before.with_edit(Remove(pointer=pointer))


def test_moving_keeps_the_id() -> None:
    before = chat(A, B, C)
    after = before.with_edit(Move(source="/messages/2", pointer="/messages/0"))
    assert [section.id for section in after.sections][:3] == ["s3", "s1", "s2"]
    assert messages(after) == [C, A, B]
    assert before.with_edit(Move(source="/messages/1", pointer="/messages/1")) is before
    for source, pointer in (("/messages/9", "/messages/0"), ("/messages", "/messages/0"), ("/model", "")):
        with pytest.raises(Fault):
            before.with_edit(Move(source=source, pointer=pointer))


def test_moving_counts_what_is_on_screen() -> None:
    before = chat(A, B, C, B).with_edit(Delete(section="s2"))
    after = before.with_edit(Move(source="/messages/0", pointer="/messages/1"))
    assert messages(after) == [C, A, B]
    assert messages(after.with_edit(Restore(section="s2"))) == [B, C, A, B]


def test_an_item_is_doubled_as_it_is_spelled() -> None:
    item = b'{"role" : "user","content":"a","n":1.50}'
    after = Draft.of(b'{"model":"m","messages":[ ' + item + b" ]}", "openai-chat").with_edit(Duplicate(section="s1"))
    assert after.data == b'{"model":"m","messages":[ ' + item + b", " + item + b" ]}"
    assert [section.id for section in after.sections] == ["s1", "s3", "s2"]


def test_what_is_deleted_is_not_doubled() -> None:
    before = chat(said("user", [text("a"), text("b")]), B, C).with_edit(Delete(section="s1", part="s1.p1"))
    assert messages(before.with_edit(Duplicate(section="s1"))) == [
        said("user", [text("b")]),
        said("user", [text("b")]),
        B,
        C,
    ]
    with pytest.raises(Fault, match="deleted"):
        before.with_edit(Delete(section="s1")).with_edit(Duplicate(section="s1"))


@pytest.mark.parametrize("section", ["s1", "s3"])
def test_only_items_of_the_conversation_are_doubled_or_change_roles(section: str) -> None:
    before = anthropic(A, system="s")
    for each in (Duplicate(section=section), SetRole(section=section, role="user")):
        with pytest.raises(Fault):
            before.with_edit(each)


def test_roles_change_in_every_dialect() -> None:
    assert messages(chat(A, B).with_edit(SetRole(section="s2", role="user"))) == [A, said("user", "b")]
    assert messages(raw({"role": 1, "content": "a"}).with_edit(SetRole(section="s1", role="assistant"))) != []
    turned = gemini({"parts": [{"text": "a"}]}, {"parts": [{"text": "b"}]}).with_edit(
        SetRole(section="s1", role="assistant")
    )
    assert turned.section("s1").role == "assistant"
    item = said("user", [{"type": "input_text", "text": "a"}])
    spoken = responses(item, item).with_edit(SetRole(section="s1", role="assistant"))
    assert spoken.section("s1").text == "a"
    assert spoken.section("s1").role == "assistant"
    before = chat(A, B, C)
    assert before.with_edit(SetRole(section="s1", role="user")) is before
    with pytest.raises(Fault, match="deleted"):
        before.with_edit(Delete(section="s2")).with_edit(SetRole(section="s2", role="user"))
    with pytest.raises(Fault, match="no role"):
        anthropic(A, *round_of_tools(), C).with_edit(SetRole(section="s2", role="user"))


def test_a_body_is_taken_exactly_as_it_is_written() -> None:
    before = chat(A, B, C).with_edit(Delete(section="s2"))
    body = ' {"messages" : [ {"role":"user", "content":"c"} ],\n "model":"m", "temperature" : 1.0e0 } \n'
    after = before.with_edit(SetBody(body=body))
    assert after.data == body.encode()
    assert after.sections[0].id == "s3"
    assert not after.whole.deletions
    assert before.with_edit(SetBody(body=before.data.decode())) is before
    for bad in ("", "{", '"\ud800"', "[1] 2"):
        with pytest.raises(Fault):
            before.with_edit(SetBody(body=bad))
    other = before.with_edit(SetBody(body="[]"))
    assert other.request is None


def test_keys_that_stand_there_twice_are_not_harmed() -> None:
    body = b'{"model":"x","messages":[{"role":"user","content":"no","content":"a"}],"model":"m"}'
    before = Draft.of(body, "openai-chat")
    assert before.section("s1").text == "a"
    after = before.with_edit(SetText(section="s1", text="z"))
    assert after.data == body.replace(b'"a"', b'"z"')
    assert after.with_edit(Set(pointer="/model", value="k")).data == after.data.replace(b'"m"', b'"k"')


@pytest.mark.parametrize(
    "operation",
    [
        Delete(section="s2"),
        Delete(section="nobody"),
        Restore(section="s1", part="s1.p9"),
        SetText(section="s9", text="x"),
        SetRole(section="s1", role="king"),
        Move(source="", pointer="nowhere"),
        Move(source="/model", pointer="nowhere"),
    ],
)
def test_what_cannot_be_done_is_refused(operation: Edit) -> None:
    with pytest.raises(Fault):
        chat(A).with_edit(operation)


def test_what_is_done_already_changes_nothing() -> None:
    before = chat(A, B, C)
    assert before.with_edit(Restore(section="s2")) is before
    gone = before.with_edit(Delete(section="s2"))
    assert gone.with_edit(Delete(section="s2")) is gone
    with pytest.raises(Fault):
        draft("openai-chat", {"messages": 5}).with_edit(Delete(section="s1"))


def test_editing_what_is_deleted_restores_it() -> None:
    gone = chat(A, B, C).with_edit(Delete(section="s2"))
    assert gone.section("s2").editable
    edited = gone.with_edit(SetText(section="s2", text="x"))
    assert messages(edited) == [A, said("assistant", "x"), C]
    assert not edited.section("s2").deleted
    assert messages(gone.with_edit(SetText(section="s2", text="b"))) == [A, B, C], "the same text restores it too"
    batch = Batch(operations=(SetText(section="s2", text="y"),))
    assert messages(gone.with_edit(batch)) == [A, said("assistant", "y"), C]


def test_editing_a_deleted_call_brings_its_result_back_too() -> None:
    before = anthropic(A, *round_of_tools(), C)
    gone = before.with_edit(Delete(section="s3"))
    assert [section.id for section in gone.sections if section.deleted] == ["s2", "s3"]
    edited = gone.with_edit(SetText(section="s3", text="none"))
    assert not any(section.deleted for section in edited.sections)
    assert edited.section("s3").text == "none"


def test_several_edits_are_one() -> None:
    before = chat(A, B, C)
    steps = (SetText(section="s1", text="x"), Reset(), Batch(operations=(SetText(section="s3", text="z"),)))
    after = before.with_edit(Batch(operations=steps))
    assert json.loads(after.data)["messages"] == [A, B, said("user", "z")]
    assert before.with_edit(Batch(operations=())) is before


def test_a_fresh_draft_is_the_body_that_came() -> None:
    data = b' {"model":"m","messages":[]} '
    edited = Draft.of(data, "openai-chat", "asked-for")
    assert edited.data is data
    assert edited.original is data
    assert edited.sha256 == hashlib.sha256(data).hexdigest()
    assert (edited.is_dirty, edited.model, edited.dialect, edited.fault) == (False, "asked-for", "openai-chat", None)
    assert edited.first is edited
    assert edited.size == len(data)


def test_dirty_means_that_the_bytes_differ() -> None:
    before = chat(A, B, C)
    after = before.with_edit(SetText(section="s1", text="x"))
    assert after.is_dirty
    assert after.sha256 != before.sha256
    assert not after.with_edit(SetText(section="s1", text="a")).is_dirty
    gone = before.with_edit(Delete(section="s2"))
    assert gone.is_dirty
    assert gone.size > len(gone.data)
    assert gone.with_edit(Restore(section="s2")).data == before.data


def test_every_place_belongs_to_a_section() -> None:
    edited = anthropic(A, B, said("user", [text("c")]), tools=[{"name": "f", "input_schema": {}}], system="s")
    assert edited.section_at("/messages/2/content/0/text") == "s4"
    assert edited.section_at("/system") == "s1"
    assert edited.section_at("/tools/0/name") == "s5"
    assert edited.section_at("/tools") == "s5"
    assert edited.section_at("/max_tokens") == "s6"
    assert edited.section_at("/not/there/yet") == "s6"
    assert edited.section_at("/messages") == ""
    assert edited.section_at("") == ""
    assert edited.with_edit(Delete(section="s3")).section_at("/messages/1") == "s4"
    assert Draft.of(b'[{"role":1,"content":"a"}]', "raw").section_at("/7") == ""
    assert Draft.of(b"{", "raw").section_at("/x") == "s1"


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(Fault) as refused:
        chat(A).section("s9")
    assert refused.value.status == 422


def test_edits_beside_something_deleted() -> None:
    gone = chat(A, B, C).with_edit(Delete(section="s2"))
    assert gone.request is not None
    after = gone.with_edit(SetText(section="s3", text="z"))
    assert after.request is not None
    assert after.request.messages[0] == gone.request.messages[0]
    assert after.request.messages[1].at == "/messages/1"
    assert after.document == json.loads(after.data)


def test_every_operation_can_be_undone_and_done_again() -> None:
    editing = EditHistory(chat(A, B, C))
    operations: tuple[Edit, ...] = (
        SetText(section="s1", text="x"),
        Delete(section="s2"),
        Restore(section="s2"),
        Set(pointer="/model", value="k"),
        Insert(pointer="/messages/-", value=A),
        Batch(operations=(SetText(section="s3", text="y"), SetText(section="s1", text="z"))),
        SetBody(body='{"messages": []}'),
        Reset(),
    )
    states = [editing.draft.data, *[editing.apply(operation).data for operation in operations]]
    assert not editing.can_redo
    for data in reversed(states[:-1]):
        assert editing.apply(Undo()).data == data
    assert not editing.can_undo
    assert not editing.draft.is_dirty
    for data in states[1:]:
        assert editing.apply(Redo()).data == data


def test_nothing_to_undo_is_a_conflict() -> None:
    editing = EditHistory(chat(A))
    for each in (Undo(), Redo()):
        with pytest.raises(Fault) as refused:
            editing.apply(each)
        assert refused.value.status == 409


def test_what_changes_nothing_is_no_step_and_what_is_refused_neither() -> None:
    editing = EditHistory(chat(A))
    editing.apply(SetText(section="s1", text="a"))
    editing.apply(Reset())
    with pytest.raises(Fault):
        editing.apply(Delete(section="s9"))
    assert not editing.can_undo


def test_a_new_edit_forgets_what_was_undone() -> None:
    editing = EditHistory(chat(A))
    editing.apply(SetText(section="s1", text="x"))
    editing.apply(Undo())
    assert editing.can_redo
    editing.apply(SetText(section="s1", text="y"))
    assert not editing.can_redo


def test_reset_gives_no_id_twice() -> None:
    editing = EditHistory(chat(A))
    editing.apply(Insert(pointer="/messages/-", value=B))
    editing.apply(Reset())
    assert [section.id for section in editing.draft.sections] == ["s1", "s2"]
    editing.apply(Insert(pointer="/messages/-", value=C))
    assert [section.id for section in editing.draft.sections] == ["s1", "s4", "s2"]


def test_undo_reaches_back_so_far_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_STEPS", 3)
    editing = EditHistory(chat(A))
    for number in range(5):
        editing.apply(SetText(section="s1", text=str(number)))
    for _ in range(3):
        editing.apply(Undo())
    assert editing.draft.section("s1").text == "1"
    assert not editing.can_undo
    monkeypatch.setattr(drafts, "MOST_BYTES", editing.draft.size + 1)
    for word in "xyz":
        editing.apply(SetText(section="s1", text=word))
    editing.apply(Undo())
    assert editing.draft.section("s1").text == "y"
    assert not editing.can_undo


def test_the_last_step_can_be_undone_however_large_the_document_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_BYTES", 1)
    editing = EditHistory(chat(A))
    for word in "xyz":
        editing.apply(SetText(section="s1", text=word))
    assert editing.apply(Undo()).section("s1").text == "y"
    assert not editing.can_undo


def test_two_megabytes_are_no_trouble() -> None:
    edited = responses(said("user", "x" * 2_000_000), said("user", "y"))
    after = edited.with_edit(SetText(section="s1", text="x" * 2_000_000 + "!"))
    assert len(after.data) == len(edited.data) + 1


def test_something_is_tried_on_a_copy_of_the_history() -> None:
    editing = EditHistory(chat(A))
    editing.apply(SetText(section="s1", text="x"))
    editing.apply(SetText(section="s1", text="y"))
    editing.apply(Undo())
    trial = editing.copy()
    trial.apply(SetText(section="s1", text="z"))
    assert (trial.can_redo, editing.can_redo) == (False, True)
    trial.apply(Undo())
    trial.apply(Undo())
    assert (trial.can_undo, editing.can_undo) == (False, True)
    assert editing.draft.section("s1").text == "x"


def test_the_steps_back_are_known_from_the_oldest_on() -> None:
    first = Draft.of(b'{"model":"m","messages":[{"role":"user","content":"zero"}]}', "openai-chat")
    editing = EditHistory(first)
    assert editing.earlier == ()
    second = editing.apply(SetText(section=first.sections[0].id, text="one"))
    editing.apply(SetText(section=first.sections[0].id, text="two"))
    assert editing.earlier == (first, second)
    editing.apply(Undo())
    assert editing.earlier == (first,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"op": "set_text", "section": "s1", "text": "x"}, SetText(section="s1", text="x")),
        (
            {"op": "set_text", "section": "s1", "part": "s1.p2", "text": "x", "keep": "session"},
            SetText(section="s1", part="s1.p2", text="x", keep="session"),
        ),
        ({"op": "set", "pointer": "/a", "value": None}, Set(pointer="/a", value=None)),
        ({"op": "insert", "pointer": "/a/-", "value": {"b": [1]}}, Insert(pointer="/a/-", value={"b": [1]})),
        ({"op": "move", "from": "/a/1", "pointer": "/a/0"}, Move(source="/a/1", pointer="/a/0")),
        ({"op": "set_body", "body": "{}"}, SetBody(body="{}")),
        ({"op": "batch", "operations": [{"op": "delete", "section": "s1"}]}, Batch(operations=(Delete(section="s1"),))),
        ({"op": "undo"}, Undo()),
        ({"op": "redo"}, Redo()),
    ],
)
def test_an_operation_is_read(value: Json, expected: object) -> None:
    assert operation(value) == expected
    assert operation(msgspec.to_builtins(expected)) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"op": "explode"},
        {"op": "set", "value": 1},
        {"op": "set", "pointer": 1, "value": 1},
        {"op": "undo", "twice": True},
        {"op": "set_body", "body": {"a": 1}},
        {"op": "delete", "section": "s1", "keep": "forever"},
        {"op": "batch", "operations": [{"op": "undo"}]},
        {"op": "\ud800"},
        {"op": "undo", "\ud800": 1},
    ],
)
def test_anything_else_is_refused(value: Json) -> None:
    with pytest.raises(Fault) as refused:
        operation(value)
    assert refused.value.status == 400
    assert "set_text" in refused.value.hint


ASK = said("user", "go")


def test_the_last_words_cannot_be_deleted() -> None:
    draft = anthropic(ASK)
    with pytest.raises(Fault, match="there is no message to answer") as refused:
        draft.with_edit(Delete(section="s1"))
    assert refused.value.status == 422
    assert refused.value.hint


def test_what_the_api_needs_cannot_be_deleted() -> None:
    draft = anthropic(ASK)
    with pytest.raises(Fault, match="max_tokens must be set"):
        draft.with_edit(Delete(section="s2", part="s2.p2"))
    assert draft.with_edit(Delete(section="s2", part="s2.p1")).request is not None


def test_an_edit_that_cannot_be_read_is_refused() -> None:
    draft = anthropic(ASK, *round_of_tools())
    with pytest.raises(Fault, match="could not be read") as refused:
        draft.with_edit(SetText(section="s2", text="[1]"))
    assert refused.value.status == 422
    broken = draft.with_edit(Set(pointer="/messages/0/role", value="nobody"))
    check_readable(broken, broken)


def test_errors_of_the_client_are_no_reason_to_refuse() -> None:
    draft = chat(ASK, {"role": "tool", "tool_call_id": "lost", "content": "x"}, said("user", "b"), ASK)
    after = draft.with_edit(Delete(section="s3"))
    assert after.is_dirty
    gone = after.with_edit(Delete(section="s2"))
    assert gone.with_edit(Restore(section="s2")).section("s2").deleted is False


def test_errors_that_an_edit_brought_may_come_back_with_what_is_restored() -> None:
    draft = chat(ASK, said("user", "b"))
    bad = draft.with_edit(Set(pointer="/messages/0", value={"role": "tool", "tool_call_id": "x", "content": "y"}))
    gone = bad.with_edit(Delete(section="s1"))
    assert gone.with_edit(Restore(section="s1")).data == bad.data


def test_a_call_cannot_stand_there_twice() -> None:
    draft = anthropic(ASK, *round_of_tools(1, "look"), ASK)
    with pytest.raises(Fault, match="would be rejected"):
        draft.with_edit(Duplicate(section="s2"))
    with pytest.raises(Fault, match="would be rejected"):
        chat(
            {**ASK, "content": [text("a"), {"type": "image_url", "image_url": {"url": "https://example.com/a"}}]}
        ).with_edit(SetRole(section="s1", role="assistant"))


def test_several_edits_may_be_broken_on_the_way() -> None:
    draft = anthropic(ASK)
    both = Batch(operations=(Delete(section="s1"), Restore(section="s1"), SetText(section="s1", text="x")))
    assert draft.with_edit(both).section("s1").text == "x"
    with pytest.raises(Fault):
        draft.with_edit(Batch(operations=(SetText(section="s1", text="x"), Delete(section="s1"))))
    words = Batch(operations=(SetText(section="s1", text="x"),))
    assert draft.with_edit(words).section("s1").text == "x"
    check_sound(draft, draft)
