from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.commands import Capture


def test_a_short_output_is_whole() -> None:
    capture = Capture(4, 4)
    for piece in (b"ab", b"cdef", "é".encode()):
        capture.add(piece)
    assert capture.text == "abcdefé"


def test_a_long_one_says_what_is_missing() -> None:
    capture = Capture(4, 4)
    for _ in range(1000):
        capture.add(b"0123456789")
    assert capture.text == "0123\n[9992 of 10000 bytes are left out here]\n6789"


@given(st.lists(st.binary(max_size=30)), st.integers(0, 20), st.integers(1, 20))
def test_however_it_comes_the_same_is_kept(pieces: list[bytes], head: int, tail: int) -> None:
    split, whole = Capture(head, tail), Capture(head, tail)
    for piece in pieces:
        split.add(piece)
    whole.add(b"".join(pieces))
    assert split.text == whole.text
    assert sum(map(len, split._tail)) < tail + 30
