"""What could be written next in a filter: fields, and values of the one that was begun."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sightline.filters.expression import TextTerm
from sightline.filters.fields import BY_NAME, FIELDS, FilterField, FilterScope, Kind
from sightline.filters.pattern import literal
from sightline.filters.writing import write_expression

MOST = 50
_PARTING = " \t\n&|!()"
_USUAL: Mapping[Kind, tuple[str, ...]] = {
    Kind.YES_NO: ("yes", "no"),
    Kind.STATUS: ("ok", "error", "200", "400", "401", "429", "4xx", "5xx"),
    Kind.AGE: ("1h", "1d", "7d", "30d"),
    Kind.LATEST: ("20", "100"),
    Kind.CONTEXT: ("5",),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """`text` takes the place of what stands between `start` and the cursor."""

    text: str
    label: str
    help: str
    start: int


def completions(
    text: str,
    at: int,
    *,
    scope: FilterScope,
    known: Mapping[str, Sequence[str]] | None = None,
    first: Sequence[str] = (),
) -> list[Completion]:
    """What could stand at the cursor; `known` are values that fields have had, `first` the fields to begin with."""
    start = term_start(text, at)
    begun = text[start:at]
    name, colon, rest = begun.partition(":")
    if not colon:
        return list(_fields(begun, start, scope, first))[:MOST]
    field = BY_NAME.get(name.lower())
    if field is None or scope not in field.scopes:
        return []
    return list(_values(field, rest.strip("\"'"), start, known or {}))[:MOST]


def term_start(text: str, at: int) -> int:
    """Where the term begins that the cursor stands in; blanks within quotes part nothing."""
    quote, start = "", 0
    for index, letter in enumerate(text[:at]):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _PARTING:
            start = index + 1
    return start


def _fields(begun: str, start: int, scope: FilterScope, first: Sequence[str]) -> Iterator[Completion]:
    wanted, places = begun.lower(), {name: place for place, name in enumerate(first)}
    for field in sorted(FIELDS, key=lambda each: places.get(each.name, len(places))):
        if scope in field.scopes and any(name.startswith(wanted) for name in field.names):
            yield Completion(f"{field.name}:", field.name, field.meaning, start)


def _values(field: FilterField, begun: str, start: int, known: Mapping[str, Sequence[str]]) -> Iterator[Completion]:
    wanted = begun.lower()
    for value in (*field.values(), *_USUAL.get(field.kind, ())):
        if value.startswith(wanted):
            yield Completion(f"{field.name}:{value}", value, field.meaning, start)
    found = [value for value in _others(known.get(field.name, ())) if wanted in value.lower()]
    for value in sorted(found, key=lambda each: not each.lower().startswith(wanted)):
        yield Completion(write_expression(TextTerm(field.name, literal(value))), value, field.meaning, start)


def _others(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]
