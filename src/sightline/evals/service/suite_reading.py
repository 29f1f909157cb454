"""Suites from their files, with all that is wrong with them."""

import hashlib
from collections.abc import Generator, Iterator, Mapping
from typing import Protocol, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.graders.grade import check_graders
from sightline.evals.core.reading.files import Need, SuiteReading
from sightline.evals.core.reading.suites import read_suite
from sightline.evals.core.suite import Suite, SuiteProblem
from sightline.evals.service.suite_files import SuiteFiles

T = TypeVar("T")


class Bringing(Protocol):
    """Whoever has files."""

    def bring(self, need: Need) -> bytes | None:
        """What a reader of suites asks for."""
        ...


def suite_in(files: SuiteFiles, file: str, environment: Mapping[str, str]) -> SuiteReading:
    """What a file holds, its graders looked at too. `environment` is what `${{ NAME }}` may name."""
    data = files.read(file)
    if data is None:
        raise Fault(Code.USAGE, f"there is no suite {file}", hint="Check the path.", status=404)
    return read_text(files, file, data, environment)


def read_text(files: Bringing, file: str, data: bytes, environment: Mapping[str, str]) -> SuiteReading:
    """The same for a text that is not, or not yet, what stands in the file."""
    reading = run_reader(read_suite(data, file, environment), files)
    if reading.suite is None:
        return reading
    wrong = tuple(_of_graders(reading.suite))
    is_sound = not any(each.severity == "error" for each in wrong)
    suite = msgspec.structs.replace(reading.suite, sha256=hashlib.sha256(data).hexdigest())
    return SuiteReading(suite if is_sound else None, (*reading.problems, *wrong))


def sound(reading: SuiteReading, file: str) -> Suite:
    """The suite, which must be there."""
    if reading.suite is not None:
        return reading.suite
    first, *others = [each for each in reading.problems if each.severity == "error"]
    more = f" (and {len(others)} more: `sightline eval validate {file}` shows all)" if others else ""
    details = [f"{each.place}: {each.message}" for each in (first, *others)]
    raise Fault(Code.USAGE, f"{first.place}: {first.message}{more}", hint=first.suggestion, status=422, details=details)


def run_reader(steps: Generator[Need, bytes | None, T], files: Bringing) -> T:
    """What a reader returns when it is brought the files that it asks for."""
    given: bytes | None = None
    while True:
        try:
            given = files.bring(steps.send(given))
        except StopIteration as end:
            found: T = end.value
            return found


def _of_graders(suite: Suite) -> Iterator[SuiteProblem]:
    """What a suite says once stands in every case, and is told once."""
    told: set[tuple[str, str]] = set()
    for index, case in enumerate(suite.cases):
        found = [*check_graders(case.graders, f"tests[{index}].assertions")]
        for number, turn in enumerate(case.turns):
            found += check_graders(turn.graders, f"tests[{index}].turns[{number}].assertions")
        for problem in found:
            key = (str(problem.place), problem.message)
            if key not in told:
                told.add(key)
                yield problem
