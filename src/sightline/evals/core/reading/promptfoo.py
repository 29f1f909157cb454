"""Suites in promptfoo's form: prompts × tests with variables. What has a counterpart here becomes one; what has none is
an error that says what to write instead, or a warning where the answers are the same without it."""

import re
from collections.abc import Generator
from dataclasses import dataclass
from itertools import product

from sightline.catalog.problem import likely, quote_word
from sightline.evals.core.reading.document import Node, SuiteFindings, node_of
from sightline.evals.core.reading.files import Need
from sightline.evals.core.reading.promptfoo_prompts import load_file, read_prompts, read_text
from sightline.evals.core.reading.promptfoo_providers import PromptfooProviders
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import JsonObject
from sightline.wire import jsontext

_CONVERT = "Convert it by hand: see docs/guide/evals.md."
_KEYS = ("description", "providers", "targets", "prompts", "defaultTest", "tests", "tags", "evaluateOptions", "$schema")
_UNUSED = {
    **dict.fromkeys(("outputPath", "sharing", "writeLatestResults"), "Name files with --output, --jsonl or --junit."),
    "commandLineOptions": "Say it on the command line, if it is wanted.",
    "env": "Set the variables before the run.",
    "metadata": "Leave it out, or give it to the tests.",
}
_TEST_KEYS = ("description", "vars", "assert", "threshold", "metadata", "options")
_TEST_OPTIONS = ("prefix", "suffix", "provider", "disableVarExpansion")
_OPTION_KEYS = ("maxConcurrency", "repeat", "cache")
_UNUSED_OPTIONS = ("delay", "showProgressBar", "timeoutMs", "maxEvalTimeMs", "generateSuggestions", "eventSource")
_ASSERT_KEYS = ("type", "value", "threshold", "weight", "metric", "provider")
_SET_KEYS = ("type", "assert", "threshold", "weight", "metric")
_NOT = "not-"
_SET = "assert-set"
_AS_VALUE = frozenset({"contains", "icontains", "equals", "regex", "starts-with", "is-json"})
_AS_LIST = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
_AS_THRESHOLD = {"latency": "threshold", "cost": "budget"}
_JUDGED = frozenset({"llm-rubric", "g-eval", "model-graded-closedqa"})
_KNOWN = (*_AS_VALUE, *_AS_LIST, *_AS_THRESHOLD, *_JUDGED, _SET)
_MOST_CASES = 100_000


def is_promptfoo(document: Node) -> bool:
    """Whether a suite is in promptfoo's form."""
    return "prompts" in document.members or "providers" in document.members


def as_suite(
    document: Node, file: str, findings: SuiteFindings
) -> Generator[Need, bytes | None, tuple[Node, tuple[SuiteTarget, ...]]]:
    """The same suite in our form, each value where it was found, and the targets that it describes itself."""
    for key, hint in _UNUSED.items():
        if key in document.members:
            findings.odd(document.members[key], f"{key} is not used", hint)
    hints = dict.fromkeys(("scenarios", "derivedMetrics", "extensions", "nunjucksFilters", "redteam"), _CONVERT)
    findings.check_keys(document, (*_KEYS, *_UNUSED), "a promptfoo suite", hints)
    providers = PromptfooProviders(findings)
    reader = _Tests(file, findings, providers)
    names = yield from _provider_names(document, file, providers)
    tests = yield from reader.read(document)
    place, path = document.place, document.path
    members: dict[str, Node] = {
        key: each for key in ("description", "$schema") if (each := document.get(key)) is not None
    }
    tags = document.get("tags")
    if tags is not None:
        members["tags"] = _tags(tags)
    written = document.get("tests")
    members["tests"] = Node(tests, place if written is None else written.place, (*path, "tests"))
    execution = _execution(document, findings) | ({"targets": [*names]} if names else {})
    members["execution"] = node_of(execution, place, (*path, "execution"))
    return Node(members, place, path, document.keys), tuple(providers.targets.values())


def _tags(node: Node) -> Node:
    """promptfoo's tags are pairs, and ours are words."""
    if not node.members:
        return node
    words: list[Node] = [Node(f"{key}:{each.json}", each.place, each.path) for key, each in node.members.items()]
    return Node(words, node.place, node.path)


def _as_text(node: Node) -> Node:
    """A number or a truth as text: promptfoo fills templates with words, also where they are all of a prompt."""
    if not isinstance(node.value, int | float):
        return node
    return Node(jsontext.encode(node.value).decode(), node.place, node.path)


def _provider_names(
    document: Node, file: str, providers: PromptfooProviders
) -> Generator[Need, bytes | None, list[str]]:
    names: list[str] = []
    for key in ("providers", "targets"):
        node = document.get(key)
        if node is None:
            continue
        node = yield from load_file(node, file, providers.findings, key)
        for each in [node] if node.text is not None else providers.findings.items(node, key):
            found = yield from load_file(each, file, providers.findings, key)
            listed = found.items if found is not each and found.items else [found]
            names += [name for one in listed if (name := providers.name_of(one))]
    return list(dict.fromkeys(names))


