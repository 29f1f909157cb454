"""The table of graders: what reads the configuration of each type."""

from sightline.evals.core.graders.command import code_grader, inline_assert
from sightline.evals.core.graders.composite import composite
from sightline.evals.core.graders.field_accuracy import field_accuracy
from sightline.evals.core.graders.fields import Readers
from sightline.evals.core.graders.json_form import is_json
from sightline.evals.core.graders.judge import llm_grader, rubrics
from sightline.evals.core.graders.limits import cost, latency, token_usage
from sightline.evals.core.graders.metrics import execution_metrics
from sightline.evals.core.graders.pattern import regex
from sightline.evals.core.graders.phrases import (
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
from sightline.evals.core.graders.skill import skill_trigger
from sightline.evals.core.graders.trajectory import tool_trajectory

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
