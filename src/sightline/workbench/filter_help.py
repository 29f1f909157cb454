"""Help while the user types a filter: whether it is valid, where it is wrong, and completions."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

from sightline.errors import Code, Fault
from sightline.filters.completing import Completion, completions
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.web.bodies import one
from sightline.workbench.exchanges import Exchanges
from sightline.workbench.shapes import FilterError, FilterShown, Offer

MOST_LOOKED_AT: Final = 200
"""Values are offered from so many of the latest exchanges."""

_SCOPES: Final[Mapping[str, FilterScope]] = {
    "": FilterScope.TRAFFIC,
    "traffic": FilterScope.TRAFFIC,
    "rules": FilterScope.RULES,
}
_REMEMBERED: Final = ("model", "provider", "session", "client", "path", "finish", "fault")


class Filtering:
    """Checks filters for the traffic list, and with `for=rules` for a rule."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges

    async def describe(self, query: str) -> FilterShown:
        """Describe the filter in a query. `at` is the cursor, by default at the end."""
        parameters = parse_qs(query, keep_blank_values=True)
        text, scope = one(parameters, "text"), _SCOPES.get(one(parameters, "for"))
        if scope is None:
            hint = "for is traffic or rules."
            raise Fault(Code.INVALID_REQUEST, "unknown kind of filter", hint=hint, status=400)
        at = cursor(text, one(parameters, "at"))
        offers = completions(text, at, scope=scope, known=await self._known_values())
        error = _error(text, scope)
        return FilterShown(error is None, error, tuple(offer(text, each) for each in offers))

    async def _known_values(self) -> Mapping[str, Sequence[str]]:
        latest = await self._exchanges.newest(MOST_LOOKED_AT)
        known = {name: [str(getattr(summary, name)) for summary in latest] for name in _REMEMBERED}
        return known | {"tool": [tool for summary in latest for tool in summary.tools]}


def _error(text: str, scope: FilterScope) -> FilterError | None:
    try:
        parse(text, scope=scope)
    except Fault as fault:
        return mistake(text, fault)
    return None


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
