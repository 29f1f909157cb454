"""Assemble a suite from several files: fill in variables, include lists of graders, read tests from other files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from sightline.catalog.problem import likely, quote_word
from sightline.errors import Fault
from sightline.evals.core.glob import compile_glob, is_glob
from sightline.evals.core.graders.judge import ALIASES, NAMES
from sightline.evals.core.reading.document import Node, SuiteFindings, node_of
from sightline.evals.core.reading.files import FILE, Need, NeedsFiles, candidates, folder_of, is_usable, join_path
from sightline.evals.core.reading.yaml_text import read_document, read_json_lines
from sightline.evals.core.suite import SuitePlace
from sightline.model.json import Json, JsonObject
from sightline.wire import jsontext

_ENVIRONMENT = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_VARIABLE = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")
_GRADERS = frozenset({"assertions", "evaluators", "assert"})
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]+)?")

GRADERS_OWN = frozenset({*NAMES, *ALIASES})
"""Names that are filled in when a grader's prompt is used; a variable of the case does not replace them."""


def with_environment(node: Node, environment: Mapping[str, str], findings: SuiteFindings) -> Node:
    """The tree with environment variables filled in. A text that is a single reference becomes the number or boolean
    that it names.

    A name that is not set is an error: otherwise an empty text would be sent and go unnoticed.
    """

    def fill(node: Node, text: str) -> Node:
        found = list(_ENVIRONMENT.finditer(text))
        missing = [match[1] for match in found if match[1] not in environment]
        for name in missing:
            hint = likely(name, environment, alike=0.8) or f"Set it, or write the value in place of ${{{{ {name} }}}}."
            findings.wrong(node, f"the environment has no {name}", hint)
        if missing:
            return node
        if len(found) == 1 and found[0][0] == text.strip():
            return replace(node, value=_parse_scalar(environment[found[0][1]]))
        return replace(node, value=_ENVIRONMENT.sub(lambda match: environment[match[1]], text))

    return _map_texts(node, fill, "${{")


def with_variables(node: Node, variables: JsonObject, findings: SuiteFindings) -> Node:
    """The tree with a case's variables filled in. A text that is a single reference becomes the value itself, whatever
    its type.

    Without variables, nothing is a reference. With them, an unknown name stays as it is, and is reported. Within
    graders, the names that their own prompts use are left alone.
    """
    if not variables:
        return node

    def fill(node: Node, text: str) -> Node:
        kept = frozenset() if _GRADERS.isdisjoint(node.path) else GRADERS_OWN
        found = [match for match in _VARIABLE.finditer(text) if match[1] not in kept]
        for match in found:
            if not _has(variables, match[1]):
                hint = likely(match[1], variables) or "Add it to vars, if it is meant to be one."
                findings.odd(node, f"vars has no {quote_word(match[1])}: it stays as it stands", hint)
        if len(found) == 1 and found[0][0] == text.strip() and _has(variables, found[0][1]):
            return node_of(_value(variables, found[0][1]), node.place, node.path)
        return replace(node, value=_VARIABLE.sub(lambda match: value_text(match, kept), text))

    def value_text(match: re.Match[str], kept: frozenset[str]) -> str:
        if match[1] in kept or not _has(variables, match[1]):
            return match[0]
        value = _value(variables, match[1])
        return value if isinstance(value, str) else jsontext.encode(value).decode()

    return _map_texts(node, fill, "{{")


def _has(variables: JsonObject, name: str) -> bool:
    return _value(variables, name) is not None


def _value(variables: JsonObject, name: str) -> Json:
    """The value at a dotted name. None if there is none; a null variable counts as missing."""
    value: Json = variables
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _parse_scalar(text: str) -> str | int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def _map_texts(node: Node, filled: Callable[[Node, str], Node], sign: str) -> Node:
    """The tree with every text that contains the sign filled in; a subtree without one stays the same object."""
    match node.value:
        case str() as text:
            return filled(node, text) if sign in text else node
        case dict() as members:
            below = {key: _map_texts(each, filled, sign) for key, each in members.items()}
            is_same = all(below[key] is each for key, each in members.items())
        case list() as items:
            mapped = [_map_texts(each, filled, sign) for each in items]
            is_same = all(one is other for one, other in zip(mapped, items, strict=True))
            return node if is_same else replace(node, value=mapped)
        case _:
            return node
    return node if is_same else replace(node, value=below)


