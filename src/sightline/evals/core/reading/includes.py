"""Lists of graders that stand in files of their own: `{include: name}` in a list is what the file lists."""

from collections.abc import Generator, Mapping
from dataclasses import replace

from sightline.catalog.problem import quote_word
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.interpolation import with_environment
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.paths import candidates, refusal_of
from sightline.evals.core.reading.requests import Need
from sightline.evals.core.reading.yaml_text import read_yaml

LISTS = ("assertions", "assert", "evaluators")
"""What lists of graders are called, today and in older suites."""

DEEPEST = 3
_TEMPLATES = ".agentv/templates/"
_KEYS = ("assertions", "name", "description", "$schema")


class Includes:
    """Takes in what the graders of one suite name."""

    def __init__(self, file: str, environment: Mapping[str, str], findings: SuiteFindings) -> None:
        self._file = file
        self._environment = environment
        self._findings = findings
        self._read: dict[str, Node | None] = {}

    def expand(self, holder: Node, chain: tuple[str, ...] = ()) -> Generator[Need, bytes | None, Node]:
        """A suite, a case, a turn or a grader with all of its lists in full."""
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

    def _items(self, items: list[Node], chain: tuple[str, ...]) -> Generator[Need, bytes | None, list[Node]]:
        full: list[Node] = []
        for item in items:
            named = item.members.get("include")
            if named is None or len(item.members) > 1:
                full.append((yield from self.expand(item, chain)))
            else:
                full += yield from self._read_include(named, chain)
        return full

    def _read_include(self, named: Node, chain: tuple[str, ...]) -> Generator[Need, bytes | None, list[Node]]:
        name = named.text or ""
        refusal = refusal_of(name)
        if refusal is not None:
            self._findings.wrong(named, *refusal)
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

    def _find_file(self, named: Node, name: str) -> Generator[Need, bytes | None, str | None]:
        """The file that is meant: a bare name is that of a template."""
        is_bare = "/" not in name and not name.startswith(".")
        names = [f"{_TEMPLATES}{name}{ending}" for ending in (".yaml", ".yml")] if is_bare else [name]
        places = dict.fromkeys((named.place.file, self._file))
        tried = list(dict.fromkeys(each for place in places for one in names for each in candidates(place, one)))
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
        document = read_yaml(data, path)
        if isinstance(document, SuiteProblem):
            self._findings.add([document])
            return None
        hint = "Write assertions: and a list of graders."
        if not self._findings.is_mapping(document, "a file of graders", hint):
            return None
        self._findings.check_keys(document, _KEYS, "a file of graders")
        document = with_environment(document, self._environment, self._findings)
        listed = document.get("assertions")
        if listed is None:
            self._findings.wrong(document, "the file has no assertions", hint)
            return None
        self._findings.items(listed, "assertions", hint)
        return document
