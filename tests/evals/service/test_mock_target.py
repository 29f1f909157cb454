import asyncio

from sightline.evals.core.target import TargetSpec
from sightline.evals.service.target import CaseQuestion
from sightline.evals.service.targets import MockTarget


def test_fixed_words_cost_nothing() -> None:
    async def story() -> None:
        target = MockTarget(TargetSpec(name="parrot", mock="Paris"))
        given = await target.answer(CaseQuestion(case="a", messages=(), question="France?"))
        seen = given.observation
        assert (seen.text, seen.cost, seen.seconds, seen.requests, seen.question) == ("Paris", 0.0, 0.0, 0, "France?")
        assert not given.is_cached
        await target.close()

    asyncio.run(story())
