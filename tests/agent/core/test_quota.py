import pytest

from sightline.agent.core.quota import quota_of, waiting_by
from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits
from sightline.tokens.ledger import Ledger
from tests.chat.core.stage import NOW

FACTS = Facts(rpm=2, tpm=1_000, rpd=100, tpd=1_000_000)


def used(*tokens: int) -> Ledger:
    ledger = Ledger()
    for count in tokens:
        ledger.add_request("acme", "large", count, NOW)
    return ledger


def test_what_the_account_allows_can_go_now() -> None:
    quota = quota_of(used(100), "acme", "large", 200, NOW, FACTS)
    assert (quota.line, quota.can_wait, quota.can_go_at) == ("", False, NOW)
    assert quota.used == RateLimits(1, 100, 1, 100)
    assert quota.limits == RateLimits(2, 1_000, 100, 1_000_000)


def test_a_used_up_minute_says_when_it_can_go_and_offers_to_wait() -> None:
    quota = quota_of(used(1, 1), "acme", "large", 200, NOW, FACTS)
    assert quota.can_wait
    assert quota.can_go_at == NOW + 61
    assert quota.line == "can go in 61 s: requests per minute (2)"


def test_a_used_up_day_says_so_too() -> None:
    quota = quota_of(used(1), "acme", "large", 200, NOW, Facts(rpd=1))
    assert quota.line == "can go in 24 h: requests per day (1)"


@pytest.mark.parametrize(("seconds", "line"), [(30, "can go in 30 s"), (600, "can go in 10 min")])
def test_a_pause_that_the_provider_asked_for_is_kept(seconds: int, line: str) -> None:
    ledger = Ledger()
    ledger.observe_headers("acme", "large", {"retry-after": str(seconds)}, NOW)
    assert quota_of(ledger, "acme", "large", 1, NOW).line == f"{line}: the pause that the provider asked for"


def test_what_is_larger_than_a_minute_allows_never_can_go() -> None:
    quota = quota_of(Ledger(), "acme", "large", 2_000, NOW, FACTS)
    assert (quota.can_wait, quota.can_go_at) == (False, None)
    assert quota.line == "2,000 tokens are more than tokens per minute allow (1,000); make the request smaller"


def test_a_send_asks_by_the_clock() -> None:
    times = iter([NOW, NOW + 70])
    waiting = waiting_by(used(1, 1), "acme", "large", lambda: next(times), FACTS)
    assert waiting(200).seconds == 61
    assert waiting(200).is_over
