from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.mcp.pipes import END, LineSplitter, Overlong


def test_lines_come_whole_whatever_the_bytes_come_in() -> None:
    lines = LineSplitter(100)
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\n\n  \r\ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"ee\n") == [b"three"]


def test_of_a_line_that_is_too_long_the_ends_are_kept() -> None:
    lines = LineSplitter(2000)
    found = []
    for _ in range(1000):
        found += lines.feed(b"x" * 5000)
    found += lines.feed(b"end\nshort\n")
    assert found == [Overlong(b"x" * END, b"x" * (END - 3) + b"end", 5_000_003), b"short"]


@given(st.lists(st.binary()), st.integers(1, 50))
def test_nothing_is_lost_and_nothing_is_kept_too_long(chunks: list[bytes], most: int) -> None:
    lines = LineSplitter(most)
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    wanted = [line for line in b"".join(chunks).split(b"\n")[:-1] if line.strip() or len(line) > most]
    assert len(found) == len(wanted)
    for got, line in zip(found, wanted, strict=True):
        assert got == (line if len(line) <= most else Overlong(line[:END], line[END:][-END:], len(line)))
