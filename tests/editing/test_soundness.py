"""Deleting, restoring, doubling and changing roles never leave what the API rejects."""

import pytest

from sightline.editing.operations import Batch, Delete, Duplicate, Restore, Set, SetRole, SetText
from sightline.editing.soundness import check_readable, check_sound
from sightline.errors import Fault
from tests.editing.bodies import anthropic, chat, round_of_tools, said, text

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
