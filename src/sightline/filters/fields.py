"""The fields that a filter can ask for: their names, what kind of value each takes, and where they exist."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from sightline.dialects.registry import names
from sightline.filters.expression import NumberTerm, TextTerm
from sightline.model.exchange import State


class Kind(StrEnum):
    """What can be said about a field."""

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
    """What a filter is used on. A rule looks at one exchange, so it cannot ask for a place in a list."""

    TRAFFIC = "traffic"
    RULES = "rules"
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class FilterField:
    """`letter` is its short form, `aliases` are other names, `values` the only values there are, if they are few."""

    name: str
    kind: Kind
    meaning: str
    letter: str = ""
    aliases: tuple[str, ...] = ()
    values: Callable[[], tuple[str, ...]] = tuple
    scopes: frozenset[FilterScope] = frozenset(FilterScope)

    @property
    def names(self) -> tuple[str, ...]:
        """All that it can be called."""
        return (self.name, *self.aliases, *((self.letter,) if self.letter else ()))


_CHAT = frozenset({FilterScope.CHAT})
_LISTS = frozenset({FilterScope.CHAT, FilterScope.TRAFFIC})

FIELDS: tuple[FilterField, ...] = (
    FilterField("id", Kind.TEXT, "the id of the exchange"),
    FilterField("model", Kind.TEXT, "the model that was asked for", "m"),
    FilterField("provider", Kind.TEXT, "the provider that it went to"),
    FilterField("dialect", Kind.TEXT, "the dialect that the client speaks", values=names),
    FilterField("session", Kind.TEXT, "the label of the traffic that it belongs to"),
    FilterField("client", Kind.TEXT, "the program that asked, as it calls itself"),
    FilterField("path", Kind.TEXT, "the path that the client called"),
    FilterField("status", Kind.STATUS, "the HTTP status that the client got; also `ok`, `error`, `4xx`"),
    FilterField("state", Kind.TEXT, "where it stands", values=lambda: get_args(State)),
    FilterField("finish", Kind.TEXT, "why the reply ended"),
    FilterField("fault", Kind.TEXT, "the code of the error that it ended in"),
    FilterField("error", Kind.YES_NO, "it failed, or the client got a status of 400 or more", "e"),
    FilterField("ok", Kind.YES_NO, "it is finished, with a status below 400"),
    FilterField("tool", Kind.TEXT, "a tool that the reply calls", aliases=("tools",)),
    FilterField("text", Kind.WORDS, "what was said, by either side", "c", ("content",)),
    FilterField("age", Kind.AGE, "how long ago it came", "d"),
    FilterField("date", Kind.DATE, "the day, or the minute, on which it came", aliases=("at",)),
    FilterField("tokens", Kind.NUMBER, "tokens in and out together"),
    FilterField("input", Kind.NUMBER, "tokens of the whole prompt"),
    FilterField("output", Kind.NUMBER, "tokens of the reply"),
    FilterField("cached", Kind.NUMBER, "tokens of the prompt that came from the provider's cache"),
    FilterField("cost", Kind.MONEY, "US dollars, where the prices are known"),
    FilterField("losses", Kind.NUMBER, "how much a translation did not carry", aliases=("loss",)),
    FilterField("attempts", Kind.NUMBER, "how often it was sent"),
    FilterField("time", Kind.SECONDS, "from the request to the end of the reply", aliases=("elapsed",)),
    FilterField("first", Kind.SECONDS, "from the request to the first byte of the reply", aliases=("first_byte",)),
    FilterField("stream", Kind.YES_NO, "the reply was asked for as a stream"),
    FilterField("side", Kind.YES_NO, "a client's errand, such as a title for the conversation"),
    FilterField("origin", Kind.TEXT, "the id of the exchange that this one replays"),
    FilterField("latest", Kind.LATEST, "the newest so many of the whole list", "r", ("last",), scopes=_LISTS),
    FilterField("topic", Kind.TOPIC, "the topic that a pair belongs to", "t", scopes=_CHAT),
    FilterField("stars", Kind.NUMBER, "stars, 0 to 3", "s", ("star",), scopes=_CHAT),
    FilterField(
        "flag", Kind.TEXT, "blue or grey; `b` and `g` are short for them", values=lambda: ("blue", "grey"), scopes=_CHAT
    ),
    FilterField("attachments", Kind.NUMBER, "how many files hang on it; `i` is short for at least one", scopes=_CHAT),
    FilterField("context", Kind.CONTEXT, "what goes along with the next question", "o", scopes=_CHAT),
)

BY_NAME: Mapping[str, FilterField] = {name: field for field in FIELDS for name in field.names}
WORDS: Mapping[str, TextTerm | NumberTerm] = {
    "b": TextTerm("flag", "blue"),
    "g": TextTerm("flag", "grey"),
    "i": NumberTerm("attachments", ">", 0),
}
"""Letters that are whole terms by themselves."""

SUMS: Mapping[str, tuple[str, ...]] = {"tokens": ("input", "output")}
"""Numbers that are made of others, as far as those are known."""
