import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits
from sightline.tokens.ledger import MOST_ACCOUNTS, READY, Ledger, SentRequest, Wait

NOW = 1_760_000_000.0
WHO = ("acme", "large")


def test_nothing_known_is_nothing_in_the_way() -> None:
    ledger = Ledger()
    assert ledger.wait(*WHO, 10**9, NOW) == READY
    assert ledger.wait(*WHO, 10**9, NOW).is_over
    assert ledger.limits(*WHO) == RateLimits()
    assert ledger.usage(*WHO, NOW) == RateLimits(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("facts", "wait"),
    [
        (Facts(rpm=2), Wait(51, "used_up", "rpm", 2)),
        (Facts(rpm=3), READY),
        (Facts(tpm=1000), Wait(51, "used_up", "tpm", 1000)),
        (Facts(tpm=1200), READY),
        (Facts(rpd=2), Wait(86_690, "used_up", "rpd", 2)),
        (Facts(tpd=1000), Wait(86_690, "used_up", "tpd", 1000)),
        (Facts(rpm=2, tpd=1000), Wait(86_690, "used_up", "tpd", 1000)),
        (Facts(tpm=299), Wait(math.inf, "too_large", "tpm", 299)),
        (Facts(tpd=299), Wait(math.inf, "too_large", "tpd", 299)),
    ],
)
def test_own_counts_meet_the_limits_of_the_catalogue(facts: Facts, wait: Wait) -> None:
    ledger = Ledger()
    ledger.add_request(*WHO, 600, NOW)
    ledger.add_request(*WHO, 300, NOW + 5)
    assert ledger.wait(*WHO, 300, NOW + 10, facts) == wait
    assert ledger.wait("acme", "small", 1, NOW + 10, facts) == READY
    assert ledger.wait("other", "large", 1, NOW + 10, facts) == READY


def test_only_what_is_too_large_by_itself_can_never_go() -> None:
    assert Ledger().wait(*WHO, 1001, NOW, Facts(tpm=1000)).is_endless
    assert not Ledger().wait(*WHO, 1000, NOW, Facts(tpm=1000)).is_endless


def test_what_a_request_really_took_replaces_what_was_thought() -> None:
    ledger = Ledger()
    sent = ledger.add_request(*WHO, 900, NOW)
    assert not ledger.wait(*WHO, 500, NOW + 1, Facts(tpm=1000)).is_over
    sent = ledger.settle(sent, 400, NOW + 2)
    assert ledger.wait(*WHO, 500, NOW + 3, Facts(tpm=1000)).is_over
    ledger.settle(sent, 450, NOW + 4)
    assert ledger.usage(*WHO, NOW + 5) == RateLimits(1, 450, 1, 450)


@pytest.mark.parametrize("absurd", [10**400, 10**20, 11_000_000, -1])
def test_absurd_usage_does_not_change_the_ledger(absurd: int) -> None:
    ledger = Ledger()
    sent = ledger.add_request(*WHO, 900, NOW)
    assert ledger.settle(sent, absurd, NOW + 2) == sent
    assert ledger.usage(*WHO, NOW + 5) == RateLimits(1, 900, 1, 900)


def test_a_request_that_never_left_took_nothing() -> None:
    ledger = Ledger()
    ledger.observe_headers(*WHO, headers(limit_requests="2", remaining_requests="1", reset_requests="60s"), NOW)
    sent = ledger.add_request(*WHO, 900, NOW + 1)
    assert not ledger.wait(*WHO, 1, NOW + 1).is_over
    ledger.unsent(sent, NOW + 2)
    assert ledger.usage(*WHO, NOW + 2) == RateLimits(0, 0, 0, 0)
    assert ledger.wait(*WHO, 1, NOW + 2).is_over


