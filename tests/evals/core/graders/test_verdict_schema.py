from collections.abc import Iterator

import pytest
from jsonschema.validators import Draft202012Validator

from sightline.evals.core.graders.rubric import FREE, Criterion, checklist_schema, points_schema
from sightline.model.json import Json, JsonObject

CRITERIA = (Criterion("a"), Criterion("b"))


def objects(schema: Json) -> Iterator[JsonObject]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)


@pytest.mark.parametrize("schema", [FREE, checklist_schema(CRITERIA), points_schema(CRITERIA)])
def test_strict_targets_take_the_schema(schema: JsonObject) -> None:
    Draft202012Validator.check_schema(schema)
    for each in objects(schema):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])


def test_the_criteria_are_named() -> None:
    valid = Draft202012Validator(points_schema(CRITERIA)).is_valid
    good = {"checks": [{"id": "a", "reasoning": "", "score": 10}], "overall_reasoning": ""}
    assert valid(good)
    assert not valid({**good, "checks": [{"id": "z", "reasoning": "", "score": 10}]})


@pytest.mark.parametrize("schema", [FREE, checklist_schema(CRITERIA), points_schema(CRITERIA)])
def test_numbers_have_no_bounds_because_anthropic_refuses_them(schema: JsonObject) -> None:
    assert "minimum" not in str(schema)
    assert "maximum" not in str(schema)
