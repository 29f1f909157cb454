"""JSON that arrives in pieces: `PartialJson` tracks whether a growing text is complete, and `JsonArrayDecoder` splits
an array into its elements.

Arguments of tool calls stream in pieces of a few characters. Each piece is scanned once: the reader keeps only the open
brackets and what may come next.

Google streams a reply as one array unless server-sent events are requested. Its elements must be read while the array
is still open, which rules out an ordinary JSON parser: it needs the last bracket.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from sightline.wire.jsontext import BOM

# What the reader expects next, or is inside of.
_VALUE: Final = "value"
_FIRST_ELEMENT: Final = "first element"
_FIRST_KEY: Final = "first key"
_KEY: Final = "key"
_COLON: Final = "colon"
_AFTER: Final = "after"
_STRING: Final = "string"
_ESCAPE: Final = "escape"
_HEX: Final = "hex"
_NUMBER: Final = "number"
_WORD: Final = "word"

_SPACE = re.compile(r"[^ \t\n\r]|\Z")
_PLAIN = re.compile(r'["\\\x00-\x1f]|\Z')
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_WORDS = {"t": "rue", "f": "alse", "n": "ull"}

_DIGITS = "0123456789"
_EXPONENT = {"e": "e", "E": "e"}
# For each state within a number, the state that a character leads to.
_NUMBER_STEPS: Mapping[str, Mapping[str, str]] = {
    "start": {"-": "-", "0": "zero"} | dict.fromkeys("123456789", "whole"),
    "-": {"0": "zero"} | dict.fromkeys("123456789", "whole"),
    "zero": {".": "."} | _EXPONENT,
    "whole": dict.fromkeys(_DIGITS, "whole") | {".": "."} | _EXPONENT,
    ".": dict.fromkeys(_DIGITS, "fraction"),
    "fraction": dict.fromkeys(_DIGITS, "fraction") | _EXPONENT,
    "e": dict.fromkeys(_DIGITS, "exponent") | dict.fromkeys("+-", "sign"),
    "sign": dict.fromkeys(_DIGITS, "exponent"),
    "exponent": dict.fromkeys(_DIGITS, "exponent"),
}
_NUMBER_ENDS = frozenset({"zero", "whole", "fraction", "exponent"})


class PartialJson:
    """A JSON text that is still arriving: whether it is complete, and whether it can still become JSON. A number at the
    root counts as complete once white space follows it."""

    def __init__(self) -> None:
        self.is_broken = False
        self._closers: list[str] = []
        self._state: str = _VALUE
        self._is_key = False
        # The rest of the escape, number or word that the text ends in.
        self._hex_left = 0
        self._number = ""
        self._word = ""

    @property
    def is_complete(self) -> bool:
        """Whether there is a complete JSON value, with at most white space after it."""
        return self._state == _AFTER and not self._closers and not self.is_broken

    def feed(self, fragment: str) -> None:
        """Read the next fragment. A broken text stays broken."""
        at, end = 0, len(fragment)
        while at < end and not self.is_broken:
            at = _STEPS[self._state](self, fragment, at)

    # Each step reads from `at` and returns the position that it got to.

    def _between(self, text: str, at: int) -> int:
        at = _next(_SPACE, text, at)
        if at == len(text):
            return at
        char, state = text[at], self._state
        if state in (_VALUE, _FIRST_ELEMENT) and self._begin(char):
            pass
        elif char == '"' and state in (_KEY, _FIRST_KEY):
            self._is_key, self._state = True, _STRING
        elif char == ":" and state == _COLON:
            self._state = _VALUE
        elif char == "," and state == _AFTER and self._closers:
            self._state = _KEY if self._closers[-1] == "}" else _VALUE
        elif self._closers[-1:] == [char] and state in (_AFTER, _FIRST_ELEMENT, _FIRST_KEY):
            self._closers.pop()
            self._state = _AFTER
        else:
            self.is_broken = True
        return at + 1

    def _begin(self, char: str) -> bool:
        """Begin the value that this character opens. Returns False if it does not open one."""
        if char == '"':
            self._is_key, self._state = False, _STRING
        elif char == "{":
            self._closers.append("}")
            self._state = _FIRST_KEY
        elif char == "[":
            self._closers.append("]")
            self._state = _FIRST_ELEMENT
        elif char in _WORDS:
            self._word, self._state = _WORDS[char], _WORD
        elif char in _NUMBER_STEPS["start"]:
            self._number, self._state = _NUMBER_STEPS["start"][char], _NUMBER
        else:
            return False
        return True

    def _in_string(self, text: str, at: int) -> int:
        stop = _next(_PLAIN, text, at)
        if stop == len(text):
            return stop
        if text[stop] == "\\":
            self._state = _ESCAPE
        elif text[stop] == '"':
            self._state = _COLON if self._is_key else _AFTER
        else:
            self.is_broken = True
        return stop + 1

    def _in_escape(self, text: str, at: int) -> int:
        if text[at] == "u":
            self._hex_left, self._state = 4, _HEX
        elif text[at] in '"\\/bfnrt':
            self._state = _STRING
        else:
            self.is_broken = True
        return at + 1

    def _in_hex(self, text: str, at: int) -> int:
        self.is_broken = text[at] not in _HEX_DIGITS
        self._hex_left -= 1
        if not self._hex_left:
            self._state = _STRING
        return at + 1

    def _in_number(self, text: str, at: int) -> int:
        for stop in range(at, len(text)):
            point = _NUMBER_STEPS[self._number].get(text[stop])
            if point is None:
                self.is_broken = self._number not in _NUMBER_ENDS
                self._state = _AFTER
                return stop
            self._number = point
        return len(text)

    def _in_word(self, text: str, at: int) -> int:
        part = text[at : at + len(self._word)]
        self.is_broken = not self._word.startswith(part)
        self._word = self._word[len(part) :]
        if not self._word:
            self._state = _AFTER
        return at + len(part)


_STEPS: Mapping[str, Callable[[PartialJson, str, int], int]] = {
    **dict.fromkeys((_VALUE, _FIRST_ELEMENT, _FIRST_KEY, _KEY, _COLON, _AFTER), PartialJson._between),
    _STRING: PartialJson._in_string,
    _ESCAPE: PartialJson._in_escape,
    _HEX: PartialJson._in_hex,
    _NUMBER: PartialJson._in_number,
    _WORD: PartialJson._in_word,
}


def _next(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The position of the next match. Every pattern used here also matches at the end of the text."""
    found = pattern.search(text, at)
    assert found is not None
    return found.start()


