"""The text of a filter while it is read: words, signs and values from left to right, and mistakes with their place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from unicodedata import east_asian_width

from sightline.errors import Code, Fault

Sign: TypeAlias = Literal[":", "=", "!=", "<", "<=", ">", ">="]

_WORD = re.compile(r"""[^\s&|+!()'":<>=]+""")
_SIGN = re.compile(r"\s*(?::?(<=|>=|<>|=>|=<|==|!=|<|>|=)|:)")
_SIGNS: Mapping[str, Sign] = {
    ":": ":",
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    "=<": "<=",
    ">": ">",
    ">=": ">=",
    "=>": ">=",
}
_ENDS = frozenset("&|+!()")
_QUOTES = frozenset("'\"")
_SPOKEN = {"n": "\n", "t": "\t", "r": "\r"}
_SHOWN = 72


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text and where it stands. In a value, escapes are still patterns: `\\*` is a star that is no
    wildcard."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Source:
    """A filter's text and how far it has been read."""

    text: str
    place: int = field(default=0)
    kind: str = field(default="filter")
    """What a mistake is said to be in."""

    def wrong(self, start: int, end: int, message: str, hint: str) -> Fault:
        """A mistake in this part of the text."""
        return Fault(
            Code.USAGE,
            f"{self.kind}, column {start + 1}: {message}",
            hint=f"{hint}\n{_point_at(self.text, start, max(end, start + 1))}",
            details={"column": start + 1, "length": max(end - start, 1)},
        )

    def skip_space(self) -> None:
        """Go on to the next character that is not blank."""
        while self.next.isspace():
            self.place += 1

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.place : self.place + 1]

    def take(self, letters: str) -> Piece | None:
        """One of these characters, if it comes next; doubled, it means the same."""
        start = self.place
        if not self.next or self.next not in letters:
            return None
        self.place += 2 if self.text[start : start + 2] == self.next * 2 and self.next in "&|" else 1
        return Piece(self.text[start], start, self.place)

    def word(self) -> Piece | None:
        """A name, or a letter with what hangs on it."""
        found = _WORD.match(self.text, self.place)
        return None if found is None else self._advance(found.group(), found.start(), found.end())

    def sign(self) -> Sign | None:
        """A sign of comparison, also behind blanks, and with a colon before it."""
        found = _SIGN.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return _SIGNS[found[1] or ":"]

    @property
    def is_at_quote(self) -> bool:
        """Whether a quote comes next."""
        return self.next in _QUOTES

    def value(self) -> Piece | None:
        """What a field is compared with: in quotes, or up to a blank or a sign that joins terms."""
        return self._read_quoted() if self.is_at_quote else self._bare()

    def _read_quoted(self) -> Piece:
        start, quote = self.place, self.next
        pieces: list[str] = []
        at = start + 1
        while at < len(self.text):
            if self.text[at] == quote:
                return self._advance("".join(pieces), start, at + 1)
            piece, at = self._letter(at)
            pieces.append(piece)
        raise self.wrong(start, start + 1, f"the quote {quote} is not closed", f"Put a {quote} behind the words.")

    def _bare(self) -> Piece | None:
        start = at = self.place
        pieces: list[str] = []
        while at < len(self.text) and not self.text[at].isspace() and self.text[at] not in _ENDS:
            piece, at = self._letter(at)
            pieces.append(piece)
        return self._advance("".join(pieces), start, at) if pieces else None

    def _letter(self, at: int) -> tuple[str, int]:
        """The character here as part of a pattern, and where the next one is."""
        letter, escaped = self.text[at], self.text[at + 1 : at + 2]
        if letter != "\\":
            return letter, at + 1
        if escaped in _SPOKEN:
            return _SPOKEN[escaped], at + 2
        # Before any other letter it is taken for itself, as in a path of Windows.
        if not escaped or escaped.isalnum():
            return "\\\\", at + 1
        return f"\\{escaped}", at + 2

    def _advance(self, text: str, start: int, end: int) -> Piece:
        self.place = end
        return Piece(text, start, end)


def _point_at(text: str, start: int, end: int) -> str:
    """The text with a line of carets below; of a long one, the part around the place."""
    left = max(0, start - _SHOWN // 2) if len(text) > _SHOWN else 0
    right = min(len(text), left + _SHOWN)
    before, within = _safe(text[left:start]), _safe(text[start : min(end, right)])
    opening, closing = "…" * (left > 0), "…" * (right < len(text))
    line = f"{opening}{before}{within}{_safe(text[min(end, right) : right])}{closing}"
    return f"  {line}\n  {' ' * _width(opening + before)}{'^' * max(1, _width(within))}"


def _safe(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
