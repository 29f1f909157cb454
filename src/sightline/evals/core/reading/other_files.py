"""The tests of a suite that stand in other files: YAML, JSON lines, folders and patterns of them."""

from collections.abc import Generator, Mapping

from sightline.catalog.problem import quote_word
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob, is_glob
from sightline.evals.core.place import SuitePlace, SuiteProblem
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.interpolation import with_environment
from sightline.evals.core.reading.json_lines import read_json_lines
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.paths import FILE, folder_of, join_path, refusal_of
from sightline.evals.core.reading.requests import Need
from sightline.evals.core.reading.yaml_text import read_yaml

_ENDINGS = (".yaml", ".yml", ".jsonl", ".json")
_CASE_FILES = ("case.yaml", "case.yml")
_EXAMPLE = "Write a list of tests, or the path of a file that has one."


def read_tests(
    document: Node, file: str, environment: Mapping[str, str], findings: SuiteFindings
) -> Generator[Need, bytes | None, list[Node]]:
    """The nodes of all tests, from here and elsewhere, in their order."""
    written = document.get("tests")
    if written is None:
        findings.wrong(document, "the suite has no tests", _EXAMPLE)
        return []
    items = [written] if written.text is not None else findings.items(written, "tests", _EXAMPLE)
    if isinstance(written.value, list) and not items:
        findings.wrong(written, "the list of tests is empty", _EXAMPLE)
    tests: list[Node] = []
    for item in items:
        if item.text is None:
            tests.append(item)
            continue
        for path in (yield from paths_of(item, item.text.removeprefix(FILE), file, findings)):
            data = yield Need(path)
            if data is None:
                findings.wrong(item, f"there is no file {quote_word(path)}", "Check the path: it starts at the suite.")
            else:
                found = _tests_of(data, path, findings)
                tests += [with_environment(node, environment, findings) for node in found]
    return tests


def paths_of(item: Node, path: str, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, list[str]]:
    """The files that a path means, which starts at the suite: one, those of a pattern, or those of a folder."""
    refusal = refusal_of(path)
    if refusal is not None:
        findings.wrong(item, *refusal)
        return []
    if is_glob(path) or path.endswith("/"):
        return (yield from _list_files(item, path, file, findings))
    found = join_path(folder_of(file), path)
    if not found:
        findings.wrong(item, f"the path {quote_word(path)} leads out of the folder", "Put the file into the folder.")
        return []
    return [found]


def _list_files(item: Node, path: str, file: str, findings: SuiteFindings) -> Generator[Need, bytes | None, list[str]]:
    """The files of a folder (one folder a case, as AgentV has it) or of a pattern."""
    head = path[: path.rindex("/")] if path.endswith("/") else _folder_before_glob(path)
    pattern = f"*/{{{','.join(_CASE_FILES)}}}" if path.endswith("/") else path[len(head) :].lstrip("/")
    folder = join_path(folder_of(file), head)
    if folder is None:
        findings.wrong(item, f"the path {quote_word(path)} leads out of the folder", "Put the files into the folder.")
        return []
    try:
        wanted = compile_glob(pattern)
    except Fault as fault:
        findings.wrong(item, fault.message, fault.hint)
        return []
    listing = yield Need(folder, "listing")
    names = sorted(name for name in (listing or b"").decode("utf-8", "replace").splitlines() if wanted.fullmatch(name))
    if not names:
        findings.wrong(item, f"no file matches {quote_word(path)}", "Check the path: it starts at the suite.")
    return [f"{folder}/{name}" if folder else name for name in names]


def _folder_before_glob(pattern: str) -> str:
    """The folders in front of the first one that is a pattern."""
    steps = pattern.split("/")
    first = next(index for index, step in enumerate(steps) if is_glob(step))
    return "/".join(steps[:first])


def _tests_of(data: bytes, path: str, findings: SuiteFindings) -> list[Node]:
    place = SuitePlace(path, 1, 1)
    if not path.lower().endswith(_ENDINGS):
        here = Node(None, place)
        findings.wrong(here, f"{quote_word(path)} is no file of tests", f"Tests stand in {', '.join(_ENDINGS)}.")
        return []
    if path.lower().endswith(".jsonl"):
        nodes, problems = read_json_lines(data, path)
        findings.add(problems)
        if not nodes and not problems:
            findings.wrong(Node(None, place), "there are no tests in the file", _EXAMPLE)
        return nodes
    document = read_yaml(data, path)
    if isinstance(document, SuiteProblem):
        findings.add([document])
        return []
    inner = document.get("tests")
    if inner is not None:
        findings.check_keys(document, ("tests",), "a file of tests")
        document = inner
    if path.rpartition("/")[2] in _CASE_FILES and document.members:
        return [_with_folder_name(document, path)]
    return findings.items(document, "a file of tests", _EXAMPLE)


def _with_folder_name(document: Node, path: str) -> Node:
    """A case in a folder of its own has the folder's name, if it gives itself none."""
    if document.get("id") is not None:
        return document
    name = Node(folder_of(path).rpartition("/")[2], document.place, ("id",))
    return Node({"id": name, **document.members}, document.place, document.path, document.keys)
