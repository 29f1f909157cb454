"""An edited text goes back to the parts that it was joined from, and only the touched ones change."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.editing.spread import spread_over_parts


@pytest.mark.parametrize(
    ("new", "parts"),
    [
        ("aaabbb", ["aaa", "bbb"]),
        ("aaaXbbb", ["aaaX", "bbb"]),
        ("aaabbbX", ["aaa", "bbbX"]),
        ("Xaaabbb", ["Xaaa", "bbb"]),
        ("aabb", ["aa", "bb"]),
        ("aZbbb", ["aZ", "bbb"]),
        ("", ["", ""]),
        ("updated aggregate text", ["updated aggregate text", ""]),
    ],
)
def test_the_worked_values(new: str, parts: list[str]) -> None:
    assert spread_over_parts(["aaa", "bbb"], new) == parts


def test_one_part_takes_it_all() -> None:
    assert spread_over_parts(["aaa"], "quite another") == ["quite another"]


def test_several_hunks_go_to_several_parts() -> None:
    assert spread_over_parts(["a b c d", "e f g h"], "a X c de Y g h") == ["a X c d", "e Y g h"]


def test_a_hunk_over_three_parts_belongs_to_the_first() -> None:
    assert spread_over_parts(["long head ", "middle", " long tail"], "long heXg tail") == ["long heX", "", "g tail"]


def test_an_insertion_before_other_changes_of_a_part_still_goes_to_the_left() -> None:
    assert spread_over_parts(["aaa", "bcbb"], "aaaXbYbb") == ["aaaX", "bYbb"]


def test_an_empty_part_takes_nothing_from_its_left_neighbour() -> None:
    assert spread_over_parts(["aaa", "", "bbb"], "aaaXbbb") == ["aaaX", "", "bbb"]
    assert spread_over_parts(["", "aaa"], "Xaaa") == ["X", "aaa"]


def test_a_rewrite_leaves_the_parts_at_both_ends_that_stand_in_it_too() -> None:
    long = "other words " * 30
    assert spread_over_parts(["Hello.", "abc", "def", "Bye."], f"Hello.{long}Bye.") == ["Hello.", long, "", "Bye."]
    assert spread_over_parts(["First words.", "Last words."], "Something else entirely, and longer too.")[1] == ""
    assert spread_over_parts(["x", "y"], "x" + long) == ["x", long]


def test_a_rewrite_that_ends_in_a_part_twice_over_loses_nothing() -> None:
    parts = spread_over_parts(["ab", "ab"], "ab" + "q" * 0 + "zzzzzzzzzzzzzzzzzzzzzzzzzab")
    assert "".join(parts) == "abzzzzzzzzzzzzzzzzzzzzzzzzzab"


def lines(random: Random, count: int) -> list[str]:
    return [" ".join(random.choices(("alpha", "beta", "gamma", "delta"), k=12)) + "\n" for _ in range(count)]


def test_long_texts_are_compared_by_lines_first() -> None:
    random = Random(7)
    one, two = lines(random, 200), lines(random, 200)
    changed = [*one[:50], "new line\n", *one[51:], *two[:100], *two[110:]]
    parts = spread_over_parts(["".join(one), "".join(two)], "".join(changed))
    assert parts == ["".join([*one[:50], "new line\n", *one[51:]]), "".join([*two[:100], *two[110:]])]


def test_a_long_change_within_a_long_text_is_one_hunk() -> None:
    random = Random(8)
    one, two, new = lines(random, 100), lines(random, 100), "x" * 5000 + "\n"
    parts = spread_over_parts(
        ["".join(one), "".join(two)], "".join([one[0], new, *one[2:], *two[:50], "!\n", *two[51:]])
    )
    assert parts == ["".join([one[0], new, *one[2:]]), "".join([*two[:50], "!\n", *two[51:]])]


def test_too_many_lines_are_not_compared() -> None:
    one, two = ["\n"] * 3000, ["a\n"] * 3000
    new = "b" + "".join(one) + "c\n" + "".join(two[:-1])
    parts = spread_over_parts(["".join(one), "".join(two)], new)
    assert "".join(parts) == new


@given(st.lists(st.text("ab ", max_size=6), min_size=1, max_size=4), st.text("abX ", max_size=20))
def test_nothing_is_lost_and_no_part_vanishes(old: list[str], new: str) -> None:
    parts = spread_over_parts(old, new)
    assert "".join(parts) == new
    assert len(parts) == len(old)
    assert spread_over_parts(parts, new) == parts
