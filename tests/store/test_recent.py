from sightline.store.recent_bodies import CANDIDATES, Recent


def test_the_last_bodies_of_a_kind_come_newest_first() -> None:
    recent = Recent()
    for name in "abc":
        recent.note(name, "s", name.encode())
    recent.note("a", "s", b"a")
    recent.note("z", "", b"z")
    assert recent.near("s") == [("a", b"a"), ("c", b"c"), ("b", b"b")]
    assert recent.near("other") == recent.near("") == []
    assert recent.body("z") == b"z"


def test_only_a_few_of_a_kind_are_candidates() -> None:
    recent = Recent()
    for number in range(CANDIDATES + 3):
        recent.note(str(number), "s", b".")
    assert [name for name, _ in recent.near("s")] == [str(n) for n in range(CANDIDATES + 2, 2, -1)]


def test_what_does_not_fit_is_forgotten_oldest_first() -> None:
    recent = Recent(most_bytes=10)
    for name in "abcd":
        recent.note(name, name, name.encode() * 4)
    assert [recent.body(name) for name in "abcd"] == [None, None, b"cccc", b"dddd"]
    assert recent.near("a") == []
    recent.note("large", "s", b"x" * 100)
    assert recent.near("s") == [("large", b"x" * 100)]


def test_what_is_stored_no_more_is_no_candidate() -> None:
    recent = Recent()
    recent.note("a", "s", b"a")
    recent.forget("a")
    recent.forget("a")
    assert recent.near("s") == []
