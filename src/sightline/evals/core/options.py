"""How a run of a suite is wanted beside what the suite says, and which cases and targets that selects."""

import re
from collections.abc import Sequence

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.graders.finding import DEFAULT_THRESHOLD
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
    chosen = case.execution.trials or suite.execution.trials
    return 1 if chosen is None else chosen.count


def threshold_of(case: Case, suite: Suite, options: RunOptions) -> float:
    """What a case must reach: as it says itself, else the command, else the suite."""
    chosen = (case.execution.threshold, options.threshold, suite.execution.threshold)
    return next((each for each in chosen if each is not None), DEFAULT_THRESHOLD)


def file_form_of(case: Case, suite: Suite, options: RunOptions, target: TargetSpec) -> FileForm:
    """How files are written into a prompt: as the command says, else the case, the suite, the target."""
    chosen = (options.file_form, case.execution.file_form, suite.execution.file_form, target.file_form)
    return next((each for each in chosen if each is not None), "xml")


def budget_of(suite: Suite, options: RunOptions) -> float | None:
    """The dollars after which nothing new is begun."""
    return suite.execution.budget_usd if options.budget_usd is None else options.budget_usd


def is_cached(suite: Suite, options: RunOptions) -> bool:
    """Whether an answer to the same request, drawn before, is taken again."""
    chosen = suite.execution.cache if options.cache is None else options.cache
    return chosen is not False


def workers_of(suite: Suite, options: RunOptions) -> int:
    """How many cases are under way at once on a target that does not say it."""
    return max(1, options.workers or suite.execution.workers or DEFAULT_WORKERS)


def cost_limit_of(case: Case, suite: Suite) -> float | None:
    """The dollars that the trials of a case may cost together, on each target."""
    chosen = case.execution.trials or suite.execution.trials
    return None if chosen is None else chosen.cost_limit_usd


def select_cases(suite: Suite, options: RunOptions) -> tuple[Case, ...]:
    """The cases that are wanted, in their order, and those that they depend on: without these it is not known whether
    they are to be run. That nothing is left is a fault."""
    wanted = {case.id for case in suite.cases if _is_wanted(case, options)}
    if not wanted:
        known = ", ".join(case.id for case in suite.cases[:5])
        hint = f"Its cases are: {known}{', …' if len(suite.cases) > 5 else ''}."
        raise Fault(Code.USAGE, f"no case of {suite.file or suite.name} is wanted", hint=hint)
    by_id = {case.id: case for case in suite.cases}
    waiting = list(wanted)
    while waiting:
        for name in by_id[waiting.pop()].depends_on:
            if name in by_id and name not in wanted:
                wanted.add(name)
                waiting.append(name)
    return tuple(case for case in suite.cases if case.id in wanted)


def targets_of(case: Case, given: Sequence[str], options: RunOptions) -> tuple[str, ...]:
    """The targets of a case: those that it names, else the usual ones. Where none of those is there, all that are."""
    for wanted in (case.execution.targets, options.targets):
        named = tuple(name for name in given if name in wanted)
        if named:
            return named
    return tuple(given)


def _is_wanted(case: Case, options: RunOptions) -> bool:
    if options.tags and not set(options.tags) & set(case.tags):
        return False
    if set(options.exclude_tags) & set(case.tags):
        return False
    return not options.cases or any(_fits(pattern, case.id) for pattern in options.cases)


def _fits(pattern: str, name: str) -> bool:
    """Whether a pattern takes a name. A name that is no path has no folders, so that `*` takes what `**` does."""
    if pattern == name:
        return True
    return compile_glob(re.sub(r"\*+", "**", pattern)).fullmatch(name) is not None
