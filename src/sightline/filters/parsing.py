"""Parses the text of a filter into an expression, writes an expression as text in a canonical form that parses to the
same expression, and completes filters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import assert_never

from sightline.catalog.problem import likely, nearest, quote_word
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
    Or,
    OwnModel,
    OwnTopic,
    Term,
    TextTerm,
    TopicTerm,
    both,
    either,
    negate,
)
from sightline.filters.fields import (
    ADDED,
    BY_NAME,
    FIELDS,
    WORDS,
    FilterField,
    FilterScope,
    Kind,
    number_text,
    seconds_text,
)
from sightline.filters.predicate import literal
from sightline.filters.terms import FieldComparison, Piece, Sign, Source, count, term

_BARE = re.compile(r"[\w*?./@~-][\w*?./@~:,-]*", re.ASCII)
_SPOKEN: Mapping[str, str] = {'"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def write_expression(expression: Expression) -> str:
    """The filter text for this expression; empty for everything."""
    return "" if expression == Everything() else _text(expression)


def _text(expression: Expression) -> str:
    match expression:
        case Everything():
            return "*"
        case Not(part=part):
            return f"!({_text(part)})" if isinstance(part, And | Or) else f"!{_text(part)}"
        case And(parts=parts):
            return " & ".join(f"({_text(part)})" if isinstance(part, Or) else _text(part) for part in parts)
        case Or(parts=parts):
            return " | ".join(map(_text, parts))
        case term:
            return _term(term)


def _term(term: Term) -> str:
    match term:
        case TextTerm(field=field, pattern=pattern):
            return f"{field}:{pattern if _BARE.fullmatch(pattern) else _quote(pattern)}"
        case NumberTerm(field=field, operator=operator, number=number):
            is_time = BY_NAME[field].kind is Kind.SECONDS
            return f"{field}{operator}{seconds_text(number) if is_time else number_text(number)}"
        case FlagTerm(field=field):
            return field
        case ContentTerm(pattern=pattern):
            return f"text:{_quote(pattern)}"
        case AgeTerm(operator=operator, seconds=seconds):
            return f"age{operator}{seconds_text(seconds)}"
        case DateTerm(operator=operator, moment=moment):
            return f"date{operator}{moment}"
        case TopicTerm():
            return f"topic:{_quote(_path(term))}"
        case Latest(count=count):
            return f"r{count}"
        case OwnTopic(count=count):
            return "t" if count is None else f"t{count}"
        case OwnModel():
            return "m"
        case InContext(extra=extra):
            return f"o{extra}" if extra else "o"
        case unreachable:
            assert_never(unreachable)


def _quote(pattern: str) -> str:
    """Quote a pattern. Its escapes stay as they are; what would end the text, or break the line, is escaped."""
    return f'"{"".join(_SPOKEN.get(character, character) for character in pattern)}"'


def _path(term: TopicTerm) -> str:
    """The text of a topic term. A name that looks like a path, or ends in dots as for all topics below it, is
    escaped."""
    names = [re.sub("([/>])", r"\\\1", name) for name in term.names]
    if not term.has_below and names[-1].endswith("..."):
        names[-1] = f"{names[-1][:-1]}\\."
    return f"{'/' if term.is_path else ''}{'/'.join(names)}{'...' if term.has_below else ''}"


MOST = 50
_SEPARATORS = " \t\n&|!()"
_USUAL: Mapping[Kind, tuple[str, ...]] = {
    Kind.YES_NO: ("yes", "no"),
    Kind.STATUS: ("ok", "error", "200", "400", "401", "429", "4xx", "5xx"),
    Kind.AGE: ("1h", "1d", "7d", "30d"),
    Kind.LATEST: ("20", "100"),
    Kind.CONTEXT: ("5",),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """`text` replaces what is between `start` and the cursor."""

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
    """Completions at the cursor; `known` are values that fields have had, `first` the fields to offer first."""
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
    """Where the term at the cursor begins. Blanks inside quotes do not separate terms."""
    quote, start = "", 0
    for index, character in enumerate(text[:at]):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _SEPARATORS:
            start = index + 1
    return start


def _fields(begun: str, start: int, scope: FilterScope, first: Sequence[str]) -> Iterator[Completion]:
    wanted, places = begun.lower(), {name: place for place, name in enumerate(first)}
    for each in sorted((*FIELDS, *ADDED.values()), key=lambda known: places.get(known.name, len(places))):
        if scope in each.scopes and any(name.startswith(wanted) for name in each.names):
            yield Completion(f"{each.name}:", each.name, each.meaning, start)


def _values(field: FilterField, begun: str, start: int, known: Mapping[str, Sequence[str]]) -> Iterator[Completion]:
    wanted = begun.lower()
    for value in (*field.values(), *_USUAL.get(field.kind, ())):
        if value.startswith(wanted):
            yield Completion(f"{field.name}:{value}", value, field.meaning, start)
    found = [value for value in dict.fromkeys(known.get(field.name, ())) if value and wanted in value.lower()]
    for value in sorted(found, key=lambda each: not each.lower().startswith(wanted)):
        yield Completion(write_expression(TextTerm(field.name, literal(value))), value, field.meaning, start)


_LONGEST = 10_000
_MOST_TERMS = 250
_DEEPEST = 50
_NUMBERED = re.compile(r"([a-z])(\d.*)", re.IGNORECASE)
_SPELLED_OPERATORS = {"and": "&", "or": "|", "not": "!"}
_TAKES_NEXT_WORD = frozenset("cdrs")
_WITH_NUMBER = frozenset({Kind.NUMBER, Kind.AGE, Kind.LATEST, Kind.CONTEXT, Kind.TOPIC})
_EXAMPLES: Mapping[Kind, str] = {
    **dict.fromkeys(Kind, "name"),
    Kind.WORDS: '"some words"',
    Kind.NUMBER: "2",
    Kind.MONEY: "0.10",
    Kind.SECONDS: "5s",
    Kind.STATUS: "error",
    Kind.YES_NO: "yes",
    Kind.AGE: "7d",
    Kind.DATE: "2026-01-31",
    Kind.LATEST: "20",
    Kind.CONTEXT: "5",
}


def parse(
    text: str, *, scope: FilterScope | None = None, zone: tzinfo = UTC, saved: Mapping[str, Expression] | None = None
) -> Expression:
    """The expression that the text stands for; everything if it is empty. Days begin and end as in `zone`. With a
    `scope`, fields that do not exist there are mistakes. `saved` are the filters for `@name`, by lower-case name.
    Raises a Fault that points at the place of the mistake."""
    if len(text) > _LONGEST:
        raise Fault(Code.USAGE, f"the filter has {len(text)} characters", hint=f"{_LONGEST} are the most.")
    source = Source(text)
    source.skip_space()
    if not source.next:
        return EVERYTHING
    reader = _Reader(source, scope, zone, saved)
    expression = reader.alternatives(0)
    if source.next:
        raise reader.missing_term(0)
    return expression


@dataclass(slots=True)
class _Reader:
    source: Source
    scope: FilterScope | None
    zone: tzinfo
    saved: Mapping[str, Expression] | None
    terms: int = field(default=0)

    def alternatives(self, depth: int) -> Expression:
        """Terms joined by | or +."""
        parts = [self._conjunction(depth)]
        while self.source.take("|+"):
            parts.append(self._conjunction(depth))
        return either(*parts)

    def _conjunction(self, depth: int) -> Expression:
        """Terms joined by & or by blanks."""
        parts = [self._negatable(depth)]
        while self.source.next and self.source.next not in "|+)":
            self.source.take("&")
            parts.append(self._negatable(depth))
        return both(*parts)

    def _negatable(self, depth: int) -> Expression:
        """A term or a group, with all leading ! signs."""
        is_negated = False
        self.source.skip_space()
        while self.source.take("!"):
            is_negated = not is_negated
            self.source.skip_space()
        opened = self.source.take("(")
        part = self._term(depth) if opened is None else self._group(opened, depth + 1)
        self.source.skip_space()
        return negate(part) if is_negated else part

    def _group(self, opened: Piece, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise self._wrong(opened, "the parentheses are nested too deep", f"{_DEEPEST} levels are the most.")
        inner = self.alternatives(depth)
        if self.source.take(")") is None:
            raise self._wrong(opened, "the ( is not closed", "Put a ) where it ends.")
        return inner

    def _term(self, depth: int) -> Expression:
        source = self.source
        self.terms += 1
        if self.terms > _MOST_TERMS:
            raise source.wrong(source.place, source.place, "there are too many terms", f"{_MOST_TERMS} are the most.")
        word = Piece("text", source.place, source.place) if source.is_at_quote else source.word()
        if word is None:
            raise self.missing_term(depth)
        if source.is_at_quote and (word.start == word.end or self._is_name(word)):
            return self._read_comparison(word, ":")
        sign = None if source.is_at_quote else source.sign()
        return self._bare_word(word) if sign is None else self._read_comparison(word, sign)

    def missing_term(self, depth: int) -> Fault:
        """The fault for what is next, where a term was expected."""
        place, sign = self.source.place, self.source.next
        here = Piece(sign, place, place + 1)
        if sign == ")" and not depth:
            return self._wrong(here, "there is no ( for this )", "Take it out, or open it before.")
        if sign and sign in ":<>=":
            return self._wrong(here, f"there is no field before {sign}", "Write its name, as in model:claude-*.")
        return self._wrong(here, "a term is missing here", "Write one, as in model:claude-*, or take out the sign.")

    def _read_comparison(self, word: Piece, sign: Sign) -> Expression:
        field = self._field(word)
        self.source.skip_space()
        value = self.source.value()
        if value is None:
            raise self._without_value(word)
        return self._comparison(field, word, sign, value)

    def _comparison(self, field: FilterField, name: Piece, sign: Sign, value: Piece) -> Expression:
        return term(FieldComparison(self.source, field, name, sign, value, self.zone))

    def _bare_word(self, word: Piece) -> Expression:
        """A word with neither sign nor quotes. One that names nothing is searched for in message texts."""
        text = word.text.lower()
        if not text.strip("*"):
            return EVERYTHING
        if text in WORDS:
            self._check_scope(word, BY_NAME[WORDS[text].field])
            return WORDS[text]
        if text in BY_NAME:
            return self._bare(word, self._field(word))
        if self.saved is not None and text.startswith("@"):
            return self._resolve_saved_filter(word, self.saved)
        found = _NUMBERED.fullmatch(text)
        field = BY_NAME.get(found[1]) if found is not None else None
        if found is None or field is None or field.kind not in _WITH_NUMBER or self.source.is_at_quote:
            return self._search(word)
        self._check_scope(word, field)
        number = Piece(found[2], word.start + 1, word.end)
        if field.kind is Kind.TOPIC:
            return OwnTopic(count(self.source, number))
        return self._comparison(field, Piece(found[1], word.start, word.start + 1), ":", number)

    def _search(self, word: Piece) -> Expression:
        # In the chat @ always names a saved filter, and a saved filter cannot name another.
        if word.text.lower() in _SPELLED_OPERATORS or (word.text.startswith("@") and self.scope is FilterScope.CHAT):
            raise self._unknown(word)
        self.source.place = word.start  # read again as a value, with escapes, and with inner quotes as in don't
        value = self.source.value()
        assert value is not None  # it has at least the characters of the word
        return self._comparison(BY_NAME["text"], word, ":", value)

    def _is_name(self, word: Piece) -> bool:
        return word.text.lower() in BY_NAME or word.text.lower() in WORDS

    def _resolve_saved_filter(self, word: Piece, saved: Mapping[str, Expression]) -> Expression:
        """The filter that was saved under this name."""
        found = saved.get(word.text[1:].lower())
        if found is None:
            hint = nearest(word.text, [f"@{name}" for name in saved]) or "Save one first."
            raise self._wrong(word, f"there is no saved filter {quote_word(word.text)}", hint)
        return found

    def _bare(self, word: Piece, field: FilterField) -> Expression:
        """A field without a value. A letter that means nothing by itself takes the next word as its value."""
        if field.kind is Kind.YES_NO:
            return FlagTerm(field.name)
        if field.kind is Kind.CONTEXT:
            return InContext()
        if field.kind is Kind.TOPIC:
            return OwnTopic()
        if field.name == "model" and self.scope in (None, FilterScope.CHAT):
            return OwnModel()
        value = None
        if word.text.lower() in _TAKES_NEXT_WORD:
            self.source.skip_space()
            value = self.source.value()
        if value is None:
            raise self._without_value(word)
        return self._comparison(field, word, ":", value)

    def _field(self, word: Piece) -> FilterField:
        text = word.text.lower()
        if text in WORDS:
            raise self._wrong(word, f"{word.text} takes no value", f"Write {word.text} alone, and & behind it.")
        if text not in BY_NAME:
            raise self._unknown(word)
        self._check_scope(word, BY_NAME[text])
        return BY_NAME[text]

    def _check_scope(self, word: Piece, field: FilterField) -> None:
        if self.scope is not None and self.scope not in field.scopes:
            where = " and ".join(sorted(field.scopes))
            name = "" if word.text.lower() == field.name else f" ({field.name})"
            message = f"{quote_word(word.text)}{name} means nothing for {self.scope}"
            raise self._wrong(word, message, f"It is for {where}. Here there are: {', '.join(self._names())}.")

    def _without_value(self, word: Piece) -> Fault:
        name, place, sign = word.text, self.source.place, self.source.next
        if sign == "(":
            hint = f"Write the field with each value: ({name}:one | {name}:other)."
        elif sign == "!":
            hint = f"Put the ! before the field: !{name}:value."
        else:
            hint = f"Write it behind the name, as in {name}:{_EXAMPLES[BY_NAME[name.lower()].kind]}."
        return self._wrong(Piece(name, word.start, max(place, word.end)), f"{quote_word(name)} needs a value", hint)

    def _unknown(self, word: Piece) -> Fault:
        text = word.text.lower()
        if text in _SPELLED_OPERATORS:
            return self._wrong(
                word,
                f"{quote_word(word.text)} is not how terms are joined",
                f"Write {_SPELLED_OPERATORS[text]} for it.",
            )
        hint = likely(text, self._names()) or f"To look for it in what was said, write text:{word.text}."
        return self._wrong(word, f"there is no field {quote_word(word.text)}", hint)

    def _names(self) -> list[str]:
        return [field.name for field in (*FIELDS, *ADDED.values()) if self.scope is None or self.scope in field.scopes]

    def _wrong(self, piece: Piece, message: str, hint: str) -> Fault:
        return self.source.wrong(piece.start, piece.end, message, hint)
