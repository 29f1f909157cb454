"""The page's part about suites, put together from the configuration."""

from pathlib import Path

from sightline.build.configured import Configuration
from sightline.build.eval_targets import drawing, root_of
from sightline.catalog.loading import variables_of
from sightline.engine.evaluating.evaluation import Evaluation
from sightline.engine.outbound import configured_secrets
from sightline.server.workbench.evaluating.calls import EvalParts, Evals
from sightline.store.store import Store
from sightline.tools.environment import without
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


def evals_of(loaded: Configuration, evaluation: Evaluation, store: Store, folder: str, clock: Clock) -> Evals:
    """What answers the page's calls about suites; close it."""
    providers = loaded.catalog.providers.values()
    return Evals(
        EvalParts(
            evaluation,
            store,
            folder,
            drawing,
            clock.now,
            without(loaded.environment, {*variables_of(loaded.catalog), KEY_VARIABLE} - {""}),
            tuple(dict.fromkeys(key for each in providers for key in configured_secrets(each, loaded.environment))),
        )
    )
