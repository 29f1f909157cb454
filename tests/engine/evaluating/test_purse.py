import pytest

from sightline.engine.evaluating.purse import Purse, spent_on
from sightline.evals.observation import Observation
from sightline.evals.result import Result
from sightline.evals.score import CaseScore, Score


def score(cost: float | None, *inner: Score) -> Score:
    return Score(name="n", type="t", verdict="pass", cost=cost, scores=inner)


def test_what_is_not_known_costs_nothing() -> None:
    purse = Purse(1.0)
    for cost in (0.5, None):
        purse.spend(cost)
    assert purse.spent == 1.5


@pytest.mark.parametrize(("cached", "spent"), [(False, 8.0), (True, 7.0)])
def test_a_result_cost_its_answer_and_its_judges(cached: bool, spent: float) -> None:
    turn = CaseScore(verdict="pass", scores=(score(4.0),))
    told = CaseScore(verdict="pass", scores=(score(1.0, score(0.5)), score(None, score(2.0))), turns=(turn,))
    result = Result(case="a", target="t", status="ok", score=told, observation=Observation(cost=1.0), cached=cached)
    assert spent_on(result) == spent
