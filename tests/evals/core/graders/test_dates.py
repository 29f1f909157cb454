from datetime import date

import pytest

from sightline.evals.core.graders.field_accuracy import DEFAULT_FORMATS, day_of, is_format


@pytest.mark.parametrize(
    ("text", "formats", "day"),
    [
        ("2025-01-15", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("2025-01-15T23:59:59Z", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("2025-01-15T23:59:59.123+02:00", DEFAULT_FORMATS, date(2025, 1, 15)),
        (" 15-JAN-2025 ", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("15-September-2025", DEFAULT_FORMATS, date(2025, 9, 15)),
        ("01/02/2025", DEFAULT_FORMATS, date(2025, 1, 2)),
        ("13/02/2025", DEFAULT_FORMATS, date(2025, 2, 13)),
        ("01/02/2025", ["DD/MM/YYYY"], date(2025, 2, 1)),
        ("1.2.2025", ["D.M.YYYY"], date(2025, 2, 1)),
        ("January 5, 2025", ["MMMM D, YYYY"], date(2025, 1, 5)),
        ("2025-02-01", ["DD/MM/YYYY"], date(2025, 2, 1)),
        ("31/02/2025", DEFAULT_FORMATS, None),
        ("15-Foo-2025", DEFAULT_FORMATS, None),
        ("soon", DEFAULT_FORMATS, None),
    ],
)
def test_a_day_is_read_by_the_first_format_that_it_fits(text: str, formats: list[str], day: date | None) -> None:
    assert day_of(text, formats) == day


@pytest.mark.parametrize(("text", "is_one"), [("DD.MM.YYYY", True), ("MMM YYYY", False), ("DD/DD/MM/YYYY", False)])
def test_a_format_names_a_year_a_month_and_a_day(text: str, is_one: bool) -> None:
    assert is_format(text) is is_one
