"""Suites in promptfoo's form: prompts × tests with variables. What has a counterpart here becomes one; what has none is
an error that says what to write instead."""

import re

from sightline.catalog.problem import likely, quoted
from sightline.errors import Fault
from sightline.evals.reading.findings import Findings
from sightline.evals.reading.node import Node, node_of
from sightline.model.json import JsonObject
from sightline.wire import jsontext

_KEYS = ("description", "providers", "targets", "prompts", "defaultTest", "tests", "tags", "evaluateOptions", "$schema")
_TEST_KEYS = ("description", "vars", "assert", "threshold", "metadata")
_OPTION_KEYS = ("maxConcurrency", "repeat", "cache")
_ASSERT_KEYS = ("type", "value", "threshold", "weight", "metric")
_NOT = "not-"
_CONVERT = "Convert it by hand: see docs/guide/evals.md."
_AS_VALUE = frozenset({"contains", "icontains", "equals", "regex", "starts-with", "is-json"})
_AS_LIST = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
_AS_THRESHOLD = {"latency": "threshold", "cost": "budget"}
_JUDGED = frozenset({"llm-rubric", "g-eval", "model-graded-closedqa"})
_KNOWN = (*_AS_VALUE, *_AS_LIST, *_AS_THRESHOLD, *_JUDGED)


def is_promptfoo(document: Node) -> bool:
    """Whether a suite is in promptfoo's form."""
    return "prompts" in document.members or "providers" in document.members


def as_suite(document: Node, findings: Findings) -> Node:
    """The same suite in our form; each value stands where it was found."""
    findings.check_keys(document, _KEYS, "a promptfoo suite", dict.fromkeys(("scenarios", "derivedMetrics"), _CONVERT))
    default = document.get("defaultTest") or Node({}, document.place)
    findings.check_keys(default, _TEST_KEYS, "defaultTest")
    prompts = _prompts(document, findings)
    tests: list[Node] = []
    written = document.get("tests")
    for index, test in enumerate([] if written is None else findings.items(written, "tests", _CONVERT)):
        if findings.is_mapping(test, "a test", "Files of tests in promptfoo's form are not read."):
            findings.check_keys(test, _TEST_KEYS, "a test", {"options": _CONVERT})
            tests += _tests(test, default, prompts, index, findings)
    place, path = document.place, document.path
    members: dict[str, Node] = {
        key: each for key in ("description", "tags", "$schema") if (each := document.get(key)) is not None
    }
    members["tests"] = Node(tests, place if written is None else written.place, (*path, "tests"))
    members["execution"] = node_of(_execution(document, findings), place, (*path, "execution"))
    return Node(members, place, path, document.keys)


def _execution(document: Node, findings: Findings) -> JsonObject:
    execution: JsonObject = {}
    names: list[str] = []
    for key in ("providers", "targets"):
        node = document.get(key)
        listed = [] if node is None else [node] if node.text is not None else findings.items(node, key)
        for each in listed:
            name = each.text or findings.text(each, "label") or findings.text(each, "id")
            if name:
                names.append(name)
            else:
                findings.wrong(each, "the provider has no id", "Write its name in the configuration.")
            if each.get("config") is not None:
                findings.odd(each, "config of a provider is not read", "Set it for the target in the configuration.")
    options = document.get("evaluateOptions")
    if options is not None:
        findings.check_keys(options, _OPTION_KEYS, "evaluateOptions")
        workers = findings.number(options, "maxConcurrency", least=1, is_whole=True)
        repeat = findings.number(options, "repeat", least=1, is_whole=True)
        execution |= {} if workers is None else {"workers": min(50, int(workers))}
        execution |= {} if repeat is None else {"trials": {"count": int(repeat)}}
        cache = findings.flag(options, "cache")
        execution |= {} if cache is None else {"cache": cache}
    return execution | ({"targets": [*names]} if names else {})


