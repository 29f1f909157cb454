from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.tokens.rate_headers import (
    DAY,
    MINUTE,
    Allowance,
    allowances,
    amount_needed,
    may_tell,
    reset_wait,
    seconds_until,
)

NOW = 1_760_000_000.0  # 2025-10-09T08:53:20Z


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        pytest.param(
            {
                "x-ratelimit-limit-requests": "5000",
                "x-ratelimit-remaining-requests": "4999",
                "x-ratelimit-reset-requests": "12ms",
                "x-ratelimit-limit-tokens": "160000",
                "x-ratelimit-remaining-tokens": "159976",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-limit-tokens_usage_based": "160000",
            },
            (
                Allowance("requests", None, 5000, 4999, 0.012, refills=True),
                Allowance("tokens", MINUTE, 160000, 159976, 360, refills=True),
            ),
            id="openai and groq",
        ),
        pytest.param(
            {
                "x-rate-limit-reset-tokens": "55",
                "x-ratelimit-remaining-requests": "79",
                "x-ratelimit-limit-tokens": "-1",
                "x-ratelimit-limit-requests": "0",
            },
            (
                Allowance("tokens", MINUTE, reset=55, refills=True),
                Allowance("requests", None, remaining=79, refills=True),
            ),
            id="azure",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-requests-limit": "1000",
                "anthropic-ratelimit-requests-remaining": "999",
                "anthropic-ratelimit-requests-reset": "2025-10-09T08:53:21Z",
                "anthropic-ratelimit-input-tokens-limit": "80000",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2025-10-09T08:54:20Z",
                "anthropic-ratelimit-output-tokens-limit": "16000",
                "anthropic-ratelimit-output-tokens-remaining": "16000",
                "anthropic-ratelimit-output-tokens-reset": "2025-10-09T08:53:20Z",
                "anthropic-ratelimit-tokens-limit": "96000",
                "anthropic-ratelimit-tokens-remaining": "16000",
                "anthropic-organization-id": "7",
            },
            (
                Allowance("requests", MINUTE, 1000, 999, 1, refills=True),
                Allowance("input_tokens", MINUTE, 80000, 0, 60, refills=True),
                Allowance("output_tokens", MINUTE, 16000, 16000, 0, refills=True),
            ),
            id="anthropic",
        ),
        pytest.param(
            {"anthropic-ratelimit-tokens-limit": "40000", "anthropic-ratelimit-tokens-remaining": "1000"},
            (Allowance("tokens", MINUTE, 40000, 1000, refills=True),),
            id="anthropic, one limit for all tokens",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-unified-status": "allowed",
                "anthropic-ratelimit-unified-5h-utilization": "0.75",
                "anthropic-ratelimit-unified-5h-reset": "1760003600",
                "anthropic-ratelimit-unified-7d-utilization": "soon",
            },
            (Allowance("share", 5 * 3600, 100, 25, 3600),),
            id="anthropic plans",
        ),
        pytest.param(
            {
                "x-codex-primary-used-percent": "97.5",
                "x-codex-primary-window-minutes": "300",
                "x-codex-primary-reset-at": "1760000060",
                "x-codex-secondary-used-percent": "120",
                "x-codex-secondary-reset-after-seconds": "500",
                "x-codex-credits-balance": "3",
            },
            (Allowance("share", 18000, 100, 2.5, 60), Allowance("share", None, 100, 0, 500)),
            id="codex plans",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-requests-day": "14400",
                "x-ratelimit-remaining-requests-day": "14399",
                "x-ratelimit-reset-requests-day": "33011.382867097855",
                "x-ratelimit-limit-tokens-minute": "60000",
                "x-ratelimit-remaining-tokens-minute": "59000",
                "x-ratelimit-reset-tokens-minute": "11.5",
            },
            (
                Allowance("requests", DAY, 14400, 14399, 33011.382867097855),
                Allowance("tokens", MINUTE, 60000, 59000, 11.5),
            ),
            id="cerebras",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-tokens-minute": "5000000",
                "x-ratelimit-remaining-tokens-minute": "4999911",
                "x-ratelimit-tokens-query-cost": "52",
                "x-ratelimit-limit-req-minute": "720",
                "x-ratelimit-remaining-req-minute": "717",
            },
            (Allowance("tokens", MINUTE, 5000000, 4999911), Allowance("requests", MINUTE, 720, 717)),
            id="mistral",
        ),
        pytest.param(
            {
                "x-ratelimitbysize-limit-minute": "500000",
                "x-ratelimitbysize-remaining-minute": "0",
                "x-ratelimitbysize-limit-month": "1000000000",
                "ratelimitbysize-reset": "42",
                "ratelimitbysize-query-cost": "9",
            },
            (
                Allowance("tokens", MINUTE, 500000, 0),
                Allowance("tokens", 30 * DAY, 1000000000),
                Allowance("tokens", None, reset=42),
            ),
            id="mistral, older",
        ),
        pytest.param(
            {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1760000030000"},
            (Allowance("requests", None, 20, 0, 30),),
            id="openrouter",
        ),
        pytest.param(
            {"ratelimit": '"burst";r=5;t=3, "daily";r=800;t=40000', "ratelimit-policy": '"burst";q=10;w=60'},
            (Allowance("requests", MINUTE, 10, 5, 3), Allowance("requests", None, None, 800, 40000)),
            id="ietf",
        ),
        pytest.param(
            {"ratelimit": "limit=100, remaining=50, reset=30", "ratelimit-policy": "100;w=60"},
            (Allowance("requests", MINUTE, 100, 50, 30),),
            id="ietf, an older draft",
        ),
        pytest.param(
            {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "98", "ratelimit-reset": "3"},
            (Allowance("requests", None, 100, 98, 3),),
            id="ietf, the first drafts",
        ),
        pytest.param(
            {
                "x-ratelimit-limit-requests": "many",
                "x-ratelimit-limit-tokens": "1,000",
                "x-ratelimit-remaining-images": "3",
                "x-ratelimit-reset-requests": "tomorrow",
                "x-codex-primary-window-minutes": "long",
                "ratelimit": "",
                "content-type": "application/json",
            },
            (),
            id="nothing that is understood",
        ),
    ],
)
def test_each_spelling_tells_its_limits(headers: dict[str, str], told: tuple[Allowance, ...]) -> None:
    assert allowances(headers, NOW) == told


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("6m0s", 360),
        ("1s", 1),
        ("28ms", 0.028),
        ("1h2m", 3720),
        ("2m59.56s", 179.56),
        ("1d", DAY),
        ("500µs", 0.0005),
        ("500Âµs", 0.0005),
        ("0", 0),
        ("7.66", 7.66),
        ("1760000010", 10),
        ("1760000010500", 10.5),
        ("1750000000", 0),
        ("2025-10-09T08:53:30Z", 10),
        ("2025-10-09T10:53:30.5+02:00", 10.5),
        ("2025-10-09T08:53:30", 10),
        (formatdate(NOW + 10, usegmt=True), 10),
        ("99999999", None),
        ("9999d", None),
        ("1m and a bit", None),
        ("-5", None),
        ("", None),
    ],
)
def test_resets_come_in_many_forms(value: str, seconds: float | None) -> None:
    assert seconds_until(value, NOW) == pytest.approx(seconds)


