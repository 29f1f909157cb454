"""One edited text over the several text parts that it was joined from.

The edit is taken apart into hunks. A hunk belongs to the first part that it touches, which keeps its head and takes the
replacement; other touched parts keep their tails; an insertion on a boundary goes to the left part. So parts never
move, merge or vanish, and a part that no hunk touches stays as it is.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

LEAST_COMMON = 0.4
"""With less in common than this, the edit is one hunk: what a diff finds then is chance."""
_MOST_CHARACTERS = 4_000
_MOST_LINES = 4_000
"""How much on both sides together is compared; beyond that the diff would take longer than a person waits."""


class _Hunk(NamedTuple):
    """What stood from `start` to `stop` is now `text`."""

    start: int
    stop: int
    text: str


def spread_over_parts(old: Sequence[str], new: str) -> list[str]:
    """The parts after their joined text became `new`; as many as before."""
    parts = list(old)
    before = "".join(parts)
    if before == new:
        return parts
    if len(parts) == 1:
        return [new]
    ends = list(accumulate(map(len, parts)))
    for hunk in reversed(_hunks(before, new, ends)):
        _apply(parts, ends, hunk)
    return parts


def _apply(parts: list[str], ends: list[int], hunk: _Hunk) -> None:
    """Apply one hunk; those behind it are applied already, and have changed nothing that it touches."""
    first = _owner(ends, hunk)
    start = ends[first - 1] if first else 0
    if hunk.stop <= ends[first]:
        text = parts[first]
        parts[first] = text[: hunk.start - start] + hunk.text + text[hunk.stop - start :]
        return
    parts[first] = parts[first][: hunk.start - start] + hunk.text
    for number in range(first + 1, len(parts)):
        begin = ends[number - 1]
        if begin >= hunk.stop:
            break
        parts[number] = parts[number][min(hunk.stop, ends[number]) - begin :]


def _owner(ends: list[int], hunk: _Hunk) -> int:
    """The first part that a hunk touches; for an insertion the left one."""
    if hunk.start == hunk.stop:
        return bisect_left(ends, hunk.start)
    return next(number for number, end in enumerate(ends) if end > hunk.start)


def _hunks(before: str, new: str, ends: list[int]) -> list[_Hunk]:
    head = common_prefix(before, new)
    tail = common_suffix(before, new, min(len(before), len(new)) - head)
    window = _Hunk(head, len(before) - tail, new[head : len(new) - tail])
    if _is_one(window, ends):
        return [window]
    found = list(_differences(before[head : window.stop], window.text))
    common = head + tail + window.stop - head - sum(hunk.stop - hunk.start for hunk in found)
    if 2 * common < LEAST_COMMON * (len(before) + len(new)):
        return [_whole(before, new, ends)]
    return [_Hunk(hunk.start + head, hunk.stop + head, hunk.text) for hunk in found]


def _is_one(window: _Hunk, ends: list[int]) -> bool:
    """Whether the window, however it is taken apart, comes to the same parts."""
    if window.start == window.stop:
        return True
    owner = _owner(ends, window)
    # An insertion in front of everything else would belong to the part on the left.
    begins_within = owner == 0 or window.start > ends[owner - 1]
    return window.stop <= ends[owner] and (begins_within or not window.text)


def _whole(before: str, new: str, ends: list[int]) -> _Hunk:
    """All of the text but the parts at both ends that stand in the new one too."""
    size, room = len(before), len(new)
    start = max(end for end in (0, *ends) if new.startswith(before[:end]))
    ends_alike = (at for at in (*ends, 0) if at >= start and size - at + start <= room and new.endswith(before[at:]))
    stop = min(ends_alike)
    return _Hunk(start, stop, new[start : room - (size - stop)])


def _differences(before: str, new: str) -> Iterator[_Hunk]:
    """The hunks between two texts: by characters, where they are long by lines first."""
    if len(before) + len(new) <= _MOST_CHARACTERS:
        yield from _by_characters(before, new)
        return
    old_lines, new_lines = before.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(old_lines) + len(new_lines) > _MOST_LINES:
        yield _Hunk(0, len(before), new)
        return
    old_at, new_at = ([0, *accumulate(map(len, lines))] for lines in (old_lines, new_lines))
    for tag, i, j, k, m in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        start, stop, text = old_at[i], old_at[j], new[new_at[k] : new_at[m]]
        if stop - start + len(text) > _MOST_CHARACTERS:
            yield _Hunk(start, stop, text)
        else:
            for hunk in _by_characters(before[start:stop], text):
                yield _Hunk(hunk.start + start, hunk.stop + start, hunk.text)


def _by_characters(before: str, new: str) -> Iterator[_Hunk]:
    for tag, start, stop, begin, end in SequenceMatcher(None, before, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Hunk(start, stop, new[begin:end])


def common_prefix(one: str, other: str) -> int:
    """How many characters two texts begin with alike, by halving: comparing slices is what Python does fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: str, other: str, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
