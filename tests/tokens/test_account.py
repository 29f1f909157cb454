import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.tokens.account import Account, AllowanceObservation, SlidingWindow, lower_case
from sightline.tokens.rate_headers import DAY, MINUTE, Allowance, allowances

NOW = 1_760_000_000.0


def test_account_time_never_runs_backwards() -> None:
    account = Account()
    times = [account.time(NOW + moment) for moment in (0, 10, -50, -40, -90, 0)]
    assert [time - NOW for time in times] == [0, 10, 10, 20, 20, 110]


def test_it_is_kept_by_the_machines_clock() -> None:
    account = Account()
    account.add(NOW + 100, 7)
    account.observe(AllowanceObservation(Allowance("requests", remaining=3), account.time(NOW + 100)))
    account.time(NOW)
    state = account.state("acme", "large")
    assert (state.latest, state.minute, state.day) == (NOW, [(NOW, 1, 7)], [(NOW, 1, 7)])
    assert [seen.at for seen in state.observations] == [NOW]
    assert Account.from_state(state).state("acme", "large") == state


def test_requests_that_no_one_asks_about_are_counted_after_some_time() -> None:
    account = Account()
    for number in range(200):
        account.add(NOW + number / 10, 2)
    assert len(account._uncounted) < 100
    assert (account.window(MINUTE).usage(NOW + 20, "requests"), account.window(DAY).usage(NOW + 20, "tokens")) == (
        200,
        400,
    )


def test_newer_observation_of_a_limit_replaces_the_older_one() -> None:
    account, other = Account(), Account()
    for told, left, at in ((account, 9, 2.0), (other, 5, 1.0), (other, 4, 3.0)):
        told.observe(AllowanceObservation(Allowance("requests", window=60.0, remaining=left), NOW + at))
    account.merge(other)
    assert [(seen.allowance.remaining, seen.at) for seen in account.observations.values()] == [(4, NOW + 3)]
    other.observations.clear()
    account.merge(other)
    assert len(account.observations) == 1


def test_merged_observations_are_copied() -> None:
    account, other = Account(), Account()
    other.observe(AllowanceObservation(Allowance("requests", remaining=9), NOW))
    account.merge(other)
    account.add(NOW + 1, 5)
    assert [seen.requests for seen in other.observations.values()] == [0]


SPAN, STEP = 60.0, 1.0


def test_what_was_used_leaves_when_its_time_is_over() -> None:
    window = SlidingWindow(SPAN, STEP)
    window.add(100.0, 1, 500)
    window.add(130.0, 1, 200)
    assert (window.usage(150.0, "requests"), window.usage(150.0, "tokens")) == (2, 700)
    assert (window.usage(161.0, "requests"), window.usage(161.0, "tokens")) == (1, 200)
    assert window.usage(191.0, "tokens") == 0


def test_a_request_waits_for_just_as_much_as_it_needs() -> None:
    window = SlidingWindow(SPAN, STEP)
    window.add(100.0, 1, 500)
    window.add(110.0, 1, 300)
    assert window.wait(120.0, "tokens", 200, 1000) == 0
    assert window.wait(120.0, "tokens", 300, 1000) == 41
    assert window.wait(120.0, "tokens", 800, 1000) == 51
    assert window.wait(120.0, "tokens", 5000, 1000) == 51
    assert window.wait(120.0, "requests", 1, 2) == 41
    assert window.wait(120.0, "requests", 1, 3) == 0


def test_an_estimate_is_corrected_where_it_was_counted() -> None:
    window = SlidingWindow(SPAN, STEP)
    window.add(100.0, 1, 500)
    window.add(110.0, 1, 300)
    window.correct(100.4, -450)
    assert window.slots() == [(100.0, 1, 50), (110.0, 1, 300)]
    window.correct(110.0, -900)
    assert window.usage(110.0, "tokens") == 50
    window.correct(105.0, 1000)
    window.correct(50.0, 1000)
    assert window.usage(110.0, "tokens") == 50