LISTS = ("assertions", "assert", "evaluators")
"""The keys of lists of graders, in current and older suites."""

DEEPEST = 3
_TEMPLATES = ".agentv/templates/"
_KEYS = ("assertions", "name", "description", "$schema")


class Includes:
    """Expands the `include` entries in the graders of one suite."""

    def __init__(self, file: str, environment: Mapping[str, str], findings: SuiteFindings) -> None:
        self._file = file
        self._environment = environment
        self._findings = findings
        self._read: dict[str, Node | None] = {}

    def expand(self, holder: Node, chain: tuple[str, ...] = ()) -> NeedsFiles[Node]:
        """A suite, a case, a turn or a grader, with the includes in all of its lists expanded."""
        members = dict(holder.members)
        for key, each in holder.members.items():
            if key in LISTS and isinstance(each.value, list):
                items = yield from self._items(each.value, chain)
                members[key] = replace(each, value=items)
            elif key == "execution" and isinstance(each.value, dict):
                members[key] = yield from self.expand(each, chain)
            elif key == "turns" and isinstance(each.value, list):
                turns = list(each.value)
                for index, turn in enumerate(turns):
                    turns[index] = yield from self.expand(turn, chain)
                members[key] = replace(each, value=turns)
        return replace(holder, value=members) if holder.members else holder

    def _items(self, items: list[Node], chain: tuple[str, ...]) -> NeedsFiles[list[Node]]:
        full: list[Node] = []
        for item in items:
            named = item.members.get("include")
            if named is None or len(item.members) > 1:
                full.append((yield from self.expand(item, chain)))
            else:
                full += yield from self._read_include(named, chain)
        return full

    def _read_include(self, named: Node, chain: tuple[str, ...]) -> NeedsFiles[list[Node]]:
        name = named.text or ""
        if not is_usable(named, name, self._findings):
            return []
        path = yield from self._find_file(named, name)
        if path is None:
            return []
        if path in chain or len(chain) == DEEPEST:
            message = "leads in a circle" if path in chain else f"is more than {DEEPEST} files deep"
            way = " → ".join((*chain, path))
            self._findings.wrong(named, f"include {message}: {way}", "Write its graders here.")
            return []
        template = self._read[path]
        listed = None if template is None else template.get("assertions")
        if listed is None:
            return []
        return (yield from self._items(listed.items, (*chain, path)))

    def _find_file(self, named: Node, name: str) -> NeedsFiles[str | None]:
        """The path of an included file, None if there is none; a bare name is that of a template."""
        is_bare = "/" not in name and not name.startswith(".")
        names = [f"{_TEMPLATES}{name}{ending}" for ending in (".yaml", ".yml")] if is_bare else [name]
        places = dict.fromkeys((named.place.file, self._file))
        tried = list(dict.fromkeys(each for place in places for one in names for each in candidates(one, place)))
        for path in tried:
            if path in self._read:
                return path
            data = yield Need(path)
            if data is not None:
                self._read[path] = self._template(data, path)
                return path
        hint = f"Looked for {', '.join(tried[:5])}." if tried else "It leads out of the folder: put the file into it."
        self._findings.wrong(named, f"there is no file {quote_word(name)}", hint)
        return None

    def _template(self, data: bytes, path: str) -> Node | None:
        document = read_document(data, path, self._findings)
        hint = "Write assertions: and a list of graders."
        if document is None or not self._findings.is_mapping(document, "a file of graders", hint):
            return None
        self._findings.check_keys(document, _KEYS, "a file of graders")
        document = with_environment(document, self._environment, self._findings)
        listed = document.get("assertions")
        if listed is None:
            self._findings.wrong(document, "the file has no assertions", hint)
            return None
        self._findings.items(listed, "assertions", hint)
        return document


_ENDINGS = (".yaml", ".yml", ".jsonl", ".json")
_CASE_FILES = ("case.yaml", "case.yml")
_EXAMPLE = "Write a list of tests, or the path of a file that has one."