def test_unsent_request_does_not_change_an_allowance_reported_after_it() -> None:
    ledger = Ledger()
    sent = ledger.add_request(*WHO, 900, NOW)
    ledger.observe_headers(*WHO, headers(limit_requests_minute="2", remaining_requests_minute="1"), NOW + 1)
    ledger.unsent(sent, NOW + 2)
    ledger.add_request(*WHO, 1, NOW + 3)
    assert not ledger.wait(*WHO, 1, NOW + 3).is_over


@pytest.mark.parametrize("back", [0.3, 1000.1, 86_400.7])
def test_settling_finds_its_request_after_the_clock_was_set_back(back: float) -> None:
    ledger = Ledger()
    ledger.add_request(*WHO, 7, NOW - 40)
    sent = ledger.add_request(*WHO, 1000, NOW + 0.1)
    ledger.usage(*WHO, NOW - back / 3)
    ledger.settle(sent, 10, NOW - back)
    assert ledger.usage(*WHO, NOW - back) == RateLimits(2, 17, 2, 17)


def headers(**values: str) -> dict[str, str]:
    return {f"x-ratelimit-{name.replace('_', '-')}": value for name, value in values.items()}


def test_the_providers_number_counts_for_more_than_our_own() -> None:
    ledger = Ledger()
    ledger.add_request(*WHO, 900, NOW)
    ledger.observe_headers(*WHO, headers(limit_tokens="1000", remaining_tokens="800", reset_tokens="12s"), NOW)
    assert ledger.limits(*WHO, Facts(tpm=7, rpm=3)) == RateLimits(rpm=3, tpm=1000)
    assert ledger.wait(*WHO, 800, NOW) == READY
    ledger.add_request(*WHO, 500, NOW)
    wait = ledger.wait(*WHO, 400, NOW)
    assert (wait.reason, wait.limit, wait.allowed) == ("reported", "tokens", 1000)
    assert wait.seconds == pytest.approx(100 / (200 / 12))
    assert ledger.wait(*WHO, 400, NOW + 6.1) == READY


def test_after_its_reset_the_own_count_holds_again() -> None:
    ledger = Ledger()
    ledger.observe_headers(*WHO, headers(limit_tokens="1000", remaining_tokens="1000", reset_tokens="2s"), NOW)
    ledger.add_request(*WHO, 900, NOW + 1)
    assert ledger.wait(*WHO, 500, NOW + 3) == Wait(59, "used_up", "tpm", 1000)


def test_settling_changes_only_allowances_reported_before_the_request() -> None:
    ledger = Ledger()
    first = ledger.add_request(*WHO, 900, NOW)
    ledger.observe_headers(*WHO, headers(limit_tokens_minute="1000", remaining_tokens_minute="100"), NOW + 1)
    ledger.settle(first, 10, NOW + 2)
    assert ledger.wait(*WHO, 101, NOW + 2) == Wait(59, "reported", "tokens", 1000)
    second = ledger.add_request(*WHO, 90, NOW + 3)
    ledger.settle(second, 0, NOW + 4)
    assert ledger.wait(*WHO, 100, NOW + 4) == READY


