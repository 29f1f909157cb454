from sightline.tokens.account import Account, AllowanceObservation
from sightline.tokens.rate_headers import Allowance

NOW = 1_760_000_000.0


def test_its_clock_stands_still_while_the_machines_is_set_back() -> None:
    account = Account()
    times = [account.time(NOW + moment) for moment in (0, 10, -50, -40, -90, 0)]
    assert [time - NOW for time in times] == [0, 10, 10, 20, 20, 110]


def test_it_is_kept_by_the_machines_clock() -> None:
    account = Account()
    account.add(account.time(NOW + 100), 7)
    account.observe(AllowanceObservation(Allowance("requests", remaining=3), account.time(NOW + 100)))
    account.time(NOW)
    state = account.state("acme", "large")
    assert (state.latest, state.minute, state.day) == (NOW, [(NOW, 1, 7)], [(NOW, 1, 7)])
    assert [seen.at for seen in state.observations] == [NOW]
    assert Account.from_state(state).state("acme", "large") == state


def test_what_is_told_of_one_limit_replaces_what_was_told_of_it_before() -> None:
    account, other = Account(), Account()
    for told, left, at in ((account, 9, 2.0), (other, 5, 1.0), (other, 4, 3.0)):
        told.observe(AllowanceObservation(Allowance("requests", window=60.0, remaining=left), NOW + at))
    account.merge(other)
    assert [(seen.allowance.remaining, seen.at) for seen in account.observations.values()] == [(4, NOW + 3)]
    other.observations.clear()
    account.merge(other)
    assert len(account.observations) == 1


def test_what_is_taken_in_is_nobody_elses_any_more() -> None:
    account, other = Account(), Account()
    other.observe(AllowanceObservation(Allowance("requests", remaining=9), NOW))
    account.merge(other)
    account.add(NOW + 1, 5)
    assert [seen.requests for seen in other.observations.values()] == [0]
