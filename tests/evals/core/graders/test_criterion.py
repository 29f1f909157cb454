import pytest

from sightline.evals.core.graders.grade import GRADERS
from sightline.evals.core.graders.grader import GraderReader
from sightline.evals.core.graders.judge import RubricsConfig
from sightline.evals.core.graders.rubric import Criterion, Range, criteria_of
from sightline.model.json import Json
from tests.grading_stage import spec, told


def read(*values: Json) -> tuple[Criterion, ...]:
    config = {"criteria": list(values)}
    reader = GraderReader(spec("rubrics", **config), "it", GRADERS)
    found = reader.read(config, RubricsConfig)
    assert found is not None
    criteria = criteria_of(found.criteria, "criteria", reader)
    assert reader.problems == []
    return criteria


def wrong(*values: Json) -> list[tuple[str, str]]:
    found = told(spec("rubrics", criteria=list(values)))
    return [(path.removeprefix("criteria"), message) for path, message in found]


def test_a_sentence_is_a_criterion_that_must_hold() -> None:
    assert read(" is polite ", {"outcome": "is short"}) == (
        Criterion("rubric-1", "is polite", floor=1.0),
        Criterion("rubric-2", "is short", floor=1.0),
    )


def test_a_criterion_says_how_much_it_weighs_and_whether_it_must_hold() -> None:
    (found,) = read({"id": "a", "outcome": "x", "operator": "contradiction", "weight": 2, "required": False})
    assert found == Criterion("a", "x", "contradiction", 2.0)
    assert found.to_json == {"id": "a", "outcome": "x", "weight": 2.0, "operator": "contradiction"}


RANGES: list[Json] = [{"score_range": [0, 4], "outcome": "bad"}, {"score_range": [5, 10], "outcome": "good"}]


@pytest.mark.parametrize("ranges", [RANGES, {"0": "bad", "5": "good"}])
def test_points_are_given_by_ranges_or_by_where_they_begin(ranges: Json) -> None:
    (found,) = read({"id": "a", "score_ranges": ranges})
    assert (found.ranges, found.floor) == ((Range(0, 4, "bad"), Range(5, 10, "good")), None)
    assert found.to_json["score_ranges"] == RANGES


@pytest.mark.parametrize(
    ("settings", "floor"),
    [({"required": True}, 1.0), ({"min_score": 0.6, "required": True}, 0.6), ({"required_min_score": 7}, 0.7)],
)
def test_the_points_that_a_criterion_must_get(settings: dict[str, Json], floor: float) -> None:
    assert read({"id": "a", "score_ranges": RANGES, **settings})[0].floor == floor


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ([5], [("[0]", "criteria[0] must be text or a mapping, not 5")]),
        ([" "], [("[0]", "criteria[0] must be text or a mapping, not empty text")]),
        ([{"id": "a"}], [("[0]", 'the criterion lacks the key "outcome"')]),
        (
            [{"outcome": "x", "operator": "corectness"}],
            [("[0].operator", 'operator must be one of "contradiction", "correctness", not "corectness"')],
        ),
        ([{"outcome": "x", "wieght": 1}], [("[0].wieght", 'criteria[0] has no key "wieght"')]),
        (["x", {"id": "rubric-1", "outcome": "y"}], [("[1].id", "there are two criteria 'rubric-1'")]),
        ([{"outcome": "x", "weight": 0}], [("", "no criterion has any weight")]),
        ([{"score_ranges": RANGES[:1] * 2}], [("[0].score_ranges", "two ranges have points in common")]),
        (
            [{"outcome": "x", "score_ranges": [{"score_range": [5], "outcome": "x"}, 5]}],
            [
                (
                    "[0].score_ranges[0].score_range",
                    "score_range must be two whole numbers from 0 to 10, such as [0, 3], not a list",
                ),
                ("[0].score_ranges[1]", "score_ranges[1] must be a mapping, not 5"),
            ],
        ),
        (
            [{"score_ranges": [{"score_range": [5, 4], "outcome": "x"}]}],
            [("[0].score_ranges[0]", "this is no range of points")],
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_path(values: list[Json], problems: list[tuple[str, str]]) -> None:
    assert wrong(*values) == problems


@pytest.mark.parametrize("bounds", [{"1": "bad"}, {"0": "bad", "x": "good"}, {"00": "bad"}, {}, {"0": "a", "11": "b"}])
def test_where_points_begin_has_to_start_at_0(bounds: Json) -> None:
    assert wrong({"outcome": "x", "score_ranges": bounds}) == [
        ("[0].score_ranges", "these are no points from 0 to 10 with words")
    ]
