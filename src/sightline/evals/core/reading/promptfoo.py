"""Suites in promptfoo's format: prompts × tests with variables. What has a counterpart here is converted; anything else
is an error that says what to write instead, or a warning if it does not affect the answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Annotated, ClassVar, cast

import msgspec

from sightline.catalog.problem import likely, quote_word
from sightline.catalog.reading import SELF
from sightline.evals.core.reading.document import Amount, Count, Node, Share, SuiteFindings, Texts, as_tuple, node_of
from sightline.evals.core.reading.files import NeedsFiles
from sightline.evals.core.reading.promptfoo_sources import PromptfooProviders, load_file, read_prompts, read_text
from sightline.evals.core.target import SuiteTarget
from sightline.model.json import Json, JsonObject
from sightline.wire import jsontext

_CONVERT = "Convert it by hand: see docs/guide/evals.md."
_NOT = "not-"
_SET = "assert-set"
_AS_VALUE = frozenset({"contains", "icontains", "equals", "regex", "starts-with", "is-json"})
_AS_LIST = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
_AS_THRESHOLD = {"latency": "threshold", "cost": "budget"}
_JUDGED = frozenset({"llm-rubric", "g-eval", "model-graded-closedqa"})
_KNOWN = (*_AS_VALUE, *_AS_LIST, *_AS_THRESHOLD, *_JUDGED, _SET)
_MOST_CASES = 100_000


class RunKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The `evaluateOptions` of a suite."""

    TITLE: ClassVar[str] = "evaluateOptions"
    UNUSED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("delay", "showProgressBar", "timeoutMs", "maxEvalTimeMs", "generateSuggestions", "eventSource"),
        "Set limits for the target in the configuration.",
    )

    workers: Count | None = msgspec.field(default=None, name="maxConcurrency")
    repeat: Count | None = None
    cache: bool | None = None


class SuiteKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A suite in promptfoo's format."""

    TITLE: ClassVar[str] = "a promptfoo suite"
    UNUSED: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("outputPath", "sharing", "writeLatestResults"),
            "Name files with --output or the options beside it.",
        ),
        "commandLineOptions": "Say it on the command line, if it is wanted.",
        "env": "Set the variables before the run.",
        "metadata": "Leave it out, or give it to the tests.",
    }
    KEY_HINTS: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("scenarios", "derivedMetrics", "extensions", "nunjucksFilters", "redteam"), _CONVERT
    )

    description: Json = None
    schema_: Json = msgspec.field(default=None, name="$schema")
    providers: Node | None = None
    targets: Node | None = None
    prompts: Json = None
    default_test: Node | None = msgspec.field(default=None, name="defaultTest")
    tests: Node | None = None
    tags: Node | None = None
    options: RunKeys = msgspec.field(default=RunKeys(), name="evaluateOptions")


class CaseKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A test, or `defaultTest`, which applies to all tests."""

    TITLE: ClassVar[str] = "a test"
    EXAMPLE: ClassVar[str] = "Of files with tests, YAML and JSON are read."

    description: str = ""
    vars: dict[str, Node] = {}
    asserts: tuple[Node, ...] = msgspec.field(default=(), name="assert")
    threshold: Share | None = None
    metadata: dict[str, Node] = {}
    options: dict[str, Node] = {}
    node: Annotated[Node, SELF]


class AssertKeys(msgspec.Struct, frozen=True, kw_only=True):
    TITLE: ClassVar[str] = "an assertion"
    EXAMPLE: ClassVar[str] = "Write {type: contains, value: …}."
    KEY_HINTS: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("transform", "rubricPrompt", "contextTransform", "config", "$ref"), _CONVERT
    )

    type: str = ""
    value: Node | None = None
    threshold: Amount | None = None
    weight: Json = None
    metric: Json = None
    provider: Node | None = None
    node: Annotated[Node, SELF]


class SetKeys(msgspec.Struct, frozen=True, kw_only=True):
    TITLE: ClassVar[str] = "a set of assertions"

    type: str = ""
    asserts: tuple[Node, ...] = msgspec.field(default=(), name="assert")
    threshold: Share | None = None
    weight: Json = None
    metric: Json = None


def is_promptfoo(document: Node) -> bool:
    return "prompts" in document.members or "providers" in document.members


def as_suite(document: Node, file: str, findings: SuiteFindings) -> NeedsFiles[tuple[Node, tuple[SuiteTarget, ...]]]:
    """The same suite in our format, each value at the place where it was found, and the targets that it defines."""
    suite = findings.read(document, SuiteKeys)
    assert suite is not None  # it is a mapping, and no key of it is required
    providers = PromptfooProviders(findings)
    reader = _Tests(file, findings, providers)
    names = yield from _provider_names(suite, file, providers)
    tests = yield from reader.read(document, suite)
    place, path = document.place, document.path
    members: dict[str, Node] = {
        key: each for key in ("description", "$schema") if (each := document.get(key)) is not None
    }
    if suite.tags is not None:
        members["tags"] = _tags(suite.tags)
    members["tests"] = Node(tests, place if suite.tests is None else suite.tests.place, (*path, "tests"))
    execution = _execution(suite.options) | ({"targets": [*names]} if names else {})
    members["execution"] = node_of(execution, place, (*path, "execution"))
    return Node(members, place, path, document.keys), tuple(providers.targets.values())


def _tags(node: Node) -> Node:
    """promptfoo's tags are pairs, ours are words."""
    if not node.members:
        return node
    words: list[Node] = [Node(f"{key}:{each.json}", each.place, each.path) for key, each in node.members.items()]
    return Node(words, node.place, node.path)