def _execution(document: Node, findings: SuiteFindings) -> JsonObject:
    execution: JsonObject = {}
    options = document.get("evaluateOptions")
    if options is None or not findings.is_mapping(options, "evaluateOptions"):
        return execution
    for key in _UNUSED_OPTIONS:
        if key in options.members:
            findings.odd(options.members[key], f"{key} is not used", "Set limits for the target in the configuration.")
    findings.check_keys(options, (*_OPTION_KEYS, *_UNUSED_OPTIONS), "evaluateOptions")
    workers = findings.number(options, "maxConcurrency", least=1, is_whole=True)
    repeat = findings.number(options, "repeat", least=1, is_whole=True)
    execution |= {} if workers is None else {"workers": min(50, int(workers))}
    execution |= {} if repeat is None else {"trials": {"count": int(repeat)}}
    cache = findings.flag(options, "cache")
    return execution | ({} if cache is None else {"cache": cache})


@dataclass
class _Tests:
    """Reads tests, each once for every prompt and every value of a list."""

    file: str
    findings: SuiteFindings
    providers: PromptfooProviders

    def read(self, document: Node) -> Generator[Need, bytes | None, list[Node]]:
        findings = self.findings
        empty = Node({}, document.place)
        default = yield from load_file(document.get("defaultTest") or empty, self.file, findings, "defaultTest")
        if not findings.is_mapping(default, "defaultTest"):
            default = empty
        findings.check_keys(default, _TEST_KEYS, "defaultTest")
        prompts = yield from read_prompts(document, self.file, findings)
        written = document.get("tests")
        tests: list[Node] = []
        listed = (
            []
            if written is None
            else [written]
            if written.text is not None
            else findings.items(written, "tests", _CONVERT)
        )
        index = 0
        for each in listed:
            found = yield from load_file(each, self.file, findings, "tests")
            for test in found.items if found is not each and found.items else [found]:
                if findings.is_mapping(test, "a test", "Of files with tests, YAML and JSON are read."):
                    findings.check_keys(test, _TEST_KEYS, "a test")
                    tests += yield from self._cases(test, default, prompts, index)
                index += 1
        return tests

    def _cases(
        self, test: Node, default: Node, prompts: list[Node], index: int
    ) -> Generator[Need, bytes | None, list[Node]]:
        findings = self.findings
        place, path = test.place, test.path
        words = findings.text(test, "description") or f"test-{index + 1}"
        name = re.sub(r"\s+", " ", words).strip()
        options = {**self._options(default), **self._options(test)}
        judge = options.get("provider")
        target = "" if judge is None else self.providers.name_of(judge)
        threshold = findings.number(test, "threshold", least=0, most=1)
        if threshold is None:
            threshold = findings.number(default, "threshold", least=0, most=1)
        graders: list[Node] = []
        for owner in (default, test):
            graders += yield from self._graders(owner, target, is_needed=threshold is None)
        variants = yield from self._variants(default, test, options)
        shared = {
            "assertions": Node(graders, place, (*path, "assert")),
            "conversation_id": Node(name, place, path),
        }
        metadata = {**self._members(default, "metadata"), **self._members(test, "metadata")}
        if metadata:
            shared["metadata"] = Node(metadata, place, (*path, "metadata"))
        # Where each assertion has to pass for itself, there is nothing left for their mean to decide.
        shared["execution"] = node_of({"threshold": 0 if threshold is None else threshold}, place, path)
        cases: list[Node] = []
        for suffix, variables in variants:
            for number, prompt in enumerate(prompts, 1):
                called = f"{name}{suffix}" if len(prompts) == 1 else f"{name}{suffix} / prompt {number}"
                members = {
                    "id": Node(called, place, (*path, "id")),
                    "vars": Node(variables, place, (*path, "vars")),
                    "input": self._with_prefix_and_suffix(prompt, options),
                    **shared,
                }
                cases.append(Node(members, place, path, dict.fromkeys(members, place)))
        return cases

    def _options(self, owner: Node) -> dict[str, Node]:
        node = owner.get("options")
        if node is None or not self.findings.is_mapping(node, "options"):
            return {}
        for key, each in node.members.items():
            if key not in _TEST_OPTIONS:
                hint = "Take it out, or compute it in a code-grader."
                self.findings.wrong(each, f"there is no counterpart to the option {quote_word(key)}", hint)
        return node.members

    def _variants(
        self, default: Node, test: Node, options: dict[str, Node]
    ) -> Generator[Need, bytes | None, list[tuple[str, dict[str, Node]]]]:
        """The variables of a test, once for every combination of the values that lists give, as promptfoo does."""
        values = {**self._members(default, "vars"), **self._members(test, "vars")}
        for key, each in values.items():
            values[key] = _as_text((yield from read_text(each, self.file, self.findings)))
        keeps = options.get("disableVarExpansion")
        many = {key: each.items for key, each in values.items() if each.items}
        if not many or (keeps is not None and keeps.value is True):
            return [("", values)]
        count = 1
        for items in many.values():
            count *= len(items)
        if count > _MOST_CASES:
            self.findings.wrong(test, f"the lists of values make {count} tests", "Take some of the values out.")
            return []
        found: list[tuple[str, dict[str, Node]]] = []
        for key, items in many.items():
            read: list[Node] = []
            for each in items:
                read += [(yield from read_text(each, self.file, self.findings))]
            many[key] = read
        for number, chosen in enumerate(product(*many.values()), 1):
            found.append((f" #{number}", {**values, **dict(zip(many, map(_as_text, chosen), strict=True))}))
        return found

    def _with_prefix_and_suffix(self, prompt: Node, options: dict[str, Node]) -> Node:
        """A prompt with the words that are said before and after every one."""
        around = [options.get(key) for key in ("prefix", "suffix")]
        if not any(each is not None and each.value for each in around):
            return prompt
        texts = ["" if each is None else each.text for each in around]
        if prompt.text is None or None in texts:
            hint = "Write them into the prompts."
            self.findings.wrong(prompt, "prefix and suffix go with a prompt that is text", hint)
            return prompt
        return Node(f"{texts[0]}{prompt.text}{texts[1]}", prompt.place, prompt.path)

    def _members(self, owner: Node, key: str) -> dict[str, Node]:
        node = owner.get(key)
        return dict(node.members) if node is not None and self.findings.is_mapping(node, key) else {}

    # --- assertions ---

    def _graders(self, owner: Node, target: str, *, is_needed: bool) -> Generator[Need, bytes | None, list[Node]]:
        """The graders of assertions. Without a threshold all of them have to pass (`is_needed`), as in promptfoo."""
        node = owner.get("assert")
        found: list[Node] = []
        for each in [] if node is None else self.findings.items(node, "assert"):
            if not self.findings.is_mapping(each, "an assertion", "Write {type: contains, value: …}."):
                continue
            grader = yield from self._grader(each, target)
            if grader is not None:
                needed: JsonObject = (
                    {"required": True, "min_score": 1} if is_needed and grader.get("weight") != 0 else {}
                )
                found.append(node_of({"type": grader["type"], **needed, **grader}, each.place, each.path))
        return found

    def _grader(self, node: Node, target: str) -> Generator[Need, bytes | None, JsonObject | None]:
        findings = self.findings
        written = findings.text(node, "type")
        kind = written.removeprefix(_NOT)
        grader: JsonObject = {"negate": True} if written != kind else {}
        for key, ours in (("metric", "name"), ("weight", "weight")):
            each = node.get(key)
            grader |= {} if each is None else {ours: each.json}
        if kind == _SET:
            return grader | (yield from self._set(node, target))
        hints = dict.fromkeys(("transform", "rubricPrompt", "contextTransform", "config", "$ref"), _CONVERT)
        findings.check_keys(node, _ASSERT_KEYS, "an assertion", hints)
        if node.get("threshold") is not None and kind not in _AS_THRESHOLD:
            hint = "A rubric is met or not; others hold or do not." if kind in _JUDGED else "Leave it out."
            findings.odd(node.members["threshold"], f"threshold of {written} is not used", hint)
        value = node.get("value")
        value = None if value is None else (yield from read_text(value, self.file, findings))
        return self._grader_from(node, kind, value, target, grader)

    def _grader_from(
        self, node: Node, kind: str, value: Node | None, target: str, grader: JsonObject
    ) -> JsonObject | None:
        findings = self.findings
        if kind in _AS_THRESHOLD:
            limit = findings.number(node, "threshold", least=0)
            return grader | {"type": kind, _AS_THRESHOLD[kind]: limit}
        if kind in _JUDGED:
            if value is None or value.text is None:
                findings.wrong(node, f"the value of {kind} has to be text", "Write what has to hold.")
                return None
            own = node.get("provider")
            judge = target if own is None else self.providers.name_of(own)
            criterion: JsonObject = {"id": "rubric-1", "outcome": value.text}
            return grader | {"type": "rubrics", "criteria": [criterion]} | ({"target": judge} if judge else {})
        if kind == "is-json" and value is not None:
            return grader | {"type": kind, "schema": value.json}
        if kind in _AS_LIST:
            listed = Node({"value": value}, node.place, node.path) if value is not None else node
            return grader | {"type": kind, "value": [*findings.texts(listed, "value")]}
        if kind in _AS_VALUE:
            return grader | {"type": kind} | ({} if value is None else {"value": value.json})
        findings.wrong(node, f"there is no counterpart to {quote_word(kind)}", likely(kind, _KNOWN) or _CONVERT)
        return None

    def _set(self, node: Node, target: str) -> Generator[Need, bytes | None, JsonObject]:
        """Assertions that count as one: all have to pass, or their mean has to reach a threshold."""
        self.findings.check_keys(node, _SET_KEYS, "a set of assertions")
        least = self.findings.number(node, "threshold", least=0, most=1)
        members = yield from self._graders(node, target, is_needed=least is None)
        grader: JsonObject = {"type": "composite", "assertions": [each.json for each in members]}
        return grader | ({} if least is None else {"min_score": least})