def read_tests(
    written: Node, file: str, environment: Mapping[str, str], findings: SuiteFindings
) -> NeedsFiles[list[Node]]:
    """The nodes of all tests, from here and from other files, in their order. `written` is a list of tests or a path,
    or the suite if it has no tests."""
    if isinstance(written.value, dict):
        findings.wrong(written, "the suite has no tests", _EXAMPLE)
        return []
    items = [written] if written.text is not None else findings.items(written, "tests", _EXAMPLE)
    if isinstance(written.value, list) and not items:
        findings.wrong(written, "the list of tests is empty", _EXAMPLE)
    tests: list[Node] = []
    for item in items:
        if item.text is None:
            tests.append(item)
            continue
        for path, data in (yield from files_at(item, item.text.removeprefix(FILE), file, findings)):
            found = _tests_of(data, path, findings)
            tests += [with_environment(node, environment, findings) for node in found]
    return tests


def files_at(item: Node, path: str, file: str, findings: SuiteFindings) -> NeedsFiles[list[tuple[str, bytes]]]:
    """The files of a path or pattern relative to the suite, with their contents. A missing file is reported."""
    files: list[tuple[str, bytes]] = []
    for found in (yield from _paths_of(item, path, file, findings)):
        data = yield Need(found)
        if data is None:
            findings.wrong(item, f"there is no file {quote_word(found)}", "Check the path: it starts at the suite.")
        else:
            files.append((found, data))
    return files


def _paths_of(item: Node, path: str, file: str, findings: SuiteFindings) -> NeedsFiles[list[str]]:
    """One path, or the paths of a pattern or a folder."""
    if not is_usable(item, path, findings):
        return []
    if is_glob(path) or path.endswith("/"):
        return (yield from _list_files(item, path, file, findings))
    found = join_path(folder_of(file), path)
    if not found:
        findings.wrong(item, f"the path {quote_word(path)} leads out of the folder", "Put the file into the folder.")
        return []
    return [found]


def _list_files(item: Node, path: str, file: str, findings: SuiteFindings) -> NeedsFiles[list[str]]:
    """The files of a folder (with one folder per case, as in AgentV) or of a pattern."""
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
    names = sorted(name for name in (listing or b"").decode("utf-8", "replace").splitlines() if wanted.matches(name))
    if not names:
        findings.wrong(item, f"no file matches {quote_word(path)}", "Check the path: it starts at the suite.")
    return [f"{folder}/{name}" if folder else name for name in names]


def _folder_before_glob(pattern: str) -> str:
    """The folders before the first one that is a pattern."""
    steps = pattern.split("/")
    first = next(index for index, step in enumerate(steps) if is_glob(step))
    return "/".join(steps[:first])


def _tests_of(data: bytes, path: str, findings: SuiteFindings) -> list[Node]:
    place = SuitePlace(path, 1, 1)
    if not path.lower().endswith(_ENDINGS):
        here = Node(None, place)
        findings.wrong(here, f"{quote_word(path)} is no file of tests", f"Tests are in {', '.join(_ENDINGS)}.")
        return []
    if path.lower().endswith(".jsonl"):
        nodes, problems = read_json_lines(data, path)
        findings.add(problems)
        if not nodes and not problems:
            findings.wrong(Node(None, place), "there are no tests in the file", _EXAMPLE)
        return nodes
    document = read_document(data, path, findings)
    if document is None:
        return []
    inner = document.get("tests")
    if inner is not None:
        findings.check_keys(document, ("tests",), "a file of tests")
        document = inner
    if path.rpartition("/")[2] in _CASE_FILES and document.members:
        return [_with_folder_name(document, path)]
    return findings.items(document, "a file of tests", _EXAMPLE)


def _with_folder_name(document: Node, path: str) -> Node:
    """Give a case that is in a folder of its own the folder's name, if it has no id."""
    if document.get("id") is not None:
        return document
    name = Node(folder_of(path).rpartition("/")[2], document.place, ("id",))
    return Node({"id": name, **document.members}, document.place, document.path, document.keys)
