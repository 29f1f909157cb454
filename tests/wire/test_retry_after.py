from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.retry_after import http_date, plausible, retry_after, timestamp

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
NOW = 1_792_567_680.0


@pytest.mark.parametrize(
    ("headers", "now", "seconds"),
    [
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": " 1.5 "}, None, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, None, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, None, 9.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "date": DATE}, None, 35.0),
        ({"retry-after": "Wednesday, 21-Oct-26 07:28:35 GMT", "date": DATE}, None, 35.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "date": DATE}, NOW - 1000, 35.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT"}, NOW, 35.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:35 GMT"}, NOW, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT"}, None, None),
        ({"retry-after": "9" * 40}, None, 40 * 86_400.0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:35 GMT"}, NOW, 40 * 86_400.0),
        ({"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT", "date": DATE}, NOW, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "date": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, NOW, 35.0),
        ({"retry-after": "-1"}, None, None),
        ({"retry-after": "later"}, NOW, None),
        ({}, NOW, None),
    ],
)
def test_what_the_headers_ask_for(headers: dict[str, str], now: float | None, seconds: float | None) -> None:
    assert retry_after(headers, now) == seconds


def test_a_date_that_does_not_exist_is_none() -> None:
    assert http_date("Sun, 31 Feb 2026 07:28:35 GMT") is None
    assert http_date("Mon, 01 Jan 99999999999 00:00:00 GMT") is None
    assert http_date("Mon, 01 Jan 2026 00:00:00 +9999999999999") is None
    assert http_date("") is None
    assert http_date(DATE) == NOW


def test_a_time_without_a_zone_is_universal() -> None:
    plain = datetime(2026, 10, 21, 7, 28)  # noqa: DTZ001 - the case in question
    assert timestamp(plain) == timestamp(plain.replace(tzinfo=UTC)) == NOW
    assert timestamp(plain.replace(tzinfo=timezone(timedelta(hours=1)))) == NOW - 3600


def test_only_a_wait_that_can_be_meant_is_one() -> None:
    assert (plausible(-3.0), plausible(3.0), plausible(1e8)) == (0.0, 3.0, None)


WORDS = st.sampled_from(["Mon,", "Mon", "Jan", "jan-", "GMT", "am", ":", "-", "+", ",", ".", " ", "/", "T", "0", "99"])
DATES = st.lists(WORDS | st.integers().map(str), max_size=14).map(" ".join) | st.lists(
    WORDS | st.integers().map(str), max_size=14
).map("".join)


@given(st.text() | DATES, st.text(), st.text() | DATES)
def test_no_header_is_an_accident(asked: str, exactly: str, date: str) -> None:
    wait = retry_after({"retry-after": asked, "retry-after-ms": exactly, "date": date}, NOW)
    assert wait is None or wait >= 0
