"""Which cases wait for which: names that exist, and no circle."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from unicodedata import normalize

from sightline.catalog.problem import nearest, quote_word
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.suite import Case

_MOST_CIRCLES = 20


def check_dependencies(cases: Sequence[Case]) -> tuple[SuiteProblem, ...]:
    """Ids that stand twice, dependencies on nothing, and circles, each at the place of its case."""
    first: dict[str, Case] = {}
    alike: dict[str, Case] = {}
    problems: list[SuiteProblem] = []
    for case in cases:
        same = alike.setdefault(normalize("NFC", case.id), case)
        if same is not case:
            is_same = same.id == case.id
            message = f"the id {quote_word(case.id)} stands twice{'' if is_same else ', in letters of two kinds'}"
            problems.append(_problem(case, f"{message}, first at {same.place}", "Give one of them another id."))
        first.setdefault(case.id, case)
    for case in cases:
        for name in dict.fromkeys(case.depends_on):
            if name not in first:
                known = nearest(name, [each for each in first if each != case.id][:20])
                problems.append(_problem(case, f"it depends on {quote_word(name)}, which does not exist", known))
    return (*problems, *_circles(first))


def _circles(cases: dict[str, Case]) -> list[SuiteProblem]:
    """Each circle once. One that is found is opened, so that the next one shows."""
    waits = {name: [each for each in dict.fromkeys(case.depends_on) if each in cases] for name, case in cases.items()}
    problems: list[SuiteProblem] = []
    while len(problems) < _MOST_CIRCLES:
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            message = f"cases wait for each other: {' → '.join(circle)}"
            problems.append(_problem(cases[circle[0]], message, "Remove one of these dependencies."))
            waits[circle[0]].remove(circle[1])
        else:
            break
    return problems


def _problem(case: Case, message: str, suggestion: str) -> SuiteProblem:
    return SuiteProblem(place=case.place, path="", message=message, suggestion=suggestion)
