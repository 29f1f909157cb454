"""The suites named on the command line; `sightline eval validate`, `preview`, `import` and `make`."""

import argparse
import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_record
from sightline.app.evals import open_evaluation, root_of, secret_values, targets_for, with_targets
from sightline.app.machine import SystemClock
from sightline.catalog.choose import choose
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import harmless, read, say, write
from sightline.errors import Code, Fault
from sightline.evals.core.making.case import CaseExchange
from sightline.evals.core.making.case_writer import MadeFile
from sightline.evals.core.reading.document import SuiteFindings
from sightline.evals.core.reading.files import SuiteReading
from sightline.evals.core.reading.promptfoo import as_suite, is_promptfoo
from sightline.evals.core.reading.yaml_edit import document_text
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.statistics.paired import pluralize
from sightline.evals.core.suite import Suite, SuiteProblem
from sightline.evals.core.target import SuiteTarget, TargetSpec
from sightline.evals.service.evaluation import CasePreview
from sightline.evals.service.suite_files import (
    SuiteFiles,
    SuiteWriter,
    conversation,
    make_masked_case,
    run_reader,
    suite_in,
)
from sightline.evals.service.suite_targets import KnownTargets, own_provider_name
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode

_IN_FOLDERS = re.compile(r"(?:.+\.eval|evals?|suite|dataset)\.(?:ya?ml|jsonl)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedSuite:
    """A suite file, by its path below the root of `files`, with the targets that it may name."""

    loaded: Configuration
    files: SuiteFiles
    file: str
    known: KnownTargets

    def read(self) -> SuiteReading:
        return suite_in(self.files, self.file, self.known.suite_environment)

    def require_suite(self) -> Suite:
        """The parsed suite. Warnings are printed; errors are printed and end the command."""
        reading = self.read()
        tell_problems(reading.problems)
        if reading.suite is None:
            wrong = sum(each.severity == "error" for each in reading.problems)
            found = f"{wrong} problems" if wrong > 1 else "a problem"
            raise Fault(Code.USAGE, f"{self.file} has {found} and is not run", hint="Correct the problems above.")
        return reading.suite


def find_suites(paths: Sequence[str], loaded: Configuration) -> list[NamedSuite]:
    """The suites of these paths, without duplicates. A folder stands for all suite files in it."""
    files = list(dict.fromkeys(file for path in paths for file in _files(Path(path))))
    return [one(file, loaded) for file in files]


def one(path: Path, loaded: Configuration) -> NamedSuite:
    place = path.resolve()
    files = SuiteFiles(root_of(place))
    file = place.relative_to(files.root).as_posix()
    return NamedSuite(loaded, files, file, targets_for(loaded, files, file))


def tell_problems(problems: Sequence[SuiteProblem]) -> None:
    """Print problems like a compiler, one per line, each followed by its hint."""
    for line in problem_lines(problems):
        say(line)


def problem_lines(problems: Sequence[SuiteProblem]) -> list[str]:
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
    shown: JsonObject = {
        "file": each.file,
        "ok": _is_sound(reading),
        "cases": None if reading.suite is None else len(reading.suite.cases),
        "problems": [
            msgspec.structs.asdict(problem.place)
            | {name: getattr(problem, name) for name in ("path", "severity", "message", "suggestion")}
            for problem in reading.problems
        ],
    }
    return encode(shown).decode("utf-8", "replace") + "\n"


def preview(arguments: argparse.Namespace) -> int:
    path = Path(arguments.suite)
    if not path.is_file():
        raise Fault(Code.USAGE, f"there is no file {path}", hint="Check the path.")
    named = one(path, configuration(arguments.config))
    suite = named.require_suite()
    answering = named.known.answering(suite, [arguments.target] if arguments.target else ())
    tell_problems(answering.odd)
    case = next((each for each in suite.cases if each.id == arguments.case), None)
    wanted = case.execution.targets if case is not None and not arguments.target else ()
    name = (*wanted, *answering.usual)[0]
    spec = next(each for each in answering.targets if each.name == name)

    async def make_preview() -> CasePreview:
        async with open_evaluation(
            with_targets(named.loaded, answering), arguments.data, named.files.root, store=arguments.store, apart=True
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
                raise Fault(Code.USAGE, f"the target {spec.name!r} is not a model, and gets no body", hint=hint)
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


def make(arguments: argparse.Namespace) -> int:
    """Make a case, and report what was left out."""
    loaded = configuration(arguments.config)

    async def load_conversation() -> tuple[CaseExchange, ...]:
        async with open_record(loaded, arguments.data, arguments.store) as store:
            return await conversation(store, arguments.sources, now=SystemClock().now())

    turns = asyncio.run(load_conversation())
    name = arguments.name or f"recorded-{arguments.sources[-1].removeprefix('x_')[:12]}"
    made = make_masked_case(turns, name, secret_values(loaded), arguments.from_turn, arguments.contains)
    for each in made.left:
        say(f"note: not in the case: {each.what} ({each.why})")
    if arguments.to:
        append(made.text, arguments.to, loaded, made.files)
        return 0
    write(made.text.encode("utf-8", "surrogatepass"))
    for file in made.files:
        say(f"note: the case names {file.path} ({len(file.data):,} bytes); --to FILE writes it beside the suite")
    return 0


def append(text: str, to: str, loaded: Configuration, beside: Sequence[MadeFile] = ()) -> None:
    """Append the cases of a text to a suite, and write the files that they name."""
    named = one(Path(to), loaded)
    written = SuiteWriter(named.files, named.known.suite_environment).append(named.file, text, beside)
    say(f"{', '.join(written.cases)} in {written.file}")


def import_suite(arguments: argparse.Namespace) -> int:
    """Import a file, or exchanges if the argument is not a file."""
    first, *others = arguments.sources
    if not Path(first).is_file():
        if "/" in first or Path(first).suffix:
            raise Fault(Code.USAGE, f"there is no file {first}", hint="Check the path.")
        return make(arguments)
    if others:
        raise Fault(Code.USAGE, "one file is imported at a time", hint="Name one.")
    text, targets = suite_of(read(first), first)
    for line in _tables(targets, arguments):
        say(line)
    if arguments.to:
        append(text, arguments.to, configuration(arguments.config))
    else:
        write(text.encode())
    return 0


def suite_of(data: bytes, file: str) -> tuple[str, tuple[SuiteTarget, ...]]:
    """Convert a promptfoo file to a suite and its targets. Anything without a counterpart is reported and ends the
    command."""
    document = read_yaml(data, file)
    if isinstance(document, SuiteProblem):
        raise document.fault(Code.USAGE)
    if not is_promptfoo(document):
        hint = "It has neither prompts nor providers. A suite of AgentV's runs as it is."
        raise Fault(Code.USAGE, f"{file} is not a promptfoo file", hint=hint)
    findings = SuiteFindings()
    place = Path(file).resolve()
    suite, targets = run_reader(as_suite(document, place.name, findings), SuiteFiles(place.parent))
    tell_problems(findings.problems)
    if findings.has_errors:
        raise Fault(Code.USAGE, f"{file} cannot be imported whole", hint="Correct the problems above.")
    return document_text(suite.json), targets


def _tables(targets: Sequence[SuiteTarget], arguments: argparse.Namespace) -> Iterator[str]:
    """The providers of a file as configuration tables, for those that a suite cannot contain."""
    if not targets:
        return
    loaded = configuration(arguments.config)
    yield "note: these targets belong in the configuration (sightline.toml)"
    for target in targets:
        model = target.model
        if target.has_own_provider:
            choice = choose(loaded.catalog, model, has_key=loaded.has_key)
            provider, name = target.provider(choice.provider), own_provider_name(target)
            model = f"{name}/{choice.model}"
            yield f"[providers.{_quote(name)}]"
            yield f'dialect = "{provider.dialect}"'
            yield f"base_url = {_quote(provider.base_url)}"
            yield from [f"key_env = {_quote(provider.key_env)}"] if provider.key_env else []
            pairs = ", ".join(f"{_quote(key)} = {_quote(value)}" for key, value in provider.headers.items())
            yield from [f"headers = {{ {pairs} }}"] if pairs else []
        yield f"[evals.targets.{_quote(target.name)}]"
        yield f"model = {_quote(model)}"
        for field in ("temperature", "top_p", "seed", "max_tokens", "effort"):
            value = getattr(target, field)
            if value is not None:
                yield f"{field} = {_quote(value) if isinstance(value, str) else value}"


def _quote(text: str) -> str:
    return encode(text).decode()
