import asyncio
from pathlib import Path

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.service.cluster.host_services import FarLedger, FarMemory, FarRates, FarSpending, HostLine
from sightline.evals.service.cluster.messages import (
    Admit,
    CostSpent,
    HomeAnswer,
    HostFault,
    HostQuestion,
    HowLong,
    Learned,
    Observed,
    RequestCounted,
    RequestReleased,
    Settled,
    Uncounted,
    Waiting,
    pack,
)
from sightline.model.usage import Usage
from sightline.tokens.calibration import Calibration
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait
from tests.cluster_stage import heard
from tests.evals.service.test_rates import choice


def test_requests_are_counted_here_and_told_by_their_number() -> None:
    async def story() -> None:
        line = HostLine()
        ledger = FarLedger(line)
        first, second = ledger.add_request("acme", "m", 10, 1.0), ledger.add_request("acme", "m", 20, 1.0)
        ledger.settle(ledger.settle(first, 7, 2.0), 8, 2.0)
        ledger.unsent(second, 2.0)
        assert ledger.usage("acme", "m", 2.0)[:2] == (1, 8)
        assert await heard(line) == [
            RequestCounted(1, "acme", "m", 10),
            RequestCounted(2, "acme", "m", 20),
            Settled(1, 7),
            Settled(1, 8),
            Uncounted(2),
        ]

    asyncio.run(story())


def test_home_hears_of_headers_about_limits_and_of_no_others() -> None:
    async def story() -> None:
        line = HostLine()
        ledger = FarLedger(line)
        ledger.observe_headers("acme", "m", {"content-type": "text/plain", "date": "now", "set-cookie": "secret"}, 1.0)
        ledger.observe_headers("acme", "m", {"retry-after": "7", "set-cookie": "secret"}, 1.0)
        ledger.observe_headers(
            "acme", "m", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}, 1.0
        )
        assert await heard(line) == [
            Observed("acme", "m", {"retry-after": "7"}),
            Observed("acme", "m", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}),
        ]

    asyncio.run(story())


def test_a_request_goes_when_home_says_so_and_frees_its_place_once() -> None:
    async def story() -> None:
        line = HostLine()
        rates = FarRates(line)
        assert rates.counts_tokens(choice())
        asking = asyncio.get_running_loop().create_task(rates.admit(choice(rpm=3), 5))
        await asyncio.sleep(0)
        assert await heard(line) == [HostQuestion(1, Admit("acme", "m", 5, choice(rpm=3).facts))]
        line.resolve(HomeAnswer(1, msgspec.Raw(b"true")))
        admitted = await asking
        admitted.release()
        admitted.release()
        assert await heard(line) == [RequestReleased(1)]

    asyncio.run(story())


def test_what_home_refuses_is_a_fault_here() -> None:
    async def story() -> None:
        line = HostLine()
        asking = asyncio.get_running_loop().create_task(FarRates(line).admit(choice(), 5))
        await asyncio.sleep(0)
        line.resolve(HomeAnswer(1, fault=HostFault(Code.RATE_LIMITED, "used up for 3 h")))
        with pytest.raises(Fault, match="used up for 3 h"):
            await asking

    asyncio.run(story())


def test_how_long_is_asked_at_home() -> None:
    async def story() -> None:
        line = HostLine()
        asking = asyncio.get_running_loop().create_task(FarRates(line).wait(choice(), 5))
        await asyncio.sleep(0)
        assert await heard(line) == [HostQuestion(1, HowLong("acme", "m", 5, choice().facts))]
        line.resolve(HomeAnswer(1, msgspec.Raw(pack(Waiting(3.0, "used_up", "rpm", 2.0)))))
        assert await asking == Wait(3.0, "used_up", "rpm", 2.0)

    asyncio.run(story())


def test_what_is_spent_and_learned_goes_home_and_nothing_is_kept(tmp_path: Path) -> None:
    async def story() -> None:
        line = HostLine()
        FarSpending(line).spend(0.25)
        FarSpending(line).spend(0.0)
        FarSpending(line).spend(None)
        known = Calibration()
        for _ in range(8):
            known.observe(Calibration.key("acme", "m", tools=False), Estimate(100, 90, 110), 150)
        memory = FarMemory(line, known.to_json(), tmp_path, lambda: 1.0)
        assert memory.ratio("acme", "m", tools=False) is not None
        memory.learn("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), tools=False)
        memory.save()
        assert await heard(line) == [
            CostSpent(0.25),
            CostSpent(None),
            Learned("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), False),
        ]

    asyncio.run(story())
    assert list(tmp_path.iterdir()) == []
