"""A folder in memory, and a reader that is answered from it."""

from collections.abc import Generator, Mapping
from typing import TypeVar

from sightline.evals.core.reading.files import Need, SuiteReading
from sightline.evals.core.reading.suites import read_suite
from sightline.evals.core.suite import Case, Suite, SuiteProblem

FILE = "suites/a.eval.yaml"
T = TypeVar("T")


def answer(need: Need, files: Mapping[str, bytes]) -> bytes | None:
    """What a driver would answer."""
    if need.wanted != "listing":
        return files.get(need.path)
    prefix = f"{need.path}/" if need.path else ""
    below = [path.removeprefix(prefix) for path in files if path.startswith(prefix)]
    return "\n".join(below).encode() if below else None


def read(
    text: str | bytes,
    files: Mapping[str, bytes] | None = None,
    file: str = FILE,
    environment: Mapping[str, str] | None = None,
) -> SuiteReading:
    """The suite in a text, with these files around it."""
    data = text.encode() if isinstance(text, str) else text
    return driven(read_suite(data, file, environment), files or {})


def driven(steps: Generator[Need, bytes | None, T], files: Mapping[str, bytes]) -> T:
    """What a reader returns that finds these files."""
    given: bytes | None = None
    while True:
        try:
            given = answer(steps.send(given), files)
        except StopIteration as stopped:
            result: T = stopped.value
            return result


def sound(text: str | bytes, files: Mapping[str, bytes] | None = None, **more: object) -> Suite:
    """The suite in a text, which nothing keeps from running."""
    reading = read(text, files, **more)  # type: ignore[arg-type]
    assert reading.suite is not None, [told(each) for each in reading.problems]
    return reading.suite


def case(body: str, files: Mapping[str, bytes] | None = None, **more: object) -> Case:
    """The one case of a suite that has these lines in it."""
    (only,) = sound(one(body), files, **more).cases
    return only


def one(body: str) -> str:
    """A suite of one case, graded by one word, with these lines in it."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"tests:\n  - id: one\n    assertions: [{{type: contains, value: x}}]\n{lines}"


def problem(text: str | bytes, files: Mapping[str, bytes] | None = None, **more: object) -> SuiteProblem:
    """The one problem of a suite."""
    reading = read(text, files, **more)  # type: ignore[arg-type]
    assert len(reading.problems) == 1, [told(each) for each in reading.problems]
    if reading.problems[0].severity == "error":
        assert (reading.suite is None) is not bool(reading.problems[0].case)
    return reading.problems[0]


def told(problem: SuiteProblem) -> str:
    """A problem in one line."""
    return f"{problem.severity} {problem.place} {problem.path}: {problem.message} | {problem.suggestion}"


def messages_of(reading: SuiteReading) -> list[str]:
    """What was found, in words."""
    return [each.message for each in reading.problems]
