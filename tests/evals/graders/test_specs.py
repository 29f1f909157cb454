from sightline.evals.graders.registry import GRADERS
from sightline.evals.graders.specs import kind_of, name_of, read_specs
from sightline.evals.place import Problem
from sightline.evals.suite import GraderSpec
from sightline.model.json import Json
from tests.grading_stage import HERE


def read(*values: Json) -> tuple[tuple[GraderSpec, ...], tuple[Problem, ...]]:
    return read_specs(values, HERE, "assertions", GRADERS)


def test_older_suites_write_underscores() -> None:
    assert kind_of("llm_grader") == "llm-grader"


def test_texts_are_together_one_rubric_that_weighs_as_much_as_they_are_many() -> None:
    specs, problems = read("is polite", {"type": "contains", "value": "x"}, "is short")
    assert [spec.type for spec in specs] == ["rubrics", "contains"]
    assert (specs[0].weight, specs[0].config) == (2.0, {"criteria": ["is polite", "is short"]})
    assert problems == ()


def test_what_is_common_to_all_graders_is_read_apart_from_their_own() -> None:
    (spec,), problems = read(
        {"type": "contains", "value": "x", "name": "n", "weight": 2, "required": 0.5, "min_score": 0.4, "negate": True}
    )
    assert spec == GraderSpec(
        type="contains",
        name="n",
        weight=2.0,
        required=0.5,
        min_score=0.4,
        negate=True,
        config={"value": "x"},
        place=HERE,
    )
    assert problems == ()


def test_required_may_be_true_or_false() -> None:
    specs, _ = read({"type": "cost", "budget": 1, "required": True}, {"type": "cost", "budget": 1, "required": False})
    assert [spec.required for spec in specs] == [0.0, None]


def test_what_is_no_grader_is_told_with_its_path() -> None:
    _, problems = read(
        5, " ", {"value": "x"}, {"type": "cost", "weight": -1, "required": 2, "min_score": 0, "negate": 1}
    )
    assert [(each.path, each.message) for each in problems] == [
        ("assertions[0]", "a grader or a text is expected, not 5"),
        ("assertions[1]", "an empty text is no criterion"),
        ("assertions[2].type", "type is missing"),
        ("assertions[3].weight", "-1 is not at least 0"),
        ("assertions[3].required", "2 is not above 0 and at most 1"),
        ("assertions[3].min_score", "0 is not above 0 and at most 1"),
        ("assertions[3].negate", "true or false is expected, not 1"),
    ]


def test_names_that_nobody_gave_are_those_that_agentv_gives() -> None:
    assert name_of("contains", {"value": "Paris"}) == "contains-Paris"
    assert name_of("contains-any", {"value": ["a", "b"]}) == "contains-any-2"
    assert name_of("regex", {"value": "x" * 40}) == f"regex-{'x' * 30}"
    assert name_of("skill-trigger", {"skill": "pdf"}) == "skill-trigger-pdf"
    assert name_of("latency", {"threshold": 5}) == "latency"
