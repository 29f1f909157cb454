import asyncio
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.facts import Facts, Model
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalBegan, RunOptions
from sightline.evals.service.answer_cache import PREFIX, AnswerCache, key_of
from sightline.evals.service.context import EvalContext, LocalSharing, Rates, Sharing, limit_choice
from sightline.tokens.ledger import Ledger
from tests.eval_stage import ACME, EvalStage, on_stage
from tests.fake_clock import FakeClock
from tests.store.traffic import prices
from tests.upstream import Upstream


def choice(**facts: int) -> ModelChoice:
    catalog = Catalog(
        providers={"acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:1")},
        models={"m": Model(providers=("acme",), **facts)},  # type: ignore[arg-type]
    )
    return choose(catalog, "acme/m", has_key=lambda _: True)


def test_the_lower_limit_holds() -> None:
    assert (limit_choice(choice(rpm=10), 5, None).facts.rpm, limit_choice(choice(rpm=10), 50, 9).facts.rpm) == (5, 10)
    assert (limit_choice(choice(), None, 9).facts.tpm, limit_choice(choice(), None, None).facts.rpm) == (9, None)


async def test_a_request_has_its_place_from_the_moment_it_may_go() -> None:
    clock, ledger = FakeClock(), Ledger()
    rates, one = Rates(ledger, clock), limit_choice(choice(), 2, None)
    first, second = await rates.admit("acme", "m", one.facts, 0), await rates.admit("acme", "m", one.facts, 0)
    assert clock.waits == []
    third = await rates.admit("acme", "m", one.facts, 0)
    assert clock.waits == [pytest.approx(60, abs=2)]
    for each in (first, second, third, third):
        each()
    assert ledger.usage("acme", "m", clock.now()).rpm == 0


def test_tokens_count_only_where_they_are_limited() -> None:
    rates = Rates(Ledger(), FakeClock())
    assert not rates.counts_tokens(choice())
    assert rates.counts_tokens(limit_choice(choice(), None, 100))


async def test_a_request_that_can_never_go_is_refused() -> None:
    with pytest.raises(Fault, match="about 500 tokens are more than the tpm of m") as caught:
        await Rates(Ledger(), FakeClock()).admit("acme", "m", Facts(tpm=100), 500)
    assert caught.value.code is Code.REQUEST_TOO_LARGE_FOR_RATE


async def test_limit_exhausted_for_hours_is_reported_without_waiting() -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.observe_headers("acme", "m", {"retry-after": "7200"}, clock.now())
    with pytest.raises(Fault, match="is used up for 2 h") as caught:
        await Rates(ledger, clock).admit("acme", "m", Facts(), 0)
    assert (caught.value.code, clock.waits) == (Code.RATE_LIMITED, [])


async def test_what_the_provider_asks_for_is_waited_by_all() -> None:
    clock, ledger = FakeClock(), Ledger()
    ledger.observe_headers("acme", "m", {"retry-after": "30"}, clock.now())
    await Rates(ledger, clock).admit("acme", "m", Facts(), 0)
    assert clock.waits == [30]


@on_stage
async def test_answers_of_a_target_are_shared_by_all_callers(stage: EvalStage) -> None:
    sharing: Sharing = LocalSharing(stage.driven())
    first, second = await asyncio.gather(sharing.answers("acme"), sharing.answers("acme"))
    assert first is second is not None
    assert await sharing.answers("other") is not first
    first.keep("k", "x_1")
    await sharing.close()
    assert len(await stage.stage.store.logbook.lines("eval-answers:acme")) == 1


@on_stage
async def test_there_are_none_where_none_are_wanted_or_nothing_is_on_record(stage: EvalStage) -> None:
    unwanted = EvalBegan(suite=stage.suite(), targets=(ACME,), options=RunOptions(cache=False))
    assert await LocalSharing(stage.driven(unwanted)).answers("acme") is None
    bare = EvalStage(stage.stage, stage.root, store=None)
    assert await LocalSharing(bare.driven()).answers("acme") is None


async def opened(stage: EvalStage, target: str = "acme") -> AnswerCache:
    run = stage.stage
    cache = AnswerCache(run.store.logbook, run.store, target, prices, run.clock)
    await cache.load()
    return cache


@on_stage
async def test_an_answer_is_found_in_the_record(stage: EvalStage) -> None:
    standing = await stage.run()
    ready = stage.evaluation.preview(stage.suite(), "france", ACME, RunOptions()).prepared
    assert ready is not None
    cache = await opened(stage)
    found = await cache.find(key_of(ready, "acme", 0), ready.sha256)
    assert found is not None
    assert found.exchange == standing.results[0].observation.exchanges[0]
    assert found.reply.choice.finish == "stop"
    assert await cache.find(key_of(ready, "acme", 1), ready.sha256) is None
    assert await cache.find(key_of(ready, "acme", 0), "of other bytes") is None
    elsewhere = await opened(stage, "twin")
    assert await elsewhere.find(key_of(ready, "twin", 0), ready.sha256) is None


@on_stage
async def test_what_the_record_holds_no_more_is_no_answer(stage: EvalStage, upstream: Upstream) -> None:
    await stage.run()
    await stage.stage.store.settle()
    await stage.stage.store.prune(older_than=stage.stage.clock.now() + 1)
    await stage.run(run="e_2")
    assert len(upstream.seen) == 6


@on_stage
async def test_two_that_write_at_once_lose_nothing(stage: EvalStage) -> None:
    caches = [await opened(stage), await opened(stage)]
    for number, cache in enumerate(caches):
        cache.keep(f"k{number}", f"x_{number}")
    for cache in caches:
        await cache.flush()
    assert len(await stage.stage.store.logbook.lines(PREFIX + "acme")) == 2
    assert (await opened(stage))._known == {"k0": "x_0", "k1": "x_1"}


CATALOG = Catalog(
    providers={"acme": Provider(dialect="openai-chat", base_url="http://x", key_env="K", default_model="usual")},
    models={"m": Model(providers=("acme",))},
)


def around(**more: object) -> EvalContext:
    return EvalContext(CATALOG, lambda _: True, lambda: "x_1", Path(), **more)  # type: ignore[arg-type]


def test_the_model_is_the_one_that_is_named_the_configured_or_the_usual_one() -> None:
    assert around().choice("acme/m").model == "m"
    assert around(default_model="acme/other").choice("").model == "other"
    assert around().choice("").model == "usual"
