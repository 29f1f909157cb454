import msgspec
import pytest

from sightline.evals.core.reading.document import SuiteFindings, node_of
from sightline.evals.core.reading.grader_specs import read_list
from sightline.evals.core.suite import GraderSpec, SuitePlace
from tests.evals.core.reading.stage import FILE, case, messages_of, read


def graders(written: str) -> tuple[GraderSpec, ...]:
    reading = read(f"tests:\n  - id: a\n    input: x\n    assertions: {written}\n")
    assert reading.suite is not None, messages_of(reading)
    return reading.suite.cases[0].graders


def test_what_belongs_to_a_type_is_carried_as_it_stands() -> None:
    (spec,) = graders("[{type: contains, value: x, name: n, weight: 2, min_score: 0.5, negate: true, x-note: y}]")
    assert spec == GraderSpec(
        type="contains",
        name="n",
        weight=2,
        min_score=0.5,
        negate=True,
        config={"value": "x"},
        place=SuitePlace(FILE, 4, 18),
    )


def test_bare_texts_are_the_criteria_of_one_rubric() -> None:
    rubric, other = graders("[is polite, {type: is-json}, is short]")
    assert other.name == "is-json"
    assert rubric.config == {
        "criteria": [{"id": "rubric-1", "outcome": "is polite"}, {"id": "rubric-2", "outcome": "is short"}]
    }
    assert rubric.type == "rubrics"
    assert rubric.weight == 2  # each of the three that a person sees counts alike


def test_the_rubric_of_a_turn_weighs_as_much_as_any_other_grader() -> None:
    turn = case("turns: [{input: x, assertions: [is polite, {type: is-json}, is short]}]").turns[0]
    assert [spec.weight for spec in turn.graders] == [1, 1]


@pytest.mark.parametrize(
    ("written", "floors"),
    [
        ("required: true", (True, None)),
        ("required: true, min_score: 0.6", (True, 0.6)),
        ("required: 0.3", (0.3, None)),
        ("required: 0", (0.0, None)),
        ("min_score: 0", (None, 0.0)),
        ("required: false", (None, None)),
        ("weight: 1", (None, None)),
    ],
)
def test_what_is_required_reads_the_same_at_every_level(written: str, floors: tuple[object, object]) -> None:
    (spec,) = graders(f"[{{type: is-json, {written}}}]")
    assert (spec.required, spec.min_score) == floors
    assert type(spec.required) is type(floors[0])  # 0 is not false
    (holder,) = graders(f"[{{type: composite, assertions: [{{type: is-json, {written}}}]}}]")
    (inside,) = read_list(node_of(holder.config["assertions"], holder.place, ()), "assertions", SuiteFindings())
    assert (inside.required, inside.min_score, type(inside.required)) == (*floors, type(floors[0]))


def test_a_spec_keeps_its_floors_in_a_log() -> None:
    for required in (None, True, 0.0, 1.0):
        spec = GraderSpec(type="is-json", required=required, min_score=0.0)
        again = msgspec.json.decode(msgspec.json.encode(spec), type=GraderSpec)
        assert (again, type(again.required)) == (spec, type(required))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("contains", "assertions must be a list"),
        ("[3]", "a grader must be a mapping"),
        ("['']", "the criterion is empty"),
        ("[{value: x}]", 'a grader lacks the key "type"'),
        ("[{type: is-json, weight: -1}]", "weight must be"),
        ("[{type: is-json, required: 2}]", "required must be"),
    ],
)
def test_a_grader_that_cannot_be_one_is_refused(written: str, words: str) -> None:
    reading = read(f"tests:\n  - id: a\n    input: x\n    criteria: good\n    assertions: {written}\n")
    assert reading.suite is None
    assert any(words in each for each in messages_of(reading))


def test_graders_stand_under_execution_too() -> None:
    reading = read(
        "execution: {assertions: [{type: is-json}]}\n"
        "tests:\n  - {id: a, input: x, execution: {evaluators: [{type: contains, value: y}]}}\n"
        "  - {id: b, input: x, criteria: good, execution: {skip_defaults: true}}\n"
    )
    assert reading.suite is not None
    assert [[spec.type for spec in case.graders] for case in reading.suite.cases] == [
        ["contains", "is-json"],
        ["llm-grader"],
    ]


def test_a_suites_graders_may_name_the_variables_of_a_case() -> None:
    reading = read(
        "assertions: [{type: contains, value: '{{ word }}'}]\n"
        "tests:\n  - {id: a, input: x, vars: {word: one}}\n  - {id: b, input: x, vars: {word: two}}\n"
    )
    assert reading.suite is not None
    assert [case.graders[0].config["value"] for case in reading.suite.cases] == ["one", "two"]
