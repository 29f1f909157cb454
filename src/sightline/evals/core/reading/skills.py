"""Suites in the form of Agent Skills: `evals.json`, with prompts and sentences that have to hold."""

from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node

_KEYS = ("skill_name", "evals", "$schema")
_EVAL_KEYS = {
    "id": "id",
    "prompt": "input",
    "expected_output": "expected_output",
    "files": "input_files",
    "assertions": "assertions",
}


def is_of_a_skill(document: Node) -> bool:
    """Whether a suite is in this form."""
    return "evals" in document.members and "tests" not in document.members


def as_suite(document: Node, findings: SuiteFindings) -> Node:
    """The same suite in our form; each value stands where it was found."""
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
