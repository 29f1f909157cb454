import pytest

from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.core.tool import Definition, Toolbox
from sightline.catalog.facts import Prices
from sightline.errors import Code, Fault


def test_a_plan_that_can_be_kept() -> None:
    RunPlan(dialect="anthropic").check()
    RunPlan(dialect="anthropic", limits=RunLimits(cost=1.0), prices=Prices(input=1.0)).check()


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (RunPlan(dialect="anthropic", limits=RunLimits(cost=1.0)), Code.USAGE),
        (RunPlan(dialect="anthropic", limits=RunLimits(tokens=-1)), Code.USAGE),
        (RunPlan(dialect="anthropic", toolbox=Toolbox((Definition(name="x", schema={"type": 1}),))), Code.CONFIG),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused_before_anything_is_sent(plan: RunPlan, code: Code) -> None:
    with pytest.raises(Fault) as caught:
        plan.check()
    assert caught.value.code is code
    assert caught.value.hint
