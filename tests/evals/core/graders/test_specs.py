from sightline.evals.core.graders.grader import kind_of, name_of


def test_older_suites_write_underscores() -> None:
    assert kind_of("llm_grader") == "llm-grader"


def test_names_that_nobody_gave_are_those_that_agentv_gives() -> None:
    assert name_of("contains", {"value": "Paris"}) == "contains-Paris"
    assert name_of("contains-any", {"value": ["a", "b"]}) == "contains-any-2"
    assert name_of("regex", {"value": "x" * 40}) == f"regex-{'x' * 30}"
    assert name_of("skill-trigger", {"skill": "pdf"}) == "skill-trigger-pdf"
    assert name_of("latency", {"threshold": 5}) == "latency"
