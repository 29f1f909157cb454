import pytest

from sightline.agent.core.approval import ApprovalRule, Policy
from sightline.model.json import JsonObject


def test_without_rules_the_policy_says_what_otherwise_holds() -> None:
    assert Policy().ruling("x", {}).ruling == "ask"
    assert Policy(otherwise="allow").ruling("x", {}).ruling == "allow"


def test_the_first_rule_decides_and_one_that_denies_comes_before_all() -> None:
    allow, ask, deny = (
        ApprovalRule("read_*", "allow"),
        ApprovalRule("*", "ask"),
        ApprovalRule("*_secret", "deny", reason="Never."),
    )
    policy = Policy((allow, ask, deny))
    assert policy.ruling("read_file", {}) == allow
    assert policy.ruling("write_file", {}) == ask
    assert policy.ruling("read_secret", {}) == deny
    assert policy.prepend(ApprovalRule("write_file", "allow")).ruling("write_file", {}).ruling == "allow"
    assert policy.prepend(ApprovalRule("*", "allow")).ruling("read_secret", {}) == deny


@pytest.mark.parametrize(
    ("pattern", "arguments", "fits"),
    [
        ("src/*", {"path": "src/a.py"}, True),
        ("src/*", {"path": "src/a/b.py"}, False),
        ("src/**", {"path": "src/a/b.py"}, True),
        ("src/**", {"path": "src/../etc/passwd"}, False),
        ("src\\**", {"path": "src\\..\\x"}, False),
        ("**", {"path": ".."}, False),
        ("a..b*", {"path": "a..b/"}, False),
        ("a..b*", {"path": "a..bc"}, True),
        ("../x", {"path": "../x"}, True),
        ("git status*", {"path": "git status\nrm -r ."}, False),
        ("git status", {"path": "git status "}, False),
        ("a.c", {"path": "abc"}, False),
        ("src/*", {}, False),
        ("4?", {"path": 42}, False),
        ("42", {"path": 42}, True),
        ("[[]1,2]", {"path": [1, 2]}, False),
        ("[1,*]", {"path": [1, 2]}, True),
    ],
)
def test_patterns_over_arguments(pattern: str, arguments: JsonObject, *, fits: bool) -> None:
    assert ApprovalRule("write", "allow", {"/path": pattern}).covers("write", arguments) is fits
    assert not ApprovalRule("write", "allow", {"/path": pattern}).covers("read", arguments)


def test_free_text_stands_at_the_empty_pointer() -> None:
    rule = ApprovalRule("shell", "allow", {"": "ls *"})
    assert rule.covers("shell", "ls -l")
    assert not rule.covers("shell", "rm x")


def test_all_patterns_must_fit() -> None:
    rule = ApprovalRule("move", "allow", {"/from": "a/*", "/to": "b/*"})
    assert rule.covers("move", {"from": "a/1", "to": "b/1"})
    assert not rule.covers("move", {"from": "a/1", "to": "c/1"})
