"""What is deleted is cut from the screen and stays in the whole document; places are translated between the two."""

from sightline.editing.body import DocumentBytes
from sightline.editing.deletions import Deletions
from sightline.editing.places import shift_by_insertion, shift_by_removal

DOCUMENT = {"m": [0, 1, [20, 21, 22], 3, 4], "5": "five", "k": {"x": 1, "y": 2}}
DATA = b'{"m": [0, 1, [20, 21, 22], 3, 4], "5": "five", "k": {"x": 1, "y": 2}}'


def deletions(*groups: set[str]) -> Deletions:
    return Deletions.of(map(frozenset, groups), DOCUMENT)


def test_nothing_deleted_is_nothing_changed() -> None:
    none = Deletions()
    assert not none
    assert none.to_screen("/m/3") == none.to_whole("/m/3") == "/m/3"
    assert not none.holds("/m/3")
    assert none.apply_to_bytes(DocumentBytes(DATA)) is not None
    assert none.apply_to_value(DOCUMENT) is DOCUMENT
    assert none.apply_shift(shift_by_insertion("/m/0"), DOCUMENT) is none


def test_the_screen_is_the_whole_without_what_is_deleted() -> None:
    gone = deletions({"/m/1", "/m/2/1"}, {"/k/x", "/5"})
    assert gone.apply_to_bytes(DocumentBytes(DATA)) == b'{"m": [0, [20, 22], 3, 4], "k": {"y": 2}}'
    assert gone.apply_to_value(DOCUMENT) == {"m": [0, [20, 22], 3, 4], "k": {"y": 2}}
    assert gone.holds("/m/1/deep/inside")
    assert not gone.holds("/m/2")
    assert gone.within("/m/2") == {"/m/2/1"}


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
    assert gone.apply_to_bytes(DocumentBytes(DATA)) == b'{"m": [0, 1, 3, 4], "5": "five", "k": {"x": 1, "y": 2}}'


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
    assert gone.with_group(frozenset({"/5"}), DOCUMENT).groups[-1] == {"/5"}
