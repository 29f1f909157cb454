"""A suite, from the text of its file. Other files that it names are asked for."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence

from msgspec.structs import replace

from sightline.catalog.problem import Path, quote_word
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.reading import promptfoo, skills
from sightline.evals.core.reading.cases import Shared, read_case
from sightline.evals.core.reading.declared_tools import with_tools
from sightline.evals.core.reading.dependencies import check_dependencies
from sightline.evals.core.reading.execution import read_execution
from sightline.evals.core.reading.file_search import with_files
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.grader_scripts import with_own_graders
from sightline.evals.core.reading.includes import LISTS, Includes
from sightline.evals.core.reading.interpolation import with_environment
from sightline.evals.core.reading.json_lines import read_json_lines
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.old_names import OF_SUITE, rename_old_keys
from sightline.evals.core.reading.other_files import read_tests
from sightline.evals.core.reading.pairing import check_pairing
from sightline.evals.core.reading.requests import Need, SuiteReading
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import JsonObject

ABOUT = ("$schema", "category", "version", "author", "license", "requires", "governance")
KEYS = (
    *("name", "description", "tags", "input", "input_files", "tests", "target", "execution", "assertions"),
    *("preprocessors", "workspace", "guideline_patterns", *ABOUT),
)
_HINTS = {
    "cases": 'Did you mean "tests"?',
    "targets": "Write it under execution.",
    "threshold": "Write it under execution.",
    "workers": "Write it under execution.",
    "graders": 'Did you mean "assertions"?',
    "system": "Write input: [{role: system, content: …}].",
}
_NAME = re.compile(r"[a-z0-9-]+")
_ENDINGS = re.compile(r"(?:\.eval)?\.(?:ya?ml|jsonl?)$", re.IGNORECASE)


def read_suite(
    text: bytes, file: str, environment: Mapping[str, str] | None = None
) -> Generator[Need, bytes | None, SuiteReading]:
    """The suite in a text. `file` is its path below the folder, `environment` what `${{ NAME }}` may name."""
    findings = SuiteFindings()
    document = _document(text, file, findings)
    suite = None
    if document is not None:
        suite = yield from _suite(document, file, environment or {}, findings)
    return SuiteReading(None if findings.has_errors else suite, findings.problems)


def _document(text: bytes, file: str, findings: SuiteFindings) -> Node | None:
    """The whole file as one mapping. Lines of JSON, and a bare list, are its tests."""
    place = SuitePlace(file, 1, 1)
    if file.lower().endswith(".jsonl"):
        lines, problems = read_json_lines(text, file)
        findings.add(problems)
        return Node({"tests": Node(lines, place)}, place, (), {"tests": place})
    document = read_yaml(text, file)
    if isinstance(document, SuiteProblem):
        findings.add([document])
        return None
    if isinstance(document.value, list):
        return Node({"tests": document}, place, (), {"tests": place})
    return document if findings.is_mapping(document, "a suite", "Write tests: and a list of tests.") else None


def _suite(
    document: Node, file: str, environment: Mapping[str, str], findings: SuiteFindings
) -> Generator[Need, bytes | None, Suite]:
    document = with_environment(document, environment, findings)
    targets: tuple[SuiteTarget, ...] = ()
    if promptfoo.is_promptfoo(document):
        document, targets = yield from promptfoo.as_suite(document, file, findings)
    elif skills.is_of_a_skill(document):
        document = skills.as_suite(document, findings)
    document = rename_old_keys(document, OF_SUITE, findings)
    findings.check_keys(document, KEYS, "a suite", _HINTS)
    includes = Includes(file, environment, findings)
    shared = _read_shared((yield from includes.expand(document)), findings)
    nodes = yield from read_tests(document, file, environment, findings)
    cases: list[Case] = []
    paths: dict[SuitePlace, Path] = {}
    for node in nodes:
        case = read_case((yield from includes.expand(node)), shared, findings)
        if case is not None:
            cases.append((yield from with_tools(case, node, file, findings)))
            paths[case.place] = node.path
    for problem in check_dependencies(cases):
        findings.add([problem], paths[problem.place])
    for case in cases:
        findings.add(check_pairing(case), paths[case.place])
        _check_patterns(case, paths[case.place], findings)
    found = yield from with_files(cases, paths, file, findings)
    found = yield from with_own_graders(found, file)
    return replace(_make_suite(document, file, found, findings), targets=targets)


def _read_shared(document: Node, findings: SuiteFindings) -> Shared:
    for key, why in _not_done(document):
        findings.odd(document.members[key], f"{key} is not used: {why}", "Leave it out, if the cases do without it.")
    return Shared(
        input=document.get("input"),
        files=document.get("input_files"),
        graders=tuple(_holding_graders(document)),
        tags=findings.texts(document, "tags"),
        guideline_patterns=findings.texts(document, "guideline_patterns"),
    )


def _holding_graders(document: Node) -> Iterator[Node]:
    """The suite and its execution, with nothing but their graders."""
    for holder in (document, document.get("execution")):
        if holder is not None:
            members = {key: each for key, each in holder.members.items() if key in LISTS}
            yield Node(members, holder.place, holder.path)


def _not_done(document: Node) -> Iterator[tuple[str, str]]:
    if document.get("workspace") is not None:
        yield "workspace", "no folder is set up for the cases"
    if document.get("preprocessors") is not None:
        yield "preprocessors", "files go out as they are"


def _check_patterns(case: Case, path: Path, findings: SuiteFindings) -> None:
    for pattern in case.guideline_patterns:
        try:
            compile_glob(pattern)
        except Fault as fault:
            findings.wrong_at(case.place, (*path, "guideline_patterns"), fault.message, fault.hint)


def _make_suite(document: Node, file: str, cases: Sequence[Case], findings: SuiteFindings) -> Suite:
    execution = read_execution(document, findings)
    name = findings.text(document, "name")
    if name and not _NAME.fullmatch(name):
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "suite"
        message = f"the name {quote_word(name)} has more in it than small letters, digits and dashes"
        findings.odd(document.members["name"], message, f"AgentV would want {quote_word(slug)}.")
    about: JsonObject = {key: each.json for key in ABOUT if (each := document.get(key)) is not None}
    return Suite(
        name=name or _ENDINGS.sub("", file.rpartition("/")[2]) or "suite",
        description=findings.text(document, "description"),
        tags=findings.texts(document, "tags"),
        cases=tuple(cases),
        execution=execution,
        file=file,
        about=about,
    )
