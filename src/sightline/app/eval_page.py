"""The page's part about suites, put together from the configuration."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sightline.agent.tools.commands import without
from sightline.app.configuration import Configuration
from sightline.app.eval_targets import configuration_for, drawing, root_of
from sightline.app.parts import price_list
from sightline.catalog.loading import variables_of
from sightline.evals.api.calls import EvalCalls, EvalParts
from sightline.evals.core.facts import EvalBegan
from sightline.evals.service.evaluation import Evaluation
from sightline.exchange.outbound import secrets_of_provider
from sightline.exchange.relay import Relay
from sightline.store.store import Store
from sightline.transport.clock import Clock
from sightline.transport.embedded.process import KEY_VARIABLE


def suites_place(loaded: Configuration) -> tuple[Path, str]:
    """The folder below which suites may read, and that of the suites as a path from there."""
    base = Path.cwd() if loaded.path is None else loaded.path.resolve().parent
    place = (base / loaded.settings.evals.folder).resolve()
    root = root_of(base / "sightline.toml")
    if root != place and root not in place.parents:
        return place, ""
    folder = place.relative_to(root).as_posix()
    return root, "" if folder == "." else folder


def evaluation_for(
    loaded: Configuration, evaluation: Evaluation, relaying: Callable[[Configuration], Relay], began: EvalBegan
) -> Evaluation:
    """Whoever runs this again. Where its targets have providers that the configuration does not know, because AgentV's
    file beside the suite describes them, that is an evaluation with a relay to them, and all else as it is."""
    around = evaluation.surroundings
    grown = configuration_for(loaded, around.root, began)
    if grown.catalog is loaded.catalog:
        return evaluation
    engine = replace(evaluation.engine, relay=relaying(grown))
    runner = around.runner
    if runner is not None:
        runner = replace(runner, engine=engine, surroundings=replace(runner.surroundings, catalog=grown.catalog))
    around = replace(
        around,
        catalog=grown.catalog,
        has_key=grown.has_key,
        environment=grown.environment,
        secrets=around.secrets | frozenset(variables_of(grown.catalog)),
        prices=price_list(grown.catalog),
        runner=runner,
    )
    return replace(evaluation, engine=engine, surroundings=around)


def evals_of(
    loaded: Configuration,
    evaluation: Evaluation,
    store: Store,
    folder: str,
    clock: Clock,
    *,
    relaying: Callable[[Configuration], Relay] | None = None,
) -> EvalCalls:
    """What answers the page's calls about suites; close it. `relaying` makes relays to the providers of others."""
    providers = loaded.catalog.providers.values()
    return EvalCalls(
        EvalParts(
            evaluation,
            store,
            folder,
            drawing,
            clock.now,
            without(loaded.environment, {*variables_of(loaded.catalog), KEY_VARIABLE} - {""}),
            tuple(dict.fromkeys(key for each in providers for key in secrets_of_provider(each, loaded.environment))),
            None if relaying is None else lambda began: evaluation_for(loaded, evaluation, relaying, began),
        )
    )
