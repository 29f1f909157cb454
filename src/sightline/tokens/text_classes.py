"""How many tokens a text is likely to be under a vocabulary that nobody has seen: a weight for each class of letters.

Vocabularies agree about English words and disagree about digits, rare scripts and symbols. So each class has three
weights (the least, the likely, the most), fitted to eight public vocabularies on the texts of
`tests/contract/sample_texts.py`. The classes are read off the UTF-8 bytes by translation and counting, both at the
speed of C: a megabyte takes a few milliseconds.
"""

from collections.abc import Mapping

from sightline.tokens.estimate import NOTHING, Estimate, between

ENGLISH = 4.6
"""Characters for a token of plain English prose, as the weights have it."""

_LOWER, _UPPER, _DIGIT, _SPACE, _LINE, _MARK, _REST = b"luds\np-"
_BEYOND = 0x80

_LEADS: Mapping[str, tuple[int, int]] = {
    "accented": (0xC2, 0xCD),
    "greek": (0xCE, 0xCF),
    "cyrillic": (0xD0, 0xD4),
    "hebrew": (0xD5, 0xD7),
    "arabic": (0xD8, 0xDF),
    "indic": (0xE0, 0xE0),
    "twice_accented": (0xE1, 0xE1),
    "symbol": (0xE2, 0xE2),
    "kana": (0xE3, 0xE3),
    "han": (0xE4, 0xE9),
    "hangul": (0xEA, 0xED),
    "wide": (0xEE, 0xEF),
    "pictograph": (0xF0, 0xF4),
}
"""The first bytes of the characters of each class beyond ASCII: blocks of Unicode, roughly by script."""

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "letter": (0.238, 0.247, 0.259),
    "capital": (0.031, 0.063, 0.155),
    "switch": (0.566, 0.673, 0.673),
    "digit": (0.440, 0.538, 0.996),
    "mark": (0.247, 0.286, 0.290),
    "run": (0.591, 0.684, 0.756),
    "line": (0.000, 0.081, 0.643),
    "indent": (0.000, 0.000, 0.333),
    "accented": (1.279, 1.853, 2.894),
    "greek": (0.441, 0.521, 1.057),
    "cyrillic": (0.290, 0.366, 0.586),
    "hebrew": (0.504, 0.644, 1.207),
    "arabic": (0.316, 0.444, 0.852),
    "indic": (0.360, 0.560, 1.032),
    "twice_accented": (0.000, 0.000, 0.508),
    "symbol": (1.779, 2.092, 2.390),
    "kana": (0.601, 0.854, 1.106),
    "han": (0.562, 0.743, 1.397),
    "hangul": (0.695, 0.945, 1.439),
    "wide": (0.135, 0.135, 0.135),
    "pictograph": (1.082, 2.150, 3.017),
}
"""Tokens for each occurrence: the least of the eight vocabularies, all eight together, the most."""

_MARGIN = 0.2
_ROUNDING = 2
"""What a vocabulary that is none of the eight may differ by, beyond them: a share, and the ends of a short text."""


def _table() -> bytes:
    table = bytearray([_REST]) * 256
    for code in range(128):
        letter = chr(code)
        if letter.islower():
            table[code] = _LOWER
        elif letter.isupper():
            table[code] = _UPPER
        elif letter.isdigit():
            table[code] = _DIGIT
        elif letter == "\n":
            table[code] = _LINE
        elif letter.isspace():
            table[code] = _SPACE
        else:
            table[code] = _MARK
    for place, (first, last) in enumerate(_LEADS.values()):
        for code in range(first, last + 1):
            table[code] = _BEYOND + place
    return bytes(table)


_CLASSES = _table()


def features(text: str) -> dict[str, int]:
    """How often each class occurs. `switch` counts the places inside a run of letters and digits where one kind begins
    after another, `run` runs of punctuation, `indent` pairs of spaces."""
    kinds = b"\n" + text.encode("utf-8", "replace").translate(_CLASSES)
    found = {
        "letter": kinds.count(b"l") + kinds.count(b"u"),
        "capital": kinds.count(b"u"),
        "switch": sum(kinds.count(pair) for pair in (b"lu", b"ld", b"ud", b"dl", b"du")),
        "digit": kinds.count(b"d"),
        "mark": kinds.count(b"p"),
        "run": sum(kinds.count(before) for before in (b"\np", b"sp", b"lp", b"up", b"dp", b"-p")),
        "line": kinds.count(b"\n") - 1,
        "indent": kinds.count(b"ss"),
    }
    if not text.isascii():
        for place, name in enumerate(_LEADS):
            found[name] = kinds.count(_BEYOND + place)
    return found


def count_by_classes(text: str, chars_per_token: float | None = None) -> Estimate:
    """Tokens by the classes of the characters. `chars_per_token` is what plain English prose has, where it is known;
    other texts are scaled along with it."""
    if not text:
        return NOTHING
    scale = 1.0 if chars_per_token is None else ENGLISH / chars_per_token
    low = likely = high = 0.0
    for name, times in features(text).items():
        least, usual, most = WEIGHTS[name]
        low += times * least
        likely += times * usual
        high += times * most
    least_of_all = max(1, low * scale * (1 - _MARGIN) - _ROUNDING)
    return between(least_of_all, max(1, likely * scale), high * scale * (1 + _MARGIN) + _ROUNDING, "characters")