@pytest.mark.parametrize(
    ("told", "tokens", "wait"),
    [
        pytest.param(
            headers(limit="20", remaining="0", reset=str(int(NOW) + 30)),
            1,
            Wait(30, "reported", "requests", 20),
            id="all at once",
        ),
        pytest.param(
            headers(limit_requests="600", remaining_requests="0", reset_requests="60s"),
            1,
            Wait(0.1, "reported", "requests", 600),
            id="little by little",
        ),
        pytest.param(
            headers(remaining_requests="0"), 1, Wait(60, "reported", "requests"), id="no reset: a minute, to be sure"
        ),
        pytest.param(
            headers(remaining_requests_day="0"), 1, Wait(86_400, "reported", "requests"), id="no reset: the window"
        ),
        pytest.param(
            headers(limit_tokens="1000", remaining_tokens="1000", reset_tokens="0s"),
            1000,
            READY,
            id="as much as it takes",
        ),
        pytest.param(
            headers(limit_tokens="1000", remaining_tokens="1000", reset_tokens="0s"),
            1001,
            Wait(math.inf, "too_large", "tpm", 1000),
            id="more than it ever takes",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-input-tokens-limit": "1000",
                "anthropic-ratelimit-input-tokens-remaining": "500",
                "anthropic-ratelimit-input-tokens-reset": "2025-10-09T08:53:50Z",
            },
            5000,
            Wait(30, "reported", "input_tokens", 1000),
            id="cached input is not counted, so more may pass",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-output-tokens-limit": "1000",
                "anthropic-ratelimit-output-tokens-remaining": "1",
                "anthropic-ratelimit-output-tokens-reset": "2025-10-09T08:53:50Z",
            },
            5000,
            READY,
            id="what it will say is not known",
        ),
        pytest.param(
            {"x-codex-primary-used-percent": "100", "x-codex-primary-reset-after-seconds": "500"},
            1,
            Wait(500, "reported", "share", 100),
            id="a plan that is used up",
        ),
        pytest.param({"retry-after": "7"}, 1, Wait(7, "asked", "retry_after"), id="asked for"),
        pytest.param(headers(reset_tokens="7s"), 1, READY, id="a reset alone says nothing"),
    ],
)
def test_wait_follows_the_rate_limit_headers(told: dict[str, str], tokens: int, wait: Wait) -> None:
    ledger = Ledger()
    ledger.observe_headers(*WHO, told, NOW)
    found = ledger.wait(*WHO, tokens, NOW)
    assert (found.reason, found.limit, found.allowed) == (wait.reason, wait.limit, wait.allowed)
    assert found.seconds == pytest.approx(wait.seconds)
    if not wait.is_endless:
        assert ledger.wait(*WHO, tokens, NOW + wait.seconds + 1e-6) == READY


def test_clock_set_back_does_not_lengthen_waits() -> None:
    ledger = Ledger()
    ledger.add_request(*WHO, 900, NOW)
    ledger.observe_headers(*WHO, {"retry-after": "5", **headers(remaining="0", reset="20")}, NOW)
    earlier = NOW - 86_400
    assert ledger.wait(*WHO, 1, earlier) == Wait(20, "reported", "requests")
    assert ledger.wait(*WHO, 1, earlier + 21, Facts(tpm=1000)) == READY
    assert ledger.wait(*WHO, 900, earlier + 21, Facts(tpm=1000)) == Wait(40, "used_up", "tpm", 1000)


def test_the_ledger_is_kept_between_runs() -> None:
    ledger = Ledger()
    ledger.add_request(*WHO, 900, NOW - 4000)
    ledger.add_request(*WHO, 50, NOW)
    ledger.observe_headers(
        *WHO, {"retry-after": "90", **headers(limit_requests_day="9", remaining_requests_day="4")}, NOW
    )
    kept = json.loads(json.dumps(ledger.snapshot()))
    again = Ledger.from_snapshot(kept, NOW + 70)
    assert again.usage(*WHO, NOW + 70) == RateLimits(0, 0, 2, 950)
    assert again.limits(*WHO) == RateLimits(rpd=9)
    assert again.wait(*WHO, 1, NOW + 70) == Wait(20, "asked", "retry_after")
    assert Ledger.from_snapshot(again.snapshot(), NOW + 70).snapshot() == again.snapshot()
    assert Ledger.from_snapshot(kept, NOW - 10**9).usage(*WHO, NOW - 10**9) == RateLimits(1, 50, 2, 950)


def test_memory_is_bounded_by_models_and_by_limits() -> None:
    ledger = Ledger()
    for number in range(MOST_ACCOUNTS + 10):
        ledger.add_request("acme", f"model-{number}", 1, NOW)
    assert len(ledger.snapshot()["accounts"]) == MOST_ACCOUNTS
    assert ledger.usage("acme", f"model-{MOST_ACCOUNTS}", NOW) == RateLimits(1, 1, 1, 1)
    for minutes in range(100):
        ledger.observe_headers(
            *WHO, {"x-codex-primary-used-percent": "1", "x-codex-primary-window-minutes": str(minutes)}, NOW
        )
    account = ledger.snapshot()["accounts"][-1]
    assert len(account["observations"]) == 32


