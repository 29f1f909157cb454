"""What stands on screen: the visible pairs, and between them those that were left out by hand."""

from bisect import bisect_left
from collections.abc import Sequence

from sightline.chat.core.history import Key
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.view import View


class Rows:
    """The rows of a view as it is at this moment, from the oldest on. What is looked at is what is asked for, not all
    that there is."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._visible: Sequence[MessagePair] = view.visible
        self._left_out = view.left_out
        self._places = [self._among_visible(pair.id) + count for count, pair in enumerate(self._left_out)]

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self._visible) + len(self._left_out)

    @property
    def start(self) -> int:
        """The row of the first pair that goes along; the number of rows where none does."""
        start = self._view.start
        return self.total if start == len(self._visible) else self._row(start)

    def slice(self, first: int, limit: int) -> list[MessagePair]:
        """So many rows from this one on."""
        return [self._at(row) for row in range(max(0, first), min(self.total, first + limit))]

    def place(self, pair: str) -> int | None:
        """The row of a pair, None where it is not on screen."""
        match self._view.standing(pair):
            case "hidden":
                return None
            case "left_out":
                return self._places[[each.id for each in self._left_out].index(pair)]
            case _:
                return self._row(self._among_visible(pair))

    def _at(self, row: int) -> MessagePair:
        before = bisect_left(self._places, row)
        if before < len(self._places) and self._places[before] == row:
            return self._left_out[before]
        return self._visible[row - before]

    def _row(self, place: int) -> int:
        """The row of the visible pair at this place."""
        key = self._key(self._visible[place])
        return place + bisect_left(self._left_out, key, key=self._key)

    def _among_visible(self, pair: str) -> int:
        return bisect_left(self._visible, self._view.history.key(pair), key=self._key)

    def _key(self, pair: MessagePair) -> Key:
        return self._view.history.key(pair.id)
