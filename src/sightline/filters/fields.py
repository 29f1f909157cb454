"""The fields that a filter can use, and their values: numbers, times and dates as people write them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from sightline.dialects.registry import names
from sightline.errors import Code, Fault
from sightline.filters.expression import DateTerm, NumberTerm, Operator, TextTerm
from sightline.model.exchange import RAW_HTTP, State

if TYPE_CHECKING:
    from sightline.filters.predicate import FilterSubject, Value


class Kind(StrEnum):
    """The kind of value that a field has."""

    TEXT = "text"
    WORDS = "words"
    TOPIC = "topic"
    NUMBER = "number"
    MONEY = "money"
    SECONDS = "seconds"
    STATUS = "status"
    YES_NO = "yes or no"
    AGE = "age"
    DATE = "date"
    LATEST = "latest"
    CONTEXT = "context"


class FilterScope(StrEnum):
    """What a filter is applied to. A rule is applied to one exchange before it is sent, so it can refer neither to a
    position in a list nor to the outcome."""

    TRAFFIC = "traffic"
    RULES = "rules"
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class FilterField:
    """A field of the filter language. `letter` is its short form, `aliases` are other names, `values` the only possible
    values, if they are few. It is refused outside its `scopes`: nothing has a value there, so a rule with it would
    never match. `column` is the column of the record with its value, if it is not named like the field. A field that
    was added has `read`, which computes its value from the other fields."""

    name: str
    kind: Kind
    meaning: str
    letter: str = ""
    aliases: tuple[str, ...] = ()
    values: Callable[[], tuple[str, ...]] = tuple
    scopes: frozenset[FilterScope] = frozenset(FilterScope)
    column: str = ""
    read: "Callable[[FilterSubject], Value] | None" = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the field."""
        return (self.name, *self.aliases, *((self.letter,) if self.letter else ()))


_CHAT = frozenset({FilterScope.CHAT})
_LISTS = frozenset({FilterScope.CHAT, FilterScope.TRAFFIC})
_EXCHANGES = frozenset({FilterScope.TRAFFIC, FilterScope.RULES})
_TRAFFIC = frozenset({FilterScope.TRAFFIC})


def _dialect_names() -> tuple[str, ...]:
    return (*names(), RAW_HTTP)


