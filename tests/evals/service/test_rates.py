import asyncio
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import Choice, choose
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.service.rates import Rates, limited
from sightline.tokens.ledger import Ledger
from tests.fake_clock import FakeClock


def choice(**facts: int) -> Choice:
    catalog = Catalog(
        providers={"acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:1")},
        models={"m": Model(providers=("acme",), **facts)},  # type: ignore[arg-type]
    )
    return choose(catalog, "acme/m", has_key=lambda _: True)


def test_the_lower_limit_holds() -> None:
    assert (limited(choice(rpm=10), 5, None).facts.rpm, limited(choice(rpm=10), 50, 9).facts.rpm) == (5, 10)
    assert (limited(choice(), None, 9).facts.tpm, limited(choice(), None, None).facts.rpm) == (9, None)


def test_a_request_has_its_place_from_the_moment_it_may_go() -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        rates, one = Rates(ledger, clock), limited(choice(), 2, None)
        first, second = await rates.admitted(one, 0), await rates.admitted(one, 0)
        assert clock.waits == []
        third = await rates.admitted(one, 0)
        assert clock.waits == [pytest.approx(60, abs=2)]
        for each in (first, second, third, third):
            each.release()
        assert ledger.used("acme", "m", clock.now()).rpm == 0

    asyncio.run(story())


def test_tokens_count_only_where_they_are_limited() -> None:
    rates = Rates(Ledger(), FakeClock())
    assert not rates.counts_tokens(choice())
    assert rates.counts_tokens(limited(choice(), None, 100))


def test_a_request_that_can_never_go_is_refused() -> None:
    async def story() -> None:
        with pytest.raises(Fault, match="about 500 tokens are more than the tpm of m") as caught:
            await Rates(Ledger(), FakeClock()).admitted(limited(choice(), None, 100), 500)
        assert caught.value.code is Code.REQUEST_TOO_LARGE_FOR_RATE

    asyncio.run(story())


def test_a_limit_that_is_used_up_for_hours_is_told_and_not_waited_for() -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        ledger.observed("acme", "m", {"retry-after": "7200"}, clock.now())
        with pytest.raises(Fault, match="is used up for 2 h") as caught:
            await Rates(ledger, clock).admitted(choice(), 0)
        assert (caught.value.code, clock.waits) == (Code.RATE_LIMITED, [])

    asyncio.run(story())


def test_what_the_provider_asks_for_is_waited_by_all(tmp_path: Path) -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        ledger.observed("acme", "m", {"retry-after": "30"}, clock.now())
        await Rates(ledger, clock).admitted(choice(), 0)
        assert clock.waits == [30]

    asyncio.run(story())
