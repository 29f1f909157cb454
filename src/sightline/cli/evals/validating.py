"""`sightline eval validate`: all that is wrong with suites, and where."""

import argparse

from sightline.app.configuration import configuration
from sightline.cli.evals.suites import NamedSuite, find_suites, problem_lines
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import harmless, write
from sightline.evals.core.reading.files import SuiteReading
from sightline.evals.core.statistics.sentences import pluralize
from sightline.evals.core.suite import SuiteProblem
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode


def run(arguments: argparse.Namespace) -> int:
    """Check them; the exit code is 1 where one of them cannot be run."""
    suites = find_suites(arguments.suites, configuration(arguments.config))
    is_wrong = False
    for each in suites:
        reading = each.read()
        is_wrong = is_wrong or not _is_sound(reading)
        write((_as_json(each, reading) if arguments.json else _as_text(each, reading)).encode("utf-8", "replace"))
    return EXIT_FAILED if is_wrong else 0


def _is_sound(reading: SuiteReading) -> bool:
    """Whether every case can be run."""
    return reading.suite is not None and all(problem.severity != "error" for problem in reading.problems)


def _as_text(each: NamedSuite, reading: SuiteReading) -> str:
    lines = problem_lines(reading.problems)
    wrong = sum(problem.severity == "error" for problem in reading.problems)
    if reading.suite is None or wrong:
        lines.append(f"{each.file}: {pluralize(wrong, 'problem')}")
    else:
        odd = f", {pluralize(len(reading.problems), 'warning')}" if reading.problems else ""
        lines.append(f"{each.file}: {pluralize(len(reading.suite.cases), 'case')}, nothing wrong{odd}")
    return "".join(f"{harmless(line)}\n" for line in lines)


def _as_json(each: NamedSuite, reading: SuiteReading) -> str:
    """One object for each suite."""
    told: JsonObject = {
        "file": each.file,
        "ok": _is_sound(reading),
        "cases": None if reading.suite is None else len(reading.suite.cases),
        "problems": [_problem(problem) for problem in reading.problems],
    }
    return encode(told).decode("utf-8", "replace") + "\n"


def _problem(problem: SuiteProblem) -> JsonObject:
    return {
        "file": problem.place.file,
        "line": problem.place.line,
        "column": problem.place.column,
        "path": problem.path,
        "severity": problem.severity,
        "message": problem.message,
        "suggestion": problem.suggestion,
    }