FIELDS: tuple[FilterField, ...] = (
    FilterField("id", Kind.TEXT, "the id of the exchange"),
    FilterField("model", Kind.TEXT, "the model that was asked for", "m"),
    FilterField("provider", Kind.TEXT, "the provider that it went to", scopes=_EXCHANGES),
    FilterField("dialect", Kind.TEXT, "the dialect that the client speaks", values=_dialect_names, scopes=_EXCHANGES),
    FilterField("session", Kind.TEXT, "the label of the traffic that it belongs to", scopes=_EXCHANGES),
    FilterField("client", Kind.TEXT, "the program that asked, as it calls itself", scopes=_EXCHANGES),
    FilterField("path", Kind.TEXT, "the path that the client called", scopes=_EXCHANGES),
    FilterField("method", Kind.TEXT, "the method of a request that is forwarded unchanged", scopes=_EXCHANGES),
    FilterField(
        "transport", Kind.TEXT, "how the request came", values=lambda: ("http", "websocket", "tls"), scopes=_EXCHANGES
    ),
    FilterField("stored", Kind.TEXT, "the client that can ask for the reply again, as a fingerprint", scopes=_TRAFFIC),
    FilterField("status", Kind.STATUS, "the HTTP status that the client got; also `ok`, `error`, `4xx`", scopes=_LISTS),
    FilterField("state", Kind.TEXT, "the state of the exchange", values=lambda: get_args(State)),
    FilterField("finish", Kind.TEXT, "why the reply ended", scopes=_LISTS),
    FilterField("fault", Kind.TEXT, "the code of the error that it ended in", scopes=_LISTS),
    FilterField("error", Kind.YES_NO, "it failed, or the client got a status of 400 or more", "e", scopes=_LISTS),
    FilterField("ok", Kind.YES_NO, "it is finished, with a status below 400", scopes=_LISTS),
    FilterField("tool", Kind.TEXT, "a tool that the reply calls", aliases=("tools",), column="tools"),
    FilterField("text", Kind.WORDS, "what was said, by either side", "c", ("content",)),
    FilterField("age", Kind.AGE, "how long ago it came", "d"),
    FilterField("date", Kind.DATE, "the day, or the minute, on which it came", aliases=("at",)),
    FilterField("tokens", Kind.NUMBER, "tokens in and out together", scopes=_LISTS),
    FilterField("input", Kind.NUMBER, "tokens of the whole prompt", scopes=_LISTS, column="input_tokens"),
    FilterField("output", Kind.NUMBER, "tokens of the reply", scopes=_LISTS, column="output_tokens"),
    FilterField(
        "cached",
        Kind.NUMBER,
        "tokens of the prompt that came from the provider's cache",
        scopes=_LISTS,
        column="cached_tokens",
    ),
    FilterField("cost", Kind.MONEY, "US dollars, where the prices are known", scopes=_TRAFFIC),
    FilterField("losses", Kind.NUMBER, "how much a translation did not carry", aliases=("loss",), scopes=_EXCHANGES),
    FilterField("saved", Kind.MONEY, "US dollars that reading from the cache saved", scopes=_TRAFFIC),
    FilterField("tag", Kind.TEXT, "the tag that the client gave the request", scopes=_TRAFFIC),
    FilterField("attempts", Kind.NUMBER, "how often it was sent", scopes=_TRAFFIC),
    FilterField(
        "time",
        Kind.SECONDS,
        "from the request to the end of the reply",
        aliases=("elapsed",),
        scopes=_LISTS,
        column="elapsed",
    ),
    FilterField(
        "first",
        Kind.SECONDS,
        "from the request to the first byte of the reply",
        aliases=("first_byte",),
        scopes=_TRAFFIC,
        column="first_byte",
    ),
    FilterField("stream", Kind.YES_NO, "the reply was asked for as a stream", scopes=_EXCHANGES, column="is_stream"),
    FilterField(
        "side", Kind.YES_NO, "a side request of the client, such as for a title", scopes=_EXCHANGES, column="is_side"
    ),
    FilterField("masked", Kind.YES_NO, "kept edits changed the request", scopes=_TRAFFIC, column="is_masked"),
    FilterField("estimated", Kind.YES_NO, "tokens and cost are an estimate", scopes=_TRAFFIC, column="is_estimated"),
    FilterField("origin", Kind.TEXT, "the id of the exchange that this one replays", scopes=_EXCHANGES),
    FilterField("latest", Kind.LATEST, "the newest so many of the whole list", "r", ("last",), scopes=_LISTS),
    FilterField("topic", Kind.TOPIC, "the topic that a pair belongs to", "t", scopes=_CHAT),
    FilterField("stars", Kind.NUMBER, "stars, 0 to 3", "s", ("star",), scopes=_CHAT),
    FilterField(
        "flag", Kind.TEXT, "blue or grey; `b` and `g` are short for them", values=lambda: ("blue", "grey"), scopes=_CHAT
    ),
    FilterField("attachments", Kind.NUMBER, "how many files are attached; `i` is short for at least one", scopes=_CHAT),
    FilterField("context", Kind.CONTEXT, "what is sent with the next question", "o", scopes=_CHAT),
)

BY_NAME: dict[str, FilterField] = {name: field for field in FIELDS for name in field.names}
ADDED: dict[str, FilterField] = {}
"""Fields from outside this package, by their names."""


def check_field_name(name: str) -> None:
    """Raise a Fault if the name is that of a built-in field, or cannot be written in a filter."""
    known = BY_NAME.get(name)
    if (known is not None and known.read is None) or name in WORDS:
        raise Fault(Code.USAGE, f"the filter field {name!r} is built in", hint="Give yours another name.")
    if not _NAME.fullmatch(name):
        hint = "Write two or more small letters, digits and underscores, and begin with a letter."
        raise Fault(Code.USAGE, f"{name!r} is not a valid name for a filter field", hint=hint)


def add_field(field: FilterField) -> None:
    """Add a field from outside this package, which has one name and `read`. Raises as `check_field_name` does."""
    check_field_name(field.name)
    ADDED[field.name] = BY_NAME[field.name] = field


