"""A summary as a row of a table and back, whichever database has the table, and as a thing that filters look at."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import msgspec

from sightline.filters.pattern import occurs
from sightline.filters.predicate import Value
from sightline.store.summary import Summary

FOLDED = (
    "at", "state", "dialect", "provider", "model", "session", "client", "path", "status", "finish", "fault", "message",
    "is_stream", "input_tokens", "output_tokens", "cached_tokens", "cost", "losses", "attempts", "tools", "first_byte",
    "elapsed", "origin",
)  # fmt: skip
"""The columns that follow from facts alone."""
DIGESTED = ("previous", "is_side", "title")
"""Those that come from reading the request."""
NAMES = ("id", *FOLDED, *DIGESTED)

FIELDS: Mapping[str, str] = {
    "id": "id", "at": "at", "model": "model", "provider": "provider", "dialect": "dialect", "session": "session",
    "client": "client", "path": "path", "status": "status", "state": "state", "finish": "finish", "fault": "fault",
    "input": "input_tokens", "output": "output_tokens", "cached": "cached_tokens", "cost": "cost", "losses": "losses",
    "attempts": "attempts", "time": "elapsed", "first": "first_byte", "stream": "is_stream", "side": "is_side",
    "origin": "origin", "tool": "tools",
}  # fmt: skip
"""What a filter calls them."""
_VALUES = attrgetter(*FOLDED)
_TOOLS = FOLDED.index("tools")
_COUNTS = tuple(map(FOLDED.index, ("status", "input_tokens", "output_tokens", "cached_tokens", "losses", "attempts")))
_TEXTS = tuple(
    map(
        FOLDED.index,
        ("dialect", "provider", "model", "session", "client", "path", "finish", "fault", "message", "origin", "tools"),
    )
)
_LARGEST = 2**63 - 1


def storable(text: str) -> str:
    """The text as every database takes it: without half characters, and without the one that some end a text at."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def row_of(summary: Summary) -> list[str | int | float | None]:
    """The values of the columns in `FOLDED`; tools are a JSON list."""
    row: list[str | int | float | None] = list(_VALUES(summary))
    row[_TOOLS] = msgspec.json.encode([storable(name) for name in summary.tools]).decode() if summary.tools else "[]"
    texts = "".join([row[index] for index in _TEXTS])  # type: ignore[misc]
    if not texts.isascii() or "\0" in texts:  # as a rule one look at all of them is enough
        for index in _TEXTS:
            row[index] = storable(str(row[index]))
    for index in _COUNTS:
        count = row[index]
        if count and not -_LARGEST <= count <= _LARGEST:  # type: ignore[operator]
            row[index] = _LARGEST if count > 0 else -_LARGEST  # type: ignore[operator]
    return row


def summary_in(row: Sequence[str | int | float | None]) -> Summary:
    """The summary whose columns, in the order of `NAMES`, have these values."""
    values = dict(zip(NAMES, row, strict=True))
    values["tools"] = msgspec.json.decode(str(values["tools"]))
    return msgspec.convert(values, Summary, strict=False)


class ExchangeSubject:
    """An exchange as a filter sees it. Its words are looked up when they are asked for."""

    def __init__(self, summary: Summary, words: Callable[[], Sequence[str]]) -> None:
        self.summary = summary
        self._words = words

    def value(self, name: str) -> Value:
        """The value of a field; a status that has not come is none."""
        column = FIELDS.get(name)
        value: Value = None if column is None else getattr(self.summary, column)
        return None if name == "status" and value == 0 else value

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the request's new words or in the reply."""
        return any(occurs(pattern, words) for words in self._words())