def _prompts(document: Node, findings: Findings) -> list[Node]:
    node = document.get("prompts")
    if node is None:
        findings.wrong(document, "the suite has no prompts", "Write prompts: and a list of texts.")
        return []
    prompts: list[Node] = []
    for each in [node] if node.text is not None else findings.items(node, "prompts"):
        prompt = each.get("raw") if each.members else each
        if prompt is None or prompt.text is None:
            findings.wrong(each, "a prompt has to be text", _CONVERT)
        elif prompt.text.startswith("file://") or prompt.text.endswith((".txt", ".json", ".py", ".js", ".md")):
            findings.wrong(prompt, "a prompt in a file of its own is not read", "Write its text here.")
        else:
            prompts.append(_said(prompt, prompt.text))
    return prompts


def _said(prompt: Node, text: str) -> Node:
    """A prompt that is a conversation in JSON is one; any other is what the user says."""
    if not text.lstrip().startswith("["):
        return prompt
    try:
        value = jsontext.decode(text.strip())
    except Fault:
        return prompt
    return node_of(value, prompt.place, prompt.path)


def _tests(test: Node, default: Node, prompts: list[Node], index: int, findings: Findings) -> list[Node]:
    place, path = test.place, test.path
    words = findings.text(test, "description") or f"test-{index + 1}"
    name = re.sub(r"\s+", " ", words).strip()
    variables = {**_members(default, "vars", findings), **_members(test, "vars", findings)}
    for key, each in variables.items():
        if isinstance(each.value, list):
            findings.wrong(each, f"a list of values for {quoted(key)} makes several tests", "Write a test for each.")
    asserted = [node for owner in (default, test) for node in _asserted(owner, findings)]
    threshold = findings.number(test, "threshold", least=0, most=1)
    if threshold is None:
        threshold = findings.number(default, "threshold", least=0, most=1)
    cases: list[Node] = []
    for number, prompt in enumerate(prompts, 1):
        members = {
            "id": Node(name if len(prompts) == 1 else f"{name} / prompt {number}", place, (*path, "id")),
            "vars": Node(variables, place, (*path, "vars")),
            "input": prompt,
            "assertions": Node(asserted, place, (*path, "assert")),
            "conversation_id": Node(name, place, path),
        }
        metadata = test.get("metadata") or default.get("metadata")
        members |= {} if metadata is None else {"metadata": metadata}
        if threshold is not None:
            members["execution"] = node_of({"threshold": threshold}, place, path)
        cases.append(Node(members, place, path, dict.fromkeys(members, place)))
    return cases


def _members(owner: Node, key: str, findings: Findings) -> dict[str, Node]:
    node = owner.get(key)
    return node.members if node is not None and findings.is_mapping(node, key) else {}


def _asserted(owner: Node, findings: Findings) -> list[Node]:
    node = owner.get("assert")
    found: list[Node] = []
    for each in [] if node is None else findings.items(node, "assert"):
        findings.check_keys(each, _ASSERT_KEYS, "an assertion")
        grader = _grader(each, findings)
        if grader is not None:
            found.append(node_of(grader, each.place, each.path))
    return found


def _grader(node: Node, findings: Findings) -> JsonObject | None:
    written = findings.text(node, "type")
    kind = written.removeprefix(_NOT)
    value = node.get("value")
    grader: JsonObject = {"negate": True} if written != kind else {}
    for key, ours in (("metric", "name"), ("weight", "weight")):
        each = node.get(key)
        grader |= {} if each is None else {ours: each.json}
    if kind in _AS_THRESHOLD:
        limit = findings.number(node, "threshold", least=0)
        return grader | {"type": kind, _AS_THRESHOLD[kind]: limit}
    if kind in _JUDGED:
        criterion: JsonObject = {"id": "rubric-1", "outcome": findings.text(node, "value")}
        return grader | {"type": "rubrics", "criteria": [criterion]}
    if kind == "is-json" and value is not None:
        return grader | {"type": kind, "schema": value.json}
    if kind in _AS_LIST:
        return grader | {"type": kind, "value": [*findings.texts(node, "value")]}
    if kind in _AS_VALUE:
        return grader | {"type": kind} | ({} if value is None else {"value": value.json})
    findings.wrong(node, f"there is no counterpart to {quoted(written)}", likely(kind, _KNOWN) or _CONVERT)
    return None
