"""Graders that look for words in the answer: it contains them, begins or ends with them, or is them."""

from collections.abc import Callable

from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, of_one
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.score import Check


def contains(fields: Fields) -> Run:
    """The answer has this text in it."""
    return _one(fields, "contains", lambda text, value: value in text)


def icontains(fields: Fields) -> Run:
    """The same, whatever the case of the letters."""
    return _one(fields, "contains (in any case)", lambda text, value: value.lower() in text.lower())


def starts_with(fields: Fields) -> Run:
    """The answer begins with this text, spaces around both apart."""
    return _one(fields, "starts with", lambda text, value: text.strip().startswith(value.strip()))


def ends_with(fields: Fields) -> Run:
    """The answer ends with this text, spaces around both apart."""
    return _one(fields, "ends with", lambda text, value: text.strip().endswith(value.strip()))


def equals(fields: Fields) -> Run:
    """The answer is this text, spaces around both apart."""
    return _one(fields, "equals", lambda text, value: text.strip() == value.strip())


def contains_any(fields: Fields) -> Run:
    """The answer has one of these texts in it."""
    return _several(fields, any, "contains one of them", lambda text: text)


def contains_all(fields: Fields) -> Run:
    """The answer has each of these texts in it."""
    return _several(fields, all, "contains all of them", lambda text: text)


def icontains_any(fields: Fields) -> Run:
    """The answer has one of these texts in it, whatever the case of the letters."""
    return _several(fields, any, "contains one of them (in any case)", str.lower)


def icontains_all(fields: Fields) -> Run:
    """The answer has each of these texts in it, whatever the case of the letters."""
    return _several(fields, all, "contains all of them (in any case)", str.lower)


def _one(fields: Fields, what: str, holds: Callable[[str, str], bool]) -> Run:
    value = fields.text("value", needed=True, why="Give the text to look for, in quotes.", blank=True)
    fields.close()
    return at_once(lambda subject: of_one(f'{what} "{value}"', held=holds(subject.text, value)))


def _several(fields: Fields, enough: Callable[[list[bool]], bool], what: str, folded: Callable[[str], str]) -> Run:
    values = fields.texts("value", "values", needed=True)
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        text = folded(subject.text)
        found = [folded(value) in text for value in values]
        seen = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if is_there)
        missing = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if not is_there)
        evidence = "; ".join(words for words in (seen and f"there: {seen}", missing and f"missing: {missing}") if words)
        held = enough(found)
        return GraderFinding(score=float(held), checks=(Check(what, held, evidence),))

    return at_once(look)
