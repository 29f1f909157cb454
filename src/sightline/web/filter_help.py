"""Help while the user types a filter: its mistakes, and completions, with positions in UTF-16 units."""

from collections.abc import Callable

import msgspec

from sightline.errors import Fault
from sightline.filters.parsing import Completion
from sightline.web.bodies import Query


class FilterError(msgspec.Struct, frozen=True):
    """A mistake in a filter. `column` counts from 1; it and `length` are in UTF-16 units, as in browsers."""

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
    """The mistake in a text, with its position in UTF-16 units."""
    place = fault.details if isinstance(fault.details, dict) else {}
    column, length = place.get("column", 1), place.get("length", 1)
    start = _units(text[: column - 1])
    size = max(1, _units(text[column - 1 : column - 1 + length]))
    message = fault.message.partition(": ")[2] if place else fault.message
    return FilterError(message, start + 1, size, fault.hint.partition("\n")[0])


def error_in(text: str, parse: Callable[[], object]) -> FilterError | None:
    """The mistake that parsing a text finds; None if it is valid."""
    try:
        parse()
    except Fault as fault:
        return mistake(text, fault)
    return None


def offer(text: str, completion: Completion) -> Offer:
    """A completion, with its position in UTF-16 units."""
    return Offer(completion.text, completion.label, completion.help, _units(text[: completion.start]))


def cursor(text: str, query: Query, name: str) -> int:
    """The browser's cursor in a query parameter, as an index into the text; the end of the text if it is missing."""
    units = query.number(name, _units(text))
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def _units(text: str) -> int:
    """The length of a text in UTF-16 units, as browsers count."""
    return len(text) + sum(character > "\uffff" for character in text)
