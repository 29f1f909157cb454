"""Reads requests one after another. If a known conversation is sent again, only its new part is read.

An agent sends its whole conversation with every turn. If a body begins with the bytes of an earlier one, their content
is already known, and only the bytes after them are decoded.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import msgspec

from sightline.dialects.dialect import Dialect
from sightline.errors import Fault
from sightline.model.parts import Text
from sightline.model.request import Message, Request
from sightline.store.digest import (
    SYSTEM_ROLES,
    Digest,
    Mark,
    digest_of,
    digest_request,
    mark_messages,
    read_system,
    read_whole,
)
from sightline.store.entries import LEAST_SIZE, common_prefix
from sightline.wire.jsontext import decode

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_SEPARATORS = b" \t\r\n,"
_fingerprint = itemgetter(1)


Beginning: TypeAlias = tuple[bytes, int]
"""Another body, and how many leading bytes it has in common with this one. Finding that out takes 8 µs for 97 KB."""


class RequestLayout(NamedTuple):
    """Where the items of a request are. `spans` are their positions in the body, `end` is the position after their
    list. `before` and `after` are the raw values of the other members of the document; if a name occurs twice, the
    later value counts."""

    body: bytes
    before: dict[str, bytes]
    after: dict[str, bytes]
    spans: list[tuple[int, int]]
    end: int

    def items(self, start: int) -> bytes:
        """A JSON list of the items from index `start` to the last. There must be at least one."""
        return b"[%b]" % self.body[self.spans[start][0] : self.spans[-1][1]]


def lay_out(body: bytes, container: str) -> RequestLayout | None:
    """The layout of a body whose items are in the member `container`; None if the list is missing or empty, or its
    position is not certain."""
    try:
        members = _MEMBERS.decode(body)
        held = bytes(members.pop(container, b""))
        items = _ITEMS.decode(held)
        start = body.find(held)
        leading = _MEMBERS.decode(body[:start] + b"null}")  # so it is not inside another member
    except ValueError:
        return None
    if not items or [*leading][-1] != container:
        return None
    del leading[container]
    before = {name: bytes(raw) for name, raw in leading.items()}
    after = {name: bytes(raw) for name, raw in members.items() if before.get(name) != raw}
    return RequestLayout(body, before, after, _find_spans(body, start + 1, items), start + len(held))


def lay_out_next(
    known: RequestLayout, body: bytes, container: str, beginning: Beginning | None = None
) -> tuple[RequestLayout, int] | None:
    """The layout of a body that begins like a known one, up to and including its first item, and how many items are
    known. None if `lay_out` has to be used."""
    same = beginning[1] if beginning is not None and beginning[0] is known.body else common_prefix(known.body, body)
    count = bisect_right(known.spans, same, key=_begin) - 1
    start, end = known.spans[count]
    if end <= same and body[end : end + 1] == b",":
        count, start = count + 1, end + 1
    rest = _read_more(known, body, start) or _read_rest(body, start, container)
    if rest is None or not (rest.items or count):
        return None
    spans = known.spans[:count] + _find_spans(body, start, rest.items)
    return RequestLayout(body, known.before, rest.after, spans, rest.end), count


class _Rest(NamedTuple):
    """What comes after the known items."""

    items: list[msgspec.Raw]
    after: dict[str, bytes]
    end: int


def _read_more(known: RequestLayout, body: bytes, start: int) -> _Rest | None:
    """The new items, if everything after the list is the same as in the known body; otherwise None."""
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
        return None  # the list occurs twice, and the later one counts
    return _Rest(items, {name: bytes(raw) for name, raw in members.items()}, start + len(held) - 1)


def count_same(known: RequestLayout, layout: RequestLayout) -> int:
    """How many leading items are the same in both, wherever they are in the body."""
    pairs = enumerate(zip(known.spans, layout.spans, strict=False))
    others = (n for n, ((a, b), (c, d)) in pairs if known.body[a:b] != layout.body[c:d])
    return next(others, min(len(known.spans), len(layout.spans)))


def _find_spans(body: bytes, start: int, items: Sequence[msgspec.Raw]) -> list[tuple[int, int]]:
    """The positions of these items, which follow each other from `start` on."""
    spans: list[tuple[int, int]] = []
    for item in items:
        while body[start] in _SEPARATORS:
            start += 1
        end = start + len(item)
        spans.append((start, end))
        start = end
    return spans


def _begin(span: tuple[int, int]) -> int:
    return span[0]


# --- reading ---


class DigestReader:
    """Reads requests one after another. If a known conversation is sent again, only its new items are read, provided
    that the dialect can read items one by one."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int, bytes, bytes], _Conversation] = OrderedDict()
        self._size = 0

    def read(self, name: str, body: bytes, beginning: Beginning | None = None) -> Digest:
        """The digest of the request with this body; see `digest_of`."""
        return digest_of(name, body, partial(self._read, beginning) if len(body) >= LEAST_SIZE else read_whole)

    def _read(self, beginning: Beginning | None, spoken: Dialect, body: bytes) -> Digest:
        conversation = None
        if spoken.editing.reads_items_alone:
            conversation = self._extend_known(spoken, body, beginning) or self._find_by_first_item(spoken, body)
        if conversation is None:
            return read_whole(spoken, body)
        if (known := self._known.pop(conversation.key, None)) is not None:
            self._size -= len(known.layout.body)
        self._known[conversation.key] = conversation
        self._size += len(body)
        while self._size > _MOST_KNOWN and len(self._known) > 1:
            self._size -= len(self._known.popitem(last=False)[1].layout.body)
        thread = [*map(_fingerprint, filter(None, conversation.marks))]
        return digest_request(conversation.request, thread, conversation.system)

    def _extend_known(self, spoken: Dialect, body: bytes, beginning: Beginning | None) -> "_Conversation | None":
        """The conversation, if its body begins with the same bytes as one of the latest; otherwise None."""
        latest = (each for each in reversed(self._known.values()) if each.key[0] == spoken.name)
        for known in islice(latest, _CANDIDATES):
            if body.startswith(memoryview(known.layout.body)[: known.layout.spans[0][1]]):
                found = lay_out_next(known.layout, body, spoken.editing.container, beginning)
                return found and known.grow(spoken, *found)
        return None

    def _find_by_first_item(self, spoken: Dialect, body: bytes) -> "_Conversation | None":
        """The conversation, found by its first item because other members of the document have changed, or read from
        scratch. None if it has to be read as a whole."""
        layout = lay_out(body, spoken.editing.container)
        if layout is None:
            return None
        first = body[slice(*layout.spans[0])]
        key = spoken.name, len(first), first[:_EDGE], first[-_EDGE:]
        known = self._known.get(key)
        grown = None if known is None else known.grow(spoken, layout, count_same(known.layout, layout))
        if grown is not None:
            return grown
        request = spoken.read_request(decode(body))
        messages = request.messages[-len(layout.spans) :]
        if len(messages) < len(layout.spans) or any(map(spoken.editing.is_linked, messages)):
            return None
        return _Conversation(key, layout, request, mark_messages(messages), read_system(request.messages))


