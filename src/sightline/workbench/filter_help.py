"""A filter while it is written: whether it can be read, where it is wrong, and what could come next."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

from sightline.errors import Code, Fault
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.filters.writing import Completion, completions
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
    """Looks at filters for the list, and with `for=rules` for a rule."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges

    async def describe(self, query: str) -> FilterShown:
        """The filter of a query; `at` is where the cursor stands, the end if it is left out."""
        told = parse_qs(query, keep_blank_values=True)
        text, scope = one(told, "text"), _SCOPES.get(one(told, "for"))
        if scope is None:
            hint = "for is traffic or rules."
            raise Fault(Code.INVALID_REQUEST, "a filter is for something else", hint=hint, status=400)
        at = cursor(text, one(told, "at"))
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
    """What is wrong with a text, and where, as a browser counts."""
    place = fault.details if isinstance(fault.details, dict) else {}
    column, length = place.get("column", 1), place.get("length", 1)
    start = _units(text[: column - 1])
    size = max(1, _units(text[column - 1 : column - 1 + length]))
    message = fault.message.partition(": ")[2] if place else fault.message
    return FilterError(message, start + 1, size, fault.hint.partition("\n")[0])


def offer(text: str, completion: Completion) -> Offer:
    """What could be written, with its place as a browser counts."""
    return Offer(completion.text, completion.label, completion.help, _units(text[: completion.start]))


def cursor(text: str, position: str) -> int:
    """Where the cursor stands: at the end where nothing is told."""
    return _letters(text, _number(position))


def _units(text: str) -> int:
    """How long a text is as browsers count it."""
    return len(text) + sum(letter > "\uffff" for letter in text)


def _letters(text: str, units: int | None) -> int:
    """Where a browser's cursor stands."""
    if units is None:
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9:
        hint = "at counts the letters before the cursor."
        raise Fault(Code.INVALID_REQUEST, f"at is no number: {text[:40]!r}", hint=hint, status=400)
    return int(text)
