"""The document under edit: bytes, places, soft deletions and stable ids."""

import pytest

from sightline.editing.deletions import (
    Deletions,
    Shift,
    edit_refusal,
    parent_of,
    resolve_position,
    shift_by_insertion,
    shift_by_move,
    shift_by_removal,
    shift_by_replacement,
    with_change,
    with_entry,
    without_entries,
    without_entries_in,
)
from sightline.editing.document import SectionIds, WholeDocument
from sightline.errors import Fault
from sightline.wire.jsontext import decode


def test_entries_are_cut_with_one_comma_each() -> None:
    body = b'{"a": [1, 2, 3], "b": {"x": 1, "y": 2, "x": 3}, "c": 4}'
    assert without_entries_in(body, {}) == body
    assert without_entries_in(body, {"/a": {"0", "2"}, "": {"c"}}) == b'{"a": [2], "b": {"x": 1, "y": 2, "x": 3}}'
    assert without_entries_in(body, {"/b": {"x"}}) == b'{"a": [1, 2, 3], "b": {"y": 2}, "c": 4}'
    assert without_entries_in(body, {"/a": {"0", "1", "2"}}) == b'{"a": [], "b": {"x": 1, "y": 2, "x": 3}, "c": 4}'


DOCUMENT = {"m": [0, 1, [20, 21, 22], 3, 4], "5": "five", "k": {"x": 1, "y": 2}}
DELETIONS_DATA = b'{"m": [0, 1, [20, 21, 22], 3, 4], "5": "five", "k": {"x": 1, "y": 2}}'


def deletions(*groups: set[str]) -> Deletions:
    return Deletions.of(map(frozenset, groups), DOCUMENT)


def test_nothing_deleted_is_nothing_changed() -> None:
    none = Deletions()
    assert not none
    assert none.to_screen("/m/3") == none.to_whole("/m/3") == "/m/3"
    assert not none.holds("/m/3")
    assert none.apply_to_bytes(DELETIONS_DATA) is not None
    assert none.apply_to_value(DOCUMENT) is DOCUMENT
    assert none.apply_shift(shift_by_insertion("/m/0"), DOCUMENT) is none


def test_the_screen_is_the_whole_without_what_is_deleted() -> None:
    gone = deletions({"/m/1", "/m/2/1"}, {"/k/x", "/5"})
    assert gone.apply_to_bytes(DELETIONS_DATA) == b'{"m": [0, [20, 22], 3, 4], "k": {"y": 2}}'
    assert gone.apply_to_value(DOCUMENT) == {"m": [0, [20, 22], 3, 4], "k": {"y": 2}}
    assert gone.holds("/m/1/deep/inside")
    assert not gone.holds("/m/2")


def test_places_are_translated_both_ways() -> None:
    gone = deletions({"/m/1", "/m/2/1"}, {"/5"})
    for whole, screen in (("/m/0", "/m/0"), ("/m/2/2", "/m/1/1"), ("/m/4", "/m/3"), ("/k/y", "/k/y"), ("", "")):
        assert gone.to_screen(whole) == screen
        assert gone.to_whole(screen) == whole
    assert gone.to_whole("/m/4") == "/m/5", "behind the last one"
    assert gone.to_whole("/m/-") == "/m/-"
    assert gone.to_whole("/k/a~1b") == "/k/a~1b"


def test_what_lies_within_something_deleted_is_cut_once() -> None:
    gone = deletions({"/m/2/1"}, {"/m/2"})
    assert gone.apply_to_bytes(DELETIONS_DATA) == b'{"m": [0, 1, 3, 4], "5": "five", "k": {"x": 1, "y": 2}}'


def test_restoring_brings_back_what_one_deletion_took() -> None:
    gone = deletions({"/m/1", "/m/3"}, {"/k/x"})
    assert gone.restore("/m/3").groups == (frozenset({"/k/x"}),)
    assert gone.restore("/k").groups == (frozenset({"/m/1", "/m/3"}),)
    assert gone.restore("/m/1/inside").groups == (frozenset({"/k/x"}),)
    assert gone.restore("/m/0") is gone


