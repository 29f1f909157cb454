from sightline.evals.api.suites import diff_lines


def test_the_lines_around_a_change_are_told_and_no_others() -> None:
    before = "".join(f"{number}\n" for number in range(1, 21)).encode()
    change = diff_lines(before, before.replace(b"10\n", b"ten\nand a half\n"))
    assert change.line == 7
    assert change.before == "7\n8\n9\n10\n11\n12\n13\n"
    assert change.after == "7\n8\n9\nten\nand a half\n11\n12\n13\n"


def test_what_is_added_at_the_end_or_taken_from_it_has_no_lines_behind() -> None:
    added = diff_lines(b"a\nb", b"a\nb\nc")
    assert (added.line, added.before, added.after) == (1, "a\nb", "a\nb\nc")
    taken = diff_lines(b"a\nb\nb\n", b"a\nb\n")
    assert (taken.before, taken.after) == ("a\nb\nb\n", "a\nb\n")
    same = diff_lines(b"a\n", b"a\n")
    assert same.before == same.after
