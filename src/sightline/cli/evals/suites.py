"""The suites named on the command line; `sightline eval validate` and `preview`."""

import argparse
import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sightline.app.configuration import Configuration, configuration
from sightline.app.eval_targets import KnownTargets, root_of
from sightline.app.evals import open_evaluation
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import harmless, say, write
from sightline.errors import Code, Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.reading.files import SuiteReading
from sightline.evals.core.statistics.sentences import pluralize
from sightline.evals.core.suite import Suite, SuiteProblem
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import CasePreview
from sightline.evals.service.suite_files import SuiteFiles, suite_in
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode

_IN_FOLDERS = re.compile(r"(?:.+\.eval|evals?|suite|dataset)\.(?:ya?ml|jsonl)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedSuite:
    """A suite file below the folder `root`, with the targets that it may name."""

    root: Path
    file: str
    known: KnownTargets
    files: SuiteFiles

    def read(self) -> SuiteReading:
        """Parse the file."""
        return suite_in(self.files, self.file, self.known.environment)

    def sound(self) -> Suite:
        """The parsed suite. Warnings are printed; errors are printed and end the command."""
        reading = self.read()
        tell_problems(reading.problems)
        if reading.suite is None:
            wrong = sum(each.severity == "error" for each in reading.problems)
            found = f"{wrong} problems" if wrong > 1 else "a problem"
            raise Fault(Code.USAGE, f"{self.file} has {found} and is not run", hint="Correct what is said above.")
        return reading.suite


def find_suites(paths: Sequence[str], loaded: Configuration) -> list[NamedSuite]:
    """The suites of these paths, without duplicates. A folder stands for all suite files in it."""
    files = list(dict.fromkeys(file for path in paths for file in _files(Path(path))))
    return [one(file, loaded) for file in files]


def one(path: Path, loaded: Configuration, root: Path | None = None) -> NamedSuite:
    place = path.resolve()
    root = root or root_of(place)
    file = place.relative_to(root).as_posix()
    files = SuiteFiles(root)
    return NamedSuite(root, file, KnownTargets(loaded, files, file), files)


def tell_problems(problems: Sequence[SuiteProblem]) -> None:
    """Print problems like a compiler, one a line, each followed by its hint."""
    for line in problem_lines(problems):
        say(line)


def problem_lines(problems: Sequence[SuiteProblem]) -> list[str]:
    """The lines for these problems."""
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


def validate(arguments: argparse.Namespace) -> int:
    """Validate suites. Returns 1 if one of them cannot be run."""
    suites = find_suites(arguments.suites, configuration(arguments.config))
    is_wrong = False
    for each in suites:
        reading = each.read()
        is_wrong = is_wrong or not _is_sound(reading)
        write((_as_json(each, reading) if arguments.json else _as_text(each, reading)).encode("utf-8", "replace"))
    return EXIT_FAILED if is_wrong else 0


def _is_sound(reading: SuiteReading) -> bool:
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
    """One JSON object for each suite."""
    shown: JsonObject = {
        "file": each.file,
        "ok": _is_sound(reading),
        "cases": None if reading.suite is None else len(reading.suite.cases),
        "problems": [_problem(problem) for problem in reading.problems],
    }
    return encode(shown).decode("utf-8", "replace") + "\n"


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


def preview(arguments: argparse.Namespace) -> int:
    """Print what a case sends."""
    path = Path(arguments.suite)
    if not path.is_file():
        raise Fault(Code.USAGE, f"there is no file {path}", hint="Check the path.")
    named = one(path, configuration(arguments.config))
    suite = named.sound()
    answering = named.known.answering(suite, [arguments.target] if arguments.target else ())
    tell_problems(answering.odd)
    case = next((each for each in suite.cases if each.id == arguments.case), None)
    wanted = case.execution.targets if case is not None and not arguments.target else ()
    name = (*wanted, *answering.usual)[0]
    spec = next(each for each in answering.targets if each.name == name)

    async def make_preview() -> CasePreview:
        async with open_evaluation(
            answering.loaded, arguments.data, named.root, store=arguments.store, apart=True
        ) as evaluation:
            return evaluation.preview(suite, arguments.case, spec, RunOptions(file_form=arguments.file_form))

    write(_render(asyncio.run(make_preview()), spec, arguments.form))
    return 0


def _render(preview: CasePreview, spec: TargetSpec, form: str | None) -> bytes:
    delivery = preview.delivery
    match form:
        case "flat":
            return delivery.question.encode("utf-8", "replace") + b"\n"
        case "messages":
            return b"".join(encode(msgspec.to_builtins(message)) + b"\n" for message in delivery.messages)
        case "wire":
            if preview.prepared is None:
                hint = "See --as flat: that is what it is given."
                raise Fault(Code.USAGE, f"the target {spec.name!r} is no model, and gets no body", hint=hint)
            return preview.prepared.body
        case _:
            return "".join(f"{line}\n" for line in _preview_lines(preview, spec)).encode("utf-8", "replace")


def _preview_lines(preview: CasePreview, spec: TargetSpec) -> Iterator[str]:
    prepared, delivery = preview.prepared, preview.delivery
    if prepared is None:
        yield f"target    {harmless(spec.name)} ({spec.kind}): it is given the flat question"
    else:
        choice = prepared.choice
        yield f"target    {harmless(spec.name)}: {choice.provider_name}/{choice.model}, {prepared.dialect}"
        yield f"request   {len(prepared.body):,} bytes, sha256 {prepared.sha256}"
    yield ""
    yield "what was done"
    notes = [
        f"{each.kind} {each.what}: {each.why}{f' ({each.place})' if each.place.line else ''}" for each in delivery.notes
    ]
    if prepared is not None:
        notes += [f"lost {each.what}: {each.why} [{each.severity}]" for each in prepared.report.losses]
        notes += [f"added {each.what}: {each.why}" for each in prepared.report.additions]
    for note in notes or ["nothing: every message goes out as it is written"]:
        yield f"  {harmless(note)}"
    yield ""
    yield "flat question"
    for line in delivery.question.split("\n"):
        yield f"  {harmless(line)}"
    if prepared is not None:
        yield ""
        yield "body"
        yield harmless(prepared.body.decode("utf-8", "replace"))