def test_deletions_move_with_the_document() -> None:
    gone = deletions({"/m/1"}, {"/m/3", "/k/x"})
    longer = {"m": [9, *DOCUMENT["m"]], "k": {"x": 1}}  # type: ignore[misc]
    assert gone.apply_shift(shift_by_insertion("/m/0"), longer).groups == (
        frozenset({"/m/2"}),
        frozenset({"/m/4", "/k/x"}),
    )
    shorter = {"m": [0, 2, 3, 4], "k": {"x": 1}}
    assert gone.apply_shift(shift_by_removal("/m/1", in_array=True), shorter).groups == (frozenset({"/m/2", "/k/x"}),)


INSERT, REMOVE = shift_by_insertion("/m/1"), shift_by_removal("/m/1", in_array=True)
MEMBER = shift_by_removal("/a", in_array=False)


@pytest.mark.parametrize(
    ("shift", "places"),
    [
        (INSERT, {"/m/0": "/m/0", "/m/1": "/m/2", "/m/2/c/0": "/m/3/c/0", "/m": "/m", "/x": "/x", "/mm/3": "/mm/3"}),
        (REMOVE, {"/m/0": "/m/0", "/m/1": None, "/m/1/c": None, "/m/10/c": "/m/9/c"}),
        (MEMBER, {"/a": None, "/a/0": None, "/ab": "/ab"}),
        # A place of an object that is a list now is remembered until the document can be read again.
        (shift_by_insertion("/1"), {"/messages/0": "/messages/0"}),
        (shift_by_removal("/0", in_array=True), {"/messages/0": "/messages/0"}),
        # A move takes along what is within; what its removal or its insertion takes is gone.
        (
            shift_by_move("/m/0", "/m/2", shift_by_removal("/m/0", in_array=True), shift_by_insertion("/m/2")),
            {"/m/0/c": "/m/2/c", "/m/1": "/m/0", "/m/2": "/m/1", "/m/3": "/m/3"},
        ),
        (
            shift_by_move("/a", "/b", MEMBER, shift_by_removal("/c", in_array=False)),
            {"/a/0": "/b/0", "/c": None, "/d": "/d"},
        ),
        (shift_by_move("/m/0", "/x", shift_by_removal("/q", in_array=False), INSERT), {"/q/1": None}),
        # Another value has nothing of the old one.
        (shift_by_replacement("/m/1"), {"/m/1": "/m/1", "/m/1/c": None, "/m/10": "/m/10"}),
    ],
)
def test_a_change_moves_places_or_takes_them(shift: Shift, places: dict[str, str | None]) -> None:
    assert {place: shift(place) for place in places} == places


def test_a_change_shares_everything_else() -> None:
    document = {"a": [{"b": 1}, {"c": [2]}], "d": {}}
    changed = with_change(document, ("a", "1", "c", "0"), lambda value: [value])
    assert changed == {"a": [{"b": 1}, {"c": [[2]]}], "d": {}}
    assert changed["a"][0] is document["a"][0]  # type: ignore[index,call-overload]
    assert document["a"] == [{"b": 1}, {"c": [2]}]


def test_entries_come_and_go() -> None:
    assert with_entry([1, 2], "1", 9) == [1, 9, 2]
    assert with_entry({"a": 1}, "b", 9) == {"a": 1, "b": 9}
    assert without_entries([1, 2, 3], {"0", "2"}) == [2]
    assert without_entries({"a": 1, "b": 2}, {"a"}) == {"b": 2}


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", ""), ("/a/0", "/a/0"), ("/a/-", "/a/2"), ("/b/c~1d/-", "/b/c~1d/1"), ("/a/1/e/-", "/a/1/e/0"),
        ("/b/-", "/b/-"), ("/a/7/-", "/a/7/-"), ("/a/x/-", "/a/x/-"), ("/z/-", "/z/-"), ("/a/0/0/-", "/a/0/0/-"),
    ],
)  # fmt: skip
def test_the_end_of_a_list_is_a_position(pointer: str, expected: str) -> None:
    assert resolve_position({"a": [1, {"e": []}], "b": {"c/d": [0]}}, pointer) == expected


def test_a_refusal_says_what_to_do() -> None:
    fault = edit_refusal("no", "Try this.", pointer="/a")
    assert (fault.status, fault.hint, fault.pointer) == (422, "Try this.", "/a")
    assert parent_of("/a/b~1c/0") == "/a/b~1c"


