"""Read a suite from the text of its file. Other files that it names are requested."""

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, ClassVar, TypeVar
from unicodedata import normalize

import msgspec

from sightline.catalog.problem import Path, nearest, quote_word
from sightline.catalog.reading import key
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.graders.grade import GRADERS
from sightline.evals.core.graders.grader import FORMER_TYPES, kind_of
from sightline.evals.core.reading import promptfoo
from sightline.evals.core.reading.cases import Shared, read_case, read_execution, with_tools
from sightline.evals.core.reading.document import Node, SuiteFindings, Texts, as_tuple, last_key
from sightline.evals.core.reading.files import Need, NeedsFiles, SuiteReading, candidates, refusal_of, with_files
from sightline.evals.core.reading.messages import check_pairing
from sightline.evals.core.reading.sources import LISTS, Includes, read_tests, with_environment
from sightline.evals.core.reading.yaml_text import read_document, read_json_lines
from sightline.evals.core.suite import Case, CaseTurn, GraderSpec, Suite, SuitePlace
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import Json, JsonObject

_KEYS = ("skill_name", "evals", "$schema")
_EVAL_KEYS = {
    "id": "id",
    "prompt": "input",
    "expected_output": "expected_output",
    "files": "input_files",
    "assertions": "assertions",
}


def as_suite_of_skill(document: Node, findings: SuiteFindings) -> Node:
    """The same suite in our format, each value at the place where it was found."""
    findings.check_keys(document, _KEYS, "evals of a skill")
    listed = document.members["evals"]
    tests = [_test(each, document.get("skill_name"), findings) for each in findings.items(listed, "evals")]
    members = {"tests": Node(tests, listed.place, listed.path)}
    return Node(members, document.place, document.path, {"tests": document.key_place("evals")})


def _test(node: Node, skill: Node | None, findings: SuiteFindings) -> Node:
    findings.check_keys(node, tuple(_EVAL_KEYS), "an eval of a skill")
    members: dict[str, Node] = {}
    keys = {}
    for old, new in _EVAL_KEYS.items():
        each = node.get(old)
        if each is not None and not (isinstance(each.value, list) and not each.items):
            members[new] = each
            keys[new] = node.key_place(old)
    number = members.get("id")
    if number is not None and isinstance(number.value, int) and not isinstance(number.value, bool):
        members["id"] = Node(str(number.value), number.place, number.path)
    if skill is not None:
        members["metadata"] = Node({"skill_name": skill}, skill.place, node.path)
    return Node(members, node.place, node.path, keys)


_MOST_CIRCLES = 20


def check_dependencies(cases: Sequence[Case], paths: Mapping[SuitePlace, Path], findings: SuiteFindings) -> None:
    """Report duplicate ids, dependencies on missing cases, and circles, each at the place of its case. `paths` are the
    paths of the cases, by place."""

    def tell(case: Case, message: str, suggestion: str) -> None:
        findings.wrong_at(case.place, paths[case.place], message, suggestion)

    first: dict[str, Case] = {}
    alike: dict[str, Case] = {}
    for case in cases:
        same = alike.setdefault(normalize("NFC", case.id), case)
        if same is not case:
            forms = "" if same.id == case.id else ", in two Unicode forms"
            message = f"the id {quote_word(case.id)} is used twice{forms}, first at {same.place}"
            tell(case, message, "Give one of them another id.")
        first.setdefault(case.id, case)
    for case in cases:
        for name in dict.fromkeys(case.depends_on):
            if name not in first:
                known = nearest(name, [each for each in first if each != case.id][:20])
                tell(case, f"it depends on {quote_word(name)}, which does not exist", known)
    for circle in _circles(first):
        message = f"cases wait for each other: {' → '.join(circle)}"
        tell(first[circle[0]], message, "Remove one of these dependencies.")


def _circles(cases: dict[str, Case]) -> Iterator[list[str]]:
    """Each circle once. A circle that was found is broken, so that the next one can be found."""
    waits = {name: [each for each in dict.fromkeys(case.depends_on) if each in cases] for name, case in cases.items()}
    for _ in range(_MOST_CIRCLES):
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            waits[circle[0]].remove(circle[1])
            yield circle
        else:
            return


