"""Whether an expression matches a subject, and the patterns in expressions.

In a pattern `*` is any run of characters, `?` is one, and a backslash escapes the next. Case is ignored. Folding keeps
the length of a text, and never turns a character outside ASCII into one inside, so that a database that folds only
ASCII gives the same result.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import eq, ge, gt, le, lt
from typing import Protocol, TypeAlias, assert_never

from sightline.errors import Code, Fault
from sightline.filters.expression import (
    EVERYTHING,
    AgeTerm,
    And,
    ContentTerm,
    DateTerm,
    Everything,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Operator,
    Or,
    OwnModel,
    OwnTopic,
    SetTerm,
    TextTerm,
    TopicTerm,
    both,
    either,
    meaning,
    negate,
)
from sightline.filters.fields import ADDED, SUMS

_CASE_EXCEPTIONS = re.compile("([\u0130\u212a])")  # a dotted I and the kelvin sign, which would turn into ASCII letters


def fold_case(text: str) -> str:
    """The text in lower case, with its length unchanged."""
    if text.isascii():
        return text.lower()
    if "\u0130" not in text and "\u212a" not in text:  # a search is about ten times as fast as a split
        return text.lower().replace("ς", "σ")
    pieces = _CASE_EXCEPTIONS.split(text)
    return "".join(piece if index % 2 else piece.lower() for index, piece in enumerate(pieces)).replace("ς", "σ")


def pattern_characters(pattern: str, wild: str = "*?") -> Iterator[tuple[str, bool]]:
    """Each character of a pattern and whether it is a wildcard. A backslash at the very end is literal."""
    rest = iter(pattern)
    for character in rest:
        if character == "\\":
            yield next(rest, "\\"), False
        else:
            yield character, character in wild


def canonical(pattern: str, wild: str = "*?") -> str:
    """The pattern in the canonical form that expressions hold, where only the characters in `wild` are wildcards."""
    pieces: list[str] = []
    for character, is_wild in pattern_characters(pattern, wild):
        piece = character if is_wild else literal(character)
        if piece != "*" or pieces[-1:] != ["*"]:
            pieces.append(piece)
    return "".join(pieces)


def literal(text: str) -> str:
    """A pattern that matches exactly this text."""
    return re.sub(r"([*?\\])", r"\\\1", text)


def plain(pattern: str) -> str | None:
    """The text that a pattern without wildcards matches; None if it has wildcards."""
    read = list(pattern_characters(pattern))
    return None if any(is_wild for _, is_wild in read) else "".join(character for character, _ in read)


def literals(pattern: str) -> list[str]:
    """The runs of characters that a text must contain in this order, for an index that can search for them."""
    runs = [""]
    for character, is_wild in pattern_characters(pattern):
        if is_wild:
            runs.append("")
        else:
            runs[-1] += character
    return [run for run in runs if run]


def fits(pattern: str, value: str) -> bool:
    """Whether the pattern matches the whole value. An empty value matches only an empty pattern, so that `*` requires a
    value."""
    if not value:
        return not pattern
    text = fold_case(value)
    (first, reach), *others = _segments(pattern)
    if not others:
        return first.fullmatch(text) is not None
    last, length = others.pop()
    end = len(text) - length
    if first.match(text) is None or last.match(text, max(end, 0)) is None:
        return False
    return 0 <= _find_in_order(others, text, reach) <= end


def occurs(pattern: str, text: str) -> bool:
    """Whether the pattern occurs somewhere in the text."""
    return _find_in_order(_segments(pattern), fold_case(text), 0) >= 0


def find_word(word: str, text: str) -> tuple[int, int] | None:
    """The start and end of the first occurrence of these characters in a text, ignoring case; None if there is none."""
    at = fold_case(text).find(fold_case(word))
    return None if at < 0 else (at, at + len(word))


def sought_words(expression: Expression) -> list[str]:
    """The strings that a filter searches for in message texts, in its order, without negated ones."""
    match expression:
        case ContentTerm(pattern=pattern):
            return literals(pattern)
        case And(parts=parts) | Or(parts=parts):
            return list(dict.fromkeys(word for part in parts for word in sought_words(part)))
        case _:
            return []


def like(pattern: str) -> tuple[str, bool]:
    """The pattern for LIKE with `!` as the escape, and whether it is exact. If not, it matches more, because databases
    fold the case of other alphabets differently."""
    pieces = []
    for character, is_wild in pattern_characters(fold_case(pattern)):
        if is_wild:
            pieces.append("%" if character == "*" else "_")
        elif character.isascii():
            pieces.append(f"!{character}" if character in "!%_" else character)
        else:
            pieces.append("_")
    return "".join(pieces), pattern.isascii()


def _find_in_order(segments: Sequence[tuple[re.Pattern[str], int]], text: str, start: int) -> int:
    """Where the last segment ends if each is found after the one before; otherwise -1."""
    for segment, _ in segments:
        found = segment.search(text, start)
        if found is None:
            return -1
        start = found.end()
    return start


@lru_cache(maxsize=1024)
def _segments(pattern: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """The segments between the stars, each with its length. Taking the first match of each never misses a way to match
    them all, so no pattern can make the search slow."""
    segments = [(list[str](), 0)]
    for character, is_wild in pattern_characters(fold_case(pattern)):
        pieces, length = segments[-1]
        if is_wild and character == "*":
            segments.append(([], 0))
        else:
            segments[-1] = ([*pieces, "." if is_wild else re.escape(character)], length + 1)
    return tuple((re.compile("".join(pieces), re.DOTALL), length) for pieces, length in segments)


Value: TypeAlias = str | float | bool | tuple[str, ...] | None

_COMPARED: Mapping[Operator, Callable[[float, float], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


class FilterSubject(Protocol):
    """Something with fields that a filter can be evaluated on.

    The names are those of `fields.FIELDS`, and `at`, its Unix time. A field that it does not have is None, and so is an
    unknown number (such as a status before there is one). `tool` is a tuple of names, `topic` the names of the topics
    from the top down to its own. `tokens`, `ok` and `error` are never requested: they are derived from others.
    """

    def value(self, name: str) -> Value:
        """The value of a field."""
        ...

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the message texts, as `occurs` decides."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """A subject with the given values and text."""

    values: Mapping[str, Value] = field(default_factory=dict)
    text: str = ""

    def value(self, name: str) -> Value:
        """The value of a field."""
        return self.values.get(name)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the text."""
        return occurs(pattern, self.text)


