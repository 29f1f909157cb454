from hypothesis import given
from hypothesis import strategies as st

from sightline.editing import patching
from sightline.editing.patching import CONTEXT, Hunk, HunkMatch, apply_patch, find, hunks_between

TEXTS = st.text("ab \n", max_size=40)


@given(old=TEXTS, new=TEXTS)
def test_a_patch_makes_of_the_old_text_the_new_one(old: str, new: str) -> None:
    assert apply_patch(old, hunks_between(old, new)) == new


def test_a_text_without_a_difference_has_no_hunks() -> None:
    assert hunks_between("the same", "the same") == ()


def test_a_hunk_has_the_rest_of_its_line_as_context() -> None:
    (hunk,) = hunks_between("one\nYou are a kind helper.\ntwo", "one\nYou are a terse helper.\ntwo")
    assert hunk == Hunk("You are a ", "kind", "terse", " helper.")
    assert (hunk.sought, hunk.made) == ("You are a kind helper.", "You are a terse helper.")


def test_it_is_made_again_although_the_lines_around_it_have_changed() -> None:
    patch = hunks_between("Be kind.\nGit status: clean", "Be terse.\nGit status: clean")
    assert apply_patch("Be kind.\nGit status: 2 files changed\n", patch) == "Be terse.\nGit status: 2 files changed\n"


def test_several_places_are_several_hunks_and_all_of_them_are_needed() -> None:
    patch = hunks_between("first line\nsecond\nthird line\n", "1st line\nsecond\n3rd line\n")
    assert len(patch) == 2
    assert apply_patch("third line\nfirst line\n", patch) == "3rd line\n1st line\n"
    assert apply_patch("first line only\n", patch) is None


def test_a_long_line_is_no_context_as_a_whole() -> None:
    (hunk,) = hunks_between(f"{'x' * 200} kind {'y' * 200}", f"{'x' * 200} terse {'y' * 200}")
    assert (len(hunk.before), len(hunk.after)) == (CONTEXT, CONTEXT)


def test_words_that_occur_twice_get_more_context_until_they_are_one_place() -> None:
    old = "alpha\nBe kind.\nbeta\nBe kind.\ngamma"
    (hunk,) = hunks_between(old, "alpha\nBe kind.\nbeta\nBe terse.\ngamma")
    assert "beta" in hunk.before
    assert apply_patch(old, (hunk,)) == "alpha\nBe kind.\nbeta\nBe terse.\ngamma"


def test_a_blank_line_is_no_context() -> None:
    (hunk,) = hunks_between("one\n\ntwo", "one\n\n\ntwo")
    assert hunk.sought.strip()


def test_context_that_is_gone_or_there_twice_is_no_place() -> None:
    hunk = Hunk("Be ", "kind", "terse", ".")
    assert find("Be good.", hunk) == HunkMatch(0)
    assert find("Be kind. Be kind.", hunk).count == 2
    assert find("Now. Be kind.", hunk) == HunkMatch(1, 8)
    assert find("aaa", Hunk(old="aa", new="b")).count == 2
    assert apply_patch("Be kind. Be kind.", [hunk]) is None


def test_an_insertion_is_not_made_where_it_is_made_already() -> None:
    behind, before = Hunk("Be kind.", "", " And brief.", ""), Hunk("", "", "Listen. ", "Be kind.")
    assert apply_patch("Be kind.", [behind]) == "Be kind. And brief."
    assert apply_patch("Be kind. And brief.", [behind]) is None
    assert apply_patch("Listen. Be kind.", [before]) is None
    assert apply_patch("Be kind. And brief. Be kind.", [behind]) == "Be kind. And brief. Be kind. And brief."


def test_a_hunk_without_anything_to_find_is_for_an_empty_text() -> None:
    assert apply_patch("", [Hunk(new="words")]) == "words"
    assert apply_patch("other", [Hunk(new="words")]) is None


def test_hunks_that_want_the_same_words_are_not_applied() -> None:
    assert apply_patch("Be kind.", [Hunk("Be ", "kind", "a", "."), Hunk("", "Be kind", "b", ".")]) is None


def test_very_many_lines_are_one_hunk(monkeypatch) -> None:
    monkeypatch.setattr(patching, "_MOST_LINES", 4)
    assert len(hunks_between("a\nb\nc\n", "A\nb\nC\n")) == 1
