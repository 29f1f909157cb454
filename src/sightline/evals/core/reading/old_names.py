"""Names that files of earlier days use for what is called otherwise now."""

from collections.abc import Mapping
from dataclasses import replace

from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node

OF_SUITE: Mapping[str, str] = {
    "eval_cases": "tests",
    "evalcases": "tests",
    "evaluators": "assertions",
    "assert": "assertions",
}
OF_CASE: Mapping[str, str] = {
    "input_messages": "input",
    "expected_messages": "expected_output",
    "outcome": "criteria",
    "evaluators": "assertions",
    "assert": "assertions",
}
OF_EXECUTION: Mapping[str, str] = {"budgetUsd": "budget_usd", "failOnError": "fail_on_error"}
OF_TRIALS: Mapping[str, str] = {"costLimitUsd": "cost_limit_usd"}


def rename_old_keys(node: Node, names: Mapping[str, str], findings: SuiteFindings) -> Node:
    """The mapping under today's names. Both names at once is an error, for only one could count."""
    old = [key for key in node.members if key in names]
    if not old:
        return node
    members, keys = dict(node.members), dict(node.keys)
    for key in old:
        new = names[key]
        if new in members:
            message = f"{key} is the old name of {new}, and both stand here"
            findings.wrong_at(node.key_place(key), (*node.path, key), message, f"Keep {new}.")
        else:
            members[new] = members[key]
            keys[new] = node.key_place(key)
        del members[key]
    return replace(node, value=members, keys=keys)
