"""A JSON array that arrives in pieces, taken apart into its elements.

Google streams a reply as one array unless server-sent events are asked for. Its elements have to be read while the
array is still open, so that an ordinary JSON parser, which needs the last bracket, is of no use.
"""

import re

from sightline.wire.jsontext import BOM

_MARKS = re.compile(rb'[\[\]{},"\\]')
_SPACE = b" \t\r\n"


def begins_array(data: bytes) -> bool | None:
    """Whether a text that begins with these bytes is a JSON array; None while nothing but white space has come."""
    head = data.removeprefix(BOM).lstrip(_SPACE)
    return head.startswith(b"[") if head else None


class JsonArrayDecoder:
    """Takes the bytes of one array as they come and gives each element as soon as it is whole.

    `is_over` says that the closing bracket came; `is_between` that the bytes so far end between two elements, where
    another one can be added. What follows the closing bracket is passed over.
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
        return self._depth == 1 and not self._element.strip(_SPACE)

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
        """Follow one bracket or comma; where the bytes begin that belong to the next element."""
        if mark in (b"[", b"{"):
            self._depth += 1
            if self._depth > 1:
                return start
            self._element.clear()  # what came before the array: white space, or a byte order mark
            return after
        if mark == b",":
            if self._depth > 1:
                return start
            return self._complete(data, start, before, after, elements)
        self._depth -= 1
        if self._depth:
            if self._depth > 1:
                return start
            # An object or a list is whole with its bracket; its reader need not wait for the comma behind it.
            return self._complete(data, start, after, after, elements)
        self.is_over = True
        return self._complete(data, start, before, after, elements)

    def _complete(self, data: bytes, start: int, stop: int, following: int, elements: list[bytes]) -> int:
        element = bytes(self._element + data[start:stop]).strip(_SPACE)
        self._element.clear()
        if element:
            elements.append(element)
        return following
