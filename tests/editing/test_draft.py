"""One document under edit, and its history."""

import hashlib
import json

import pytest

from sightline.editing import draft as drafts
from sightline.editing.draft import Draft, Editing
from sightline.editing.operations import Batch, Delete, Edit, Insert, Redo, Reset, Restore, Set, SetBody, SetText, Undo
from sightline.errors import Fault
from tests.editing.bodies import anthropic, chat, responses, said, text

A, B, C = said("user", "a"), said("assistant", "b"), said("user", "c")


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


def test_edits_beside_something_deleted_read_one_item_only() -> None:
    gone = chat(A, B, C).with_edit(Delete(section="s2"))
    assert gone.request is not None
    after = gone.with_edit(SetText(section="s3", text="z"))
    assert after.request is not None
    assert after.request.messages[0] is gone.request.messages[0]
    assert after.request.messages[1].at == "/messages/1"
    assert after.document == json.loads(after.data)


def test_every_operation_can_be_undone_and_done_again() -> None:
    editing = Editing(chat(A, B, C))
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
    editing = Editing(chat(A))
    for operation in (Undo(), Redo()):
        with pytest.raises(Fault) as refused:
            editing.apply(operation)
        assert refused.value.status == 409


def test_what_changes_nothing_is_no_step_and_what_is_refused_neither() -> None:
    editing = Editing(chat(A))
    editing.apply(SetText(section="s1", text="a"))
    editing.apply(Reset())
    with pytest.raises(Fault):
        editing.apply(Delete(section="s9"))
    assert not editing.can_undo


def test_a_new_edit_forgets_what_was_undone() -> None:
    editing = Editing(chat(A))
    editing.apply(SetText(section="s1", text="x"))
    editing.apply(Undo())
    assert editing.can_redo
    editing.apply(SetText(section="s1", text="y"))
    assert not editing.can_redo


def test_reset_gives_no_id_twice() -> None:
    editing = Editing(chat(A))
    editing.apply(Insert(pointer="/messages/-", value=B))
    editing.apply(Reset())
    assert [section.id for section in editing.draft.sections] == ["s1", "s2"]
    editing.apply(Insert(pointer="/messages/-", value=C))
    assert [section.id for section in editing.draft.sections] == ["s1", "s4", "s2"]


def test_undo_reaches_back_so_far_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_STEPS", 3)
    editing = Editing(chat(A))
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
    editing = Editing(chat(A))
    for word in "xyz":
        editing.apply(SetText(section="s1", text=word))
    assert editing.apply(Undo()).section("s1").text == "y"
    assert not editing.can_undo


def test_two_megabytes_are_no_trouble() -> None:
    edited = responses(said("user", "x" * 2_000_000), said("user", "y"))
    after = edited.with_edit(SetText(section="s1", text="x" * 2_000_000 + "!"))
    assert len(after.data) == len(edited.data) + 1


def test_something_is_tried_on_a_copy_of_the_history() -> None:
    editing = Editing(chat(A))
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
    editing = Editing(first)
    assert editing.earlier == ()
    second = editing.apply(SetText(section=first.sections[0].id, text="one"))
    editing.apply(SetText(section=first.sections[0].id, text="two"))
    assert editing.earlier == (first, second)
    editing.apply(Undo())
    assert editing.earlier == (first,)
