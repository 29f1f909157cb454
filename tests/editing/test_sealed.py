from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Insert, Move, Set, SetText
from sightline.editing.validity import find_broken_signatures
from tests.editing.conversations import claude, drafted, ids

THOUGHT = "/messages/1/content/0"


def told(draft: Draft) -> list[tuple[str, str]]:
    return [(broken.problem.severity, broken.problem.message) for broken in find_broken_signatures(draft)]


def test_what_nobody_touched_is_whole() -> None:
    draft = drafted(claude())
    assert told(draft) == []
    assert told(draft.with_edit(SetText(section=ids(draft, "user")[0], text="Else?"))) == []


def test_a_thought_that_was_changed_can_be_put_back() -> None:
    draft = drafted(claude()).with_edit(Set(pointer=f"{THOUGHT}/thinking", value="I guess."))
    (broken,) = find_broken_signatures(draft)
    assert (broken.problem.severity, broken.problem.message) == ("error", "what this seal covers was changed")
    assert not draft.with_edit(Batch(operations=broken.repair)).is_dirty


def test_a_thought_that_got_more_fields_is_put_back_whole() -> None:
    draft = drafted(claude()).with_edit(Insert(pointer=f"{THOUGHT}/more", value=1))
    (broken,) = find_broken_signatures(draft)
    mended = draft.with_edit(Batch(operations=broken.repair))
    assert told(mended) == []
    assert mended.document == claude()


def test_a_seal_that_was_changed_is_an_error_and_a_foreign_one_a_warning() -> None:
    draft = drafted(claude())
    assert told(draft.with_edit(Set(pointer=f"{THOUGHT}/signature", value="Zm9yZ2Vk"))) == [
        ("error", "this seal was changed")
    ]
    foreign = {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZWlnbg=="}
    added = draft.with_edit(Insert(pointer="/messages/5/content/0", value=foreign))
    assert told(added) == [("warning", "this seal is not one that the client sent")]


def test_a_thought_that_moved_to_another_turn_is_an_error_and_a_copy_a_warning() -> None:
    draft = drafted(claude())
    moved = draft.with_edit(Move(source=THOUGHT, pointer="/messages/5/content/0"))
    assert told(moved) == [("error", "this sealed part moved")]
    copy = claude()["messages"][1]["content"][0]
    copied = draft.with_edit(Insert(pointer="/messages/5/content/0", value=copy))
    assert told(copied) == [("warning", "this sealed part is a copy of one that stands elsewhere")]


def test_a_body_that_cannot_be_read_has_no_seals() -> None:
    assert told(drafted(claude()).with_edit(Set(pointer="/messages", value="none"))) == []