def test_a_request_can_be_taken_back() -> None:
    window = SlidingWindow(SPAN, STEP)
    window.add(100.0, 1, 500)
    window.add(100.5, 1, 300)
    window.correct(100.5, -300, requests=-1)
    assert window.slots() == [(100.0, 1, 500)]
    window.correct(100.0, -500, requests=-5)
    assert window.slots() == [(100.0, 0, 0)]


def test_what_two_counted_apart_adds_up_in_the_order_of_time() -> None:
    kept = SlidingWindow(SPAN, STEP)
    kept.add(100.0, 2, 200)
    kept.add(120.0, 5, 500)
    kept.merge([(100.4, 1, 10), (110.0, 3, 30), (120.0, 0, -900)], 0.0)
    assert kept.slots() == [(100.0, 3, 210), (110.0, 3, 30), (120.0, 5, 0)]
    assert kept.usage(125.0, "tokens") == 240
    kept.merge([(90.0, 1, 1)], 5.0)
    assert kept.slots()[0] == (95.0, 1, 1)


def test_what_is_kept_already_is_no_news() -> None:
    window = SlidingWindow(SPAN, STEP)
    window.add(100.0, 1, 500)
    assert window.news() == [(100.0, 1, 500)]
    window.mark_saved()
    assert window.news() == []
    window.correct(100.0, -450)
    window.add(103.0, 1, 7)
    assert window.news() == [(100.0, 0, -450), (103.0, 1, 7)]
    assert window.since(100.0) == (1, 7)


EVENTS = st.lists(st.tuples(st.floats(0, 20), st.integers(0, 1000)), max_size=60)


@given(EVENTS, st.floats(0, 100))
def test_it_counts_like_a_list_of_everything_to_within_a_step(events: list[tuple[float, int]], later: float) -> None:
    window = SlidingWindow(SPAN, STEP)
    sent: list[tuple[float, int]] = []
    at = 1000.0
    for gap, tokens in events:
        at += gap
        window.add(at, 1, tokens)
        sent.append((at, tokens))
    at += later
    surely = sum(tokens for when, tokens in sent if when > at - SPAN)
    perhaps = sum(tokens for when, tokens in sent if when > at - SPAN - STEP)
    assert surely <= window.usage(at, "tokens") <= perhaps
    assert len(window.slots()) <= SPAN / STEP + 2


@given(EVENTS, st.integers(1, 1000), st.integers(1000, 3000))
def test_after_the_wait_it_fits_and_not_a_moment_before(events: list[tuple[float, int]], need: int, limit: int) -> None:
    window = SlidingWindow(SPAN, STEP)
    at = 1000.0
    for gap, tokens in events:
        at += gap
        window.add(at, 1, tokens)
    wait = window.wait(at, "tokens", need, limit)
    if wait > 1e-6:
        assert window.usage(at + wait - 1e-6, "tokens") + need > limit
    assert window.usage(at + wait + 1e-6, "tokens") + need <= limit


@pytest.mark.parametrize("count", [10, 10_000])
def test_memory_does_not_grow_with_what_is_sent(count: int) -> None:
    window = SlidingWindow(SPAN, STEP)
    for number in range(count):
        window.add(number / 100, 1, 1)
    assert len(window.slots()) <= SPAN / STEP + 2


def test_headers_are_read_when_they_are_asked_for_and_count_what_was_sent_since() -> None:
    read, kept = Account(), Account()
    names, values = (b"X-RateLimit-Limit-Requests", b"x-ratelimit-remaining-requests"), (b"10", b"4")
    for account in (read, kept):
        account.add(999.0, 5)
    for allowance in allowances(lower_case(zip(names, values, strict=True)), 1000.0):
        read.observe(AllowanceObservation(allowance, 1000.0))
    kept.keep_headers(names, (b"3", b"4"), 1000.0)  # of the same kind, and before
    kept.keep_headers(names, values, 1000.0)
    for account in (read, kept):
        account.add(1001.0, 7)
        account.correct(1001.0, 2)
    assert list(kept.observations.values()) == list(read.observations.values())
    assert list(kept.observations.values())


def test_headers_of_many_kinds_are_not_kept_for_ever() -> None:
    account = Account()
    for number in range(100):
        account.keep_headers((b"x-%d" % number,), (b"1",), 1.0)
    assert len(account._unread) < 50
