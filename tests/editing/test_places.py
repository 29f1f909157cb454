"""Places through a change, and values with one place changed."""

import pytest

from sightline.editing.places import (
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
)


def test_an_insertion_moves_what_stands_behind_it() -> None:
    shift = shift_by_insertion("/m/1")
    assert [shift(place) for place in ("/m/0", "/m/1", "/m/2/c/0", "/m", "/other", "/mm/3")] == [
        "/m/0",
        "/m/2",
        "/m/3/c/0",
        "/m",
        "/other",
        "/mm/3",
    ]


def test_places_of_an_object_that_is_a_list_now_stay_as_they_are() -> None:
    # They are remembered until the document can be read again.
    assert [shift("/messages/0") for shift in (shift_by_insertion("/1"), shift_by_removal("/0", in_array=True))] == [
        "/messages/0"
    ] * 2


def test_a_removal_takes_what_is_within_and_moves_what_is_behind() -> None:
    shift = shift_by_removal("/m/1", in_array=True)
    assert [shift(place) for place in ("/m/0", "/m/1", "/m/1/c", "/m/10/c")] == ["/m/0", None, None, "/m/9/c"]
    shift = shift_by_removal("/a/b", in_array=False)
    assert [shift(place) for place in ("/a/b", "/a/b/0", "/a/bc")] == [None, None, "/a/bc"]


def test_a_move_takes_along_what_is_within() -> None:
    shift = shift_by_move("/m/0", "/m/2", shift_by_removal("/m/0", in_array=True), shift_by_insertion("/m/2"))
    assert [shift(place) for place in ("/m/0/c", "/m/1", "/m/2", "/m/3")] == ["/m/2/c", "/m/0", "/m/1", "/m/3"]
    shift = shift_by_move("/a", "/b", shift_by_removal("/a", in_array=False), shift_by_removal("/c", in_array=False))
    assert [shift(place) for place in ("/a/0", "/c", "/d")] == ["/b/0", None, "/d"]
    assert (
        shift_by_move("/m/0", "/x", shift_by_removal("/q", in_array=False), shift_by_insertion("/z/0"))("/q/1") is None
    )


def test_another_value_has_nothing_of_the_old_one() -> None:
    shift = shift_by_replacement("/m/1")
    assert [shift(place) for place in ("/m/1", "/m/1/c", "/m/10")] == ["/m/1", None, "/m/10"]


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
        ("", ""),
        ("/a/0", "/a/0"),
        ("/a/-", "/a/2"),
        ("/b/c~1d/-", "/b/c~1d/1"),
        ("/a/1/e/-", "/a/1/e/0"),
        ("/b/-", "/b/-"),
        ("/a/7/-", "/a/7/-"),
        ("/a/x/-", "/a/x/-"),
        ("/z/-", "/z/-"),
        ("/a/0/0/-", "/a/0/0/-"),
    ],
)
def test_the_end_of_a_list_is_a_position(pointer: str, expected: str) -> None:
    assert resolve_position({"a": [1, {"e": []}], "b": {"c/d": [0]}}, pointer) == expected


def test_a_refusal_says_what_to_do() -> None:
    fault = edit_refusal("no", "Try this.", pointer="/a")
    assert (fault.status, fault.hint, fault.pointer) == (422, "Try this.", "/a")
    assert parent_of("/a/b~1c/0") == "/a/b~1c"