FOLDERS = (".agentv/assertions", ".agentv/graders", ".agentv/judges")
ENDINGS = (".ts", ".js", ".mts", ".mjs")
_Graded = TypeVar("_Graded", Case, CaseTurn)


def with_own_graders(cases: Sequence[Case], file: str) -> NeedsFiles[tuple[Case, ...]]:
    """The cases, with each grader that is a script of the repository as the command that runs it."""
    scripts: dict[str, str] = {}
    for kind in dict.fromkeys(kind_of(spec.type) for case in cases for spec in case.all_graders):
        if kind not in GRADERS and kind not in FORMER_TYPES and "/" not in kind and refusal_of(kind) is None:
            scripts[kind] = yield from _find_script(kind, file)

    def commands(owner: _Graded) -> _Graded:
        graders = tuple(_command(spec, scripts.get(kind_of(spec.type), "")) for spec in owner.graders)
        return msgspec.structs.replace(owner, graders=graders)

    return tuple(msgspec.structs.replace(commands(case), turns=tuple(map(commands, case.turns))) for case in cases)


def _find_script(kind: str, file: str) -> NeedsFiles[str]:
    """The path of the script relative to the suite's folder, where it is run; empty if there is none."""
    for folder in FOLDERS:
        for ending in ENDINGS:
            # Below the suite's folder and each folder above it: none of these leads out.
            for up, path in enumerate(candidates(f"{folder}/{kind}{ending}", file)):
                if (yield Need(path, "presence")) is not None:
                    return "../" * up + f"{folder}/{kind}{ending}"
    return ""


def _command(spec: GraderSpec, script: str) -> GraderSpec:
    if not script:
        return spec
    name = kind_of(spec.type) if spec.name in ("", spec.type) else spec.name
    config = {"command": ["bun", "run", script], "config": dict(spec.config)}
    return msgspec.structs.replace(spec, type="code-grader", name=name, config=config)


ABOUT = ("$schema", "category", "version", "author", "license", "requires", "governance")


class SuiteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as in its file. The parts of its cases have readers of their own."""

    TITLE: ClassVar[str] = "a suite"
    KEY_HINTS: ClassVar[Mapping[str, str]] = {
        "cases": 'Did you mean "tests"?',
        "targets": "Write it under execution.",
        "threshold": "Write it under execution.",
        "workers": "Write it under execution.",
        "graders": 'Did you mean "assertions"?',
        "system": "Write input: [{role: system, content: …}].",
    }

    name: str = ""
    description: str = ""
    tags: Texts = ()
    input: Node | None = None
    input_files: Node | None = None
    tests: Annotated[Node | None, key(aliases=("eval_cases", "evalcases"))] = None
    target: str = ""
    execution: Node | None = None
    assertions: Annotated[Json, key(aliases=("evaluators", "assert"))] = None
    preprocessors: Node | None = None
    workspace: Node | None = None
    guideline_patterns: Texts = ()
    schema_: Json = msgspec.field(default=None, name="$schema")
    category: Json = None
    version: Json = None
    author: Json = None
    license: Json = None
    requires: Json = None
    governance: Json = None


_NAME = re.compile(r"[a-z0-9-]+")
_ENDINGS = re.compile(r"(?:\.eval)?\.(?:ya?ml|jsonl?)$", re.IGNORECASE)


def read_suite(text: bytes, file: str, environment: Mapping[str, str] | None = None) -> NeedsFiles[SuiteReading]:
    """Read the suite in a text. `file` is its path below the folder, `environment` the variables for `${{ NAME }}`."""
    findings = SuiteFindings()
    document = _document(text, file, findings)
    suite = None
    if document is not None:
        suite = yield from _suite(document, file, environment or {}, findings)
    return SuiteReading(None if findings.has_errors else suite, findings.problems)


def _document(text: bytes, file: str, findings: SuiteFindings) -> Node | None:
    """The whole file as one mapping. JSON lines, or a bare list, are its tests."""
    place = SuitePlace(file, 1, 1)
    if file.lower().endswith(".jsonl"):
        lines, problems = read_json_lines(text, file)
        findings.add(problems)
        return Node({"tests": Node(lines, place)}, place, (), {"tests": place})
    document = read_document(text, file, findings)
    if document is None:
        return None
    if isinstance(document.value, list):
        return Node({"tests": document}, place, (), {"tests": place})
    return document if findings.is_mapping(document, "a suite", "Write tests: and a list of tests.") else None


def _suite(document: Node, file: str, environment: Mapping[str, str], findings: SuiteFindings) -> NeedsFiles[Suite]:
    document = with_environment(document, environment, findings)
    targets: tuple[SuiteTarget, ...] = ()
    if promptfoo.is_promptfoo(document):
        document, targets = yield from promptfoo.as_suite(document, file, findings)
    elif "evals" in document.members and "tests" not in document.members:
        document = as_suite_of_skill(document, findings)
    includes = Includes(file, environment, findings)
    document = yield from includes.expand(document)
    config = findings.read(document, SuiteConfig)
    assert config is not None  # it is a mapping, and no key of it is required
    shared = _parts_for_cases(document, config, findings)
    nodes = yield from read_tests(config.tests or document, file, environment, findings)
    cases: list[Case] = []
    paths: dict[SuitePlace, Path] = {}
    for node in nodes:
        case = read_case((yield from includes.expand(node)), shared, findings)
        if case is not None:
            cases.append((yield from with_tools(case, node, file, findings)))
            paths[case.place] = node.path
    check_dependencies(cases, paths, findings)
    for case in cases:
        check_pairing(case, paths[case.place], findings)
        _check_patterns(case, paths[case.place], findings)
    found = yield from with_files(cases, paths, file, findings)
    found = yield from with_own_graders(found, file)
    return _make_suite(document, config, file, found, targets, findings)


def _parts_for_cases(document: Node, config: SuiteConfig, findings: SuiteFindings) -> Shared:
    for node, why in (
        (config.workspace, "no folder is set up for the cases"),
        (config.preprocessors, "files are sent as they are"),
    ):
        if node is not None:
            message = f"{last_key(node.path)} is not used: {why}"
            findings.odd(node, message, "Leave it out, if the cases do without it.")
    return Shared(
        input=config.input,
        files=config.input_files,
        graders=tuple(_holding_graders(document)),
        tags=as_tuple(config.tags),
        guideline_patterns=as_tuple(config.guideline_patterns),
    )


def _holding_graders(document: Node) -> Iterator[Node]:
    """The suite and its execution, with only their graders."""
    for holder in (document, document.get("execution")):
        if holder is not None:
            members = {key: each for key, each in holder.members.items() if key in LISTS}
            yield Node(members, holder.place, holder.path)


def _check_patterns(case: Case, path: Path, findings: SuiteFindings) -> None:
    for pattern in case.guideline_patterns:
        try:
            compile_glob(pattern)
        except Fault as fault:
            findings.wrong_at(case.place, (*path, "guideline_patterns"), fault.message, fault.hint)


def _make_suite(
    document: Node,
    config: SuiteConfig,
    file: str,
    cases: Sequence[Case],
    targets: tuple[SuiteTarget, ...],
    findings: SuiteFindings,
) -> Suite:
    name = config.name
    if name and not _NAME.fullmatch(name):
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "suite"
        message = f"the name {quote_word(name)} may only have lowercase letters, digits and dashes"
        findings.odd(document.members["name"], message, f"AgentV would want {quote_word(slug)}.")
    about: JsonObject = {key: each.json for key in ABOUT if (each := document.get(key)) is not None}
    return Suite(
        name=name or _ENDINGS.sub("", file.rpartition("/")[2]) or "suite",
        description=config.description,
        tags=as_tuple(config.tags),
        cases=tuple(cases),
        execution=read_execution(config.execution, config.target, findings),
        file=file,
        about=about,
        targets=targets,
    )
