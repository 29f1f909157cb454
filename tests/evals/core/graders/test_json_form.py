import pytest

from sightline.model.json import JsonObject
from tests.grading_stage import seen, spec, told

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "s": {"pattern": "^a+$"}},
    "patternProperties": {"^x": {"anyOf": [{"type": "string"}]}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    ("answer", "score"),
    [('{"a": 1}', 1.0), (" [1, 2]\n", 1.0), ("5", 1.0), ("not JSON", 0.0), ('```json\n{"a": 1}\n```', 0.0), ("", 0.0)],
)
def test_an_answer_is_json_or_is_not(answer: str, score: float) -> None:
    assert seen(spec("is-json"), answer).score.score == score


def test_json_is_held_to_a_schema() -> None:
    grader = spec("is_json", schema=SCHEMA)
    assert seen(grader, '{"n": 1, "s": "aa"}').score.score == 1.0
    wrong = seen(grader, '{"n": "1"}').score
    assert (wrong.score, wrong.checks[1].evidence) == (0.0, "/n: '1' is not of type 'integer'")
    assert seen(grader, "{}").score.checks[1].evidence == "the whole: 'n' is a required property"


def test_a_schema_whose_pattern_may_never_end_is_not_followed() -> None:
    grader = spec("is-json", schema={"anyOf": [{"properties": {"s": {"pattern": "(a+)+$"}}}], "$schema": "urn:none"})
    assert seen(grader, '{"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}').score.verdict == "not_graded"


def test_a_schema_that_leads_elsewhere_is_not_followed() -> None:
    grader = spec("is-json", schema={"$ref": "http://example.com/schema.json"})
    assert seen(grader, "{}").score.reason == "the schema refers to something that cannot be followed"


def test_what_is_no_schema_is_told() -> None:
    ((path, message),) = told(spec("is-json", schema={"type": "objekt"}))
    assert path == "schema"
    assert message.startswith("this is no schema: /type: 'objekt' is not valid")
    assert told(spec("is-json", schema={"$schema": 5})) == [("schema", "$schema is no text")]
    deep: JsonObject = {}
    for _ in range(3000):
        deep = {"not": deep}
    assert told(spec("is-json", schema=deep)) == [("schema", "this schema is nested too deep")]