OUTLINE = {"/m/0": ["text:/c/0", "image:/c/1"], "/m/1": ["text:/c"], "options": ["option:/model"]}


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
    names = SectionIds().complete(OUTLINE).complete({"/m/0": ["text:/c/0", "audio:/c/2"], "/m/7": []})
    assert ids(names) == {"/m/0": "s1", "/m/7": "s4"}
    assert names.sections["/m/0"].parts["audio:/c/2"] == "s1.p3"
    assert ids(names.complete({"/m/8": []}, is_all=False)) == {"/m/0": "s1", "/m/7": "s4", "/m/8": "s5"}
    assert names.with_count(9).complete({"/x": []}).sections["/x"].id == "s10"
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


WHOLE_DATA = b"""{ "model":"m",
  "messages":[ {"role":"user","content":"a"}, {"role":"assistant","content":"b"},
               {"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]} ] }"""


def whole(*deleted: str) -> WholeDocument:
    made = WholeDocument.of(WHOLE_DATA, "openai-chat")
    return made.with_deletions(Deletions.of([frozenset(deleted)], made.reading.document))


def check(made: WholeDocument, ids: dict[str, str]) -> None:
    assert made.reading.document == decode(made.data)
    found = {place: named.id for place, named in made.names.sections.items() if place.startswith("/")}
    assert found == ids


def test_a_value_is_set_in_its_bytes_alone() -> None:
    made = whole().set("/messages/1/content", "z")
    assert made.data == WHOLE_DATA.replace(b'"b"', b'"z"')
    check(made, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_entries_are_inserted_removed_and_moved_with_their_ids() -> None:
    made = whole("/messages/2/content/1").insert("/messages/1", {"role": "user", "content": "n"})
    check(made, {"/messages/0": "s1", "/messages/1": "s5", "/messages/2": "s2", "/messages/3": "s3"})
    assert made.deletions.places == {"/messages/3/content/1"}
    made = made.remove("/messages/0")
    check(made, {"/messages/0": "s5", "/messages/1": "s2", "/messages/2": "s3"})
    assert made.deletions.places == {"/messages/2/content/1"}
    made = made.move("/messages/2", "/messages/0")
    check(made, {"/messages/1": "s5", "/messages/2": "s2", "/messages/0": "s3"})
    assert made.deletions.places == {"/messages/0/content/1"}
    assert b'[{"type":"text","text":"c"},{"type":"text","text":"d"}]' in made.data, "its very bytes"


def test_members_come_go_and_move_too() -> None:
    made = whole().insert("/seed", 1).move("/model", "/was").remove("/seed")
    assert decode(made.data).keys() == {"messages", "was"}  # type: ignore[union-attr]
    check(made, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_a_value_may_be_inserted_as_it_is_spelled() -> None:
    assert b'"seed":1.50' in whole().insert("/seed", 1.5, b"1.50").data.replace(b" ", b"")


def test_another_conversation_is_matched_by_content() -> None:
    kept = {"role": "assistant", "content": "b"}
    made = whole("/messages/0").set("/messages", [kept, {"role": "user", "content": "new"}])
    check(made, {"/messages/0": "s2", "/messages/1": "s1"})
    assert not made.deletions
    made = whole("/messages/0").set("", {"messages": [kept]})
    check(made, {"/messages/0": "s2"})
    assert not made.deletions


def test_ids_outlive_a_document_that_cannot_be_read() -> None:
    broken = whole().set("/messages/0/role", "nobody")
    assert broken.reading.request is None
    mended = broken.set("/messages/0/role", "user")
    check(mended, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})


def test_ids_outlive_another_body_that_cannot_be_read() -> None:
    broken = whole().replace_document(b'{"messages":[{"role":"user","content":"a"}, 5]}')
    assert broken.reading.request is None
    check(broken, {"/messages/0": "s1", "/messages/1": "s2", "/messages/2": "s3"})
    check(broken.replace_document(b'{"messages":[{"role":"user","content":"a"}]}'), {"/messages/0": "s1"})


def test_what_is_not_json_can_only_be_written_anew() -> None:
    broken = WholeDocument.of(b"{oh", "openai-chat")
    assert broken.reading.fault is not None
    with pytest.raises(Fault):
        broken.set("/model", "m")
    assert broken.set("", {"messages": []}).reading.request is not None
    with pytest.raises(Fault):
        broken.replace_document(b"still not")


def test_a_value_too_deep_to_be_read_is_refused() -> None:
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    once = whole().set("/model", deep)  # type: ignore[arg-type]
    with pytest.raises(Fault):
        once.insert("/model" + "/0" * 599 + "/-", deep)  # type: ignore[arg-type]
