"""Spans: the byte positions of the values in a JSON text.

Editing the bytes in place needs offsets, which JSON parsers do not report. Here msgspec splits one container at a time
into its raw values at C speed, and their lengths give their positions. Where that fails (a repeated key, uneven
spacing, a text that msgspec refuses) a small scanner steps over one value after another.
"""

import json
import re
from itertools import accumulate
from typing import NamedTuple

import msgspec

from sightline.wire import jsontext
from sightline.wire.pointer import index, parse_pointer, refusal

_ANY = msgspec.json.Decoder(msgspec.Raw)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])

_SPACE = re.compile(rb"[ \t\n\r]*+")
_COMMA = re.compile(rb"[ \t\n\r]*+,?[ \t\n\r]*+")
_KEY = re.compile(rb'("(?:[^"\\]++|\\.)*+")[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
_SCALAR = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^ \t\n\r,\]}]++', re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}]', re.DOTALL)
_AFTER_VALUE = frozenset(b" \t\n\r,]}")


class Span(NamedTuple):
    """A range of bytes, from `start` up to `stop`."""

    start: int
    stop: int


class Layout(NamedTuple):
    """A container and its entries in order, column by column.

    An entry begins at its head: the key of an object's member, or the value itself in an array. `keys` is None for an
    array; a repeated key is in it as often as in the text.
    """

    span: Span
    keys: list[str] | None
    heads: list[int]
    starts: list[int]
    stops: list[int]

    def entry(self, token: str, pointer: str) -> int:
        """The position of the entry that a token names. Of equal keys the last one counts, as it does for parsers."""
        if self.keys is None:
            return index(token, len(self.heads), pointer)
        if token not in self.keys:
            raise refusal(pointer, f"there is no key {token!r}")
        return len(self.keys) - 1 - self.keys[::-1].index(token)


def find(data: bytes, pointer: str) -> Span:
    """The span of the value at a pointer."""
    return _descend(data, parse_pointer(pointer), pointer)


def parent(data: bytes, pointer: str) -> tuple[Layout, str]:
    """The container of the value that a pointer names, and the token that names the value in it."""
    *above, token = parse_pointer(pointer)
    return layout_of(data, _descend(data, above, pointer), pointer), token


def _descend(data: bytes, tokens: tuple[str, ...] | list[str], pointer: str) -> Span:
    span = _root(data)
    if not tokens:
        _check(data, span)
    for token in tokens:
        layout = layout_of(data, span, pointer)
        at = layout.entry(token, pointer)
        span = Span(layout.starts[at], layout.stops[at])
    return span


def _root(data: bytes) -> Span:
    start = _end(_SPACE, data, len(jsontext.BOM) if data.startswith(jsontext.BOM) else 0)
    return Span(start, max(start, len(data.rstrip(b" \t\n\r"))))


def _check(data: bytes, span: Span) -> None:
    try:
        _ANY.decode(memoryview(data)[span.start : span.stop])
    except (ValueError, RecursionError):
        jsontext.decode(data)


def layout_of(data: bytes, span: Span, pointer: str) -> Layout:
    """The layout of the container in this span."""
    opening = data[span.start : span.start + 1]
    if opening == b"{":
        return _members(data, span)
    if opening == b"[":
        return _elements(data, span)
    _check(data, _root(data))
    raise refusal(pointer, "it is inside a value that is neither an object nor an array")


def _members(data: bytes, span: Span) -> Layout:
    layout = Layout(span, keys := [], [], [], [])
    try:
        raws = _OBJECT.decode(memoryview(data)[span.start : span.stop])
    except (ValueError, RecursionError):
        jsontext.decode(data)
        raws = {}
    at = _end(_SPACE, data, span.start + 1)
    while match := _KEY.match(data, at):
        spelled, start = match[1], match.end()
        key = json.loads(spelled) if b"\\" in spelled else spelled[1:-1].decode("utf-8")
        raw = raws.get(key, b"")
        stop = start + len(raw)
        # The dictionary holds only the last of equal keys: an earlier one is recognised by its different bytes.
        if not raw or not data.startswith(raw, start) or data[stop] not in _AFTER_VALUE:
            stop = _skip(data, start)
        keys.append(key)
        layout.heads.append(at)
        layout.starts.append(start)
        layout.stops.append(stop)
        at = _end(_COMMA, data, stop)
    return layout


def _elements(data: bytes, span: Span) -> Layout:
    try:
        raws = _ARRAY.decode(memoryview(data)[span.start : span.stop])
    except (ValueError, RecursionError):
        jsontext.decode(data)
        return _walk(data, span)
    if not raws:
        return Layout(span, None, [], [], [])
    first = _end(_SPACE, data, span.start + 1)
    lengths = list(map(len, raws))
    after = first + lengths[0]
    gap = data[after : _end(_COMMA, data, after)]
    # Almost every array is spaced evenly; the positions then follow from the lengths alone.
    if not data.startswith(gap.join(raws), first):
        return _walk(data, span)
    starts = [at + i * len(gap) for i, at in enumerate(accumulate(lengths[:-1], initial=first))]
    return Layout(span, None, starts, starts, [at + length for at, length in zip(starts, lengths, strict=True)])


def _walk(data: bytes, span: Span) -> Layout:
    starts: list[int] = []
    stops: list[int] = []
    at = _end(_SPACE, data, span.start + 1)
    while data[at : at + 1] != b"]":
        starts.append(at)
        stops.append(_skip(data, at))
        at = _end(_COMMA, data, stops[-1])
    return Layout(span, None, starts, starts, stops)


def _skip(data: bytes, at: int) -> int:
    """Where the value that begins here ends. The text must be valid JSON."""
    if data[at] not in b"{[":
        return _end(_SCALAR, data, at)
    depth = 0
    while True:
        at = _end(_TO_BRACKET, data, at)
        depth += 1 if data[at - 1] in b"{[" else -1
        if depth == 0:
            return at


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    assert match is not None
    return match.end()
