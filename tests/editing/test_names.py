"""Ids are given out once and stay with what they were given to."""

from sightline.editing.places import shift_by_insertion, shift_by_move, shift_by_removal
from sightline.editing.section_ids import SectionIds, part_key

OUTLINE = [("/m/0", ["text:/c/0", "image:/c/1"]), ("/m/1", ["text:/c"]), ("options", ["option:/model"])]


def ids(names: SectionIds) -> dict[str, str]:
    return {key: named.id for key, named in names.sections.items()}


def test_ids_are_given_in_order() -> None:
    names = SectionIds().complete(OUTLINE)
    assert ids(names) == {"/m/0": "s1", "/m/1": "s2", "options": "s3"}
    assert names.sections["/m/0"].parts == {"text:/c/0": "s1.p1", "image:/c/1": "s1.p2"}
    assert names.key_of("s2") == "/m/1"
    assert names.key_of("s9") is None
    assert names.complete(OUTLINE).sections["/m/1"] is names.sections["/m/1"]


def test_what_is_new_gets_the_next_one_and_what_is_gone_is_forgotten() -> None:
    names = SectionIds().complete(OUTLINE).complete([("/m/0", ["text:/c/0", "audio:/c/2"]), ("/m/7", [])])
    assert ids(names) == {"/m/0": "s1", "/m/7": "s4"}
    assert names.sections["/m/0"].parts["audio:/c/2"] == "s1.p3"
    assert ids(names.complete([("/m/8", [])], is_all=False)) == {"/m/0": "s1", "/m/7": "s4", "/m/8": "s5"}
    assert names.with_count(9).complete([("/x", [])]).sections["/x"].id == "s10"
    assert names.with_count(1).count == 4


def test_ids_move_with_their_places() -> None:
    names = SectionIds().complete(OUTLINE)
    assert ids(names.apply_shift(shift_by_insertion("/m/0"))) == {"/m/1": "s1", "/m/2": "s2", "options": "s3"}
    assert ids(names.apply_shift(shift_by_removal("/m/0", in_array=True))) == {"/m/0": "s2", "options": "s3"}
    within = names.apply_shift(shift_by_removal("/m/0/c/0", in_array=True)).sections["/m/0"]
    assert within.parts == {"image:/c/0": "s1.p2"}
    swap = shift_by_move("/m/0", "/m/1", shift_by_removal("/m/0", in_array=True), shift_by_insertion("/m/1"))
    assert ids(names.apply_shift(swap)) == {"/m/1": "s1", "/m/0": "s2", "options": "s3"}
    assert names.apply_shift(shift_by_removal("/model", in_array=False)).sections["options"].parts == {}


def test_in_another_document_equal_items_keep_their_ids() -> None:
    names = SectionIds().complete(OUTLINE)
    before = {"/m/0": {"a": 1}, "/m/1": {"b": 2}}
    assert ids(names.match_content(before, {"/m/0": {"b": 2}, "/m/1": {"new": 3}, "/m/2": {"more": 4}})) == {
        "/m/0": "s2",
        "/m/1": "s1",
        "options": "s3",
    }
    twins = {"/m/0": {"a": 1}, "/m/1": {"a": 1}}
    assert ids(names.match_content(twins, {"/m/1": {"a": 1}, "/m/2": {"a": 1}})) == {
        "/m/1": "s2",
        "/m/2": "s1",
        "options": "s3",
    }


def test_a_part_is_known_by_its_type_and_its_place_in_the_section() -> None:
    assert part_key("text", "/m/0/c/0", "/m/0") == "text:/c/0"
    assert part_key("tool", "/tools/0", "tools") == "tool:/tools/0"
