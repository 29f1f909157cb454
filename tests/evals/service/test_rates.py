import asyncio
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.service.context import Rates, limit_choice
from sightline.tokens.ledger import Ledger
from tests.fake_clock import FakeClock


def choice(**facts: int) -> ModelChoice:
    catalog = Catalog(
        providers={"acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:1")},
        models={"m": Model(providers=("acme",), **facts)},  # type: ignore[arg-type]
    )
    return choose(catalog, "acme/m", has_key=lambda _: True)


def test_the_lower_limit_holds() -> None:
    assert (limit_choice(choice(rpm=10), 5, None).facts.rpm, limit_choice(choice(rpm=10), 50, 9).facts.rpm) == (5, 10)
    assert (limit_choice(choice(), None, 9).facts.tpm, limit_choice(choice(), None, None).facts.rpm) == (9, None)


def test_a_request_has_its_place_from_the_moment_it_may_go() -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        rates, one = Rates(ledger, clock), limit_choice(choice(), 2, None)
        first, second = await rates.admit(one, 0), await rates.admit(one, 0)
        assert clock.waits == []
        third = await rates.admit(one, 0)
        assert clock.waits == [pytest.approx(60, abs=2)]
        for each in (first, second, third, third):
            each.release()
        assert ledger.usage("acme", "m", clock.now()).rpm == 0

    asyncio.run(story())


def test_tokens_count_only_where_they_are_limited() -> None:
    rates = Rates(Ledger(), FakeClock())
    assert not rates.counts_tokens(choice())
    assert rates.counts_tokens(limit_choice(choice(), None, 100))


def test_a_request_that_can_never_go_is_refused() -> None:
    async def story() -> None:
        with pytest.raises(Fault, match="about 500 tokens are more than the tpm of m") as caught:
            await Rates(Ledger(), FakeClock()).admit(limit_choice(choice(), None, 100), 500)
        assert caught.value.code is Code.REQUEST_TOO_LARGE_FOR_RATE

    asyncio.run(story())


def test_a_limit_that_is_used_up_for_hours_is_told_and_not_waited_for() -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        ledger.observe_headers("acme", "m", {"retry-after": "7200"}, clock.now())
        with pytest.raises(Fault, match="is used up for 2 h") as caught:
            await Rates(ledger, clock).admit(choice(), 0)
        assert (caught.value.code, clock.waits) == (Code.RATE_LIMITED, [])

    asyncio.run(story())


def test_what_the_provider_asks_for_is_waited_by_all(tmp_path: Path) -> None:
    async def story() -> None:
        clock, ledger = FakeClock(), Ledger()
        ledger.observe_headers("acme", "m", {"retry-after": "30"}, clock.now())
        await Rates(ledger, clock).admit(choice(), 0)
        assert clock.waits == [30]

    asyncio.run(story())
