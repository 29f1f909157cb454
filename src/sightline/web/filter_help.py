"""Help while the user types a filter: where it is wrong, and completions, with places in UTF-16 units."""

import msgspec

from sightline.errors import Code, Fault
from sightline.filters.parsing import Completion


class FilterError(msgspec.Struct, frozen=True):
    """Where a filter is wrong. `column` counts from 1; both count UTF-16 units, as browsers do."""

    message: str
    column: int
    length: int
    hint: str


class Offer(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """A completion that replaces the term at the cursor, which begins at `from`."""

    text: str
    label: str
    help: str
    start: int


class FilterShown(msgspec.Struct, frozen=True):
    """Whether a filter is valid, and the completions at the cursor."""

    ok: bool
    error: FilterError | None
    completions: tuple[Offer, ...]


def mistake(text: str, fault: Fault) -> FilterError:
    """The error in a text, with its place in UTF-16 units."""
    place = fault.details if isinstance(fault.details, dict) else {}
    column, length = place.get("column", 1), place.get("length", 1)
    start = _units(text[: column - 1])
    size = max(1, _units(text[column - 1 : column - 1 + length]))
    message = fault.message.partition(": ")[2] if place else fault.message
    return FilterError(message, start + 1, size, fault.hint.partition("\n")[0])


def offer(text: str, completion: Completion) -> Offer:
    """A completion, with its place in UTF-16 units."""
    return Offer(completion.text, completion.label, completion.help, _units(text[: completion.start]))


def cursor(text: str, position: str) -> int:
    """The cursor as an index into the text; the end if `position` is empty."""
    return _letters(text, _number(position))


def _units(text: str) -> int:
    """The length of a text in UTF-16 units, as browsers count."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def _letters(text: str, units: int | None) -> int:
    """The index of a browser's cursor."""
    if units is None:
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9:
        hint = "at is the number of characters before the cursor."
        raise Fault(Code.INVALID_REQUEST, f"at is not a number: {text[:40]!r}", hint=hint, status=400)
    return int(text)
