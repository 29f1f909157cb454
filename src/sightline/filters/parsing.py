"""A filter's text, read into an expression."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from sightline.catalog.problem import likely, nearest, quote_word
from sightline.errors import Code, Fault
from sightline.filters.expression import (
    EVERYTHING,
    Expression,
    FlagTerm,
    InContext,
    OwnModel,
    OwnTopic,
    both,
    either,
    negate,
)
from sightline.filters.fields import BY_NAME, FIELDS, WORDS, FilterField, FilterScope, Kind
from sightline.filters.terms import FieldComparison, Piece, Sign, Source, count, term

_LONGEST = 10_000
_MOST_TERMS = 250
_DEEPEST = 50
_NUMBERED = re.compile(r"([a-z])(\d.*)", re.IGNORECASE)
_SPELLED = {"and": "&", "or": "|", "not": "!"}
_HUNGRY = frozenset("cdrs")
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
    """What the text asks for; empty, it is everything. Days begin and end as in `zone`. With a `scope`, fields that do
    not exist there are mistakes. `saved` are the filters for `@name`, by their names in lower case. Raises a
    fault that points at the place of the mistake."""
    if len(text) > _LONGEST:
        raise Fault(Code.USAGE, f"the filter has {len(text)} characters", hint=f"{_LONGEST} are the most.")
    source = Source(text)
    source.skip_space()
    if not source.next:
        return EVERYTHING
    reader = _Reader(source, scope, zone, saved)
    expression = reader.alternatives(0)
    if source.next:
        raise source.wrong(
            source.place, source.place + 1, "there is no ( for this )", "Take it out, or open it before."
        )
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
        parts = [self._together(depth)]
        while self.source.take("|+"):
            parts.append(self._together(depth))
        return either(*parts)

    def _together(self, depth: int) -> Expression:
        """Terms joined by & or by standing side by side."""
        parts = [self._one(depth)]
        while self.source.next and self.source.next not in "|+)":
            self.source.take("&")
            parts.append(self._one(depth))
        return both(*parts)

    def _one(self, depth: int) -> Expression:
        """A term or a group, with all the ! before it."""
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
            raise self._missing(depth)
        if source.is_at_quote:
            return self._read_comparison(word, ":")
        sign = source.sign()
        return self._lone(word) if sign is None else self._read_comparison(word, sign)

    def _missing(self, depth: int) -> Fault:
        """There is no term where one must be."""
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

    def _lone(self, word: Piece) -> Expression:
        """A word with neither sign nor quotes."""
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
        if found is None or field is None or field.kind not in _WITH_NUMBER:
            raise self._unknown(word)
        self._check_scope(word, field)
        number = Piece(found[2], word.start + 1, word.end)
        if field.kind is Kind.TOPIC:
            return OwnTopic(count(self.source, number))
        return self._comparison(field, Piece(found[1], word.start, word.start + 1), ":", number)

    def _resolve_saved_filter(self, word: Piece, saved: Mapping[str, Expression]) -> Expression:
        """A filter that was saved under a name."""
        found = saved.get(word.text[1:].lower())
        if found is None:
            hint = nearest(word.text, [f"@{name}" for name in saved]) or "Save one first."
            raise self._wrong(word, f"there is no saved filter {quote_word(word.text)}", hint)
        return found

    def _bare(self, word: Piece, field: FilterField) -> Expression:
        """A field alone. A letter that means nothing by itself takes the next word for its value."""
        if field.kind is Kind.YES_NO:
            return FlagTerm(field.name)
        if field.kind is Kind.CONTEXT:
            return InContext()
        if field.kind is Kind.TOPIC:
            return OwnTopic()
        if field.name == "model" and self.scope in (None, FilterScope.CHAT):
            return OwnModel()
        value = None
        if word.text.lower() in _HUNGRY:
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
            message = f"{quote_word(word.text)} ({field.name}) means nothing for {self.scope}"
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
        if text in _SPELLED:
            return self._wrong(
                word, f"{quote_word(word.text)} is not how terms are joined", f"Write {_SPELLED[text]} for it."
            )
        hint = likely(text, self._names()) or f"To look for it in what was said, write text:{word.text}."
        return self._wrong(word, f"there is no field {quote_word(word.text)}", hint)

    def _names(self) -> list[str]:
        return [field.name for field in FIELDS if self.scope is None or self.scope in field.scopes]

    def _wrong(self, piece: Piece, message: str, hint: str) -> Fault:
        return self.source.wrong(piece.start, piece.end, message, hint)