def test_absolute_reset_time_is_relative_to_the_server_date() -> None:
    headers = {"date": formatdate(NOW - 3600, usegmt=True), "x-ratelimit-reset": str(int(NOW - 3600 + 20))}
    assert allowances(headers, NOW) == (Allowance("requests", reset=20),)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ((Allowance("requests", remaining=0, reset=3), Allowance("tokens", remaining=5000, reset=50)), 3),
        ((Allowance("requests", remaining=9, reset=3), Allowance("tokens", remaining=50, reset=50)), 50),
        ((Allowance("requests", remaining=0, reset=3), Allowance("tokens", remaining=50, reset=50)), 50),
        ((Allowance("tokens", reset=55), Allowance("requests", remaining=79, reset=1)), 55),
        ((Allowance("share", remaining=0, reset=700),), 700),
        ((Allowance("requests", remaining=9, reset=3),), None),
        ((Allowance("requests", remaining=0),), None),
        ((), None),
    ],
)
def test_a_refused_request_waits_for_what_ran_out(told: tuple[Allowance, ...], seconds: float | None) -> None:
    assert reset_wait(told, 100) == seconds


def test_what_a_request_takes_of_a_limit() -> None:
    takes = {"requests": 1, "tokens": 70, "input_tokens": 70, "output_tokens": 0, "share": 0}
    assert {counted: amount_needed(counted, 70) for counted in takes} == takes


NAMES = st.sampled_from(
    [
        "date",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "retry-after-ms",
        "x-codex-primary-used-percent",
        "x-codex-primary-window-minutes",
        "x-codex-primary-reset-at",
        "anthropic-ratelimit-unified-5h-utilization",
        "anthropic-ratelimit-unified-5h-reset",
        "anthropic-ratelimit-input-tokens-remaining",
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-tokens-minute",
        "x-ratelimit-reset-tokens",
        "x-ratelimitbysize-reset",
        "x-ratelimit-reset",
    ]
) | st.text("x-ratelimdyoknsqu0", max_size=30)
VALUES = (
    st.text(max_size=40)
    | st.text('0123456789.,;:=rtqw"-+TZ dhms', max_size=30)
    | st.datetimes().map(lambda moment: moment.isoformat())
    | st.integers(-(10**20), 10**20).map(str)
)


@given(st.dictionaries(NAMES, VALUES), st.floats(0, 1e10), st.integers(0, 10**9))
def test_no_header_does_any_harm(headers: dict[str, str], at: float, tokens: int) -> None:
    told = allowances(headers, at)
    for one in told:
        assert one.limit is None or one.limit > 0
        assert one.remaining is None or one.remaining >= 0
        assert one.reset is None or one.reset >= 0
    assert (reset_wait(told, tokens) or 0.0) >= 0


def test_only_some_names_may_tell_of_a_limit() -> None:
    assert may_tell((b"Date", b"X-RateLimit-Limit-Requests"))
    assert may_tell((b"x-codex-primary-used-percent",))
    assert not may_tell((b"date", b"content-type"))