def _as_text(node: Node) -> Node:
    """A number or a boolean as text: promptfoo fills templates with text, even if the value is the whole prompt."""
    if not isinstance(node.value, int | float):
        return node
    return Node(jsontext.encode(node.value).decode(), node.place, node.path)


def _provider_names(suite: SuiteKeys, file: str, providers: PromptfooProviders) -> NeedsFiles[list[str]]:
    names: list[str] = []
    for key, node in (("providers", suite.providers), ("targets", suite.targets)):
        if node is None:
            continue
        node = yield from load_file(node, file, providers.findings, key)
        for each in [node] if node.text is not None else providers.findings.items(node, key):
            found = yield from load_file(each, file, providers.findings, key)
            listed = found.items if found is not each and found.items else [found]
            names += [name for one in listed if (name := providers.name_of(one))]
    return list(dict.fromkeys(names))


def _execution(options: RunKeys) -> JsonObject:
    execution: JsonObject = {} if options.workers is None else {"workers": min(50, options.workers)}
    execution |= {} if options.repeat is None else {"trials": {"count": options.repeat}}
    return execution | ({} if options.cache is None else {"cache": options.cache})


@dataclass
class _Tests:
    """Reads tests, each once for every prompt and every combination of listed values."""

    file: str
    findings: SuiteFindings
    providers: PromptfooProviders
    _names: set[str] = field(default_factory=set)

    def read(self, document: Node, suite: SuiteKeys) -> NeedsFiles[list[Node]]:
        findings = self.findings
        default = CaseKeys(node=Node({}, document.place))
        if suite.default_test is not None:
            node = yield from load_file(suite.default_test, self.file, findings, "defaultTest")
            default = findings.read(node, CaseKeys) or default
        prompts = yield from read_prompts(document, self.file, findings)
        tests: list[Node] = []
        index = 0
        for each in _tests_in(suite.tests, findings):
            found = yield from load_file(each, self.file, findings, "tests")
            for node in found.items if found is not each and found.items else [found]:
                test = findings.read(node, CaseKeys)
                if test is not None:
                    tests += yield from self._cases(test, default, prompts, index)
                index += 1
        return tests

    def _cases(self, test: CaseKeys, default: CaseKeys, prompts: list[Node], index: int) -> NeedsFiles[list[Node]]:
        place, path = test.node.place, test.node.path
        name = self._unique(re.sub(r"\s+", " ", test.description or f"test-{index + 1}").strip())
        options = {**self._options(default), **self._options(test)}
        judge = options.get("provider")
        target = "" if judge is None else self.providers.name_of(judge)
        threshold = default.threshold if test.threshold is None else test.threshold
        graders: list[Node] = []
        for owner in (default, test):
            graders += yield from self._graders(owner.asserts, target, is_needed=threshold is None)
        variants = yield from self._variants(default, test, options)
        shared = {
            "assertions": Node(graders, place, (*path, "assert")),
            "conversation_id": Node(name, place, path),
        }
        metadata = {**default.metadata, **test.metadata}
        if metadata:
            shared["metadata"] = Node(metadata, place, (*path, "metadata"))
        # If each assertion has to pass by itself, nothing is left for their mean to decide.
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

    def _unique(self, name: str) -> str:
        """The name with a number if an earlier test has it: descriptions may be repeated, ids may not."""
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name} ({number})"
        self._names.add(found)
        return found

    def _options(self, owner: CaseKeys) -> dict[str, Node]:
        for name, each in owner.options.items():
            if name not in ("prefix", "suffix", "provider", "disableVarExpansion"):
                hint = "Take it out, or compute it in a code-grader."
                self.findings.wrong(each, f"there is no counterpart to the option {quote_word(name)}", hint)
        return owner.options

    def _variants(
        self, default: CaseKeys, test: CaseKeys, options: dict[str, Node]
    ) -> NeedsFiles[list[tuple[str, dict[str, Node]]]]:
        """The variables of a test, once for every combination of listed values, as in promptfoo."""
        values = {**default.vars, **test.vars}
        for key, each in values.items():
            values[key] = _as_text((yield from read_text(each, self.file, self.findings)))
        keeps = options.get("disableVarExpansion")
        many = {key: each.items for key, each in values.items() if each.items}
        if not many or (keeps is not None and keeps.value is True):
            return [("", values)]
        count = prod(map(len, many.values()))
        if count > _MOST_CASES:
            self.findings.wrong(test.node, f"the lists of values make {count} tests", "Take some of the values out.")
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
        """A prompt with the prefix and suffix of the options."""
        around = [options.get(key) for key in ("prefix", "suffix")]
        if not any(each is not None and each.value for each in around):
            return prompt
        texts = ["" if each is None else each.text for each in around]
        if prompt.text is None or None in texts:
            hint = "Write them into the prompts."
            self.findings.wrong(prompt, "prefix and suffix go with a prompt that is text", hint)
            return prompt
        return Node(f"{texts[0]}{prompt.text}{texts[1]}", prompt.place, prompt.path)

    # --- assertions ---

    def _graders(self, asserts: tuple[Node, ...], target: str, *, is_needed: bool) -> NeedsFiles[list[Node]]:
        """The graders of assertions. Without a threshold all of them have to pass (`is_needed`), as in promptfoo."""
        found: list[Node] = []
        for each in asserts:
            grader = yield from self._grader(each, target)
            if grader is not None:
                needed: JsonObject = (
                    {"required": True, "min_score": 1} if is_needed and grader.get("weight") != 0 else {}
                )
                found.append(node_of({"type": grader["type"], **needed, **grader}, each.place, each.path))
        return found

    def _grader(self, node: Node, target: str) -> NeedsFiles[JsonObject | None]:
        findings = self.findings
        kind = node.get("type")
        is_set = kind is not None and (kind.text or "").removeprefix(_NOT) == _SET
        keys = findings.read(node, SetKeys) if is_set else findings.read(node, AssertKeys)
        if keys is None:
            return None
        grader: JsonObject = {"negate": True} if keys.type.startswith(_NOT) else {}
        grader |= {} if keys.metric is None else {"name": keys.metric}
        grader |= {} if keys.weight is None else {"weight": keys.weight}
        if isinstance(keys, SetKeys):
            return grader | (yield from self._set(keys, target))
        bare = keys.type.removeprefix(_NOT)
        if keys.threshold is not None and bare not in _AS_THRESHOLD:
            hint = "A rubric is met or not; others hold or do not." if bare in _JUDGED else "Leave it out."
            findings.odd(node.members["threshold"], f"threshold of {keys.type} is not used", hint)
        value = None if keys.value is None else (yield from read_text(keys.value, self.file, findings))
        return self._grader_from(keys, bare, value, target, grader)

    def _grader_from(
        self, keys: AssertKeys, kind: str, value: Node | None, target: str, grader: JsonObject
    ) -> JsonObject | None:
        findings = self.findings
        if kind in _AS_THRESHOLD:
            return grader | {"type": kind, _AS_THRESHOLD[kind]: keys.threshold}
        if kind in _JUDGED:
            if value is None or value.text is None:
                findings.wrong(keys.node, f"the value of {kind} must be text", "Write what has to hold.")
                return None
            judge = target if keys.provider is None else self.providers.name_of(keys.provider)
            criterion: JsonObject = {"id": "rubric-1", "outcome": value.text}
            return grader | {"type": "rubrics", "criteria": [criterion]} | ({"target": judge} if judge else {})
        if kind == "is-json" and value is not None:
            return grader | {"type": kind, "schema": value.json}
        if kind in _AS_LIST:
            # The texts of a list from files have the path of the one value, so they are read by their own nodes.
            read = None if value is None else findings.read(value, cast(type[str | tuple[str, ...]], Texts))
            return grader | {"type": kind, "value": [*as_tuple(read or ())]}
        if kind in _AS_VALUE:
            return grader | {"type": kind} | ({} if value is None else {"value": value.json})
        findings.wrong(keys.node, f"there is no counterpart to {quote_word(kind)}", likely(kind, _KNOWN) or _CONVERT)
        return None

    def _set(self, keys: SetKeys, target: str) -> NeedsFiles[JsonObject]:
        """Assertions that count as one: all have to pass, or their mean has to reach a threshold."""
        members = yield from self._graders(keys.asserts, target, is_needed=keys.threshold is None)
        grader: JsonObject = {"type": "composite", "assertions": [each.json for each in members]}
        return grader | ({} if keys.threshold is None else {"min_score": keys.threshold})


def _tests_in(written: Node | None, findings: SuiteFindings) -> list[Node]:
    if written is None:
        return []
    return [written] if written.text is not None else findings.items(written, "tests", _CONVERT)