def alone(term: SetTerm) -> bool:
    """Raise a Fault: a single subject has no list for set terms to refer to."""
    what = type(term).__name__
    raise Fault(
        Code.USAGE,
        f"the filter asks for a place in a list ({what}), and here things are looked at one by one",
        hint="Leave out the terms r, o, bare t and bare m.",
    )


def matches(
    expression: Expression, subject: FilterSubject, *, now: float, belongs: Callable[[SetTerm], bool] = alone
) -> bool:
    """Whether the expression matches. `belongs` answers for the terms that need the whole list."""
    match expression:
        case Everything():
            return True
        case Not(part=part):
            return not matches(part, subject, now=now, belongs=belongs)
        case And(parts=parts):
            return all(matches(part, subject, now=now, belongs=belongs) for part in parts)
        case Or(parts=parts):
            return any(matches(part, subject, now=now, belongs=belongs) for part in parts)
        case Latest() | OwnTopic() | OwnModel() | InContext():
            return belongs(expression)
        case AgeTerm() | DateTerm() | FlagTerm():
            meant = meaning(expression, now)
            if isinstance(meant, FlagTerm):
                return _value(subject, meant.field) is True
            return matches(meant, subject, now=now)
        case ContentTerm(pattern=pattern):
            return subject.says(pattern)
        case TextTerm(field=name, pattern=pattern):
            return _is_named(_value(subject, name), pattern)
        case NumberTerm(field=name, operator=operator, number=number):
            counted = _number(subject, name)
            return counted is not None and _COMPARED[operator](counted, number)
        case TopicTerm():
            path = subject.value("topic")
            return is_filed(expression, path if isinstance(path, tuple) else ())
        case unreachable:
            assert_never(unreachable)


def is_filed(term: TopicTerm, path: tuple[str, ...]) -> bool:
    """Whether the term matches a topic with these names from the top down."""
    if not term.is_path:
        candidates = path if term.has_below else path[-1:]
        return any(fits(term.names[0], name) for name in candidates)
    wanted = len(term.names)
    if len(path) < wanted or (len(path) > wanted and not term.has_below):
        return False
    return all(fits(pattern, name) for pattern, name in zip(term.names, path, strict=False))


def _value(subject: FilterSubject, name: str) -> Value:
    read = ADDED[name].read if name in ADDED else None
    return subject.value(name) if read is None else read(subject)


def _is_named(value: Value, pattern: str) -> bool:
    names = value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()
    return any(fits(pattern, name) for name in names) if pattern else not any(names)


def _number(subject: FilterSubject, name: str) -> float | None:
    values = [_value(subject, part) for part in SUMS.get(name, (name,))]
    known = [value for value in values if isinstance(value, int | float)]
    return sum(known) if known else None


def without_context(expression: Expression) -> Expression:
    """The expression without its `context` terms."""
    return _without_context(expression) or EVERYTHING


def _without_context(expression: Expression) -> Expression | None:
    """The expression without its `context` terms; None if it has no others."""
    match expression:
        case InContext():
            return None
        case Not(part=part):
            rest = _without_context(part)
            return None if rest is None else negate(rest)
        case And(parts=parts) | Or(parts=parts):
            kept = [rest for part in parts if (rest := _without_context(part)) is not None]
            join = both if isinstance(expression, And) else either
            return join(*kept) if kept else None
        case _:
            return expression
