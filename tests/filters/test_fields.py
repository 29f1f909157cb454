from pathlib import Path

from sightline.dialects.registry import NAMES
from sightline.filters.fields import BY_NAME, FIELDS, SUMS, WORDS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "filters.md"


def test_no_name_means_two_things() -> None:
    names = [name for field in FIELDS for name in field.names]
    assert len(names) == len(set(names)) == len(BY_NAME)
    assert not set(WORDS) & set(BY_NAME)


def test_short_forms_are_one_letter_and_names_are_longer() -> None:
    assert all(len(name) > 1 for field in FIELDS for name in (field.name, *field.aliases))
    assert all(len(field.letter) <= 1 for field in FIELDS)


def test_the_dialects_are_those_that_there_are() -> None:
    assert BY_NAME["dialect"].values() == NAMES


def test_what_stands_for_others_stands_for_fields() -> None:
    assert {term.field for term in WORDS.values()} | {part for parts in SUMS.values() for part in parts} <= set(BY_NAME)


def test_every_field_is_documented() -> None:
    text = PAGE.read_text()
    names = [name for field in FIELDS for name in field.names] + list(WORDS)
    assert not [name for name in names if f"`{name}`" not in text]
