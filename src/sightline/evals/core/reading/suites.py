"""A suite, from the text of its file. Other files that it names are asked for."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from unicodedata import normalize

import msgspec
from msgspec.structs import replace

from sightline.catalog.problem import Path, nearest, quote_word
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.graders.registry import GRADERS
from sightline.evals.core.graders.specs import RENAMED, kind_of
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.reading import promptfoo, skills
from sightline.evals.core.reading.cases import Shared, read_case
from sightline.evals.core.reading.execution import read_execution
from sightline.evals.core.reading.file_search import with_files
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.includes import LISTS, Includes
from sightline.evals.core.reading.interpolation import with_environment
from sightline.evals.core.reading.json_lines import read_json_lines
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.old_names import OF_SUITE, rename_old_keys
from sightline.evals.core.reading.other_files import read_tests
from sightline.evals.core.reading.pairing import check_pairing
from sightline.evals.core.reading.paths import candidates, folder_of, refusal_of
from sightline.evals.core.reading.requests import Need, SuiteReading
from sightline.evals.core.reading.yaml_text import read_yaml
from sightline.evals.core.suite import Case, GraderSpec, Suite
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import JsonObject
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, Tool
from sightline.wire.jsontext import MISFIT

_EXAMPLE = "Write {name: …, description: …, parameters: {type: object, …}}."
_KEYS = ("type", "name", "description", "parameters", "input_schema", "schema", "strict", "namespace")
_SCHEMAS = ("parameters", "input_schema", "schema")
_OTHERS = {"custom": CustomTool, "opaque": OpaqueTool}


def with_tools(case: Case, owner: Node, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, Case]:
    """The case with its tools. Each name stands once: a model could not say which of two it means. Where their file is
    missing, this case cannot be sent, and the others can."""
    listed = owner.get("tools")
    if listed is None:
        return case
    if listed.text is not None:
        found = yield from _in_file(listed, listed.text, file, findings, case.id)
        if found is None:
            return msgspec.structs.replace(case, missing=listed.text)
        listed = found
    tools = _read(listed, findings)
    return msgspec.structs.replace(case, tools=tools) if tools else case


def _read(listed: Node, findings: SuiteFindings) -> tuple[Tool, ...]:
    read = [(each, _tool(each, findings)) for each in findings.items(listed, "tools", _EXAMPLE)]
    names: set[str] = set()
    for node, tool in read:
        name = getattr(tool, "name", "")
        if name and name in names:
            findings.wrong(node, f"the tool {quote_word(name)} stands here twice", "Remove one of them.")
        names.add(name)
    return tuple(tool for _, tool in read if tool is not None)


def _in_file(
    node: Node, path: str, file: str, findings: SuiteFindings, case: str
) -> Generator[Need, bytes | None, Node | None]:
    refusal = refusal_of(path)
    if refusal is not None:
        findings.wrong(node, *refusal)
        return None
    for found in dict.fromkeys((*candidates(node.place.file, path), *candidates(file, path))):
        data = yield Need(found)
        if data is not None:
            document = read_yaml(data, found)
            if isinstance(document, SuiteProblem):
                findings.add([document])
                return None
            return document
    hint = "Name a JSON file with a list of tools, or list them here."
    findings.wrong_at(node.place, node.path, f"there is no file {quote_word(path)}", hint, case=case)
    return None


def _tool(node: Node, findings: SuiteFindings) -> Tool | None:
    if not findings.is_mapping(node, "a tool", _EXAMPLE):
        return None
    kind = findings.choice(node, "type", ("function", *_OTHERS))
    if kind in _OTHERS:
        try:
            tool: CustomTool | OpaqueTool = msgspec.convert(node.json, _OTHERS[kind])
        except MISFIT as error:
            findings.wrong(node, f"it is no {kind} tool: {error}", "Declare a function in its place.")
            return None
        return tool
    inner = node.get("function")
    if inner is not None:
        findings.check_keys(node, ("type", "function"), "a tool")
        if not findings.is_mapping(inner, "function", _EXAMPLE):
            return None
        node = inner
    return _function(node, findings)


def _function(node: Node, findings: SuiteFindings) -> FunctionTool | None:
    findings.check_keys(node, _KEYS, "a tool")
    name = findings.text(node, "name")
    if not name.strip():
        findings.wrong(node, "the tool has no name", _EXAMPLE)
        return None
    schemas = [each for key in _SCHEMAS if (each := node.get(key)) is not None]
    if len(schemas) > 1:
        findings.wrong(node, "the tool has two schemas", "Keep parameters.")
    schema = None
    if schemas and findings.is_mapping(schemas[0], "the schema of a tool", "Write {type: object, properties: …}."):
        schema = {key: each.json for key, each in schemas[0].members.items()}
    return FunctionTool(
        name=name,
        description=findings.text(node, "description") or None,
        schema=schema,
        strict=findings.flag(node, "strict"),
        namespace=findings.text(node, "namespace") or None,
    )


FOLDERS = (".agentv/assertions", ".agentv/graders", ".agentv/judges")
ENDINGS = (".ts", ".js", ".mts", ".mjs")


def with_own_graders(cases: Sequence[Case], file: str) -> Generator[Need, bytes | None, tuple[Case, ...]]:
    """The cases, with each grader that is such a script as the command that runs it."""
    search = _Search(file)
    found: list[Case] = []
    for case in cases:
        graders = yield from search.commands(case.graders)
        turns = list(case.turns)
        for index, turn in enumerate(turns):
            turns[index] = msgspec.structs.replace(turn, graders=(yield from search.commands(turn.graders)))
        found.append(msgspec.structs.replace(case, graders=graders, turns=tuple(turns)))
    return tuple(found)


class _Search:
    def __init__(self, file: str) -> None:
        self._file = file
        self._known: dict[str, str] = {}

    def commands(self, specs: tuple[GraderSpec, ...]) -> Generator[Need, bytes | None, tuple[GraderSpec, ...]]:
        made: list[GraderSpec] = []
        for spec in specs:
            kind = kind_of(spec.type)
            script = ""
            if kind not in GRADERS and kind not in RENAMED:
                script = yield from self._script(kind)
            made.append(_command(spec, script) if script else spec)
        return tuple(made)

    def _script(self, kind: str) -> Generator[Need, bytes | None, str]:
        """Where the script lies, seen from the suite's folder, in which it is run; empty where there is none."""
        if kind not in self._known:
            self._known[kind] = ""
            if "/" not in kind and refusal_of(kind) is None:
                self._known[kind] = yield from self._find_script(kind)
        return self._known[kind]

    def _find_script(self, kind: str) -> Generator[Need, bytes | None, str]:
        for folder in FOLDERS:
            for ending in ENDINGS:
                for up, path in enumerate(_upwards(self._file, f"{folder}/{kind}{ending}")):
                    if (yield Need(path, "presence")) is not None:
                        return "../" * up + f"{folder}/{kind}{ending}"
        return ""


def _upwards(file: str, path: str) -> list[str]:
    """A path below the suite's folder, and below each folder above it."""
    found = list(candidates(file, path))
    assert len(found) == folder_of(file).count("/") + bool(folder_of(file)) + 1  # none leads out
    return found


def _command(spec: GraderSpec, script: str) -> GraderSpec:
    name = kind_of(spec.type) if spec.name in ("", spec.type) else spec.name
    config = {"command": ["bun", "run", script], "config": dict(spec.config)}
    return msgspec.structs.replace(spec, type="code-grader", name=name, config=config)


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