ACTS = st.lists(
    st.tuples(st.sampled_from(["sent", "settled", "observed", "back"]), st.floats(0, 100), st.integers(0, 3000)),
    max_size=40,
)


@given(ACTS, st.integers(1, 20), st.integers(100, 5000))
def test_request_is_admitted_after_the_reported_wait(acts: list[tuple[str, float, int]], rpm: int, tpm: int) -> None:
    ledger, at, last = Ledger(), NOW, None
    facts = Facts(rpm=rpm, tpm=tpm, rpd=rpm * 10, tpd=tpm * 10)
    for act, gap, tokens in acts:
        at = at - gap if act == "back" else at + gap
        if act == "sent":
            last = ledger.add_request(*WHO, tokens, at)
        elif act == "settled" and last:
            last = ledger.settle(last, tokens, at)
        elif act == "observed":
            left = str(tokens)
            ledger.observe_headers(
                *WHO, headers(limit_tokens="3000", remaining_tokens=left, reset_tokens=f"{gap:.3f}s"), at
            )
        used = ledger.usage(*WHO, at)
        assert all(count is not None and count >= 0 for count in used)
    tokens = min(tpm, 3000)
    for _ in range(20):
        wait = ledger.wait(*WHO, tokens, at, facts)
        assert not wait.is_endless
        if wait.is_over:
            break
        at += wait.seconds + 1e-3
    assert wait.is_over


# --- several runs -----------------------------------------------------------------------------------


def kept(ledger: Ledger, now: float) -> Ledger:
    return Ledger.from_snapshot(json.loads(json.dumps(ledger.snapshot())), now)


def test_merging_ledgers_of_two_processes_keeps_request_times() -> None:
    long_one = Ledger()
    long_one.add_request(*WHO, 1, NOW)
    file, short_one = Ledger(), Ledger()
    for _ in range(20):
        short_one.add_request(*WHO, 100, NOW + 10_000)
    file.merge(short_one, NOW + 10_000)
    long_one.add_request(*WHO, 1, NOW + 10_010)
    file = kept(file, NOW + 10_020)
    file.merge(long_one, NOW + 10_020)
    assert file.usage(*WHO, NOW + 10_020) == RateLimits(21, 2001, 22, 2002)
    assert file.usage(*WHO, NOW + 86_400 + 5000) == RateLimits(0, 0, 21, 2001)


def test_only_news_is_merged() -> None:
    live, file = Ledger(), Ledger()
    sent = live.add_request(*WHO, 100, NOW)
    assert live.has_news
    file.merge(live, NOW)
    live.mark_saved()
    assert not live.has_news
    file.merge(live, NOW)
    live.settle(sent, 40, NOW + 1)
    assert live.has_news
    file.merge(live, NOW + 1)
    assert file.usage(*WHO, NOW + 1) == RateLimits(1, 40, 1, 40)
    again = kept(file, NOW + 2)
    assert not again.has_news
    file.merge(again, NOW + 2)
    assert file.usage(*WHO, NOW + 2) == RateLimits(1, 40, 1, 40)


def test_runs_are_merged_even_if_the_clock_was_set_back_for_one_of_them() -> None:
    live, file = Ledger(), Ledger()
    live.add_request(*WHO, 100, NOW + 1000)
    file.add_request(*WHO, 1, NOW - 5)
    file.merge(live, NOW)
    assert file.usage(*WHO, NOW) == RateLimits(2, 101, 2, 101)
    assert file.usage(*WHO, NOW + 57) == RateLimits(1, 100, 2, 101)


