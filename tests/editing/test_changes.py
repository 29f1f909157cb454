"""Every operation, on the document as it stands on screen."""

import json

import pytest

from sightline.editing.draft import Draft
from sightline.editing.operations import (
    Batch,
    Delete,
    Duplicate,
    Edit,
    Insert,
    Move,
    Remove,
    Reset,
    Restore,
    Set,
    SetBody,
    SetRole,
    SetText,
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
    for operation in (Duplicate(section=section), SetRole(section=section, role="user")):
        with pytest.raises(Fault):
            before.with_edit(operation)


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
