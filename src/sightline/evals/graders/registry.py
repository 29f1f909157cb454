"""The table of graders: what reads the configuration of each type."""

from sightline.evals.graders.command import code_grader, inline_assert
from sightline.evals.graders.composite import composite
from sightline.evals.graders.field_accuracy import field_accuracy
from sightline.evals.graders.fields import Readers
from sightline.evals.graders.json_form import is_json
from sightline.evals.graders.judge import llm_grader, rubrics
from sightline.evals.graders.limits import cost, latency, token_usage
from sightline.evals.graders.metrics import execution_metrics
from sightline.evals.graders.pattern import regex
from sightline.evals.graders.phrases import (
    contains,
    contains_all,
    contains_any,
    ends_with,
    equals,
    icontains,
    icontains_all,
    icontains_any,
    starts_with,
)
from sightline.evals.graders.skill import skill_trigger
from sightline.evals.graders.trajectory import tool_trajectory

GRADERS: Readers = {
    "contains": contains,
    "contains-any": contains_any,
    "contains-all": contains_all,
    "icontains": icontains,
    "icontains-any": icontains_any,
    "icontains-all": icontains_all,
    "starts-with": starts_with,
    "ends-with": ends_with,
    "equals": equals,
    "regex": regex,
    "is-json": is_json,
    "latency": latency,
    "cost": cost,
    "token-usage": token_usage,
    "execution-metrics": execution_metrics,
    "field-accuracy": field_accuracy,
    "tool-trajectory": tool_trajectory,
    "skill-trigger": skill_trigger,
    "inline-assert": inline_assert,
    "code-grader": code_grader,
    "llm-grader": llm_grader,
    "rubrics": rubrics,
    "composite": composite,
}
