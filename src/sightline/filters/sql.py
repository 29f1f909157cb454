"""Translates as much of an expression as a database can decide into a condition with parameters.

What a database cannot decide is left open: the condition then matches too much, never too little, and is marked as
incomplete, and the predicate decides. The SQL works in both SQLite and PostgreSQL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from sightline.filters.expression import (
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
    TextTerm,
    TopicTerm,
    meaning,
)
from sightline.filters.fields import SUMS
from sightline.filters.predicate import fold_case, like, plain

Parameter: TypeAlias = str | float

_LONGEST_PATTERN = 2000
_NUMBER = "CAST({} AS DOUBLE PRECISION)"
_TEXT = "CAST({} AS TEXT)"


@dataclass(frozen=True, slots=True)
class Column:
    """The column of a field: `sql` is an expression for its value. For a field with several values, `within` is a
    condition that holds if `{}` holds for one of them, such as `EXISTS (SELECT 1 FROM tools t WHERE … AND {})`."""

    sql: str
    within: str = "{}"


def question_mark(_number: int) -> str:
    """The placeholder of SQLite."""
    return "?"


def dollar(number: int) -> str:
    """The placeholder of PostgreSQL."""
    return f"${number}"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns and functions of a database. Its texts must not contain NUL characters, because it would not see what
    follows one.

    `latest` is a condition for being among the newest `{}`; `folded` converts a text to lower case, ASCII only;
    `placeholder` returns the mark for parameter number n.
    """

    fields: Mapping[str, Column]
    latest: str = ""
    folded: str = "lower({})"
    placeholder: Callable[[int], str] = question_mark


POSTGRESQL_FOLDED = 'lower({} COLLATE "C")'


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition for WHERE, never NULL. If it is not complete, the predicate must check each row that it finds."""

    sql: str
    parameters: tuple[Parameter, ...]
    is_complete: bool


def condition(expression: Expression, columns: Columns, *, now: float) -> Condition:
    """The part of the expression that the database can decide. Parameters are numbered from 1."""
    writer = _Writer(columns, now)
    sql = writer.write(expression, is_upper=True)
    return Condition(f"({sql})", tuple(writer.parameters), writer.is_complete)


@dataclass(slots=True)
class _Writer:
    """Writes the condition. `is_upper` is on which side an undecided part may err: matching too much or, below a
    negation, too little."""

    columns: Columns
    now: float
    parameters: list[Parameter] = field(default_factory=list)
    is_complete: bool = True

    def write(self, expression: Expression, *, is_upper: bool) -> str:
        match expression:
            case Everything():
                return "TRUE"
            case Not(part=part):
                return f"NOT ({self.write(part, is_upper=not is_upper)})"
            case And(parts=parts):
                return " AND ".join(f"({self.write(part, is_upper=is_upper)})" for part in parts)
            case Or(parts=parts):
                return " OR ".join(f"({self.write(part, is_upper=is_upper)})" for part in parts)
            case AgeTerm() | DateTerm() | FlagTerm():
                meant = meaning(expression, self.now)
                if not isinstance(meant, FlagTerm):
                    return self.write(meant, is_upper=is_upper)
                column = self.columns.fields.get(meant.field)
                return self._open(is_upper=is_upper) if column is None else f"COALESCE({column.sql}, FALSE)"
            case TextTerm():
                return self._write_pattern(expression, is_upper=is_upper)
            case NumberTerm():
                return self._write_number(expression, is_upper=is_upper)
            case Latest(count=count) if self.columns.latest:
                return self.columns.latest.replace("{}", self._add_parameter(count, "{}"))
            case ContentTerm() | Latest() | OwnTopic() | OwnModel() | InContext() | TopicTerm():
                return self._open(is_upper=is_upper)
            case unreachable:
                assert_never(unreachable)

    def _open(self, *, is_upper: bool) -> str:
        self.is_complete = False
        return "TRUE" if is_upper else "FALSE"

    def _add_parameter(self, parameter: Parameter, cast: str) -> str:
        self.parameters.append(parameter)
        return cast.replace("{}", self.columns.placeholder(len(self.parameters)))

    def _write_pattern(self, term: TextTerm, *, is_upper: bool) -> str:
        column = self.columns.fields.get(term.field)
        if column is None or not _is_storable(term.pattern):
            return self._open(is_upper=is_upper)
        if term.pattern in ("", "*"):
            there = column.within.replace("{}", f"COALESCE({column.sql}, '') <> ''")
            return there if term.pattern else f"NOT ({there})"
        sql, is_exact = like(term.pattern)
        if not (is_exact or is_upper):
            return self._open(is_upper=is_upper)
        self.is_complete = self.is_complete and is_exact
        value = self.columns.folded.replace("{}", column.sql)
        whole = plain(fold_case(term.pattern)) if is_exact else None
        fitting = (
            f"{value} LIKE {self._add_parameter(sql, _TEXT)} ESCAPE '!'"
            if whole is None
            else f"{value} = {self._add_parameter(whole, _TEXT)}"
        )
        return column.within.replace("{}", f"{column.sql} IS NOT NULL AND {fitting}")

    def _write_number(self, term: NumberTerm, *, is_upper: bool) -> str:
        columns = [self.columns.fields.get(part) for part in SUMS.get(term.field, (term.field,))]
        known = [column.sql for column in columns if column is not None]
        if len(known) < len(columns):
            return self._open(is_upper=is_upper)
        value = known[0] if len(known) == 1 else " + ".join(f"COALESCE({sql}, 0)" for sql in known)
        is_known = " OR ".join(f"{sql} IS NOT NULL" for sql in known)
        return f"({is_known}) AND {value} {term.operator} {self._add_parameter(term.number, _NUMBER)}"


def _is_storable(pattern: str) -> bool:
    """Whether a database accepts it as a parameter and as a pattern."""
    if "\0" in pattern or len(pattern) > _LONGEST_PATTERN:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in pattern)
