"""Where the items of a conversation stand in the body of a request.

An agent sends its whole conversation with every turn. Where a body begins with the bytes of an earlier one, what these
say is known: only what stands behind them has to be decoded.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sightline.store.entries import common_prefix

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_BETWEEN = b" \t\r\n,"


class RequestLayout(NamedTuple):
    """`spans` are the places of the items in the body, `end` is that behind their list. `before` and `after` are the
    other members of the document, as they were written; of those that come twice, the later counts."""

    body: bytes
    before: dict[str, bytes]
    after: dict[str, bytes]
    spans: list[tuple[int, int]]
    end: int

    def items(self, start: int) -> bytes:
        """The list of the items from this one on, of which there is at least one."""
        return b"[%b]" % self.body[self.spans[start][0] : self.spans[-1][1]]


def lay_out(body: bytes, container: str) -> RequestLayout | None:
    """The places of the items in the list that has this name; None where there is none, or it cannot be told for
    certain."""
    try:
        members = _MEMBERS.decode(body)
        held = bytes(members.pop(container, b""))
        items = _ITEMS.decode(held)
        start = body.find(held)
        leading = _MEMBERS.decode(body[:start] + b"null}")  # so it is no part of another member
    except ValueError:
        return None
    if not items or [*leading][-1] != container:
        return None
    del leading[container]
    before = {name: bytes(raw) for name, raw in leading.items()}
    after = {name: bytes(raw) for name, raw in members.items() if before.get(name) != raw}
    return RequestLayout(body, before, after, _find_spans(body, start + 1, items), start + len(held))


def lay_out_next(known: RequestLayout, body: bytes, container: str) -> tuple[RequestLayout, int] | None:
    """The same of a body that begins with the first item of a known one and all before that; and how many items are
    known. None where `lay_out` has to tell."""
    same = common_prefix(known.body, body)
    count = bisect_right(known.spans, same, key=_begin) - 1
    start, end = known.spans[count]
    if end <= same and body[end : end + 1] == b",":
        count, start = count + 1, end + 1
    rest = _read_items(known, body, start) or _read_rest(body, start, container)
    if rest is None or not (rest.items or count):
        return None
    spans = known.spans[:count] + _find_spans(body, start, rest.items)
    return RequestLayout(body, known.before, rest.after, spans, rest.end), count


class _Rest(NamedTuple):
    """What comes behind the items that are known."""

    items: list[msgspec.Raw]
    after: dict[str, bytes]
    end: int


def _read_items(known: RequestLayout, body: bytes, start: int) -> _Rest | None:
    """More items, if nothing else comes than in the known body."""
    tail = memoryview(known.body)[known.end :]
    end = len(body) - len(tail)
    if end <= start or not body.endswith(tail):
        return None
    try:
        return _Rest(_ITEMS.decode(b"[" + body[start:end]), known.after, end)
    except ValueError:
        return None


def _read_rest(body: bytes, start: int, container: str) -> _Rest | None:
    document = b'{"%b":[%b' % (container.encode(), body[start:])
    try:
        members = _MEMBERS.decode(document)
        held = bytes(members.pop(container))
        items = _ITEMS.decode(held)
    except ValueError:
        return None
    if not document.startswith(held, len(container) + 4):
        return None  # the list comes again, and the later one counts
    return _Rest(items, {name: bytes(raw) for name, raw in members.items()}, start + len(held) - 1)


def count_same(known: RequestLayout, layout: RequestLayout) -> int:
    """How many items both begin with, wherever they stand."""
    pairs = enumerate(zip(known.spans, layout.spans, strict=False))
    others = (n for n, ((a, b), (c, d)) in pairs if known.body[a:b] != layout.body[c:d])
    return next(others, min(len(known.spans), len(layout.spans)))


def _find_spans(body: bytes, start: int, items: Sequence[msgspec.Raw]) -> list[tuple[int, int]]:
    """The places of these items, which stand one behind the other from there on."""
    spans: list[tuple[int, int]] = []
    for item in items:
        while body[start] in _BETWEEN:
            start += 1
        end = start + len(item)
        spans.append((start, end))
        start = end
    return spans


def _begin(span: tuple[int, int]) -> int:
    return span[0]