def test_the_latest_words_of_a_provider_hold_and_all_that_was_sent_since_counts() -> None:
    file, live = Ledger(), Ledger()
    told = headers(limit_requests_minute="9", remaining_requests_minute="3")
    live.observe_headers(*WHO, {"retry-after": "1"}, NOW)
    live.observe_headers(*WHO, headers(limit_requests_minute="9", remaining_requests_minute="1"), NOW)
    file.observe_headers(*WHO, told, NOW + 1)
    for second in (2, 3):
        file.add_request(*WHO, 5, NOW + second)
    live.add_request(*WHO, 5, NOW + 4)
    assert live.wait(*WHO, 5, NOW + 4.5).seconds > 0
    file.merge(live, NOW + 5)
    assert file.wait(*WHO, 5, NOW + 5) == Wait(56, "reported", "requests", 9)
    live.observe_headers(*WHO, told, NOW + 6)
    file.merge(live, NOW + 7)
    assert file.wait(*WHO, 5, NOW + 7) == READY


def state(**changes: object) -> object:
    told = {"counted": "tokens", "limit": 5, "remaining": 1, "reset": 60, **changes.pop("allowance", {})}  # type: ignore[call-overload]
    seen = {"allowance": told, "at": NOW, **changes.pop("observation", {})}  # type: ignore[call-overload]
    account = {"provider": "a", "model": "b", "latest": NOW, "minute": [], "day": [], "observations": [seen]}
    return {"version": 1, "accounts": [{**account, **changes}]}


def test_a_sound_state_is_taken() -> None:
    assert not Ledger.from_snapshot(state(), NOW).wait("a", "b", 3, NOW).is_over


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {"accounts": []},
        {"version": 2, "accounts": []},
        {"version": 1, "accounts": [{"provider": "acme"}]},
        {"version": 1, "accounts": [], "more": 1},
        # Absurd numbers
        state(minute=[[1, -1, 0]]),
        state(latest=1e308),
        state(quiet_until=-1e308),
        state(minute=[[1e300, 1, 1]]),
        state(day=[[NOW, 10**400, 1]]),
        state(day=[[NOW, 1, 2**63]]),
        state(observation={"at": 1e308}),
        state(observation={"tokens": 10**400}),
        state(allowance={"remaining": 1e308}),
        state(allowance={"reset": -1}),
        state(allowance={"limit": -5}),
    ],
)
def test_what_is_no_snapshot_is_refused(broken: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        Ledger.from_snapshot(broken, NOW)


def test_what_was_sent_can_be_settled_though_its_model_was_forgotten() -> None:
    ledger = Ledger()
    gone = SentRequest("acme", "forgotten", 10, NOW)
    ledger.settle(gone, 5, NOW + 1)
    ledger.unsent(gone, NOW + 1)
    assert ledger.usage("acme", "forgotten", NOW + 1) == RateLimits(0, 0, 0, 0)


def test_headers_that_were_kept_count_when_a_limit_is_asked_for() -> None:
    said = headers(limit_requests_minute="60", remaining_requests_minute="59")
    kept, read = Ledger(), Ledger()
    names, values = (tuple(each.encode() for each in part) for part in (said, said.values()))
    kept.keep_headers(SentRequest(*WHO, 0, NOW), names, values, NOW)
    read.observe_headers(*WHO, said, NOW)
    assert kept.limits(*WHO) == read.limits(*WHO)
    assert kept.limits(*WHO).rpm == 60


def test_others_that_count_for_a_ledger_are_heard_before_a_limit_is_looked_at() -> None:
    ledger = Ledger()
    waiting = [7, 5, 3]

    def count_in() -> None:
        ledger.add_request("acme", "m", waiting.pop(), NOW)

    ledger.catch_up = count_in
    assert ledger.usage("acme", "m", NOW)[:2] == (1, 3)
    assert ledger.limits("acme", "m", Facts(rpm=2)).rpm == 2
    assert ledger.wait("acme", "m", 1, NOW, Facts(rpm=2)).limit == "rpm"
    assert not waiting