_MARKS = re.compile(rb'[\[\]{},"\\]')
_ARRAY_SPACE = b" \t\r\n"


def begins_array(data: bytes) -> bool | None:
    """Whether a text that begins with these bytes is a JSON array; None while it is empty or only white space."""
    head = data.removeprefix(BOM).lstrip(_ARRAY_SPACE)
    return head.startswith(b"[") if head else None


class JsonArrayDecoder:
    """Takes the bytes of one array as they arrive and returns each element as soon as it is complete.

    `is_over` means that the closing bracket has arrived; `is_between` that the bytes so far end between two elements,
    where another one can be added. Bytes after the closing bracket are ignored.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._element = bytearray()
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    @property
    def is_between(self) -> bool:
        """Whether an element can be added here."""
        return self._depth == 1 and not self._element.strip(_ARRAY_SPACE)

    def feed(self, data: bytes) -> list[bytes]:
        """The elements that these bytes complete."""
        elements: list[bytes] = []
        start = at = 0
        if self._is_escaped and data:
            self._is_escaped, at = False, 1
        while not self.is_over and (found := _MARKS.search(data, at)):
            mark, at = found[0], found.end()
            if self._is_in_string:
                if mark == b"\\":
                    self._is_escaped = at == len(data)
                    at += 1
                self._is_in_string = mark != b'"'
                continue
            if mark == b'"':
                self._is_in_string = True
                continue
            start = self._take_mark(mark, data, start, found.start(), at, elements)
        if not self.is_over:
            self._element += data[start:]
        return elements

    def _take_mark(self, mark: bytes, data: bytes, start: int, before: int, after: int, elements: list[bytes]) -> int:
        """Process one bracket or comma. Returns where the bytes of the next element begin."""
        if mark in (b"[", b"{"):
            self._depth += 1
            if self._depth > 1:
                return start
            self._element.clear()  # what precedes the array: white space, or a byte order mark
            return after
        is_comma = mark == b","
        if not is_comma:
            self._depth -= 1
        if self._depth > 1:
            return start
        self.is_over = not (is_comma or self._depth)
        # An object or a list is complete with its bracket; no need to wait for the comma after it.
        return self._complete(data, start, before if is_comma or self.is_over else after, after, elements)

    def _complete(self, data: bytes, start: int, stop: int, following: int, elements: list[bytes]) -> int:
        element = bytes(self._element + data[start:stop]).strip(_ARRAY_SPACE)
        self._element.clear()
        if element:
            elements.append(element)
        return following
