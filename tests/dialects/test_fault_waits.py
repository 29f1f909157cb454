import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.faults import wait_of

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "Date": NOW}, 35.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": NOW}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "date": "yesterday"}, None),
        ({"retry-after": "Sun, 31 Feb 2026 07:28:35 GMT", "date": NOW}, None),
        ({"retry-after": "soon", "date": NOW}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_a_header_says_how_long_or_until_when(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_of("", headers) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 11.054s.", 11.054),
        ("Please try again in 28ms", 0.028),
        ("try again in 500 milliseconds", 0.5),
        ("Please retry after 35 seconds.", 35.0),
        ("Please try again in 7m12s.", 432.0),
        ("Please try again in 1h2m3.5s", 3723.5),
        ("try again in 1h", 3600.0),
        ("try again in 2 minutes", 120.0),
        ("Try again in 1 hour and 5 mins", 3900.0),
        ("retry in 2 days", 172_800.0),
        ("Please wait 8s.", 8.0),
        ("wait for 1 minute, 30 seconds", 90.0),
        ("Please retry in 45.578569677s.", 45.578569677),
        ("Please retry your request later", None),
        ("try again in 3 messages", None),
        ("try later", None),
    ],
)
def test_words_say_it_too(message: str, seconds: float | None) -> None:
    assert wait_of(message, {}) == seconds


def test_a_header_is_trusted_before_words_and_words_before_a_field() -> None:
    told = {"resets_in_seconds": 90}
    assert wait_of("try again in 5s", {"retry-after": "7"}, told) == 7.0
    assert wait_of("try again in 5s", {}, told) == 5.0
    assert wait_of("slow down", {}, told) == 90.0
    assert wait_of("slow down", {}, {"retry_after": 1.5, "resets_in_seconds": 90}) == 1.5


@pytest.mark.parametrize("details", [None, [], {}, {"retry_after": "soon"}, {"retry_after": -1}, {"retry_after": True}])
def test_a_field_that_is_no_time_says_nothing(details: object) -> None:
    assert wait_of("slow down", {}, details) is None  # type: ignore[arg-type]


@given(
    st.text(max_size=200),
    st.dictionaries(st.sampled_from(["retry-after", "date", "retry-after-ms"]), st.text(max_size=40)),
)
def test_whatever_was_said_a_wait_is_none_or_no_less_than_nothing(message: str, headers: dict[str, str]) -> None:
    wait = wait_of(message, headers)
    assert wait is None or wait >= 0
