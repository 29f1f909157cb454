from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.filters.expression import DateTerm
from sightline.filters.values import is_date_like, number, number_text, parse_date, seconds, seconds_text

DAY = 86400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50k", 50_000),
        ("1.5M", 1_500_000),
        ("$0.10", 0.1),
        ("2$", 2),
        (".5", 0.5),
        ("1_000", 1000),
        ("-1", -1),
        ("0.29k", 290),
        ("1000000000m", 1e15),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "k", "5x", "5kk", "1e9", "٣", "--1", "1000000001m", "9" * 31, "1__0", "5."])
def test_no_numbers(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7d", 7 * DAY),
        ("6mo", 180 * DAY),
        ("5min", 300),
        ("5m", 300),
        ("24h", DAY),
        ("2w", 14 * DAY),
        ("1y", 365 * DAY),
        ("1h30m", 5400),
        ("1y6mo", 545 * DAY),
        ("500ms", 0.5),
        ("1.5H", 5400),
        ("3", 3 * DAY),
        (".5", DAY / 2),
    ],
)
def test_times(text: str, value: float) -> None:
    assert seconds(text, "d") == value


@pytest.mark.parametrize("text", ["", "d", "7x", "7d5", "-7d", "1h 30m", "9999999999999999y"])
def test_no_times(text: str) -> None:
    assert seconds(text, "d") is None


def test_a_day_begins_where_its_people_are() -> None:
    east = timezone(timedelta(hours=9))
    start = datetime(2026, 1, 31, tzinfo=east).timestamp()
    assert parse_date("=", "2026-01-31", east) == DateTerm("=", "2026-01-31", start, start + DAY)
    assert parse_date("<", "26-1-31", east) == DateTerm("<", "2026-01-31", start, start + DAY)


def test_a_day_can_have_23_hours() -> None:
    day = parse_date("=", "2026-03-29", ZoneInfo("Europe/Berlin"))
    assert day is not None
    assert day.until - day.since == 23 * 3600


def test_a_minute() -> None:
    start = datetime(2026, 1, 31, 15, 30, tzinfo=UTC).timestamp()
    assert parse_date(">", "2026-01-31T15:30", UTC) == DateTerm(">", "2026-01-31T15:30", start, start + 60)


@pytest.mark.parametrize("text", ["", "7d", "2026-13-01", "2026-02-30", "1969-01-01", "9999-12-31", "2026-01-01T25:00"])
def test_no_dates(text: str) -> None:
    assert parse_date("=", text, UTC) is None


def test_a_dash_is_a_sign_of_a_date() -> None:
    assert is_date_like("2026-1")
    assert not is_date_like("7d")


@given(st.decimals(-(10**15), 10**15, places=9).map(float))
def test_a_number_reads_back(value: float) -> None:
    assert number(number_text(value)) == value


@given(st.decimals(0, 10**12, places=3).map(float))
def test_a_time_reads_back(value: float) -> None:
    assert seconds(seconds_text(value), "s") == value


def test_times_are_written_for_people() -> None:
    written = [seconds_text(value) for value in (0.0, 0.5, 90.0, 5400.0, 7.0 * DAY, 7.0 * DAY + 1)]
    assert written == ["0s", "0.5s", "1min30s", "1h30min", "7d", "7d1s"]