def remove_field(name: str) -> None:
    """Remove a field that was added."""
    del ADDED[name], BY_NAME[name]


WORDS: Mapping[str, TextTerm | NumberTerm] = {
    "b": TextTerm("flag", "blue"),
    "g": TextTerm("flag", "grey"),
    "i": NumberTerm("attachments", ">", 0),
}
"""Letters that are complete terms by themselves."""

SUMS: Mapping[str, tuple[str, ...]] = {"tokens": ("input", "output")}
"""Numbers that are sums of others, as far as those are known."""


_NAME = re.compile(r"[a-z][a-z0-9_]+")
_NUMBER = re.compile(r"(-?)\$?(\d{1,30}(?:_\d{1,30})*(?:\.\d{1,30})?|\.\d{1,30})([a-z]?)\$?", re.ASCII)
_TIME = re.compile(r"(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})([a-z]+)", re.ASCII)
_BARE = re.compile(r"\d{1,30}(?:\.\d{1,30})?|\.\d{1,30}", re.ASCII)
_MOMENT = re.compile(r"(\d{4}|\d{2})-(\d{1,2})-(\d{1,2})(?:t(\d{1,2}):(\d{2}))?", re.ASCII)

_TIMES: Mapping[str, int] = {"": 1, "k": 1000, "m": 1_000_000}
_DAY = 86400
_UNITS: Mapping[str, Decimal] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(_DAY),
    "w": Decimal(7 * _DAY),
    "mo": Decimal(30 * _DAY),
    "y": Decimal(365 * _DAY),
}
UNITS = ", ".join(_UNITS)
_MOST = 10**15
_EXACT = Decimal("0.000000001")
_FIRST_YEAR, _LAST_YEAR = 1970, 2999


def number(text: str) -> float | None:
    """`50k`, `1.5m`, `$0.10`, `1_000`; None if it is not a number."""
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found[3] not in _TIMES:
        return None
    return _within_bounds(Decimal(found[1] + found[2].replace("_", "")) * _TIMES[found[3]])


def seconds(text: str, unit: str) -> float | None:
    """`7d`, `6mo`, `1h30m`, `500ms`; a bare number is in this unit. None if it is not such a time."""
    text = text.lower()
    if _BARE.fullmatch(text):
        return _within_bounds(Decimal(text) * _UNITS[unit])
    total, place = Decimal(0), 0
    while place < len(text):
        found = _TIME.match(text, place)
        if found is None or found[2] not in _UNITS:
            return None
        total += Decimal(found[1]) * _UNITS[found[2]]
        place = found.end()
    return _within_bounds(total) if place else None


def parse_date(operator: Operator, text: str, zone: tzinfo) -> DateTerm | None:
    """`2026-01-31`, `26-01-31` or `2026-01-31T15:30`, in this zone; None if it is not a date."""
    found = _MOMENT.fullmatch(text.lower())
    if found is None:
        return None
    year = int(found[1]) + (2000 if len(found[1]) == 2 else 0)
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    try:
        since = datetime(year, int(found[2]), int(found[3]), int(found[4] or 0), int(found[5] or 0), tzinfo=zone)
    except ValueError:
        return None
    moment = since.strftime("%Y-%m-%d" if found[4] is None else "%Y-%m-%dT%H:%M")
    until = since + (timedelta(days=1) if found[4] is None else timedelta(minutes=1))
    return DateTerm(operator, moment, since.timestamp(), until.timestamp())


def number_text(value: float) -> str:
    """The number in a form that `number` reads."""
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def seconds_text(value: float) -> str:
    """The time in a form that `seconds` reads, in days, hours, minutes and seconds."""
    rest, pieces = Decimal(repr(value)), ""
    for unit in ("d", "h", "min"):
        count, rest = divmod(rest, _UNITS[unit])
        pieces += f"{count:f}{unit}" if count else ""
    return f"{pieces}{number_text(float(rest))}s" if rest or not pieces else pieces


def _within_bounds(value: Decimal) -> float | None:
    return float(value.quantize(_EXACT)) if abs(value) <= _MOST else None
