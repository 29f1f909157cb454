"""The ids in an operation name a place, or the operation is refused."""

import pytest

from sightline.editing.operations import Remove, Set
from sightline.editing.target import target_of
from sightline.errors import Fault
from tests.editing.bodies import PNG, anthropic, said, text

TOOL = {"name": "f", "input_schema": {"type": "object"}}
DRAFT = anthropic(said("user", [text("a"), PNG, text("b")]), tools=[TOOL, {**TOOL, "name": "g"}])


def test_ids_name_places() -> None:
    whole = DRAFT.whole
    assert target_of(whole, "s1", None).places == ("/messages/0",)
    found = target_of(whole, "s1", "s1.p2")
    assert found.places == ("/messages/0/content/1",)
    assert found.part is not None
    assert target_of(whole, "s2", None).places == ("/tools/0", "/tools/1")
    assert target_of(whole, "s2", "s2.p2").places == ("/tools/1",)
    assert target_of(whole, "s3", None).places == ()
    assert target_of(whole, "s3", "s3.p1").option == "/model"


@pytest.mark.parametrize(("section", "part"), [("s9", None), ("", None), ("s1", "s1.p9"), ("s1", "s2.p1")])
def test_ids_that_name_nothing_are_refused(section: str, part: str | None) -> None:
    with pytest.raises(Fault) as refused:
        target_of(DRAFT.whole, section, part)
    assert refused.value.status == 422


def test_what_is_no_more_has_no_target() -> None:
    gone = DRAFT.with_edit(Set(pointer="/messages/0/content", value=[text("x")]))
    for section, part in (("s1", "s1.p2"),):
        with pytest.raises(Fault):
            target_of(gone.whole, section, part)
    for pointer, section, part in (("/tools/1", "s2", "s2.p2"), ("/model", "s3", "s3.p1")):
        with pytest.raises(Fault):
            target_of(DRAFT.with_edit(Remove(pointer=pointer)).whole, section, part)


def test_while_nothing_can_be_read_there_is_one_section() -> None:
    broken = DRAFT.with_edit(Set(pointer="/messages", value=5))
    assert [section.kind for section in broken.sections] == ["other"]
    with pytest.raises(Fault):
        target_of(broken.whole, "s1", None)
    assert target_of(broken.whole, broken.sections[0].id, None).places == ()