_EDGE = 64
_CANDIDATES = 6
_MOST_KNOWN = 2 << 20
"""How many bytes of bodies a reader remembers for its conversations."""


class _Conversation(NamedTuple):
    """A request that was read, with its instructions. `key` describes its first item. Its last messages are one for
    each item, each has a mark, and none depends on the content of other items."""

    key: tuple[str, int, bytes, bytes]
    layout: RequestLayout
    request: Request
    marks: list[Mark]
    system: tuple[str, ...]

    def grow(self, spoken: Dialect, layout: RequestLayout, count: int) -> "_Conversation | None":
        """The conversation for a request with this layout, which shares its first `count` items with this one; only the
        other items are read. None if the request has to be read as a whole."""
        request = self.request
        new: tuple[Message, ...] = ()
        start = len(request.messages) - len(self.layout.spans)
        leading, kept, gone = (
            request.messages[:start],
            request.messages[start:][:count],
            request.messages[start:][count:],
        )
        is_same = layout.before == self.layout.before and layout.after == self.layout.after
        try:
            if not is_same:
                others = {name: decode(raw) for name, raw in {**layout.before, **layout.after}.items()}
                request = spoken.read_request({**others, spoken.editing.container: []})
                leading = request.messages
            if count < len(layout.spans):
                new = _read_items(spoken, layout.items(count))
                if len(new) != len(layout.spans) - count or any(map(spoken.editing.is_linked, new)):
                    return None
        except Fault:
            return None
        marks = self.marks[:count]
        marks += mark_messages(new, reversed(marks))
        request = msgspec.structs.replace(request, messages=(*leading, *kept, *new))
        is_same = is_same and SYSTEM_ROLES.isdisjoint(message.role for message in (*gone, *new))
        system = self.system if is_same else read_system(request.messages)
        return _Conversation(self.key, layout, request, marks, system)


def _read_items(spoken: Dialect, items: bytes) -> tuple[Message, ...]:
    """The messages of the items in this list, with what a digest needs. Raises a Fault if an item is not valid."""
    document = b'{"%b":%b}' % (spoken.editing.container.encode(), items)
    texts = None if spoken.plain_texts is None else spoken.plain_texts.request(document)
    if texts is None:
        return spoken.read_request(decode(document)).messages
    return tuple([Message(role, tuple(map(Text, own))) for role, own in texts])  # type: ignore[arg-type] # a role
