"""What a program gives its evals besides an engine and a logbook."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sightline.agent.service.runner import Runner
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose, default_choice
from sightline.catalog.facts import Prices
from sightline.catalog.provider import Provider
from sightline.chat.service.answerer import Equipment
from sightline.errors import Code, Fault
from sightline.evals.service.cluster.remote import Elsewhere
from sightline.exchange.hub import Hub
from sightline.store.folding import PriceList
from sightline.store.store import Store
from sightline.transport.http.client import HttpClient

Equipping: TypeAlias = Callable[[tuple[str, ...]], Awaitable[Equipment]]


def _no_prices(_provider: str, _model: str) -> Prices | None:
    return None


@dataclass(frozen=True, slots=True)
class EvalContext:
    """`root` is the folder below which suites and their files are. `environment` is all of it; commands get it without
    the variables in `secrets`. `make_id` names exchanges, and `make_token` is what a grading command may ask models by.
    `process` is the name of this process, and `is_alive` tells of such a name whether that process still runs.
    `elsewhere` is where cases are run, if not here."""

    catalog: Catalog
    has_key: Callable[[Provider], bool]
    make_id: Callable[[], str]
    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    default_model: str = ""
    process: str = ""
    is_alive: Callable[[str], bool] = lambda _process: False
    store: Store | None = None
    prices: PriceList = _no_prices
    hub: Hub | None = None
    runner: Runner | None = None
    equipping: Equipping | None = None
    client: HttpClient | None = None
    make_token: Callable[[], str] | None = None
    elsewhere: Elsewhere | None = None

    def choice(self, model: str) -> ModelChoice:
        """The model of this name, else the one that is meant where nobody names one."""
        name = model or self.default_model
        return choose(self.catalog, name, has_key=self.has_key) if name else default_choice(self.catalog, self.has_key)

    def require_store(self, why: str) -> Store:
        """The record, which must be there for this."""
        if self.store is None:
            raise Fault(Code.USAGE, f"there is no record, and {why}", hint="Name the data folder with --data.")
        return self.store
