"""Which cases of a suite are run, and on which targets."""

import re
from collections.abc import Sequence

from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.options import RunOptions
from sightline.evals.core.suite import Case, Suite


def select_cases(suite: Suite, options: RunOptions) -> tuple[Case, ...]:
    """The cases that are wanted, in their order, and those that they depend on: without these nobody could say whether
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
