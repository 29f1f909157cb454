"""All that a run is told before it begins, as one value that can be kept and read again."""

import msgspec

from sightline.agent.core.approval import Policy
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.output import Cap
from sightline.agent.core.tool import Toolbox
from sightline.catalog.facts import Prices
from sightline.errors import Code, Fault


class RunPlan(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`dialect` is the one that the provider speaks, to which every request will be written.

    With `is_hooked` somebody looks at every call before it runs, also at those that a rule allows, and at the last
    reply before the run ends.
    """

    dialect: str
    toolbox: Toolbox = Toolbox()
    policy: Policy = Policy()
    limits: RunLimits = RunLimits()
    cap: Cap = Cap()
    prices: Prices | None = None
    is_hooked: bool = False

    def check(self) -> None:
        """Refuse a plan that could not be kept."""
        self.toolbox.check()
        self.limits.check()
        if self.limits.cost is not None and self.prices is None:
            raise Fault(
                Code.USAGE,
                "there is a limit of cost, and the prices of this model are not known",
                hint="Limit the tokens instead, or tell the prices in [models].",
            )
