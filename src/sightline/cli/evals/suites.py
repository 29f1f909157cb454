"""Suites that a person names: the files that are meant, what they hold, and what is wrong with them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.app.configuration import Configuration
from sightline.app.eval_targets import KnownTargets, root_of
from sightline.cli.terminal import say
from sightline.errors import Code, Fault
from sightline.evals.core.reading.files import SuiteReading
from sightline.evals.core.suite import Suite, SuiteProblem
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.suite_reading import suite_in

_IN_FOLDERS = re.compile(r"(?:.+\.eval|evals?|suite|dataset)\.(?:ya?ml|jsonl)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedSuite:
    """A suite by its file, below the folder `root`; with the targets that it may name."""

    root: Path
    file: str
    known: KnownTargets
    files: SuiteFiles

    def read(self) -> SuiteReading:
        """What the file holds."""
        return suite_in(self.files, self.file, self.known.environment)

    def sound(self) -> Suite:
        """The suite. What is odd about it is said; what is wrong is said too, and ends the command."""
        reading = self.read()
        tell_problems(reading.problems)
        if reading.suite is None:
            wrong = sum(each.severity == "error" for each in reading.problems)
            found = f"{wrong} problems" if wrong > 1 else "a problem"
            raise Fault(Code.USAGE, f"{self.file} has {found} and is not run", hint="Correct what is said above.")
        return reading.suite


def find_suites(paths: Sequence[str], loaded: Configuration) -> list[NamedSuite]:
    """The suites of these paths, each once. A folder means all files in it that are named as suites are."""
    files = list(dict.fromkeys(file for path in paths for file in _files(Path(path))))
    return [one(file, loaded) for file in files]


def one(path: Path, loaded: Configuration, root: Path | None = None) -> NamedSuite:
    """The suite of one file."""
    place = path.resolve()
    root = root or root_of(place)
    file = place.relative_to(root).as_posix()
    files = SuiteFiles(root)
    return NamedSuite(root, file, KnownTargets(loaded, files, file), files)


def tell_problems(problems: Sequence[SuiteProblem]) -> None:
    """Each in a line of its own, as compilers say it, and below it what to write instead."""
    for line in problem_lines(problems):
        say(line)


def problem_lines(problems: Sequence[SuiteProblem]) -> list[str]:
    """The same as lines."""
    lines: list[str] = []
    for each in problems:
        lines.append(f"{each.place}: {each.severity}: {each.message}")
        if each.suggestion:
            lines.append(f"  {each.suggestion}")
    return lines


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise Fault(Code.USAGE, f"there is no file {path}", hint="Check the path.")
    if not path.is_dir():
        return [path.resolve()]
    found = sorted(
        each.resolve()
        for each in path.rglob("*")
        if _IN_FOLDERS.fullmatch(each.name)
        and each.is_file()
        and not any(part.startswith(".") or part == "node_modules" for part in each.relative_to(path).parts)
    )
    if not found:
        hint = "Suites in folders are called NAME.eval.yaml, eval.yaml or suite.yaml; name others by their files."
        raise Fault(Code.USAGE, f"there is no suite in {path}", hint=hint)
    return found
