from sightline.evals.core.graders.grade import GRADERS


def test_every_type_that_agentv_has_is_in_the_table() -> None:
    assert set(GRADERS) == {
        "contains", "contains-any", "contains-all", "icontains", "icontains-any", "icontains-all", "starts-with",
        "ends-with", "equals", "regex", "is-json", "latency", "cost", "token-usage", "execution-metrics",
        "field-accuracy", "tool-trajectory", "skill-trigger", "inline-assert", "code-grader", "llm-grader", "rubrics",
        "composite",
    }  # fmt: skip
