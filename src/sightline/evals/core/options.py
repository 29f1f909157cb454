"""How a run of a suite was wanted, beside what the suite says itself. Written down with the run."""

import msgspec

from sightline.evals.core.graders.subject import DEFAULT_THRESHOLD
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import FileForm, TargetSpec

DEFAULT_WORKERS = 8


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """None, or an empty list, is nothing said. `cases` are patterns of their names.

    `targets` are those of cases that name none themselves; without it, all. `workers` is how many cases a target
    answers at once that does not say so itself. `approve` lets tools run unasked.
    """

    trials: int | None = None
    threshold: float | None = None
    budget_usd: float | None = None
    workers: int | None = None
    cache: bool | None = None
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    judge: str = ""
    approve: bool = False
    file_form: FileForm | None = None


def trials_of(case: Case, suite: Suite, options: RunOptions) -> int:
    """How often a case is run: as the command says, else the case, else the suite."""
    if options.trials is not None:
        return max(1, options.trials)
    told = case.execution.trials or suite.execution.trials
    return 1 if told is None else told.count


def threshold_of(case: Case, suite: Suite, options: RunOptions) -> float:
    """What a case must reach: as it says itself, else the command, else the suite."""
    told = (case.execution.threshold, options.threshold, suite.execution.threshold)
    return next((each for each in told if each is not None), DEFAULT_THRESHOLD)


def file_form_of(case: Case, suite: Suite, options: RunOptions, target: TargetSpec) -> FileForm:
    """How files are written into a prompt: as the command says, else the case, the suite, the target."""
    told = (options.file_form, case.execution.file_form, suite.execution.file_form, target.file_form)
    return next((each for each in told if each is not None), "xml")


def budget_of(suite: Suite, options: RunOptions) -> float | None:
    """The dollars after which nothing new is begun."""
    return suite.execution.budget_usd if options.budget_usd is None else options.budget_usd


def is_cached(suite: Suite, options: RunOptions) -> bool:
    """Whether an answer to the same request, drawn before, is taken again."""
    told = suite.execution.cache if options.cache is None else options.cache
    return told is not False


def workers_of(suite: Suite, options: RunOptions) -> int:
    """How many cases are under way at once on a target that does not say it."""
    return max(1, options.workers or suite.execution.workers or DEFAULT_WORKERS)


def cost_limit_of(case: Case, suite: Suite) -> float | None:
    """The dollars that the trials of a case may cost together, on each target."""
    told = case.execution.trials or suite.execution.trials
    return None if told is None else told.cost_limit_usd
