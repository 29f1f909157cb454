"""Patterns over texts: `*` stands for any run of characters, `?` for one, a backslash takes the meaning from the next.

Capital and small letters are the same. Folding keeps a text's length, and a letter outside ASCII never becomes one
inside, so that a database that folds only ASCII can do the same work.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_APART = re.compile("([\u0130\u212a])")  # a dotted I and the sign for kelvin, which would turn into ASCII letters


def fold_case(text: str) -> str:
    """The text in small letters."""
    if text.isascii():
        return text.lower()
    pieces = _APART.split(text)
    return "".join(piece if index % 2 else piece.lower() for index, piece in enumerate(pieces)).replace("ς", "σ")


def letters(pattern: str, wild: str = "*?") -> Iterator[tuple[str, bool]]:
    """Each character of a pattern and whether it is a wildcard. A backslash at the very end stands for itself."""
    rest = iter(pattern)
    for letter in rest:
        if letter == "\\":
            yield next(rest, "\\"), False
        else:
            yield letter, letter in wild


def canonical(pattern: str, wild: str = "*?") -> str:
    """The same pattern in the one form that expressions hold, if only the characters in `wild` are wildcards."""
    pieces: list[str] = []
    for letter, is_wild in letters(pattern, wild):
        piece = letter if is_wild else literal(letter)
        if piece != "*" or pieces[-1:] != ["*"]:
            pieces.append(piece)
    return "".join(pieces)


def literal(text: str) -> str:
    """A pattern that means just this text."""
    return re.sub(r"([*?\\])", r"\\\1", text)


def plain(pattern: str) -> str | None:
    """The one text that a pattern without wildcards stands for."""
    read = list(letters(pattern))
    return None if any(is_wild for _, is_wild in read) else "".join(letter for letter, _ in read)


def literals(pattern: str) -> list[str]:
    """The runs of characters that a text must hold one after the other, for an index that can look for them."""
    runs = [""]
    for letter, is_wild in letters(pattern):
        if is_wild:
            runs.append("")
        else:
            runs[-1] += letter
    return [run for run in runs if run]


def fits(pattern: str, value: str) -> bool:
    """Whether the whole value is what the pattern says. An empty value fits only an empty pattern, so that `*` asks
    for something to be there."""
    if not value:
        return not pattern
    text = fold_case(value)
    (first, reach), *others = _segments(pattern)
    if not others:
        return first.fullmatch(text) is not None
    last, length = others.pop()
    end = len(text) - length
    if first.match(text) is None or last.match(text, max(end, 0)) is None:
        return False
    return 0 <= _find_in_order(others, text, reach) <= end


def occurs(pattern: str, text: str) -> bool:
    """Whether what the pattern says stands somewhere in the text."""
    return _find_in_order(_segments(pattern), fold_case(text), 0) >= 0


def like(pattern: str) -> tuple[str, bool]:
    """The pattern for LIKE with `!` as the escape, and whether it means the same; if not, it takes in more, because
    databases do not agree on the small letters of other alphabets."""
    pieces = []
    for letter, is_wild in letters(fold_case(pattern)):
        if is_wild:
            pieces.append("%" if letter == "*" else "_")
        elif letter.isascii():
            pieces.append(f"!{letter}" if letter in "!%_" else letter)
        else:
            pieces.append("_")
    return "".join(pieces), pattern.isascii()


def _find_in_order(segments: Sequence[tuple[re.Pattern[str], int]], text: str, start: int) -> int:
    """Where the last of these ends if each is found behind the one before, else -1."""
    for segment, _ in segments:
        found = segment.search(text, start)
        if found is None:
            return -1
        start = found.end()
    return start


@lru_cache(maxsize=1024)
def _segments(pattern: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """What stands between the stars, each with its length. Taking the first place where each fits never misses a way to
    fit them all, so no pattern can make the search slow."""
    segments = [(list[str](), 0)]
    for letter, is_wild in letters(fold_case(pattern)):
        pieces, length = segments[-1]
        if is_wild and letter == "*":
            segments.append(([], 0))
        else:
            segments[-1] = ([*pieces, "." if is_wild else re.escape(letter)], length + 1)
    return tuple((re.compile("".join(pieces), re.DOTALL), length) for pieces, length in segments)
