"""Patches: a change of a text as hunks with context, which can be made again in a text that has changed elsewhere."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

import msgspec

from sightline.editing.spread import common_prefix, common_suffix

CONTEXT = 32
"""How many characters of its line a hunk has beside it as context, on each side, where they make it unique."""
_MOST_LINES = 4_000
"""More lines than this, both texts together, are compared as one piece: a diff would take too long."""


class Hunk(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`old`, between `before` and `after`, becomes `new`."""

    before: str = ""
    old: str = ""
    new: str = ""
    after: str = ""

    @property
    def sought(self) -> str:
        """What has to be found, exactly once, for the hunk to be applied."""
        return self.before + self.old + self.after

    @property
    def made(self) -> str:
        """What is there once it is applied."""
        return self.before + self.new + self.after


class HunkMatch(msgspec.Struct, frozen=True):
    """How often the context of a hunk is found in a text; `at` is where its `old` begins, if that is once."""

    count: int
    at: int = 0


def hunks_between(old: str, new: str) -> tuple[Hunk, ...]:
    """The patch that makes `new` of `old`: one hunk for each group of lines that differ, trimmed to what differs.

    The context of a hunk ends with its line, so that the patch survives when the lines around it change. It is longer
    only where the same words occur more than once in `old`.
    """
    return tuple(_with_context(old, start, stop, text) for start, stop, text in _differences(old, new))


def apply_patch(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text after all hunks; None where one of them has no single place, or two of them want the same one."""
    spots: list[tuple[int, Hunk]] = []
    for hunk in hunks:
        place = find(text, hunk)
        if place.count != 1:
            return None
        spots.append((place.at, hunk))
    spots.sort(key=lambda each: each[0], reverse=True)
    end = len(text)
    for at, hunk in spots:
        if at + len(hunk.old) > end:
            return None
        text = text[:at] + hunk.new + text[at + len(hunk.old) :]
        end = at
    return text


def find(text: str, hunk: Hunk) -> HunkMatch:
    """Where a hunk belongs. A place that shows the change already, as an insertion that was made before, is none."""
    if not hunk.sought:
        return HunkMatch(1) if not text else HunkMatch(0)
    done = [(at, at + len(hunk.made)) for at in _occurrences(text, hunk.made)] if hunk.sought in hunk.made else []
    size = len(hunk.sought)
    found = [
        at
        for at in _occurrences(text, hunk.sought)
        if not any(start <= at and at + size <= stop for start, stop in done)
    ]
    return HunkMatch(len(found), found[0] + len(hunk.before)) if found else HunkMatch(0)


def _occurrences(text: str, words: str) -> Iterator[int]:
    """Where the words begin, also where two of their occurrences overlap."""
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _with_context(text: str, start: int, stop: int, new: str) -> Hunk:
    begin = max(text.rfind("\n", 0, start) + 1, start - CONTEXT)
    line_end = text.find("\n", stop)
    end = min(len(text) if line_end < 0 else line_end, stop + CONTEXT)
    while True:
        hunk = Hunk(text[begin:start], text[start:stop], new, text[stop:end])
        is_whole = begin == 0 and end == len(text)
        if is_whole or (hunk.sought.strip() and find(text, hunk) == HunkMatch(1, start)):
            return hunk
        begin, end = max(0, begin - CONTEXT), min(len(text), end + CONTEXT)


def _differences(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """What differs: from where to where in `old`, and what is there in `new`."""
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(old_lines) + len(new_lines) > _MOST_LINES:
        old_lines, new_lines = [old], [new]
    old_at, new_at = ([0, *accumulate(map(len, lines))] for lines in (old_lines, new_lines))
    for tag, i, j, k, m in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _trim_common_ends(old_at[i], old[old_at[i] : old_at[j]], new[new_at[k] : new_at[m]])


def _trim_common_ends(start: int, old: str, new: str) -> tuple[int, int, str]:
    head = common_prefix(old, new)
    tail = common_suffix(old, new, min(len(old), len(new)) - head)
    return start + head, start + len(old) - tail, new[head : len(new) - tail]
